#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon with very few descriptors: acknowledged jobs run, running jobs are not lost, and clients are still served."""
import json
import os
import resource
import subprocess
import time

from world import BUILD, SANITIZED, DaemonTest, wait_until
from support import main

METED = str(BUILD / "bin" / "meted")
LONG_S = 400  # for a hundred jobs on a busy machine


class Few(DaemonTest):
    sim = "4xH200"

    def setUp(self):
        super().setUp()
        path = self.folder / "config.toml"
        path.write_text("[queue]\ncpus = 0\n")
        self.env["METE_CONFIG"] = str(path)
        self.go = self.folder / "go"
        self.addCleanup(self.end_jobs)
        self.ok("cards")  # starts the server of the simulated cards, which needs enough of them

    def end_jobs(self):
        self.go.touch()
        self.mete("cancel", *self.mete("ps", "-q").stdout.split())

    def start_daemon(self, limit):
        """A daemon with few descriptors, which cannot get more."""
        self.end_daemon()
        result = self.mete("run", "-q", "--cpu-only", "--", "true",
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(f"/proc/{self.daemon_pid()}/limits") as file:
            self.assertIn(str(limit), next(line for line in file if line.startswith("Max open files")))

    def test_a_daemon_that_cannot_begin_says_so(self):
        """Whichever descriptor is the first that it does not get: one line and 125, never a signal."""
        self.end_daemon()
        refused = 0
        for limit in range(16 if SANITIZED else 4, 64):  # a sanitizer opens files for its own checks
            process = subprocess.Popen([METED, "--state-dir", str(self.state)], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            self.addCleanup(self.finish, process)
            wait_until(lambda: process.poll() is not None or self.answers(), "it begins or ends")
            if process.poll() is None:
                self.assertGreater(refused, 0)
                return
            self.assertIn(process.returncode, (64, 125), f"with {limit} descriptors: {process.stderr.read()}")
            refused += 1
        self.fail("it never began")

    def answers(self):
        try:
            return self.api("/v1/version")[0] == 200
        except (OSError, ValueError):
            return False

    def submit(self, count, *words):
        """Submits `count` jobs that run until they are released; each leaves a file of its own."""
        result = self.mete("submit", "--array", f"0-{count - 1}", *words, "--", "sh", "-c",
                           f"echo >> {self.folder}/ran.$METE_JOB_ID; while [ ! -e {self.go} ]; do sleep 0.3; done")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def states(self):
        found = {}
        # With our own client, which retries when it is rejected.
        for job in json.loads(self.ok("ps", "-a", "-o", "json").stdout)["jobs"]:
            key = job.get("outcome") or job["state"]
            found[key] = found.get(key, 0) + 1
        return found

    def wait_for(self, condition, what):
        deadline = time.monotonic() + LONG_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}, but {self.states()}")
            time.sleep(0.5)

    def all_run_and_end(self, count):
        self.wait_for(lambda: self.states().get("running") == count, f"all {count} run")
        self.go.touch()
        self.wait_for(lambda: set(self.states()) == {"ok"}, "all end well")
        traces = [(self.folder / name).read_text() for name in os.listdir(self.folder) if name.startswith("ran.")]
        self.assertEqual(traces, ["\n"] * count, "each ran, and once")

    def test_ninety_jobs_with_64(self):
        self.start_daemon(64)
        self.submit(70, "--cpu-only")
        self.submit(20, "--gpu", "1G")
        # Keepers that hold a connection to the daemon do not shut out other clients.
        for _ in range(5):
            self.assertEqual(self.mete("ps").returncode, 0)
        self.all_run_and_end(90)

    def test_ninety_jobs_with_128(self):
        self.start_daemon(128)
        self.submit(80, "--cpu-only")
        self.submit(10, "--gpu", "1G")
        self.all_run_and_end(90)

    def test_a_hundred_that_run_are_found_again(self):
        self.start_daemon(512)
        self.submit(90, "--cpu-only")
        self.submit(10, "--gpu", "1G")
        self.wait_for(lambda: self.states().get("running") == 100, "all run")
        self.start_daemon(64)
        self.assertEqual({state for state in self.states() if state != "ok"}, {"running"})
        self.all_run_and_end(100)

    def test_a_job_has_its_submitters_limit(self):
        self.start_daemon(128)
        result = self.mete("submit", "--cpu-only", "--log", str(self.folder / "log"), "--", "sh", "-c", "ulimit -Sn",
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 110)))
        self.assertEqual(result.returncode, 0, result.stderr)
        wait_until(lambda: set(self.states()) == {"ok"}, "it ends")
        self.assertEqual((self.folder / "log").read_text(), "100\n")


if __name__ == "__main__":
    main()
