#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that do nothing on their cards are shown as idle, and only if that is known."""
import datetime
import json
import time
import unittest

from world import DaemonTest, wait_until


class Idle(DaemonTest):
    def idle_since(self, ident="1"):
        """As a user sees it."""
        jobs = json.loads(self.mete("ps", "-o", "json").stdout)["jobs"]
        text = next(job for job in jobs if job["id"] == ident).get("idle_since")
        return text and datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    def readings(self, count):
        """Waits for this many readings of the cards."""
        def taken():
            return time.monotonic() - self.card()["reading_age_s"]
        for _ in range(count):
            last = taken()
            wait_until(lambda: taken() > last + 0.1, "another look")

    def test_busy_then_idle_then_busy_again(self):
        process = self.start_actor()
        until = time.monotonic() + 5
        while time.monotonic() < until:
            self.tell(process, "spin 2000")
            self.assertIsNone(self.idle_since())
        worked = time.time()
        wait_until(self.idle_since, "the job is idle")
        since = self.idle_since()
        self.assertGreaterEqual(since, worked - 1)
        self.readings(8)
        self.assertEqual(self.idle_since(), since)
        self.assertIn("idle", self.mete("show", "1").stdout)
        # One kernel of several seconds without a call is work, too.
        self.tell(process, "spin 6000000")
        wait_until(lambda: self.idle_since() is None, "the job works again")
        until = time.monotonic() + 4
        while time.monotonic() < until:
            self.assertIsNone(self.idle_since())
        wait_until(self.idle_since, "the job is idle once more")
        self.assertGreater(self.idle_since(), since)
        self.end_actor(process)

    def test_a_job_without_a_process_on_a_card_is_not_idle(self):
        holder = self.holder("4G")
        idle = self.start_actor()
        wait_until(lambda: self.idle_since("2"), "the other job is idle")
        self.assertIsNone(self.idle_since("1"))
        self.end_actor(idle)
        self.release(holder)

    def test_a_driver_that_does_not_say(self):
        self.env["METE_SIM_NVML_NO_PROCESS_LOAD"] = "1"
        process = self.start_actor()
        self.readings(24)
        self.assertIsNone(self.idle_since())
        self.end_actor(process)

    def test_a_daemon_that_is_killed_looks_anew(self):
        process = self.start_actor()
        wait_until(self.idle_since, "the job is idle")
        since = self.idle_since()
        self.kill_daemon()
        self.mete("ps")  # starts the next
        wait_until(self.idle_since, "the next daemon has seen it too")
        self.assertGreater(self.idle_since(), since)
        self.end_actor(process)


if __name__ == "__main__":
    unittest.main(verbosity=2)
