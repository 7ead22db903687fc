#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies of the state: made while the daemon works, put back while none runs, with nothing lost, doubled or overwritten."""
import json
import os
import shutil
import sqlite3
import stat
import threading
import unittest

import jsonschema
from world import SOURCE, VerbTest, wait_until


class BackupTest(VerbTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "backup.db"
        self.kept = self.folder / "sim"  # where the daemon of simulated cards has its state

    def backup(self):
        document = json.loads(self.ok("daemon", "backup", self.file, "-o", "json").stdout)
        jsonschema.validate(document, json.loads((SOURCE / "docs" / "formats" / "backup.schema.json").read_text()))
        return document

    def restore(self, *words, exit_code=0):
        result = self.mete("daemon", "restore", self.file, *words, "-o", "json")
        self.assertEqual(result.returncode, exit_code, result.stderr + result.stdout)
        if exit_code:
            return json.loads(result.stderr)["error"]
        document = json.loads(result.stdout)
        jsonschema.validate(document, json.loads((SOURCE / "docs" / "formats" / "restore.schema.json").read_text()))
        return document

    def other_machine(self):
        """From now on an empty state folder."""
        self.end_jobs()
        self.ok("daemon", "stop")
        self.stop_simulation()
        shutil.move(self.kept, self.folder / "old")

    def states(self):
        self.ok("cards")  # starts a daemon, if none runs
        return {job["id"]: (job["state"], job.get("outcome")) for job in self.jobs()}


class Copies(BackupTest):
    def test_with_and_without_a_daemon_the_copy_is_the_same(self):
        self.ok("wait", self.submit("--gpu", "0", "--", "true"))
        self.ok("hold", self.submit("--hold", "--gpu", "0", "--", "true"))
        document = self.backup()
        self.assertEqual(document["path"], str(self.file))
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.assertEqual(document["bytes"], self.file.stat().st_size)
        self.ok("daemon", "stop")
        self.assertGreaterEqual(self.backup()["last_seq"], document["last_seq"])
        self.assertIsNone(self.daemon_pid(), "none was started for it")
        self.assertEqual(sorted(os.listdir(self.folder))[0], "backup.db", "and nothing is left beside it")
        with sqlite3.connect(self.file) as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchone()[0], "ok")

    def test_while_jobs_come_and_go_it_is_complete(self):
        ended = threading.Event()
        acknowledged = []

        def work():
            while not ended.is_set():
                acknowledged.append(self.submit("--gpu", "0", "--env", "BIG=" + "x" * 100_000, "--", "true"))

        worker = threading.Thread(target=work)
        worker.start()
        try:
            wait_until(lambda: len(acknowledged) > 5, "jobs are submitted")
            for _ in range(5):
                before = list(acknowledged)
                self.backup()
        finally:
            ended.set()
            worker.join()
        self.other_machine()
        self.restore()
        self.assertLessEqual(set(before), set(self.states()), "all that was acknowledged before the copy began")

    def test_other_files_are_not_overwritten(self):
        self.ok("cards")
        letter = self.folder / "letter.txt"
        letter.write_text("dear")
        for path in (letter, self.kept / "meted.db", self.folder, self.folder / "no" / "folder"):
            self.assertNotEqual(self.mete("daemon", "backup", path).returncode, 0, path)
        self.assertEqual(letter.read_text(), "dear")
        self.ok("cards")
        self.ok("daemon", "stop")
        self.assertNotEqual(self.mete("daemon", "backup", letter).returncode, 0)
        self.assertNotEqual(self.mete("daemon", "backup", self.kept / "meted.db").returncode, 0)
        self.ok("cards")


