#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/formats/simgpu.md says is not simulated is what the library leaves to its weak default, and nothing else.

    unsupported.py [--selftest]
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys


def unsupported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {fields[2] for fields in map(str.split, out.splitlines()) if fields[1] == "W"}


def documented(text):
    section = re.search(r"^## What is not$(.*?)^\|---(.*?)^$", text, re.MULTILINE | re.DOTALL).group(2)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    return re.findall(r"`([^`]+)`", " ".join(rows))


def findings(names, patterns):
    for name in sorted(names):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            yield f"{name} answers 801 and docs/formats/simgpu.md does not say so"
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            yield f"docs/formats/simgpu.md says that {pattern} is not simulated, and it is"


def main():
    if sys.argv[1:] == ["--selftest"]:
        said = documented("## What is not\n\n| names | why |\n|---|---|\n| `cuA*` `cuB` | `x` |\n\n")
        assert said == ["cuA*", "cuB"], said
        assert len(list(findings({"cuAx", "cuC"}, said))) == 2
        assert not list(findings({"cuAx", "cuB"}, said))
        return 0
    names = unsupported(pathlib.Path(os.environ["METE_BUILD_DIR"]) / "simgpu/libcuda.so.1")
    patterns = documented((pathlib.Path(os.environ["METE_SOURCE_DIR"]) / "docs/formats/simgpu.md").read_text())
    found = list(findings(names, patterns))
    print("\n".join(found + [f"unsupported: {len(names)} names, {len(patterns)} patterns, {len(found)} findings"]))
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main())
