#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts for users are in plain English: no "whoever", "somebody", "nobody" and the like; a person is "you", "the user", "another user".

Looks at README.md, SECURITY.md, docs/ARCHITECTURE.md, docs/guide, docs/formats, docs/man, at the texts of --help: the tables of verbs and
options below src/cli, and at the comments (in Python the docstrings too) of the folders in COMMENTED.
There a sentence may not begin with "The same" in place of a noun either, and jobs wait in the queue, not "in line". Measurements,
decisions (docs/adr) and CHANGELOG.md are left as they were written.
"""
import ast
import pathlib
import re
import sys
import tempfile

import common

WORDS = re.compile(r"\b(whoever|somebody|nobody|anybody|everybody|those\s+who|so\s+many|of\s+those)\b", re.I)
FOLDERS = ("docs/guide", "docs/formats", "docs/man")
FILES = ("README.md", "SECURITY.md", "docs/ARCHITECTURE.md")
SUFFIXES = {".md", ".scd", ".json", ".yaml"}
TABLE = re.compile(r"(?:\bOptionSpec|\bVerb)\s*(?:k\w+)?\s*\{.*?\}", re.S)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENTED = ("bench/", "tools/", "tests/e2e/", "tests/sim/", "tests/support/", *(f"src/{name}/" for name in (
    "abi base cli config core daemon demo engine launch meter net node park proxy runner seam selftest serve simgpu simulate store top wire"
).split()))
IN_COMMENTS = re.compile(WORDS.pattern + r"|\bin\s+line\b(?! with)|(?:^|[.:;]\s+|\n\s*)The same(?=[,.:;]|\s+(?:and|but|for|if|in|of|through"
                         r"|where|with|without)\b)", re.I)
C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)*\'', re.S)
HASH_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#[^\n]*", re.M)


def help_texts(text: str) -> str:
    """The file with everything blanked but the strings of its tables, so that lines keep their numbers."""
    kept = [" " if char != "\n" else char for char in text]
    for table in TABLE.finditer(text):
        for literal in LITERAL.finditer(text, *table.span()):
            kept[slice(*literal.span(1))] = literal[1].replace("\\n", "  ")
    return "".join(kept)


def comments(path: pathlib.Path, text: str) -> str:
    """The file with everything blanked but its comments and docstrings, without their marks."""
    kept = [" " if char != "\n" else char for char in text]

    def keep(begin: int, end: int) -> None:
        kept[begin:end] = re.sub(r"(?m)^([ \t]*)(?://|#)", lambda mark: " " * len(mark[0]), text[begin:end])

    if path.suffix in (".cc", ".h", ".c", ".def"):
        for token in C_TOKEN.finditer(text):
            if token[0].startswith(("//", "/*")):
                keep(*token.span())
        return "".join(kept)
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python"):
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                keep(starts[node.body[0].lineno - 1], starts[node.body[0].end_lineno])
    for comment in HASH_COMMENT.finditer(text):
        keep(*comment.span())
    return "".join(kept)


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    findings, count = [], 0
    for path in common.project_files(root):
        document = str(path) in FILES or (str(path.parent) in FOLDERS and path.suffix in SUFFIXES)
        table = str(path.parent) == "src/cli" and path.suffix in (".cc", ".h") and "_test" not in path.name
        commented = str(path).startswith(COMMENTED) and (
            path.suffix in (".cc", ".h", ".c", ".def", ".py", ".sh") or path.name == "CMakeLists.txt"
            or common.read(root, path).startswith("#!"))
        if not document and not table and not commented:
            continue
        count += 1
        text = common.read(root, path)
        parts = [(text, WORDS)] if document else []
        if table:
            parts.append((help_texts(text), WORDS))
        if commented:
            parts.append((comments(path, text), IN_COMMENTS))
        for part, words in parts:
            for found in words.finditer(part):
                line = part.count("\n", 0, found.start()) + 1
                findings.append(f"{path}:{line}: plain English: {' '.join(found[0].split())!r}")
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
        "CHANGELOG.md": "good: nobody\n", "src/cli/good.cc": '// no user\nreturn fail("nobody");\n',
        "src/cli/c.cc": 'OptionSpec{"--c", "", "tell them"};  // nobody\n', 
        "src/core/job/a.cc": "// Of those, the last.\n", "src/meter/a.cc": 'int a;  // whoever asks\n', "src/abi/a.h": "// For those\n// who wait.\nint a;\n",
        "src/launch/a.h": "// Forgets. The same, later.\nvoid a();\n", "tests/sim/a.cc": "/* the first in line */\n",
        "tests/e2e/a_test.py": 'def a():\n    """Nobody asks."""\n', "bench/a": "#!/bin/sh\ntrue # so many jobs\n",
        "src/node/good.cc": '// The same bytes: not "x".\nconst char* a = "// nobody";\nchar b = \'"\';  // in line with it\n',
        "tests/e2e/good_test.py": 'a = "nobody"  # no user\nif a in line: pass\n', "src/bin/good.cc": "// nobody, yet\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        wanted = [name for name in cases if "good" not in name and name != "CHANGELOG.md"]
        return common.expect(check(root)[1], [*wanted, "docs/guide/a.md:2", "src/cli/a.cc:2: plain English: 'everybody'",
                                                "src/abi/a.h:1: plain English: 'those who'"],
                             ["good", "CHANGELOG"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("words", *check(common.source_dir())))
