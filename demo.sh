#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows the meter at work: two capped programs share one card, one of them runs past its cap. On simulated cards
# unless `--gpu` says that the first real card may be used (about 7 GiB of it, for some seconds). Builds what is
# missing first. Ends with non-zero if the cap does not hold; METE_DEMO_WITHOUT_METER=1 shows that it then does.
set -euo pipefail
cd "$(dirname "$0")"

real=0
for arg in "$@"; do
  case "$arg" in
    --gpu) real=1 ;;
    -h | --help) sed -n '3,5s/^# //p' "$0"; exit 0 ;;
    *) echo "demo.sh: unknown option $arg (known: --gpu)" >&2; exit 64 ;;
  esac
done

build=${METE_DEMO_BUILD:-build/release}
if [[ -z "${METE_DEMO_BUILD:-}" ]]; then
  ((real)) || tools/setup
  [[ -f $build/build.ninja ]] || cmake --preset release >/dev/null
  echo "building (the first time takes some minutes) ..."
  cmake --build --preset release >"$build/demo-build.log" 2>&1 || { tail -40 "$build/demo-build.log"; exit 1; }
fi
build=$(realpath "$build")
mete=$build/bin/mete
work=$(mktemp -d /tmp/mete-demo.XXXXXX)
neighbour=
cleanup() {
  exec 9>&- 2>/dev/null || true
  [[ -z "$neighbour" ]] || { kill "$neighbour" 2>/dev/null || true; wait "$neighbour" 2>/dev/null || true; }
  rm -rf "$work"
}
trap cleanup EXIT
cc -O1 -o "$work/tenant" docs/guide/examples/tenant.c -ldl

export METE_STATE_DIR=$work/state
mkdir -p -m 700 "$METE_STATE_DIR"
if ((real)); then
  where="the first real card"
  unset METE_SIM
else
  export METE_SIM=1xH200
  where="one simulated H200 (141 GB; no GPU is needed for this)"
fi

# Runs a program under a cap; without the meter, straight on the (simulated) driver.
capped() {
  local size=$1
  shift
  if [[ -n "${METE_DEMO_WITHOUT_METER:-}" ]]; then
    METE_SIM_DIR="$METE_STATE_DIR/sim" LD_LIBRARY_PATH="$build/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
  else
    "$mete" cap --gpu "$size" -- "$@"
  fi
}
fact() { sed -n "s/.*\b$2=\([^ ]*\).*/\1/p" "$1" | tail -1; }
failures=0
holds() {  # holds "what it means" CONDITION...
  local what=$1
  shift
  if "$@"; then echo "   ok    $what"; else echo "   FAIL  $what"; failures=$((failures + 1)); fi
}
say() { printf '\n%s\n' "$*"; }
shown() {  # what is run, as one would type it
  if [[ -n "${METE_DEMO_WITHOUT_METER:-}" ]]; then echo "   \$ ${*:3}      (the meter is left out)"; else echo "   \$ mete cap --gpu $*"; fi
}

say "1. A neighbour starts on $where: it may use 4 GiB and takes 2."
shown 4G -- tenant neighbour 2048 --stay
mkfifo "$work/input"
capped 4G "$work/tenant" neighbour 2048 --stay <"$work/input" >"$work/neighbour" 2>"$work/neighbour.err" &
neighbour=$!
exec 9>"$work/input"
for ((i = 0; i < 600; i++)); do
  grep -q ready=1 "$work/neighbour" && break
  kill -0 "$neighbour" 2>/dev/null || break
  sleep 0.1
done
sed 's/^/   | /' "$work/neighbour" "$work/neighbour.err"
grep -q ready=1 "$work/neighbour" || { echo "   FAIL  the neighbour did not start"; exit 1; }
holds "it holds its 2048 MiB" [ "$(fact "$work/neighbour" held_mib)" = 2048 ]
holds "it sees a card of 4096 MiB" [ "$(fact "$work/neighbour" card_mib)" = 4096 ]

say "2. Beside it, a program that may use 3 GiB wants 5."
shown 3G -- tenant greedy 5120
status=0
capped 3G "$work/tenant" greedy 5120 >"$work/greedy" 2>"$work/greedy.err" </dev/null || status=$?
sed 's/^/   | /' "$work/greedy" "$work/greedy.err"
holds "the step past its cap is refused as CUDA_ERROR_OUT_OF_MEMORY (2)" [ "$(fact "$work/greedy" refused)" = CUDA_ERROR_OUT_OF_MEMORY ]
holds "what it holds with its context stays within 3072 MiB" [ "$(fact "$work/greedy" nvml_used_mib || echo 99999)" -le 3072 ]
holds "it got at least 2048 MiB before" [ "$(fact "$work/greedy" held_mib)" -ge 2048 ]
holds "cuDeviceTotalMem, cuMemGetInfo and NVML all call it a card of 3072 MiB" \
  [ "$(fact "$work/greedy" card_mib) $(fact "$work/greedy" total_mib) $(fact "$work/greedy" nvml_total_mib)" = "3072 3072 3072" ]
sum=$(($(sed -n 2s/.*free_mib=//p "$work/greedy" | cut -d' ' -f1) + $(fact "$work/greedy" nvml_used_mib)))
holds "free by cuMemGetInfo and used by NVML add up to the card ($sum of 3072 MiB)" [ "$sum" -ge 3070 -a "$sum" -le 3073 ]
holds "its own exit status came through ($status)" [ "$status" = 2 ]

say "3. The neighbour felt nothing: it has checked its memory all the while."
exec 9>&-
code=0
wait "$neighbour" || code=$?
neighbour=
tail -1 "$work/neighbour" | sed 's/^/   | /'
holds "every byte it looked at was its own, and it ended with 0" [ "$code $(fact "$work/neighbour" correct)" = "0 1" ]

say "4. The promises, one by one, on this card."
echo "   \$ mete selftest"
status=0
"$mete" selftest >"$work/selftest" 2>&1 </dev/null || status=$?
sed 's/^/   | /' "$work/selftest"
holds "mete selftest passed" [ "$status" = 0 ]

if ((failures)); then
  say "The meter does NOT hold here: $failures of the points above failed."
  exit 1
fi
say "The cap held. Try it: METE_SIM=4xH200 $build/bin/mete cap --gpu 40% -- YOUR-DRIVER-API-PROGRAM"
echo "Programs built on the CUDA runtime (PyTorch, JAX, nvcc) need a real card: ./demo.sh --gpu, mete cap --gpu 16G -- python train.py"
echo "Queueing and reserving (mete run) come later: mete cap limits one program, it does not keep the rest for it."
