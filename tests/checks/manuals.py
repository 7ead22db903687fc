#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents that a user copies from: a manual page explains each word once, and each quoted `mete run` or `mete submit` says its share."""
import pathlib
import re
import sys
import tempfile

import common

# With a command to run, but without a share: mete refuses that.
QUOTED = re.compile(r"mete (?:run|submit) (?!.*(?:--gpu|--devices|--cpu-only|-c ))[^|`#]*-- \w")


def look(root: pathlib.Path) -> tuple[int, list[str]]:
    findings, pages = [], sorted((root / "docs" / "man").glob("*.scd"))
    guides = [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "docs" / "guide").glob("*.md"))]
    for page in pages:
        section, seen = "", {}
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("# "):
                section, seen = line, {}
            if re.fullmatch(r"\*[^*]+\*(, \*[^*]+\*)*", line):
                if line in seen:
                    findings.append(f"{page.relative_to(root)}:{number}: {line} is also in line {seen[line]} of {section[2:]}")
                seen[line] = number
    for path in [*pages, *guides]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if QUOTED.search(line.replace("*", "").replace("\\", "")):
                findings.append(f"{path.relative_to(root)}:{number}: a command without --gpu or --cpu-only: {line.strip()}")
    return len(pages) + len(guides), findings


def selftest() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs" / "man").mkdir(parents=True)
        (root / "docs" / "man" / "a.1.scd").write_text("# ENVIRONMENT\n\n*X*\n\tone\n\n*Y*\n\ttwo\n\n*X*\n\tagain\n\n# OTHER\n\n*Y*\n")
        (root / "README.md").write_text("`mete run -- true` takes 7 ms\n`mete run --gpu 40% -- true` takes 7 ms\n")
        return common.expect(look(root)[1], ["a.1.scd:9: *X* is also in line 3 of ENVIRONMENT", "README.md:1: a command without"],
                             ["*Y*", "README.md:2"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("manuals", *look(common.source_dir())))
