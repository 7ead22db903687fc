#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which test cases of a ctest run were skipped: skips.py LOG [--strict], LOG being Testing/Temporary/LastTest.log.

A program of tests that skips some of its cases, or all of them, still ends with 0. This reads what each program printed
(GoogleTest, Python's unittest with -v), lists each skipped case with its reason, and ends with one line,
`skips: N cases, N whole tests, N unexpected`. With --strict a case that tests/checks/allowed_skips.txt does not name
makes it end with 1: on a machine that has everything, a skip is a test that was lost."""
import pathlib
import re
import sys
import tempfile

ALLOWED = pathlib.Path(__file__).with_name("allowed_skips.txt")
BLOCK = re.compile(r"^\d+/\d+ Test: (.+?)$(.*?)^\"[^\n]*\" end time:", re.M | re.S)
GTEST = re.compile(r"^(.*)\n\[  SKIPPED \] ([\w/]+\.[\w/]+) \(\d+ ms\)$", re.M)
GTEST_RAN = re.compile(r"^\[==========\] (\d+) tests? from .* ran\.", re.M)
PYTHON = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n[^\n]*?)? \.\.\. skipped (['\"])(.*?)\3$", re.M)
PYTHON_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)


def skipped_cases(log):
    """[(ctest name, [(case, reason)], all of its cases were skipped)]"""
    found = []
    for name, output in BLOCK.findall(log):
        cases = [(case, reason.strip()) for reason, case in GTEST.findall(output)]
        cases += [(f"{where.split('.', 1)[-1] if case in where else where + '.' + case}", reason)
                  for case, where, _, reason in PYTHON.findall(output)]
        ran = sum(int(number) for pattern in (GTEST_RAN, PYTHON_RAN) for number in pattern.findall(output))
        # CTest's own word for a program that ended with SKIP_RETURN_CODE is "Test Skipped." in the log.
        whole = "\nTest Skipped." in output or (bool(cases) and len(cases) >= ran)
        if whole and not cases:
            cases = [("all", output.split("<end of output>")[0].strip().splitlines()[-1])]
        if cases:
            found.append((name, cases, whole))
    return found


def allowed_names(text):
    return {line.split("#")[0].strip() for line in text.splitlines()} - {""}


def look(log, allowed, strict):
    cases = whole = unexpected = 0
    for name, skipped, all_of_it in skipped_cases(log):
        whole += all_of_it
        for case, reason in skipped:
            cases += 1
            known = f"{name}: {case}" in allowed or f"{name}: {case.rsplit('.', 1)[0]}.*" in allowed
            unexpected += strict and not known
            print(f"skipped{' without leave' if strict and not known else ''}: {name}: {case}: {reason}")
    print(f"skips: {cases} cases, {whole} whole tests, {unexpected} unexpected")
    return unexpected


SAMPLE = """
1/4 Test: store_disk_test
Output:
----------
[ RUN      ] Disk.Small
disk_test.cc:194: Skipped
cannot mount a small disk: Operation not permitted
[  SKIPPED ] Disk.Small (0 ms)
[==========] 2 tests from 1 test suite ran. (3 ms total)
<end of output>
Test Passed.
"store_disk_test" end time: Nov 16
2/4 Test: daemon_users
Output:
----------
test_a (users_test.Users.test_a)
Two people. ... skipped 'needs root'
test_b (users_test.Users.test_b) ... skipped "can't mount"
Ran 2 tests in 0.001s
OK (skipped=2)
<end of output>
Test Passed.
"daemon_users" end time: Nov 16
3/4 Test: fine
Output:
----------
test_c (x.Y.test_c) ... ok
Ran 1 test in 0.001s
<end of output>
Test Passed.
"fine" end time: Nov 16
4/4 Test: check_format
Output:
----------
format: clang-format is not installed
<end of output>
Test Skipped.
"check_format" end time: Nov 16
"""


def selftest():
    found = skipped_cases(SAMPLE)
    wanted = [("store_disk_test", [("Disk.Small", "cannot mount a small disk: Operation not permitted")], False),
              ("daemon_users", [("Users.test_a", "needs root"), ("Users.test_b", "can't mount")], True)]
    good = found[:2] == wanted and [entry[0] for entry in found[2:]] == ["check_format"] and found[2][2]
    allowed = {"store_disk_test: Disk.Small", "daemon_users: Users.test_a", "check_format: all"}
    good = good and look(SAMPLE, allowed, True) == 1 and look(SAMPLE, allowed, False) == 0
    good = good and look(SAMPLE, allowed | {"daemon_users: Users.*"}, True) == 0
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("# why\na: b  # reason\n")
        file.flush()
        good = good and allowed_names(pathlib.Path(file.name).read_text()) == {"a: b"}
    print("self-test:", "3 kinds of skips were found" if good else f"failed: {found}")
    return 0 if good else 1


if __name__ == "__main__":
    if "--selftest" in sys.argv:
        sys.exit(selftest())
    text = pathlib.Path(sys.argv[1]).read_text(errors="replace")
    sys.exit(1 if look(text, allowed_names(ALLOWED.read_text()), "--strict" in sys.argv) else 0)
