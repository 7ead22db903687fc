#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ordinary programs reach the simulated driver: linked, by dlopen under both names, by ctypes, and with
# AddressSanitizer inside. Each must see a 3 MiB block take exactly 4 MiB.
set -eu
programs=$1
simgpu=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export METE_SIM=1xH200 METE_SIM_DIR="$folder/sim" METE_SIM_IDLE_MS=300
export LD_LIBRARY_PATH="$simgpu"

expect() {
  got=$("$@") || { echo "failed: $*" >&2; exit 1; }
  [ "$got" = 4194304 ] || { echo "$*: $got bytes instead of 4194304" >&2; exit 1; }
}

expect "$programs/simgpu_program_plain"
expect "$programs/simgpu_program_plain" dlopen libcuda.so.1
expect "$programs/simgpu_program_plain" dlopen libcuda.so
expect "$programs/simgpu_program_plain" dlopen "$simgpu/libcuda.so.1"
expect "$programs/simgpu_program_asan"
expect "$programs/simgpu_program_asan" dlopen libcuda.so.1
here=$(dirname "$0")
expect python3 "$here/program.py" libcuda.so.1
expect python3 "$here/program.py" libcuda.so

# Only the driver's names are exported, and only libc is needed.
needed=$(readelf -d "$simgpu/libcuda.so.1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort -u)
# Before glibc 2.34 libdl and libpthread were files of their own.
[ "$(echo $needed)" = "libc.so.6" ] || [ "$(echo $needed)" = "libc.so.6 libdl.so.2 libpthread.so.0" ] || { echo "libcuda.so.1 needs: $needed" >&2; exit 1; }
foreign=$(nm -D --defined-only "$simgpu/libcuda.so.1" | awk '{print $3}' | grep -v '^cu' || true)
[ -z "$foreign" ] || { echo "libcuda.so.1 shows: $foreign" >&2; exit 1; }
readelf -d "$simgpu/libcuda.so.1" | grep -q SYMBOLIC || { echo "not linked -Bsymbolic" >&2; exit 1; }
