#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts for users are in plain English: no "whoever", "somebody", "nobody" and the like; a person is "you", "the user", "another user".

Looks at README.md, docs/ARCHITECTURE.md, docs/guide, docs/formats, docs/man, and at the texts of --help: the tables of verbs and
options below src/cli. Measurements, decisions (docs/adr) and CHANGELOG.md are left as they were written.
"""
import pathlib
import re
import sys
import tempfile

import common

WORDS = re.compile(r"\b(whoever|somebody|nobody|anybody|everybody|those\s+who|so\s+many|of\s+those)\b", re.I)
FOLDERS = ("docs/guide", "docs/formats", "docs/man")
FILES = ("README.md", "docs/ARCHITECTURE.md")
SUFFIXES = {".md", ".scd", ".json", ".yaml"}
TABLE = re.compile(r"(?:\bOptionSpec|\bVerb)\s*(?:k\w+)?\s*\{.*?\}", re.S)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def help_texts(text: str) -> str:
    """The file with everything blanked but the strings of its tables, so that lines keep their numbers."""
    kept = [" " if char != "\n" else char for char in text]
    for table in TABLE.finditer(text):
        for literal in LITERAL.finditer(text, *table.span()):
            kept[slice(*literal.span(1))] = literal[1].replace("\\n", "  ")
    return "".join(kept)


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    findings, count = [], 0
    for path in common.project_files(root):
        document = str(path) in FILES or (str(path.parent) in FOLDERS and path.suffix in SUFFIXES)
        table = str(path.parent) == "src/cli" and path.suffix in (".cc", ".h") and "_test" not in path.name
        if not document and not table:
            continue
        count += 1
        text = common.read(root, path)
        if table:
            text = help_texts(text)
        for found in WORDS.finditer(text):
            findings.append(f"{path}:{text.count(chr(10), 0, found.start()) + 1}: plain English: {' '.join(found[0].split())!r}")
    return count, findings


def selftest() -> int:
    cases = {
        "README.md": "Nobody waits.\n", "docs/guide/a.md": "fine\nfor those\nwho wait\n",
        "docs/man/mete-a.1.scd": "the job of somebody\n", "docs/ARCHITECTURE.md": "Anybody may read.\n",
        "docs/formats/a.schema.json": '{"description": "whoever asks"}\n',
        "src/cli/a.cc": 'OptionSpec{"--a", "",\n  "tell everybody",\n  "-a"};\n',
        "src/cli/b.cc": 'const Verb kBVerb{\n"b",\n"so many jobs",\n};\n',
        "docs/guide/good.md": "No job waits for another user.\n",
        "docs/adr/0001-good.md": "nobody\n", "docs/measurements/good.md": "nobody\n",
        "CHANGELOG.md": "good: nobody\n", "src/cli/good.cc": '// nobody\nreturn fail("nobody");\n',
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        wanted = [name for name in cases if "good" not in name and name != "CHANGELOG.md"]
        return common.expect(check(root)[1], [*wanted, "docs/guide/a.md:2", "src/cli/a.cc:2: plain English: 'everybody'"],
                             ["good", "CHANGELOG"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("words", *check(common.source_dir())))
