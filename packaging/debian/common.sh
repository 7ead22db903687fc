# SPDX-License-Identifier: Apache-2.0
# Functions of the maintainer scripts; packaging/cpack.cmake puts them into each script.

# True on a machine that systemd manages; not in a container or chroot.
managed() { [ -d /run/systemd/system ]; }

# running FOLDER...: pids of processes whose program lies in one of the folders or is one of the files. A program that was
# replaced or removed is shown with " (deleted)".
running() {
  for link in /proc/[0-9]*/exe; do
    program=$(readlink "$link" 2>/dev/null) || continue
    for wanted in "$@"; do
      case "${program% (deleted)}" in
        "$wanted" | "$wanted"/*)
          pid=${link#/proc/}
          echo "${pid%/exe}"
          ;;
      esac
    done
  done
}

# Pids of processes that run in a grant: the meter is loaded into them; and of the keepers of jobs.
in_a_grant() {
  grep -l "/usr/lib/mete/[0-9]*/libmete.so" /proc/[0-9]*/maps 2>/dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,'
  running /usr/libexec/mete/mete-keeper
}

# end PID...: TERM, then KILL after five seconds.
end() {
  [ $# -gt 0 ] || return 0
  kill "$@" 2>/dev/null || return 0
  tries=50
  while [ $tries -gt 0 ] && kill -0 "$@" 2>/dev/null; do
    sleep 0.1
    tries=$((tries - 1))
  done
  kill -9 "$@" 2>/dev/null || true
}
