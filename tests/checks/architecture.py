#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ARCHITECTURE.md describes every folder of src/ and no other, and every path that it names exists.

A folder is described by a line `src/NAME/   what it holds` of the tree. A path is a word that begins with a folder of the project
(`src/net/listen.h`, `docs/adr/0007-store.md`), or with a folder of src/ (`launch/parking`, without its suffix, too). `{a,b}` and `*`
mean what they mean to a shell. In all pages of docs/, `FILE::TEXT` names a test: the file exists and has that text.
"""
import pathlib
import re
import sys
import tempfile

import common

PAGE = pathlib.Path("docs/ARCHITECTURE.md")
PLANNED = {"dialect", "proxy", "slurm"}  # named, and not in the tree yet


def spread(word: str) -> list[str]:
    """The words that {a,b} stands for."""
    if match := re.search(r"\{([^}]*)\}", word):
        return [one for part in match[1].split(",") for one in spread(word[:match.start()] + part + word[match.end():])]
    return [word]


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    text = common.read(root, PAGE)
    there = {path.parts[1] for path in common.project_files(root) if path.parts[0] == "src" and len(path.parts) > 2}
    described = dict(re.findall(r"^src/(\w+)/[ \t]*(.*)$", text, re.M))
    findings = [f"{PAGE}: src/{name}/ is not described: add a line `src/{name}/  what it holds` to the tree"
                for name in sorted(there - set(described))]
    findings += [f"{PAGE}: src/{name}/ is described, and is not in the tree: remove its line" for name in sorted(set(described) - there)]
    findings += [f"{PAGE}: src/{name}/ has a line without words" for name, what in sorted(described.items()) if not what.strip()]
    tops = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "build")))
    word = re.compile(rf"(?<![\w/.…-])((?:{'|'.join(map(re.escape, [*tops, *sorted(there | set(described))]))})/[\w./*{{}},-]*)")
    for number, line in enumerate(text.splitlines(), 1):
        for written in word.findall(line):
            for name in spread(written.rstrip(".,")):
                if name.split("/")[0] in PLANNED or re.fullmatch(r"src/\w+/", name):
                    continue
                if not any(any(root.glob(form)) for form in (name, f"src/{name}", f"src/{name}.*") if not form.endswith("/.*")):
                    findings.append(f"{PAGE}:{number}: there is no {name}")
    for page in sorted((root / "docs").rglob("*.md")):
        for name, wanted in re.findall(r"`([\w./-]+)::([^`]+)`", page.read_text(encoding="utf-8")):
            if "/" in name and (not (root / name).is_file() or wanted not in common.read(root, pathlib.Path(name))):
                findings.append(f"{page.relative_to(root)}: there is no {name}::{wanted}")
    return len(there), findings


def selftest() -> int:
    page = """src/base/   Result
src/gone/   was removed
src/empty/
Look at `src/base/text.h`, `src/base/lost.h`, base/text, base/fast, `docs/{ARCHITECTURE,OTHER}.md`, dialect/aws, `docs/*.md`. `src/new/a.cc::Lost`, `src/new/b.cc::Fact`, `src/new/a.cc::Fact`.
"""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {"src/base/text.h": "", "src/new/a.cc": "TEST(A, Fact)", "src/empty/a.cc": "", str(PAGE): page}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return common.expect(check(root)[1], ["src/new/ is not described", "src/gone/ is described, and is not in the tree",
                                              "src/empty/ has a line without words", ":4: there is no src/base/lost.h",
                                              ":4: there is no base/fast", ":4: there is no docs/OTHER.md", "there is no src/new/a.cc::Lost",
                                              "there is no src/new/b.cc::Fact"],
                             ["a.cc::Fact", "text.h", "base/text", "ARCHITECTURE.md:4: there is no docs/ARCH", "dialect", "*.md"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("architecture", *check(common.source_dir())))
