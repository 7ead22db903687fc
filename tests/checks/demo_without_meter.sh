#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo with a meter that does nothing must come to its end, name what does not hold, and fail: what it shows is the
# meter's doing, and its checks are real. The same copy of mete with the true meter passes.
set -eu
copy=$(mktemp -d "${TMPDIR:-/tmp}/mete-without.XXXXXX")
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/bin" "$copy/lib"
ln -s "$METE_BUILD_DIR/simgpu" "$copy/simgpu"
cp "$METE_BUILD_DIR"/bin/{mete,meted,mete-probe,mete-demo-program} "$copy/bin"
cp "$METE_BUILD_DIR"/lib/*.so "$copy/lib"
METE_DEMO_BUILD=$copy "$METE_SOURCE_DIR/demo.sh" --sim >"$copy/with" 2>&1 || {
  cat "$copy/with"
  echo "the copy does not work with the meter either"
  exit 1
}

# It says that it is the meter: one that does not is refused before anything runs.
c++ -std=c++20 -shared -fPIC -I"$METE_SOURCE_DIR/src" -o "$copy/nothing.so" "$METE_SOURCE_DIR/src/meter/note.cc"
for library in "$copy"/lib/*.so; do cp "$copy/nothing.so" "$library"; done
status=0
out=$(METE_DEMO_BUILD=$copy "$METE_SOURCE_DIR/demo.sh" --sim 2>&1) || status=$?
printf '%s\n' "$out"
((status == 1)) || { echo "without the meter the demo ended with $status"; exit 1; }
for what in 'cuMemGetInfo shows each a card' 'greedy is refused at its cap' 'nobody used more than its share'; do
  grep -q "FAIL  $what" <<<"$out" || { echo "it did not say that this fails: $what"; exit 1; }
done
grep -q 'ok    nothing is left' <<<"$out" || { echo "something is left"; exit 1; }
grep -q 'It does NOT hold here' <<<"$out" || { echo "it did not come to its end"; exit 1; }
