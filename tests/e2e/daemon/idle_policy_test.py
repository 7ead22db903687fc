#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Idle jobs are marked, their users notified, and the jobs ended, each after its time; a dry run says what would have been done."""
import json
import subprocess
import unittest

from world import ACTOR, BOUND_S, DaemonTest, wait_until


class IdlePolicy(DaemonTest):
    def configure(self, text):
        path = self.folder / "config.toml"
        path.write_text(text)
        self.env["METE_CONFIG"] = str(path)

    def events(self, *types):
        after, found = 1, []
        while True:
            page = self.api(f"/v1/events?from={after}")[1]
            found += [event for event in page["events"] if event["type"] in types]
            if page["next"] == after:
                return found
            after = page["next"]

    def test_warned_and_then_ended(self):
        self.configure("[idle]\nwarn_s = 1\nstop_s = 15\n[queue]\ngrace_s = 1\n")
        process = self.start_run("--gpu", "4G", "--", ACTOR, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        for line in ("init", "retain 0"):
            self.tell(process, line)
        wait_until(lambda: [event for event in self.events("job.idle") if event["data"]["step"] == "warned"], "it is warned of")
        self.assertIn("is ended at", self.job(1)["remark"])
        self.assertIn("idle, ended ", self.mete("ps").stdout)
        self.assertIn("idle since", self.mete("ps", "--wide").stdout)
        self.assertIn("is ended at", self.mete("show", "1").stdout)
        # Work restarts the idle time.
        self.tell(process, "spin 6000000")
        wait_until(lambda: self.events("job.active"), "it works again")
        self.assertNotIn("remark", self.job(1))
        self.assertEqual(process.wait(BOUND_S), 128 + 15)
        said = process.stderr.read()
        self.assertIn("did nothing on its cards", said)
        self.assertEqual(said.count("mete: warning: job 1: idle since"), 1, "though it was so twice")
        job = self.job(1)
        self.assertEqual((job["state"], job["outcome"]), ("ended", "cancelled"))
        self.assertIn("idle.stop_s is 15", job["remark"])
        self.assertEqual(len(self.events("job.stopping")), 1)

    def test_what_a_policy_would_have_done(self):
        self.configure("[idle]\nwarn_s = 1\n")
        process = self.start_actor()
        wait_until(lambda: self.events("job.idle"), "it is idle")
        self.assertEqual(self.job(1)["state"], "running")
        document = json.loads(self.mete("stats", "--idle", "--stop", "2s", "-o", "json").stdout)
        self.assertEqual(document["schema"], "mete.idle/1")
        self.assertEqual(document["policy"], {"warn_s": 1, "notify_s": 0, "park_s": 0, "stop_s": 2})
        self.assertEqual([span["job"] for span in document["spans"]], ["1"])
        self.assertIn("stopped_at", document["spans"][0])
        self.assertIn("GiB-hours were held idle", self.mete("stats", "--idle", "--stop", "2s").stdout)
        self.assertEqual(self.job(1)["state"], "running")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(BOUND_S), 0)

    def test_without_a_policy_there_is_nothing_to_try(self):
        holder = self.holder("4G")
        self.assert_refused(self.mete("stats", "--idle"), 64, "no policy for idle jobs", "mete stats --idle --park 30m")
        self.assert_refused(self.mete("stats", "--stop", "2h"), 64, "mete stats --idle")
        self.assert_refused(self.mete("stats", "--idle", "--stop", "soon"), 64, "--stop")
        self.assertIn("no job was idle", self.mete("stats", "--idle", "--stop", "2h").stdout)
        self.release(holder)


if __name__ == "__main__":
    unittest.main()
