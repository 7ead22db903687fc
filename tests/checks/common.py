# SPDX-License-Identifier: Apache-2.0
"""What the mechanical checks share: the list of files that belong to the project, and how a finding is printed.

A check prints one line per finding (`path:line: what`), ends with 1 if there was any, and refuses to pass on an
empty tree: a check that looked at nothing has not passed.
"""
import os
import pathlib
import subprocess
import sys


def source_dir() -> pathlib.Path:
    """The tree to check: first argument that is a folder, METE_SOURCE_DIR, or the tree this file lies in."""
    for arg in sys.argv[1:]:
        if os.path.isdir(arg):
            return pathlib.Path(arg)
    env = os.environ.get("METE_SOURCE_DIR")
    return pathlib.Path(env) if env else pathlib.Path(__file__).resolve().parents[2]


def project_files(root: pathlib.Path) -> list[pathlib.Path]:
    """Files of the project, relative to root: what git tracks or would track, else every file not under build*."""
    if (root / ".git").exists():
        out = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
                             capture_output=True, check=True).stdout.decode()
        names = [pathlib.Path(n) for n in out.split("\0") if n]
        return sorted(set(n for n in names if (root / n).is_file()))
    found = []
    for folder, dirs, files in os.walk(root):
        dirs[:] = [d for d in dirs if not d.startswith("build") and d not in (".git", "__pycache__")]
        found += [pathlib.Path(folder, f).relative_to(root) for f in files]
    return sorted(found)


def read(root: pathlib.Path, name: pathlib.Path) -> str:
    return (root / name).read_text(encoding="utf-8", errors="replace")


def report(check: str, looked_at: int, findings: list[str]) -> int:
    for finding in findings:
        print(finding)
    if looked_at == 0:
        print(f"{check}: found nothing to look at")
        return 1
    print(f"{check}: {looked_at} files, {len(findings)} findings")
    return 1 if findings else 0


def expect(findings: list[str], wanted: list[str], clean: list[str] = ()) -> int:
    """For the self-tests: every `wanted` text must be part of some finding, no `clean` text of any."""
    bad = 0
    for text in wanted:
        if not any(text in f for f in findings):
            print(f"self-test: nothing was found for {text!r} in {findings}")
            bad += 1
    for text in clean:
        for f in findings:
            if text in f:
                print(f"self-test: {text!r} was reported: {f}")
                bad += 1
    print("self-test:", "failed" if bad else f"{len(wanted)} bad cases were found")
    return 1 if bad else 0
