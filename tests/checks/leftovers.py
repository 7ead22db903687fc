#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds what must not stay in the tree: unfinished work, dead code, merge markers, and the clock or randomness taken
past the seams (`::now()`, `random_device` belong to src/seam, so that tests and the simulator can own time).
"""
import pathlib
import re
import sys
import tempfile

import common

CODE = {".cc", ".h", ".c", ".cu", ".S", ".def", ".py", ".sh", ".cmake", ".inc"}
HERE = pathlib.Path("tests/checks")  # names what it looks for

# (pattern, what it is, suffixes or None for all code, folders it applies to, folders where it is fine)
RULES = [
    (r"\b(TODO|FIXME|XXX|HACK)\b", "unfinished work belongs in an issue", None, (), ()),
    (r"^(<{7}|>{7}|={7})( |$)", "merge marker", None, (), ()),
    (r"^\s*#\s*if\s+0\b", "dead code", {".cc", ".h", ".c"}, (), ()),
    (r"_clock::now\(\)|\bgettimeofday\(|[^\w:.]time\((NULL|nullptr|0)\)", "the clock belongs to src/seam",
     {".cc", ".h"}, ("src",), ("src/seam",)),
    (r"\brandom_device\b|[^\w:.]s?rand\(", "randomness belongs to src/seam", {".cc", ".h"}, ("src",), ("src/seam",)),
    (r"this_thread::sleep_(for|until)", "wait for the condition, do not sleep", {".cc", ".h"}, ("src",), ("src/seam",)),
    (r"using namespace std\b", "names come one by one", {".cc", ".h"}, (), ()),
    (r"^\s*// -{12,}", "a section rule torn in two: // ---- name ----, on one line", {".cc", ".h"}, (), ()),
    (r"NOLINT(NEXTLINE|BEGIN)?(?![\w(:])", "an exception names its check or its reason", {".cc", ".h"}, (), ()),
]


def below(path: pathlib.Path, folders) -> bool:
    return any(pathlib.Path(f) in path.parents for f in folders)


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    findings, count = [], 0
    for path in common.project_files(root):
        text = common.read(root, path)
        script = text.startswith("#!")
        if (path.suffix not in CODE and path.name != "CMakeLists.txt" and not script) or HERE in path.parents:
            continue
        count += 1
        rules = [(re.compile(p), what) for p, what, kinds, only, fine in RULES
                 if (kinds is None or path.suffix in kinds) and (not only or below(path, only)) and not below(path, fine)]
        for number, line in enumerate(text.splitlines(), 1):
            findings += [f"{path}:{number}: {what}: {line.strip()[:80]}" for p, what in rules if p.search(line)]
    return count, findings


def selftest() -> int:
    cases = {
        "src/core/a.cc": "// TODO later\n", "src/core/b.cc": "#if 0\n",
        "src/core/c.cc": "auto t = std::chrono::steady_clock::now();\n", "src/core/d.cc": "std::random_device r;\n",
        "src/node/e.cc": "std::this_thread::sleep_for(1s);\n", "src/node/f.cc": "<<<<<<< HEAD\n",
        "src/node/g.cc": "f();  // NOLINT\n", "tools/script": "#!/bin/sh\n# FIXME\n",
        "src/node/h.cc": "// ---- name\n// ---------------------\n",
        "src/seam/good.cc": "auto t = std::chrono::steady_clock::now();\n", "src/core/good.cc": "int hackney = operand(1);\n",
        "src/core/good3.cc": "// ---- name ------------------------\n",
        "tests/good_test.cc": "auto t = std::chrono::steady_clock::now();\n",
        "src/core/good2.cc": "f();  // NOLINT(bugprone-x): the C interface says so\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return common.expect(check(root)[1], [n for n in cases if "good" not in n], ["good"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("leftovers", *check(common.source_dir())))
