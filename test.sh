#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests mete. Ends with one line, `N passed, N failed, N skipped`, and non-zero unless everything passed.
#   ./test.sh         release build; unit, simulation and end-to-end tests
#   ./test.sh --full  also with address and thread sanitizers, fuzzers (60 s each), the arm64 build, long tests
#   ./test.sh --full --only STAGE  one stage alone: release, long, asan, tsan, fuzz or arm64
# METE_TEST_JOBS (2) tests run at once; METE_FUZZ_SECONDS (60) per fuzzer. Nothing here needs a GPU (tests/gpu/run does).
set -uo pipefail
cd "$(dirname "$0")" || exit 1

full=0 only=
while (($#)); do
  case "$1" in
    --full) full=1 ;;
    --only) only=${2:-} && shift ;;
    -h | --help) sed -n '3,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown option $1 (known: --full, --only STAGE)" >&2; exit 64 ;;
  esac
  shift
done
case "$only" in
  '' | release) ;;
  long | asan | tsan | fuzz | arm64) ((full)) || { echo "test.sh: the stage $only is one of --full" >&2; exit 64; } ;;
  *) echo "test.sh: no stage $only (there are release, long, asan, tsan, fuzz and arm64)" >&2; exit 64 ;;
esac
jobs=${METE_TEST_JOBS:-2}
passed=0 failed=0 skipped=0 stages=()
# A machine that has everything (root on Debian 12, as the CI is): there a skipped test is a failure, but for those
# in tests/checks/allowed_skips.txt.
strict=()
((EUID)) || ! grep -qs '^VERSION_ID="12"' /etc/os-release || ! grep -qs '^ID=debian' /etc/os-release || strict=(--strict)
# Cluster traces, where there are any: a few tests replay them, and are skipped without.
traces=${METE_TRACES:-$PWD/../shared/traces/openb}
[[ ! -d $traces ]] || export METE_TRACES=$traces

# stage NAME COMMAND...: runs it, keeps its time for the table at the end.
stage() {
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  stages+=("$(printf '%-28s %5d s  %s' "$name" $((SECONDS - start)) "$( ((status)) && echo FAILED || echo ok)")")
  return "$status"
}

# What is not a ctest run counts as one test.
once() { if stage "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); return 1; fi; }

# build PRESET [TARGET]
build() {
  [[ -f build/$1/build.ninja ]] || cmake --preset "$1" >/dev/null || return 1
  cmake --build --preset "$1" ${2:+--target "$2"} -- -k 0 | { grep -v '^\[' || true; }
}

# skips PRESET: what the last run skipped: `cases` of it, `whole` tests, `lost` that should not have been.
skips() {
  local said
  said=$(python3 tests/checks/skips.py "build/$1/Testing/Temporary/LastTest.log" "${strict[@]}")
  echo "$said"
  read -r cases whole lost < <(sed -n 's/^skips: \([0-9]*\) cases, \([0-9]*\) whole tests, \([0-9]*\) unexpected$/\1 \2 \3/p' <<<"$said")
  [[ -n "${lost:-}" ]] || { echo "test.sh: skips.py did not say"; cases=0 whole=0 lost=1; }
}

# tests PRESET LABEL-REGEX must|may: `may`: it is fine if there are none.
tests() {
  local preset=$1 label=$2 need=$3 log total bad cases whole lost status=0 at_once=$jobs
  [[ $label != e2e ]] || at_once=$((2 * jobs))  # these wait more than they work
  log=build/$preset/ctest-$label.log
  log=${log//|/-}
  ctest --preset "$preset" -L "^($label)$" -j "$at_once" --no-tests=error 2>&1 | tee "$log" | grep -vE '^ *Start |^$|^Test project' || true
  if grep -q 'No tests were found' "$log"; then
    [[ $need == may ]] && { echo "no $label tests"; return 0; }
    echo "no $label tests found: that is a failure"
    failed=$((failed + 1))
    return 1
  fi
  read -r bad total < <(sed -n 's/.* \([0-9]*\) tests failed out of \([0-9]*\).*/\1 \2/p' "$log")
  [[ -n "${total:-}" ]] || { failed=$((failed + 1)); return 1; }
  skips "$preset"
  failed=$((failed + bad + lost)) passed=$((passed + total - bad - whole)) skipped=$((skipped + cases))
  ((bad + lost == 0)) || status=1
  return "$status"
}

fuzz() {
  local fuzzer=$1 name corpus work
  name=$(basename "$fuzzer")
  work=build/fuzz/corpus/$name
  mkdir -p "$work"
  corpus=tests/fuzz/corpus/${name#fuzz_}
  [[ -d $corpus ]] || corpus=tests/fuzz/corpus/${name%_fuzz}
  [[ -d $corpus ]] || corpus=
  "$fuzzer" -max_total_time="${METE_FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$work-" "$work" $corpus >"$work.log" 2>&1 || { tail -40 "$work.log"; echo "FAILED $name"; return 1; }
  echo "ok $name, $(sed -n 's/^stat::number_of_executed_units: *//p' "$work.log") executions"
}

# All of them, as many at once as tests.
fuzzers() {
  local log=build/fuzz/fuzzers.log
  export -f fuzz
  find build/fuzz/{bin,tests,fuzz} -maxdepth 1 -type f -executable -name '*fuzz*' 2>/dev/null | sort |
    xargs -r -P "$jobs" -I{} bash -c 'fuzz {}' 2>&1 | tee "$log"
  passed=$((passed + $(grep -c '^ok ' "$log"))) failed=$((failed + $(grep -c '^FAILED ' "$log")))
  grep -q '^ok ' "$log" || { echo "no fuzzers ran: that is a failure"; failed=$((failed + 1)); }
  ! grep -q '^FAILED ' "$log"
}

arm64() {
  build arm64 || return 1
  local file
  for file in build/arm64/lib/libmete.so build/arm64/bin/mete; do
    [[ -e $file ]] || continue
    readelf -h "$file" | grep -q AArch64 || { echo "$file is not arm64"; return 1; }
  done
  [[ ! -x build/arm64/bin/mete ]] || ! command -v qemu-aarch64 >/dev/null ||
    qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm64/bin/mete version
}

# wanted STAGE: whether it runs.
wanted() { [[ -z $only || $only == "$1" ]] && { ((full)) || [[ $1 == release ]]; }; }

setup=(tools/setup)
((full)) && setup+=(--arm64 --packages)
stage "set-up" "${setup[@]}" || exit 1
if { wanted release || wanted long; } && once "build release" build release; then
  if wanted release; then
    stage "unit" tests release unit must
    stage "simulation" tests release sim may
    stage "end to end" tests release e2e must
  fi
  wanted long && stage "long tests" tests release long must  # more steps, more kills, more rounds
fi
for preset in asan tsan; do
  wanted $preset && once "build $preset" build $preset && stage "tests, $preset" tests $preset 'unit|sim|e2e' must
done
wanted fuzz && once "build fuzz" build fuzz fuzzers && stage "fuzzers" fuzzers
wanted arm64 && once "build arm64" arm64

printf '\n'
printf '%s\n' "${stages[@]}" "$(printf '%-28s %5d s' "in all" "$SECONDS")"
((passed + failed)) || { echo "no tests found: that is a failure"; failed=1; }
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
