#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every entry point of the CUDA driver is classified: a hook of the meter (src/meter/hooks.def), or in harmless.txt with a reason.

    complete.py [TREE] [--cuda-h FILE] [--selftest]

Looks at src/abi/cuda_symbols.def and, where a toolkit is installed (or METE_CUDA_H or --cuda-h names one), at its cuda.h: a new
CUDA version that brings a function nobody looked at fails here, before it becomes a way past the cap.
"""
import os
import pathlib
import re
import sys

import common

HEADERS = ("/usr/local/cuda/include/cuda.h", "/usr/include/cuda.h")


def hooks(text: str) -> set[str]:
    return set(re.findall(r"^HOOK\((cu\w+),", text, re.M))


def symbols(text: str) -> set[str]:
    return set(re.findall(r"^CUDA_(?:SYMBOL|VERSIONED)\((?:.*, )?(cu\w+)\)", text, re.M))


def header_names(text: str) -> set[str]:
    """What a cuda.h declares, with the versions and per-thread variants that its macros stand for."""
    names = set(re.findall(r"\bCUDAAPI\s+(cu\w+)\s*\(", text))
    names |= set(re.findall(r"^\s*#\s*define\s+cu\w+\s+(cu[A-Z]\w*)\s*$", text, re.M))
    for variant, name in re.findall(r"^\s*#\s*define\s+cu\w+\s+__CUDA_API_PT(DS|SZ)\s*\(\s*(cu\w+)\s*\)", text, re.M):
        names |= {name, f"{name}_pt{variant.lower()}"}
    return names - set(re.findall(r"^static inline CUresult (cu\w+)\(", text, re.M))  # code of the header itself


def harmless(text: str) -> tuple[dict[str, str], list[str]]:
    """The list, and what is wrong with it."""
    classes, names, findings = set(), {}, []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"tests/checks/harmless.txt:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if declared := re.fullmatch(r"class ([a-z-]+): (\S.*)", line):
            classes.add(declared[1])
        elif entry := re.fullmatch(r"(cu\w+) ([a-z-]+)", line):
            if entry[1] in names:
                findings.append(f"{where}: {entry[1]} is there twice")
            if entry[2] not in classes:
                findings.append(f"{where}: no class {entry[2]}")
            names[entry[1]] = entry[2]
        else:
            findings.append(f"{where}: not understood: {line}")
    return names, findings


def check(hooked: set[str], listed: str, known: set[str], sources: dict[str, set[str]]) -> list[str]:
    """`known`: what the driver exports by our table. `sources`: names by where they come from."""
    names, findings = harmless(listed)
    for name in sorted(hooked & set(names)):
        findings.append(f"{name} is a hook and called harmless")
    for name in sorted(set(names) - known):
        findings.append(f"{name} is called harmless, but no driver exports it")
    for name in sorted(hooked - known):
        findings.append(f"{name} is a hook, but src/abi/cuda_symbols.def does not have it: nobody reaches it")
    for source, found in sources.items():
        for name in sorted(found - hooked - set(names)):
            findings.append(f"{source}: nobody has classified {name}: hook it, or say in tests/checks/harmless.txt why not")
    return findings


def header_file() -> pathlib.Path | None:
    if "--cuda-h" in sys.argv:
        return pathlib.Path(sys.argv[sys.argv.index("--cuda-h") + 1])
    if os.environ.get("METE_CUDA_H"):
        return pathlib.Path(os.environ["METE_CUDA_H"])
    home = os.environ.get("CUDA_HOME")
    for candidate in ([f"{home}/include/cuda.h"] if home else []) + list(HEADERS):
        if os.path.exists(candidate):
            return pathlib.Path(candidate)
    return None


def selftest() -> int:
    header = """
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocAsync __CUDA_API_PTSZ(cuMemAllocAsync)
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);
CUresult CUDAAPI cuMemAllocTomorrow(CUdeviceptr *dptr, size_t bytesize);
static inline CUresult cuInTheHeader(int) {}
#define cuSomething cuInTheHeader
CUresult CUDAAPI cuMemcpyTomorrow(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
"""
    listed = "class copies: moves bytes\ncuMemcpyTomorrow copies\ncuGone copies\ncuInit copies\ncuInit copies\ncuOdd nowhere\nwhat is this?\n"
    hooked = hooks("HOOK(cuMemAlloc, allocates)\nHOOK(cuMemAllocAsync, allocates)\nHOOK(cuInit, context)\nHOOK(cuLost, frees)\nCALL(cuOnlyCalled)\n")
    known = symbols("".join(f"CUDA_SYMBOL({n})\n" for n in ("cuMemAlloc", "cuMemAllocAsync", "cuInit", "cuMemcpyTomorrow", "cuOdd", "cuNew")))
    findings = check(hooked, listed, known, {"cuda.h": header_names(header), "cuda_symbols.def": known})
    return common.expect(findings, [
        "cuda.h: nobody has classified cuMemAllocTomorrow", "cuda.h: nobody has classified cuMemAlloc_v2",
        "cuda.h: nobody has classified cuMemAllocAsync_ptsz", "cuda_symbols.def: nobody has classified cuNew",
        "cuInit is a hook and called harmless", "cuInit is there twice", "cuGone is called harmless", "no class nowhere",
        "not understood: what is this?", "cuLost is a hook, but"], ["classified cuMemcpyTomorrow", "classified cuMemAllocAsync:", "cuInTheHeader"])


def main() -> int:
    if "--selftest" in sys.argv:
        return selftest()
    root = common.source_dir()
    known = symbols((root / "src/abi/cuda_symbols.def").read_text())
    hooked = hooks((root / "src/meter/hooks.def").read_text())
    sources = {"src/abi/cuda_symbols.def": known}
    header = header_file()
    if header is not None:
        sources[str(header)] = header_names(header.read_text(errors="replace"))
    for source, names in sources.items():
        print(f"complete: {len(names)} names in {source}")
        if len(names) < 400:
            print(f"complete: {source} has too few names to be the driver's interface")
            return 1
    if header is None:
        print("complete: no cuda.h is installed here; only our own table was looked at")
    return common.report("complete", len(hooked), check(hooked, (root / "tests/checks/harmless.txt").read_text(), known, sources))


if __name__ == "__main__":
    sys.exit(main())
