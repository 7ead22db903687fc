#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every way to take or share memory has its line in docs/formats/park.md: what happens to it while a process is parked.

    parking.py [TREE] [--selftest]
"""
import re
import sys

import common

KINDS = ("allocates", "share")


def families(text: str) -> set[str]:
    """The hooks that take or share memory, without versions and per-thread variants."""
    names = re.findall(rf"^HOOK\((cu\w+), (?:{'|'.join(KINDS)})\)", text, re.M)
    return {re.sub(r"(_v\d+)?(_pt(ds|sz))?$", "", name) for name in names}


def check(hooks: str, document: str) -> list[str]:
    table = document.split("## Memory of a parkable process", 1)[-1].split("\n## ", 1)[0]
    told = set(re.findall(r"`(cu\w+)`", table))
    return [f"docs/formats/park.md: nothing is said of {name}" for name in sorted(families(hooks) - told)]


def selftest() -> int:
    hooks = "HOOK(cuMemAlloc_v2, allocates)\nHOOK(cuMemMap, share)\nHOOK(cuCtxSynchronize, sync)\n"
    return common.expect(check(hooks, "## Memory of a parkable process\n`cuMemAlloc`\n## Else\n`cuMemMap`\n"),
                         ["nothing is said of cuMemMap"],
                         ["cuMemAlloc", "cuCtxSynchronize"])


def main() -> int:
    if "--selftest" in sys.argv:
        return selftest()
    root = common.source_dir()
    hooks = (root / "src/meter/hooks.def").read_text()
    return common.report("parking", len(families(hooks)), check(hooks, (root / "docs/formats/park.md").read_text()))


if __name__ == "__main__":
    sys.exit(main())
