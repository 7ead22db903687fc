#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds mete and runs `mete demo`: programs share cards, one hits its cap, one waits in the queue. Options are those of
# `mete demo` (--sim, --real, --yes, -o json). Without a GPU, and without a terminal to ask, the cards are simulated.
# Ends with non-zero if something that is shown does not hold.
set -euo pipefail
cd "$(dirname "$0")"

build=${METE_DEMO_BUILD:-build/release}
if [[ -z "${METE_DEMO_BUILD:-}" ]]; then
  # Where nothing can be installed, what is there may do.
  tools/setup || tools/setup --minimal >&2
  [[ -f $build/build.ninja ]] || cmake --preset release >/dev/null
  echo "building (the first time takes some minutes) ..." >&2
  cmake --build --preset release --target shipped >"$build/demo-build.log" 2>&1 || { tail -40 "$build/demo-build.log" >&2; exit 1; }
fi
exec "$build/bin/mete" demo "$@"