class Restores(BackupTest):
    def test_waiting_and_ended_jobs_come_back_and_running_ones_are_lost(self):
        ended = self.submit("--gpu", "0", "--", "sh", "-c", "exit 3")
        self.mete("wait", ended)
        waits = self.submit("--hold", "--gpu", "0", "--name", "waiting", "--", "echo", "hello")
        runs = self.submit("--gpu", "40%", "--", *self.until())
        again = self.submit("--gpu", "40%", "--requeue", "--", *self.until())
        for job in (runs, again):
            self.wait_state(job, "running")
        run = self.holder("10%")
        document = self.backup()
        self.release(run)
        self.let_end()
        self.ok("wait", runs, again)
        later = [self.submit("--gpu", "0", "--", "true") for _ in range(4)]
        self.ok("wait", *later)
        self.ok("daemon", "stop")

        self.assertEqual(self.restore(exit_code=75)["message"], "there is a state already")
        self.assertEqual(self.restore("--dry-run")["lost_jobs"], [runs, str(int(again) + 1)])
        done = self.restore("--force")
        self.assertEqual((done["last_seq"], done["waiting"]), (document["last_seq"], 2))
        self.assertEqual((done["lost_jobs"], done["requeued_jobs"]), ([runs, str(int(again) + 1)], [again]))
        self.assertEqual(done["next_job"], int(later[-1]) + 1, "the numbers after the copy are not given out again")

        states = self.states()
        self.assertEqual(states[ended], ("ended", "failed"))
        self.assertEqual(states[waits], ("pending", None))
        self.assertEqual(states[runs], ("ended", "lost"))
        self.assertNotIn(later[0], states)
        self.ok("release", waits)
        self.ok("wait", waits)
        self.assertEqual(self.ok("logs", waits).stdout, "hello\n", "with its command, environment and log")
        self.ok("wait", again)
        self.assertEqual(self.job(again)["outcome"], "ok")
        self.assertEqual(int(self.submit("--gpu", "0", "--", "true")), int(later[-1]) + 1)

        # The state before was kept, and can be put back.
        self.end_jobs()
        self.ok("daemon", "stop")
        self.file = done["kept"]
        self.restore("--force")
        self.assertIn(later[0], self.states())

    def test_on_another_machine_numbers_begin_after_a_gap(self):
        self.ok("wait", self.submit("--gpu", "0", "--", "true"))
        self.ok("quota", "set", "--default", "--jobs", "555")
        self.backup()
        self.other_machine()
        self.assertEqual(self.restore()["next_job"], 10_000)
        self.assertEqual(self.submit("--gpu", "0", "--", "true"), "10000")
        self.assertIn("555", self.ok("quota").stdout)

    def test_nothing_is_replaced_under_a_daemon_or_a_job(self):
        job = self.submit("--gpu", "40%", "--", *self.until())
        self.wait_state(job, "running")
        self.backup()
        self.assertEqual(self.restore("--force", exit_code=75)["message"], "the daemon runs: its state cannot be replaced")
        self.ok("daemon", "stop")
        error = self.restore("--force", exit_code=75)
        self.assertEqual(error["message"], "jobs of the present state still run")
        self.assertIn(job, error["hint"])
        run = self.start_run("--gpu", "10%", "--", *self.until("other"))
        wait_until(lambda: self.daemon_pid() is not None, "a daemon is started")
        self.wait_state(str(int(job) + 1), "running")
        self.let_end()
        self.ok("wait", job)
        self.kill_daemon()
        # A run starts the next daemon by itself: one or the other is in the way.
        self.restore("--force", exit_code=75)
        self.let_end("other")
        self.assertEqual(run.wait(), 0)

    def test_what_is_no_good_copy_is_refused_and_nothing_changes(self):
        self.ok("wait", self.submit("--gpu", "0", "--", "true"))
        self.backup()
        self.ok("daemon", "stop")
        before = (self.kept / "meted.db").read_bytes()
        good = self.file.read_bytes()
        broken = bytearray(good)
        place = good.rfind(b"job.submitted")
        broken[place + 20] ^= 4
        newer = bytearray(good)
        newer[63] = 9  # PRAGMA user_version
        for content in (b"", b"no database", bytes(broken), bytes(newer), good[:len(good) // 2]):
            self.file.write_bytes(content)
            self.assertEqual(self.restore("--force", exit_code=65)["exit"], 65)
        self.assertEqual((self.kept / "meted.db").read_bytes(), before)
        self.file.unlink()
        self.assertNotEqual(self.mete("daemon", "restore", self.file, "--force").returncode, 0)
        self.assertEqual([name for name in os.listdir(self.kept) if "restore" in name], [])

    def test_the_words_are_checked(self):
        for words in (("backup",), ("restore",), ("backup", "a", "b"), ("status", "--force"), ("backup", "f", "--dry-run"),
                      ("stop", "--state-dir", "/x")):
            self.assertEqual(self.mete("daemon", *words).returncode, 64, words)


if __name__ == "__main__":
    unittest.main()
