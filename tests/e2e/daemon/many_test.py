#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many at once, many one after another: nothing is left behind, and waiting costs nothing."""
import concurrent.futures
import os
import pathlib
import unittest

from world import BOUND_S, DaemonTest, SANITIZED, read, wait_until

SHORT_RUNS = int(os.environ.get("METE_SHORT_RUNS", "200"))
WAITING = int(os.environ.get("METE_WAITING", "100"))


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def memory_kib(pid):
    for line in read(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"no memory of {pid}")


class Many(DaemonTest):
    sim = "4xH200"

    def test_64_at_once_on_4_cards(self):
        def one(number):
            share = ["30%", "60%", "1", "20G"][number % 4]
            return self.run_("-q", "--gpu", share, "--", "sh", "-c", f"sleep 0.02; exit {number}").returncode

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            self.assertEqual(list(pool.map(one, range(64))), list(range(64)))
        self.assertEqual(len(self.jobs()), 64)
        self.assertEqual(len(self.processes("meted")), 2, "one daemon and its helper")
        self.assert_nothing_left()

    def test_short_runs_leave_nothing(self):
        self.assertEqual(self.run_("-q", "--gpu", "1", "--", "true").returncode, 0)
        daemon = self.daemon_pid()
        before = descriptors(daemon)
        files = self.files()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            codes = list(pool.map(lambda n: self.run_("-q", "--gpu", "40%", "--", "sh", "-c", f"exit {n % 3}").returncode,
                                  range(SHORT_RUNS)))
        self.assertEqual(codes, [n % 3 for n in range(SHORT_RUNS)])
        self.assertEqual(self.daemon_pid(), daemon)
        wait_until(lambda: descriptors(daemon) <= before + 1, "its descriptors are closed")
        self.assertEqual(self.files(), files)
        self.assertEqual(self.processes("mete"), [])
        self.assertEqual(self.processes("mete-sampler"), [])
        self.assert_nothing_left()

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                      if path.is_file() and not path.name.startswith("meted.db"))

    def test_waiting_costs_nothing(self):
        holder = self.holder("all")
        daemon = self.daemon_pid()
        before = memory_kib(daemon)
        waiting = [self.start_run("-q", "--gpu", "10%", "--", "true") for _ in range(WAITING)]
        wait_until(lambda: sum(job["state"] == "pending" for job in self.jobs()) == WAITING, "all of them wait")
        grown = memory_kib(daemon) - before
        if not SANITIZED:  # its shadow memory is not the daemon's
            self.assertLess(grown, 20_000 * WAITING / 1000 + 2_000, "KiB")
        self.release(holder)
        for process in waiting:
            self.assertEqual(process.wait(BOUND_S * 5), 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
