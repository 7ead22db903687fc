#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-format has nothing to change in any C++ or C file of the project. `--selftest`: a badly formatted file is
# found. Ends with 77 (skipped) where clang-format is not installed; tables (*.def) are laid out by hand.
set -uo pipefail
command -v clang-format >/dev/null || { echo "format: clang-format is not installed"; exit 77; }

if [[ "${1:-}" == --selftest ]]; then
  folder=$(mktemp -d) || exit 1
  trap 'rm -rf "$folder"' EXIT
  printf 'int  main( ){return 0 ;}\n' >"$folder/bad.cc"
  if clang-format --style=Google --dry-run -Werror "$folder/bad.cc" 2>/dev/null; then
    echo "self-test: a badly formatted file passed"
    exit 1
  fi
  echo "self-test: a badly formatted file was found"
  exit 0
fi

cd "${METE_SOURCE_DIR:-$(dirname "$0")/../..}" || exit 1
mapfile -t files < <(
  if [[ -e .git ]]; then git ls-files -co --exclude-standard -- '*.cc' '*.h' '*.c'
  else find src tests bench docs -name '*.cc' -o -name '*.h' -o -name '*.c'; fi | sort -u | xargs -r ls -d 2>/dev/null)
((${#files[@]})) || { echo "format: found nothing to look at"; exit 1; }
# Some files a process: starting it takes longer than reading one file.
bad=$(printf '%s\0' "${files[@]}" | xargs -0 -n 40 -P 2 clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error:.*/\1/p' | sort -u) || bad=${bad:-clang-format}
[[ -z $bad ]] || printf '%s: run clang-format -i\n' $bad
echo "format: ${#files[@]} files, $(printf '%s' "${bad:+$bad$'\n'}" | grep -c .) findings"
[[ -z $bad ]]
