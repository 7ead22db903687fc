#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--cpus and --ram: enforced by control groups where possible, and reported where not."""
import os
import pathlib
import signal
import subprocess
import unittest

from world import BOUND_S, DaemonTest, wait_until

EATER = "b = bytearray(400 << 20)\nprint(len(b))"


def groups():
    # Not by rglob, which fails on a folder that is removed meanwhile.
    return sorted(os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("mete-"))


class Limits(DaemonTest):
    def setUp(self):
        super().setUp()
        self.before = groups()

    def enforced(self, *words):
        result = self.run_("-q", "--cpu-only", *words, "--", "cat", "/proc/self/cgroup")
        self.assertEqual(result.returncode, 0, result.stderr)
        if "not enforced here" in result.stderr:
            # Reported once for each, and nothing else happens.
            self.assertEqual(result.stderr.count("not enforced here"), len(words) // 2)
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_memory(self):
        self.assertIn("/mete-1-", self.enforced("--ram", "100M"))
        result = self.run_("-q", "--cpu-only", "--ram", "100M", "--", "/usr/bin/python3", "-c", EATER)
        self.assertEqual(result.returncode, 137, result.stderr)
        self.assertIn("the limit of --ram 100 MiB was reached", result.stderr)
        self.assertEqual((self.job(2)["outcome"], self.job(2)["signal"]), ("ram-oom", 9))
        result = self.run_("-q", "--cpu-only", "--ram", "1G", "--", "/usr/bin/python3", "-c", EATER)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(groups(), self.before, "nothing is left")

    def test_cpus(self):
        own = self.enforced("--cpus", "1")
        self.assertIn("/mete-1-", own)
        show = "for f in /sys/fs/cgroup/mete-*/cpu.max /sys/fs/cgroup/*/mete-*/cpu.cfs_quota_us; do cat $f 2>/dev/null; done"
        cpus = os.cpu_count()
        result = self.run_("-q", "--cpu-only", "--cpus", str(cpus), "--", "sh", "-c", show)
        if result.stdout:  # where it is just below the root
            self.assertEqual(result.stdout.split()[0], str(cpus * 100000))
        self.assertEqual(groups(), self.before, "nothing is left")

    def test_both_for_a_gpu_job_and_all_its_processes(self):
        self.enforced("--ram", "200M", "--cpus", "1")
        result = self.run_("-q", "--gpu", "8G", "--ram", "200M", "--cpus", "1", "--", "sh", "-c",
                           "cat /proc/self/cgroup; sh -c 'setsid cat /proc/self/cgroup'")
        self.assertEqual(result.stdout.count("/mete-2-"), 4, result.stdout)
        self.assertEqual(groups(), self.before, "nothing is left")

    def test_what_a_killed_run_leaves_goes_with_the_next(self):
        self.enforced("--ram", "200M")
        run = self.start_run("-q", "--cpu-only", "--ram", "200M", "--", "sh", "-c", "echo up; sleep 1000")
        run.stdout.readline()
        self.assertEqual(len(groups()), len(self.before) + 1)
        run.kill()
        run.wait()
        self.wait_state(2, "ended")
        self.assertEqual(self.run_("-q", "--cpu-only", "--ram", "200M", "--", "true").returncode, 0)
        self.assertEqual(groups(), self.before)

    def test_exec_is_limited_too(self):
        self.enforced("--ram", "100M")
        result = self.run_("-q", "--cpu-only", "--exec", "--ram", "100M", "--", "/usr/bin/python3", "-c", EATER)
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
        self.assertEqual(self.run_("-q", "--cpu-only", "--ram", "200M", "--", "true").returncode, 0)
        self.assertEqual(groups(), self.before)

    def test_words(self):
        self.assert_refused(self.run_("--cpu-only", "--ram", "1M", "--", "true"), 64, "too little")
        self.assert_refused(self.run_("--cpu-only", "--cpus", "0", "--", "true"), 64)

    def test_more_than_the_machine_has_is_refused(self):
        for verb in ("run", "submit"):
            self.assert_refused(self.mete(verb, "--cpu-only", "--cpus", "60000", "--", "true"), 69, "--cpus 60000 can never fit here",
                                f"this machine has {os.cpu_count()} CPU", f"--cpus {os.cpu_count()} would fit")
            self.assert_refused(self.mete(verb, "--cpu-only", "--ram", "4000T", "--", "true"), 69, "--ram 4000T can never fit here", "of memory")
        self.assert_refused(self.mete("run", "--dry-run", "--cpu-only", "--cpus", "60000"), 69, "--cpus 60000 can never fit here")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become a user without permission")
    def test_where_it_is_not_allowed_it_is_said(self):
        self.assertEqual(self.run_("-q", "--cpu-only", "--", "true").returncode, 0)
        os.chmod(self.folder, 0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 61001, 61001)
        env = {name: value for name, value in self.env.items() if not name.startswith(("METE_", "XDG_"))}
        env.update(HOME=str(home), METE_SIM=self.sim, METE_STATE_DIR=str(home / "state"), METE_SIM_DIR=str(home / "sim"))
        from world import METE
        result = subprocess.run([METE, "run", "-q", "--cpu-only", "--ram", "100M", "--cpus", "1", "--", "echo", "fine"], env=env,
                                user=61001, group=61001, extra_groups=[], capture_output=True, text=True, timeout=BOUND_S, cwd=str(home))
        self.assertEqual((result.returncode, result.stdout), (0, "fine\n"), result.stderr)
        self.assertIn("--ram is not enforced here: ", result.stderr)
        self.assertIn("--cpus is not enforced here: ", result.stderr)
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if entry.stat().st_uid == 61001:
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass


if __name__ == "__main__":
    unittest.main()
