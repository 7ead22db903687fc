#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs mete from this folder, or removes it again. Needs no root and no other package but glibc 2.34 or newer.
#   ./install.sh [--prefix DIR]              into DIR (default: ~/.local, for root /usr/local)
#   ./install.sh --uninstall [--prefix DIR]  removes exactly what was installed there
# mete also runs from this folder as it is: bin/mete. An upgrade is another ./install.sh: jobs that run go on. All files are copied
# beside their places first and then renamed, so that a full disk leaves the previous version whole.
set -eu
umask 022

fail() { echo "install.sh: $1" >&2; shift; for line in "$@"; do echo "  $line" >&2; done; exit 1; }
usage() { sed -n '4,5s/^# \{0,1\}//p' "$0"; }

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
prefix= uninstall=0
while [ $# -gt 0 ]; do
  case "$1" in
    --prefix) [ $# -ge 2 ] || { usage >&2; exit 64; }; prefix=$2; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --uninstall) uninstall=1 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "install.sh: unknown option $1" >&2; usage >&2; exit 64 ;;
  esac
  shift
done
if [ -z "$prefix" ]; then
  if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
fi
case "$prefix" in /*) ;; *) prefix=$PWD/$prefix ;; esac
list=$prefix/share/mete/installed

# Programs of this prefix that run, and processes that have its meter loaded.
in_use() {
  for link in /proc/[0-9]*/exe; do
    program=$(readlink "$link" 2>/dev/null) || continue
    case "${program% (deleted)}" in "$prefix"/libexec/mete/mete-keeper) pid=${link#/proc/}; echo "${pid%/exe}" ;; esac
  done
  grep -l "$prefix/lib/mete/[0-9][0-9]*/libmete" /proc/[0-9]*/maps 2>/dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,' || true
}

if [ $uninstall = 1 ]; then
  [ -f "$list" ] || fail "mete is not installed in $prefix" "there is no $list" "name its prefix: ./install.sh --uninstall --prefix DIR"
  jobs=$(in_use | sort -un | tr '\n' ' ')
  [ -z "$jobs" ] || fail "jobs still run, and nothing is removed" "processes: $jobs" "wait for them (mete ps), or end them: mete cancel ID"
  "$prefix/bin/mete" daemon stop >/dev/null 2>&1 || true
  files=$(cat "$list")  # the list is one of its files
  echo "$files" | while IFS= read -r file; do rm -f "$prefix/$file"; done
  # Folders that are empty now, the deepest first; folders of other programs are not.
  echo "$files" | sed 's,/[^/]*$,,' | sort -ru | while IFS= read -r folder; do
    while [ -n "$folder" ] && [ "$folder" != . ] && rmdir "$prefix/$folder" 2>/dev/null; do
      case "$folder" in */*) folder=${folder%/*} ;; *) folder= ;; esac
    done
  done
  echo "mete is removed from $prefix. The state of its jobs stays: ${XDG_STATE_HOME:-${HOME:-~}/.local/state}/mete"
  exit 0
fi

[ -x "$here/bin/mete" ] || fail "this folder is not complete: bin/mete is missing" "unpack the archive again"
case "$prefix" in *[\ :\$]*) fail "mete cannot be installed below $prefix" "the dynamic loader takes no path with a space, a colon or a dollar sign" "choose another one: ./install.sh --prefix DIR" ;; esac
"$here/bin/mete" version >/dev/null 2>&1 || fail "bin/mete does not run on this machine" "$("$here/bin/mete" version 2>&1 | head -1)" "it needs glibc 2.34 or newer and the processor of this archive ($(uname -m) here)"
new=$(sed -n 's/^version=//p' "$here/share/mete/release")
if [ -f "$prefix/share/mete/release" ]; then
  old=$(sed -n 's/^version=//p' "$prefix/share/mete/release")
  if [ "$old" != "$new" ] && [ "$(printf '%s\n%s\n' "$old" "$new" | sort -V | tail -1)" = "$old" ] && [ -z "${METE_ALLOW_DOWNGRADE:-}" ]; then
    fail "mete $old is installed in $prefix, and this is the older $new" "an older mete cannot read the state that a newer one has written" \
      "to go back all the same: remove the newer one (./install.sh --uninstall), move its state away, install, mete daemon restore FILE"
  fi
fi
mkdir -p "$prefix" 2>/dev/null || fail "cannot make $prefix" "choose a folder of your own: ./install.sh --prefix DIR"
[ -w "$prefix" ] || fail "cannot write in $prefix" "choose a folder of your own: ./install.sh --prefix DIR"
if [ "$here" = "$(CDPATH='' cd -- "$prefix" && pwd -P)" ]; then fail "this folder is the prefix itself" "mete runs from here as it is: $here/bin/mete"; fi

# 1. Everything is copied beside its place. Until all of it is there nothing is changed.
staged=$(mktemp -d "$prefix/.mete-install.XXXXXX") || fail "cannot make a folder in $prefix"
trap 'rm -rf "$staged"' EXIT
trap 'exit 1' HUP INT TERM
for name in bin lib libexec share; do
  why=$(cp -RP "$here/$name" "$staged/" 2>&1) || fail "cannot copy $name to $prefix; nothing was changed" "$(echo "$why" | head -1)"
done
if [ "$(id -u)" = 0 ] && [ "$prefix" = /usr/local ]; then
  sed -i "s,^ExecStart=[^ ]*,ExecStart=$prefix/bin/meted," "$staged/lib/systemd/system/meted.service"
else
  rm -rf "$staged/lib/systemd" "$staged/lib/sysusers.d" "$staged/lib/tmpfiles.d"  # only root has services of the machine
fi
(cd "$staged" && { find bin lib libexec share -type f -o -type l; echo share/mete/installed; } | LC_ALL=C sort -u) >"$staged/list"
cp "$staged/list" "$staged/share/mete/installed"
: >"$staged/old"
[ ! -f "$list" ] || cp "$list" "$staged/old"
while IFS= read -r file; do
  if [ -d "$prefix/$file" ] && [ ! -L "$prefix/$file" ]; then fail "$prefix/$file is a folder; nothing was changed" "remove it, or choose another prefix"; fi
done <"$staged/list"
sed 's,/[^/]*$,,' "$staged/list" | sort -u >"$staged/folders"
while IFS= read -r folder; do
  why=$(mkdir -p "$prefix/$folder" 2>&1) || fail "cannot make $prefix/$folder; no file was changed" "$why"
done <"$staged/folders"

# 2. Renames, libraries before programs. A process that runs keeps the files that it has open.
{ grep '^lib/' "$staged/list"; grep -v '^lib/' "$staged/list"; } >"$staged/order"
while IFS= read -r file; do mv -f "$staged/$file" "$prefix/$file"; done <"$staged/order"

# 3. Files that only the earlier version had. A meter stays while a process of a job may load it again.
jobs=$(in_use | head -1)
while IFS= read -r file; do
  grep -qxF "$file" "$staged/list" && continue
  case "$file" in lib/mete/[0-9]*) [ -z "$jobs" ] || { echo "$file" >>"$list"; continue; } ;; esac
  rm -f "$prefix/$file"
done <"$staged/old"

echo "mete $new is installed in $prefix."
case ":${PATH:-}:" in *":$prefix/bin:"*) ;; *) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;; esac
other=$(command -v mete || true)
[ -z "$other" ] || [ "$other" = "$prefix/bin/mete" ] || echo "Note: your shell finds another mete first: $other"
echo "Try it: $prefix/bin/mete doctor"
