#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every entry that the simulated drivers model is reached: called, or looked up by its name, by one of our programs, by a test
or by a program in a document. What nothing reaches is left to the weak default (CUDA_ERROR_NOT_SUPPORTED) and is not modelled.

An entry is a strong symbol of simgpu/libcuda.so.1 or simgpu/libnvidia-ml.so.1; cuGetProcAddress finds no others. Its versions and
per-thread variants are one family, which is reached when one of its names is. The meter's tables do not reach what they only
pass on (a HOOK or GATE that the driver lacks is skipped); what the meter calls by itself (CALL) is reached.

    reached.py [TREE] [--selftest]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import common

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
PROGRAMS = ("src/", "tests/", "bench/", "demo.sh", "docs/guide/", "docs/man/", "README.md")
# Declarations, lists of all names, and the simulation itself call nothing; of the meter its CALL lines count.
LISTS = ("src/simgpu/", "src/abi/", "src/meter/", "tests/checks/", "tests/e2e/nvml/abi_", "tests/fuzz/corpus/")
TABLES = ("src/meter/hooks.def", "src/meter/gates.def")


def family(name: str) -> str:
    return re.sub(r"(_v\d+)?(_pt(ds|sz))?$", "", name)


def modelled(library: pathlib.Path) -> set[str]:
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return {fields[2] for fields in map(str.split, lines) if fields[1] == "T"}


def names(text: str) -> set[str]:
    return set(re.findall(r"\b(?:cu|nvml)[A-Z]\w*", text))


def reached(root: pathlib.Path) -> set[str]:
    """The families of all names that somebody uses."""
    found = set()
    for table in TABLES:
        found |= set(re.findall(r"^\w*CALL\((\w+)\)", common.read(root, pathlib.Path(table)), re.M))
    for file in common.project_files(root):
        if not str(file).startswith(PROGRAMS) or str(file).startswith(LISTS):
            continue
        text = common.read(root, file)
        found |= names(re.sub(r"//.*", "", text) if file.suffix in (".cc", ".c", ".h", ".cu") else text)
    return {family(name) for name in found}


def check(entries: set[str], users: set[str]) -> list[str]:
    return [f"src/simgpu: nothing reaches {name}" for name in sorted(entries) if family(name) not in users]


def selftest() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        for name, text in {"src/meter/hooks.def": "HOOK(cuOnlyHooked, sync)\nCALL(cuCalled)\n", "src/meter/gates.def": "PARK_CALL(cuParkCalled)\n",
                           "src/abi/cuda_api.h": "CUresult cuDeclared(void);\n", "tests/e2e/one.cc": "cuTested_v2(p);  // cuMentioned\n",
                           "tests/e2e/two.py": "lib.nvmlAsked()\n", "docs/formats/simgpu.md": "cuDescribed\n"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        clean = {"cuCalled", "cuParkCalled", "cuTested", "cuTested_v2_ptsz", "nvmlAsked"}
        bad = {"cuOnlyHooked", "cuDeclared", "cuMentioned", "cuDescribed_v2"}
        return common.expect(check(clean | bad, reached(root)), [f"reaches {name}" for name in bad], [f"reaches {name}" for name in clean])


def main() -> int:
    if "--selftest" in sys.argv:
        return selftest()
    folder = pathlib.Path(os.environ.get("METE_BUILD_DIR", "build/release")) / "simgpu"
    entries = set().union(*(modelled(folder / library) for library in LIBRARIES))
    return common.report("reached", len(entries), check(entries, reached(common.source_dir())))


if __name__ == "__main__":
    sys.exit(main())
