#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `nm -D` and `readelf -d` of the libraries that go into other people's processes with what we mean to
export and need. Arguments: the build folder (default METE_BUILD_DIR).

The meter (SONAME libcuda.so.1, below lib/): exports all of cuda_symbols.def and nvml_symbols.def and nothing that is
not cu*/nvml*; needs glibc alone, nothing newer than GLIBC_2.17; can never be unloaded. Its aliases: the three
other names under which programs ask for the drivers, without a symbol of their own. The simulated drivers (below
simgpu/): the same rules for exports and needs, and symbols bound to themselves. Their server needs nothing at all.
Programs (bin/) need glibc alone, nothing newer than GLIBC_2.34; sanitized ones are not looked at.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import common

# libdl.so.2 is glibc itself: where dlopen lived before 2.34, an empty file since.
LIBC = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEWEST_GLIBC = (2, 17)
NEWEST_FOR_PROGRAMS = (2, 34)
METER = "libcuda.so.1"
ALIASES = {"libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"}


class Library:
    """What the dynamic section and the dynamic symbol table of one file say."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
        self.soname = next(iter(re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)), "")
        self.needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        self.flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s*(.*)", dynamic)) + (" SYMBOLIC" if "(SYMBOLIC)" in dynamic else "")
        self.textrel = "TEXTREL" in dynamic
        symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout.splitlines()
        self.defined, self.versions = set(), {}
        for line in symbols:
            fields = line.split()
            kind, name = fields[-2], fields[-1]
            if kind in "Uwv":
                for version in re.findall(r"@GLIBC_([0-9.]+)", name):
                    self.versions[name] = tuple(int(n) for n in version.split("."))
            elif kind != "A":  # an absolute symbol is the name of a version node
                self.defined.add(re.sub(r"@.*", "", name))


def names(path: pathlib.Path, macro: str) -> set[str]:
    return set(re.findall(rf"^{macro}\((?:.*, )?(\w+)\)", path.read_text(), re.M))


def check_common(lib: Library, allowed_needs: set[str]) -> list[str]:
    where = lib.path
    found = [f"{where}: needs {n}" for n in sorted(lib.needed - allowed_needs)]
    found += [f"{where}: exports {n}" for n in sorted(lib.defined) if not re.match(r"cu[A-Z_a-z]|nvml", n)]
    if lib.textrel:
        found.append(f"{where}: has text relocations")
    return found


def check_age(lib: Library, newest: tuple[int, int] = NEWEST_GLIBC) -> list[str]:
    return [f"{lib.path}: {n} is newer than GLIBC_{newest[0]}.{newest[1]}" for n, v in sorted(lib.versions.items()) if v > newest]


def check_program(lib: Library) -> list[str]:
    if any(n.startswith(("libasan", "libtsan", "libubsan")) for n in lib.needed):
        return []
    return [f"{lib.path}: needs {n}" for n in sorted(lib.needed - LIBC - {"libm.so.6"})] + check_age(lib, NEWEST_FOR_PROGRAMS)


def check_meter(lib: Library, wanted: set[str]) -> list[str]:
    found = check_common(lib, LIBC) + check_age(lib)
    found += [f"{lib.path}: does not export {n}" for n in sorted(wanted - lib.defined)]
    if "NODELETE" not in lib.flags:
        found.append(f"{lib.path}: can be unloaded (no NODELETE flag)")
    return found


def check_alias(lib: Library) -> list[str]:
    found = check_common(lib, LIBC | {METER}) + check_age(lib)
    found += [f"{lib.path}: an alias has no symbol of its own, but defines {n}" for n in sorted(lib.defined)]
    if METER not in lib.needed:
        found.append(f"{lib.path}: an alias needs {METER}")
    return found


def libraries(folder: pathlib.Path) -> list[Library]:
    if not folder.is_dir():
        return []
    return [Library(p) for p in sorted(folder.rglob("*.so*")) if p.is_file() and not p.is_symlink()]


def check(build: pathlib.Path, source: pathlib.Path) -> tuple[int, list[str]]:
    cuda = names(source / "src/abi/cuda_symbols.def", "CUDA_(?:SYMBOL|VERSIONED)")
    nvml = names(source / "src/abi/nvml_symbols.def", "NVML_SYMBOL")
    findings = []
    ours = libraries(build / "lib")
    for lib in ours:
        if lib.soname == METER:
            findings += check_meter(lib, cuda | nvml)
        elif lib.soname in ALIASES:
            findings += check_alias(lib)
        else:
            findings.append(f"{lib.path}: unexpected SONAME {lib.soname!r}")
    sonames = [lib.soname for lib in ours]
    findings += [f"{build}/lib: no library has SONAME {n}" for n in sorted({METER} | ALIASES) if n not in sonames]
    simulated = libraries(build / "simgpu")
    for lib in simulated:
        findings += check_common(lib, LIBC) + check_age(lib)
        if "SYMBOLIC" not in lib.flags:
            findings.append(f"{lib.path}: not linked -Bsymbolic: its internal calls would pass through a preload")
        wanted = cuda if lib.soname == METER else nvml if lib.soname == "libnvidia-ml.so.1" else set()
        findings += [f"{lib.path}: does not export {n}" for n in sorted(wanted - lib.defined)]
    programs = [Library(p) for p in sorted((build / "bin").glob("mete*")) if p.is_file()]
    for lib in programs:
        findings += check_program(lib)
    server = build / "simgpu/mete-simgpu"
    if server.exists() and Library(server).needed:
        findings.append(f"{server}: is not linked statically")
    return len(ours) + len(simulated) + len(programs), findings


def selftest() -> int:
    """Tiny libraries with one fault each; the good ones must pass."""
    def build(folder, name, soname, text, *flags):
        folder.mkdir(parents=True, exist_ok=True)
        source = folder.parent / (name + ".c")
        source.write_text(text)
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname}", "-o", folder / name, source, *flags],
                       check=True)
        source.unlink()

    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        (root / "src/abi").mkdir(parents=True)
        (root / "src/abi/cuda_symbols.def").write_text("CUDA_SYMBOL(cuInit)\nCUDA_VERSIONED(cuMemAlloc, 3020, 0, cuMemAlloc_v2)\n")
        (root / "src/abi/nvml_symbols.def").write_text("NVML_SYMBOL(nvmlInit_v2)\n")
        good = "int cuInit(){return 0;} int cuMemAlloc_v2(){return 0;} int nvmlInit_v2(){return 0;}"
        nodelete = ("-Wl,-z,nodelete", "-Wl,--no-as-needed", "-lc")
        build(root / "good/lib", "libmete.so", METER, good, *nodelete)
        meter = str(root / "good/lib/libmete.so")
        for alias in sorted(ALIASES):
            build(root / "good/lib/mete", alias, alias, "", "-Wl,--no-as-needed", meter)
        build(root / "good/simgpu", "libcuda.so.1", METER, good, "-Wl,-Bsymbolic", "-lc")
        build(root / "bad/lib", "libmete.so", METER, "int pthread_sigmask(); int cuNew(){return pthread_sigmask();} int mutex; int cuInit(){return 0;} int nvmlInit_v2(){return 0;}",
              "-Wl,--no-as-needed", "-lm", "-lc")
        build(root / "bad/lib/mete", "libcuda.so", "libcuda.so", "int cuStray(){return 0;}", "-Wl,--no-as-needed", "-lc")
        build(root / "bad/simgpu", "libcuda.so.1", METER, good, "-lc")
        program = root / "program.c"
        program.write_text("#include <math.h>\n#include <sys/random.h>\nunsigned arc4random(void); int main(int n, char** a) { (void)a; return (int)arc4random() + (int)cos(n); }\n")
        (root / "bad/bin").mkdir()
        subprocess.run([os.environ.get("CC", "cc"), "-o", root / "bad/bin/mete", program, "-lm", "-Wl,--no-as-needed", "-lcrypt"], check=True)
        shutil.copy(root / "bad/bin/mete", root / "bad/simgpu/mete-simgpu")
        _, clean = check(root / "good", root)
        _, bad = check(root / "bad", root)
        wanted = ["exports mutex", "pthread_sigmask@GLIBC_2.32 is newer", "needs libm.so.6", "does not export cuMemAlloc_v2", "can be unloaded",
                  "defines cuStray", "an alias needs", "needs libcrypt.so.1", "arc4random@GLIBC_2.36 is newer than GLIBC_2.34", "is not linked statically", "no library has SONAME libnvidia-ml.so.1", "not linked -Bsymbolic"]
        count, nothing = check(root / "absent", root)
        return common.expect(bad, wanted) | common.expect(clean + nothing[:0], [], ["good"]) | (1 if count else 0)


def main() -> int:
    if "--selftest" in sys.argv:
        return selftest()
    build = next((pathlib.Path(a) for a in sys.argv[1:] if os.path.isdir(a)), None) or \
        pathlib.Path(os.environ.get("METE_BUILD_DIR", "build/release"))
    source = pathlib.Path(os.environ.get("METE_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
    return common.report("exports", *check(build, source))


if __name__ == "__main__":
    sys.exit(main())
