#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the #includes below src/ and checks who uses whom (the table of docs/ARCHITECTURE.md).

Also: base, abi, core, meter and simgpu include no third-party header, except RE2 in core/where; core includes nothing that does I/O, reads a
clock or starts a thread; the meter includes no C++ header that would need libstdc++ at run time; every third-party
header that is used elsewhere has its line in docs/adr/0001; bin/ is one short main() per program, and only `mete` has
the command line in it. A link line misses header-only use, hence this test.
"""
import pathlib
import re
import sys
import tempfile

import common

EVERYTHING = "*"
MAY_USE = {
    "base": "", "abi": "", "core": "base", "config": "core base", "seam": "base core", "wire": "base core", "dialect": "wire base",
    "engine": "core seam wire base", "sweep": "core engine wire base", "simulate": "core engine wire base",
    "node": "seam base abi", "store": "seam base", "launch": "seam base abi", "net": "base",
    "serve": "engine dialect wire net base", "proxy": "net seam wire base", "top": "net wire base",
    "meter": "abi", "simgpu": "abi", "park": "abi base", "selftest": "abi base", "demo": "", "slurm": "wire base",
    "runner": "launch node seam wire net core abi base",
    "daemon": "engine sweep serve node launch store park config seam wire net core abi base",
    "cli": EVERYTHING, "bin": EVERYTHING,
}
NOBODY_USES = {"bin"}
NOT_FROM_CLI = {"meter", "simgpu", "daemon"}
# Programs that start as root, or in thousands, have nothing of the command line in them.
USES_CLI = "src/bin/mete.cc"
MOST_LINES_OF_MAIN = 60  # what is longer has a folder, and tests
NO_THIRD_PARTY = {"base", "abi", "core", "meter", "simgpu"}
RE2_FOLDER = "src/core/where"  # the one exception
# A test beside the code may use the fakes and the test libraries as well.
# The tests of the meter have their grant files made as for a real job. Those of core compare waits as users read them.
TESTS_MAY_USE = {"meter": "base launch", "core": "wire"}
TEST_LIBRARIES = {"gtest", "gmock", "rapidcheck", "rapidcheck.h", "benchmark"}

CXX = set("""algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts
condition_variable coroutine deque exception execution expected filesystem format forward_list fstream functional
future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
valarray variant vector version cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal
cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype""".split())
C = set("""assert ctype errno fenv float inttypes limits locale math setjmp signal stdalign stdarg stdatomic stdbool
stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype aio alloca byteswap dirent dlfcn
elf endian err execinfo fcntl fnmatch ftw getopt glob grp iconv ifaddrs langinfo libgen link malloc mntent mqueue
netdb nl_types paths poll pthread pwd regex sched search semaphore spawn strings sysexits syslog termios ucontext
unistd utime utmp wait wordexp""".split())
SYSTEM_FOLDERS = {"sys", "linux", "asm", "net", "netinet", "arpa", "bits", "gnu"}

CORE_NEVER = set("""thread mutex shared_mutex condition_variable future barrier latch semaphore stop_token fstream
iostream filesystem syncstream unistd.h fcntl.h pthread.h dlfcn.h poll.h signal.h csignal time.h ctime dirent.h
random""".split())
METER_NEVER = set("""string vector map unordered_map set unordered_set deque list forward_list functional memory
memory_resource thread mutex shared_mutex condition_variable future iostream istream ostream sstream fstream iomanip
filesystem regex exception stdexcept system_error locale typeinfo typeindex any random valarray queue stack
format""".split())

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_system(header: str) -> bool:
    if header.endswith(".h"):
        top = header.split("/")[0]
        return header[:-2] in C if "/" not in header else top in SYSTEM_FOLDERS
    return header in CXX


def is_test(path: pathlib.Path) -> bool:
    return path.stem.endswith("_test") or path.stem.endswith("_bench") or "test" in path.parts[2:-1]


def check_quoted(root, path, folder, header, where) -> str | None:
    target = header.split("/")[0]
    if ".." in header.split("/"):
        return f"{where}: {header!r}: include from src/, without '..'"
    if "/" not in header or target not in MAY_USE:
        if is_test(path) and header.startswith("tests/support/"):
            return None
        if (root / path.parent / header).exists():
            return None if "/" not in header and not (root / "src" / header).exists() else \
                f"{where}: {header!r}: write it as seen from src/"
        # A generated header or a table (hooks.def) has no folder; anything else must name one.
        return None if "/" not in header else f"{where}: {header!r}: no such folder in the layer table"
    if target == folder:
        return None
    if target in NOBODY_USES:
        return f"{where}: nobody uses {target}/"
    allowed = MAY_USE[folder]
    if allowed == EVERYTHING:
        if folder == "cli" and target in NOT_FROM_CLI:
            return f"{where}: cli/ may not use {target}/"
        if folder == "bin" and target == "cli" and str(path) != USES_CLI:
            return f"{where}: only {USES_CLI} may use cli/"
        return None
    if is_test(path):
        allowed += " " + TESTS_MAY_USE.get(folder, "")
    if target not in allowed.split():
        return f"{where}: {folder}/ may not use {target}/ (may use: {allowed or 'nothing of ours'})"
    return None


def check_angled(path, folder, header, where, adr: str) -> str | None:
    if not is_system(header):
        top = header.split("/")[0]
        if is_test(path) and top in TEST_LIBRARIES:
            return None
        if folder in NO_THIRD_PARTY and not (top == "re2" and str(path.parent) == RE2_FOLDER):
            return f"{where}: <{header}>: {folder}/ uses no third-party header"
        name = re.sub(r"\.(h|hpp)$", "", top)
        if name.lower() not in adr:
            return f"{where}: <{header}>: a dependency needs its line in docs/adr/0001 (looked for {name!r})"
        return None
    if is_test(path):
        return None
    if folder == "core" and header in CORE_NEVER:
        return f"{where}: <{header}>: core/ has no I/O, no clock, no thread"
    if folder == "meter" and header in METER_NEVER:
        return f"{where}: <{header}>: the meter needs libc alone"
    return None


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    findings, count = [], 0
    adr = "".join(p.read_text().lower() for p in (root / "docs/adr").glob("0001*")) if (root / "docs/adr").is_dir() else ""
    for path in common.project_files(root):
        if path.parts[0] != "src" or len(path.parts) < 3 or path.suffix not in (".cc", ".h", ".c", ".S", ".def", ".inc"):
            continue
        folder = path.parts[1]
        count += 1
        if folder not in MAY_USE:
            findings.append(f"{path}: folder {folder}/ is not in the layer table")
            continue
        lines = common.read(root, path).splitlines()
        if folder == "bin" and len(lines) > MOST_LINES_OF_MAIN:
            findings.append(f"{path}: {len(lines)} lines: bin/ has short main()s alone, at most {MOST_LINES_OF_MAIN}")
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            where = f"{path}:{number}"
            header = match.group(2)
            found = check_quoted(root, path, folder, header, where) if match.group(1) == '"' else \
                check_angled(path, folder, header, where, adr)
            if found:
                findings.append(found)
    return count, findings


def selftest() -> int:
    cases = {  # file: (its text, part of the finding or None)
        "src/core/a.cc": ('#include "node/nvml.h"\n', "core/ may not use node/"),
        "src/core/b.cc": ("#include <fstream>\n", "no I/O"),
        "src/core/c.cc": ("#include <fmt/format.h>\n", "core/ uses no third-party header"),
        "src/core/d.cc": ("#include <re2/re2.h>\n", "core/d.cc:1: <re2/re2.h>: core/ uses no third-party header"),
        "src/core/where/good.cc": ("#include <re2/re2.h>\n", None),
        "src/core/good.cc": ('#include "base/result.h"\n#include <vector>\n', None),
        "src/core/good_test.cc": ('#include <gtest/gtest.h>\n#include "core/a.h"\n', None),
        "src/meter/a.cc": ('#include "base/result.h"\n', "meter/ may not use base/"),
        "src/meter/b.cc": ("#include <string>\n", "libc alone"),
        "src/meter/good.cc": ('#include "abi/grant.h"\n#include <dlfcn.h>\n#include <sys/mman.h>\n', None),
        "src/cli/a.cc": ('#include "meter/hooks.h"\n', "cli/ may not use meter/"),
        "src/cli/b.cc": ("#include <obscure/thing.hpp>\n", "needs its line in docs/adr/0001"),
        "src/cli/c.cc": ('#include "../base/result.h"\n', "without '..'"),
        "src/cli/good.cc": ('#include <CLI/CLI.hpp>\n#include "launch/spawn.h"\n', None),
        "src/node/a.cc": ('#include "bin/main.h"\n', "nobody uses bin/"),
        "src/cli/d.cc": ('#include "daemon/hands.h"\n', "cli/ may not use daemon/"),
        "src/runner/a.cc": ('#include "cli/output.h"\n', "runner/ may not use cli/"),
        "src/bin/mete.cc": ('#include "cli/dispatch.h"\n', None),
        "src/bin/keeper.cc": ('#include "cli/dispatch.h"\n', "only src/bin/mete.cc may use cli/"),
        "src/bin/long.cc": ("\n" * 61, "61 lines: bin/ has short main()s alone"),
        "src/attic/a.cc": ("\n", "not in the layer table"),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "docs/adr").mkdir(parents=True)
        (root / "docs/adr/0001-dependencies.md").write_text("| CLI11 (`CLI/`) | RE2 (`re2`) |\n")
        _, findings = check(root)
        return common.expect(findings, [f for _, f in cases.values() if f], ["good"])


if __name__ == "__main__":
    sys.exit(selftest() if "--selftest" in sys.argv else common.report("layers", *check(common.source_dir())))
