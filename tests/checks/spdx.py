#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file and script says its licence in its first lines: `SPDX-License-Identifier: Apache-2.0`."""
import pathlib
import sys
import tempfile

import common

SUFFIXES = {".cc", ".h", ".c", ".cu", ".S", ".s", ".def", ".inc", ".in", ".py", ".sh", ".cmake", ".map", ".ld", ".lds", ".ver"}
NAMES = {"CMakeLists.txt", ".clang-tidy"}
LINE = "SPDX-License-Identifier: Apache-2.0"


def needs_line(path: pathlib.Path, text: str) -> bool:
    if path.parts[:3] == ("tests", "fuzz", "corpus"):  # bytes to be read, whatever they look like
        return False
    return path.suffix in SUFFIXES or path.name in NAMES or text.startswith("#!")


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    findings, count = [], 0
    for path in common.project_files(root):
        text = common.read(root, path)
        if not needs_line(path, text):
            continue
        count += 1
        if LINE not in "\n".join(text.splitlines()[:3]):
            findings.append(f"{path}:1: no SPDX line in the first three lines")
    return count, findings


def selftest() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "bad.cc").write_text("int x;\n")
        (root / "late.py").write_text("\n" * 9 + "# " + LINE)
        (root / "script").write_text("#!/bin/sh\ntrue\n")
        (root / "good.h").write_text(f"// {LINE}\n")
        (root / "tests/fuzz/corpus").mkdir(parents=True)
        (root / "tests/fuzz/corpus/good_seed").write_text("#!/bin/sh\ntrue\n")
        (root / "good.md").write_text("prose has no such line\n")
        return common.expect(check(root)[1], ["bad.cc", "late.py", "script"], ["good"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("spdx", *check(common.source_dir())))
