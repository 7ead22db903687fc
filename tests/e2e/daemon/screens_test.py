#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people read on 80 columns: mete ps, cards, explain and the line of a waiting run; dry runs; starting and restarting the daemon."""
import json
import re
import unittest

from world import BOUND_S, VerbTest, wait_until


class ScreensTest(VerbTest):
    def at(self, columns, *words):
        """The lines of a verb, printed for this width."""
        result = self.mete(*words, env={**self.env, "COLUMNS": str(columns), "TZ": "UTC"})
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        for line in lines:
            self.assertLessEqual(len(line), columns, line)
        return lines

    def busy(self):
        """One job has both cards for two minutes; one, with a long name, waits."""
        running = self.submit("--name", "train", "--gpu", "2", "--time", "2m", "--", "sleep", "600")
        self.wait_state(running, "running")
        waiting = self.submit("--name", "a-long-name-of-a-job-that-waits", "--gpu", "100G", "--time", "1m", "--", "sleep", "1", "x" * 300)
        wait_until(lambda: "start_forecast" in self.job(waiting), "there is a forecast")
        return running, waiting

    def test_ps_at_80_columns(self):
        running, waiting = self.busy()
        last = self.submit("--name", "last", "--gpu", "2", "--time", "1m", "--", "sleep", "1")
        wait_until(lambda: "start_forecast" in self.job(last), "there is a forecast")
        lines = self.at(80, "ps")
        self.assertEqual(lines[0].split(), ["ID", "NAME", "STATE", "GPU", "CARD", "USED", "TIME", "NOTE", "COMMAND"])
        self.assertRegex(lines[1], rf"^ *{running} +train +running +2 +0,1 +\S+ +\d:\d\d +- +sleep 600$")
        self.assertRegex(lines[2], rf"^ *{waiting} +a-long-\S*… +pending +100G +- +- +\d:\d\d +~\d\d:\d\d, next +sleep.*…$")
        self.assertRegex(lines[3], rf"^ *{last} +last +pending +2 +- +- +\d:\d\d +~\d\d:\d\d, 1 ahead")
        wide = self.at(10_000, "ps", "--wide")
        self.assertIn("x" * 200, wide[2])
        self.assertRegex(wide[2], rf"resources: 100 GiB on one card; card 0: held whole by \S+'s job {running}")
        for line in self.ok("ps").stdout.splitlines():  # a pipe
            self.assertLess(len(line), 200)
        self.assertIn("x" * 200, self.ok("ps", "-o", "json").stdout)
        for columns in (20, 40, 60, 100, 120, 200):
            self.at(columns, "ps")

    def test_the_waiting_jobs_of_an_array_are_one_line(self):
        self.busy()
        array = self.submit("--name", "sim", "--gpu", "2", "--array", "0-9", "--", "true")
        self.ok("hold", f"{array}_4")
        lines = [line.split() for line in self.at(80, "ps", array)]
        self.assertEqual([line[0] for line in lines[1:]], [f"{array}_[0-3,5-9]", f"{array}_4"])
        self.assertIn("held", lines[2])
        self.assertEqual(len(self.at(80, "ps", "--expand", array)), 1 + 10)
        self.assertEqual(len(self.ok("ps", "-q", array).stdout.split()), 10)
        self.assertEqual(len(json.loads(self.ok("ps", array, "-o", "json").stdout)["jobs"]), 10)
        # What is printed is understood.
        self.ok("cancel", lines[1][0])
        self.assertEqual(self.ok("ps", "-q", "--name", "sim", "--state", "pending").stdout.split(), [f"{array}_4"])

    def test_cards_keep_their_jobs_and_explain_wraps(self):
        running, waiting = self.busy()
        user = self.job(running)["user"]
        lines = self.at(80, "cards")
        self.assertIn("JOBS", lines[0])
        for line in lines[1:3]:
            self.assertIn(f"{user} {running}!", line)
        lines = self.at(80, "explain", waiting)
        self.assertGreater(len(lines), 4)
        whole = self.ok("explain", waiting).stdout.splitlines()
        self.assertLess(len(whole), len(lines))
        self.assertGreater(max(map(len, whole)), 80, "a pipe is not wrapped")
        self.assertTrue(lines[0].startswith(f"job {waiting}: waiting "))
        self.assertTrue(any(re.match(r" {10}\S", line) for line in lines), "further lines stand below the text of a card")

    def test_a_waiting_run_says_its_place_and_forecast(self):
        self.busy()
        run = self.start_run("--gpu", "2", "--", "true")
        self.addCleanup(run.wait, BOUND_S)
        self.addCleanup(run.kill)
        line = run.stderr.readline()
        self.assertRegex(line, r"^mete: waiting, 1 job ahead(, starts about \d\d:\d\d)?; for 2 cards for itself; card 0: ")

    def test_dry_runs_of_run_and_submit_are_the_same(self):
        for holder in (None, "busy"):
            if holder:
                self.busy()
            for words in (["--gpu", "60%"], ["--gpu", "2", "--time", "1m"], ["--gpu", "0"]):
                run = self.mete("run", "--dry-run", *words, "--", "true")
                submit = self.mete("submit", "--dry-run", *words, "--", "true")
                self.assertEqual((run.returncode, submit.returncode), (0, 0), run.stderr + submit.stderr)
                # Further lines name processes of the driver, which come and go.
                self.assertEqual(submit.stdout.splitlines()[0], run.stdout.splitlines()[0])
                document = json.loads(self.mete("submit", "--dry-run", "-o", "json", *words, "--", "true").stdout)
                self.assertEqual(document["schema"], "mete.dry-run/1")
        self.assertEqual(self.mete("submit", "--dry-run", "--gpu", "9", "--", "true").returncode, 69)
        self.assertEqual(self.mete("submit", "--dry-run", "--gpu", "2", "--no-wait", "--", "true").returncode, 75)
        self.assertEqual(self.mete("submit", "--dry-run", "--cpu-only", "--after", "77", "--", "true").returncode, 66)
        self.assertEqual(len(self.jobs()), 2, "no job was made")
        file = self.folder / "jobs.yaml"
        file.write_text("jobs:\n  - name: first\n    gpu: 8G\n    command: [\"true\"]\n"
                        "  - name: second\n    gpu: 0\n    after: first\n    command: [\"true\"]\n")
        said = self.ok("submit", "--dry-run", "-f", str(file)).stdout
        self.assertRegex(said, r"(?m)^first: would wait: ")
        self.assertRegex(said, r"(?m)^second: after first, would start now without a card$")
        self.assertIn("after:", self.ok("submit", "--print", "-f", str(file)).stdout)

    def test_the_daemon_is_started_and_restarted(self):
        said = self.ok("daemon", "start").stderr
        first = self.daemon_pid()
        self.assertIn(f"the daemon (pid {first}, user mode) has started; it listens at {self.env['METE_SOCKET']}", said)
        self.assertIn("ends by itself", said)
        self.assertIn(f"(pid {first}, user mode) runs already", self.ok("daemon", "start").stderr)
        job = self.submit("--gpu", "8G", "--", "sleep", "600")
        self.wait_state(job, "running")
        said = self.ok("daemon", "restart").stderr
        second = self.daemon_pid()
        self.assertNotEqual(first, second)
        self.assertIn(f"(pid {second}, user mode) has started again", said)
        self.assertEqual(self.job(job)["state"], "running")
        document = json.loads(self.ok("daemon", "restart", "-o", "json").stdout)
        self.assertTrue(document["running"])
        self.assertNotEqual(document["pid"], second)
        self.assertEqual(self.job(job)["state"], "running")
        self.ok("daemon", "stop")
        document = json.loads(self.ok("daemon", "restart", "-o", "json").stdout)
        self.assertEqual(document["pid"], self.daemon_pid())
        self.assert_refused(self.mete("daemon", "strat"), 64, "did you mean mete daemon start?")
        self.assert_refused(self.mete("daemon", "start", "--state-dir", "x"), 64)


if __name__ == "__main__":
    unittest.main()
