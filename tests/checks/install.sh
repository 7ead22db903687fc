#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts under a prefix works from there: every program finds its parts relative to itself, manual pages and
# completions are in place, and the daemon's unit starts a program that exists.
set -euo pipefail
build=${METE_BUILD_DIR:?run by ctest}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null

fail() { echo "install: $1" >&2; exit 1; }
[[ "$("$prefix/bin/mete" version)" == "$("$build/bin/mete" version)" ]] || fail "mete does not run from the prefix"
"$prefix/bin/mete" demo --sim -o json >"$prefix/demo.json" 2>"$prefix/demo.log" || { cat "$prefix/demo.log"; fail "the demo fails from the prefix"; }
for verb in run cap ps cards daemon config doctor demo selftest; do
  [[ -s "$prefix/share/man/man1/mete-$verb.1" ]] || fail "there is no manual page of mete $verb"
done
[[ -s "$prefix/share/bash-completion/completions/mete" ]] || fail "there is no completion for bash"
"$prefix/bin/mete" advise --gpu 1 >/dev/null || fail "the tables of types are not found"
[[ "$("$prefix/libexec/mete/mete-keeper" --version)" == "mete-keeper "* ]] || fail "there is no keeper"
[[ "$("$prefix/libexec/mete/mete-mover" --version)" == "mete-mover "* ]] || fail "there is no mover"
[[ "$("$prefix/libexec/mete/mete-checkpoint" --version)" == "mete-checkpoint "* ]] || fail "there is no checkpoint"
[[ -s "$prefix/share/mete/mete.rules.yml" && -s "$prefix/share/mete/mete.json" ]] || fail "there are no rules or no dashboard"
unit=$prefix/lib/systemd/system/meted.service
started=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
[[ "$started" == */bin/meted && -x "$prefix/bin/$(basename "$started")" ]] || fail "the unit starts '$started'"
grep -q '^KillMode=process$' "$unit" || fail "the daemon's end would end the jobs"
echo "install: all there"
