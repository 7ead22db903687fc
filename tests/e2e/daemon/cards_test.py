#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failing cards and drivers: nothing is granted on a guess, waiting jobs have a reason, the daemon answers all the time."""
import os
import sqlite3
import subprocess
import unittest

from world import BOUND_S, BUILD, DaemonTest, wait_until

FAKE = BUILD / "tests" / "fake_nvml"


class Simulated(DaemonTest):
    def test_other_cards_than_those_that_are_simulated_already(self):
        self.assertEqual(self.mete("cards").returncode, 0)
        self.assertIn("simulated: 1xH200", self.mete("daemon", "status").stdout)
        for sim in ("9xFOO", "2xH200"):
            for words in (("cards",), ("top", "--once"), ("where", "attribute:gpu.memory >= 16G")):
                self.assert_refused(self.mete(*words, env={"METE_SIM": sim}), 64, "disagree about METE_SIM", "1xH200", "mete daemon stop")
            result = self.mete("cards", "-o", "json", env={"METE_SIM": sim})
            self.assertEqual((result.returncode, result.stdout), (64, ""))


class NoDriver(DaemonTest):
    """No METE_SIM: the machine's own cards, or a driver of ours with one failure."""
    sim = None

    def setUp(self):
        super().setUp()
        self.env["METE_CLAIMS_DIR"] = str(self.folder / "claims")
        self.env["METE_SOCKET"] = str(self.folder / "s")

    def fake(self, trouble):
        self.assertTrue((FAKE / "libnvidia-ml.so.1").exists(), FAKE)
        self.env["LD_LIBRARY_PATH"] = str(FAKE)
        self.env["METE_TEST_FAKE_NVML"] = trouble  # METE_*: the daemon gets it too

    def test_no_driver_at_all(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has a driver")
        result = self.run_("--gpu", "1", "--", "true")
        self.assert_refused(result, 69, "libnvidia-ml.so.1")
        self.assertEqual(self.jobs(), [])
        self.assertEqual(self.run_("-q", "--cpu-only", "--", "true").returncode, 0)

    def test_no_card(self):
        self.fake("none")
        self.assert_refused(self.run_("--gpu", "1", "--", "true"), 69, "no usable GPU")

    def test_a_driver_and_library_that_do_not_match(self):
        self.fake("mismatch")
        self.assert_refused(self.run_("--gpu", "1", "--", "true"), 69, "different versions", "reboot")

    def test_split_into_slices(self):
        self.fake("mig")
        self.assert_refused(self.run_("--gpu", "8G", "--", "true"), 69, "MIG")

    def test_prohibited(self):
        self.fake("prohibited")
        self.assert_refused(self.run_("--gpu", "8G", "--", "true"), 69, "prohibited")

    def test_memory_that_the_driver_does_not_tell(self):
        self.fake("no-memory")
        self.assert_refused(self.run_("--gpu", "8G", "--", "true"), 69, "how much memory")

    def test_exclusive_process_mode(self):
        """One process may use the card: a job that has it has it alone."""
        self.fake("exclusive")
        self.assert_refused(self.run_("--gpu", "8G", "--procs", "2", "--", "true"), 69, "exclusive-process")
        holder = self.holder("8G")
        self.assert_refused(self.run_("--no-wait", "--gpu", "8G", "--", "true"), 75, "job 1")
        self.release(holder)

    def test_processes_that_the_driver_does_not_tell(self):
        """Then all memory in use on the card counts as held, and is not granted."""
        self.fake("no-processes")
        self.assert_refused(self.run_("--no-wait", "--gpu", "60G", "--", "true"), 75)
        self.assertEqual(self.run_("-q", "--no-wait", "--gpu", "30G", "--", "true").returncode, 0)

    def test_an_ordinary_card(self):
        self.fake("nothing")
        result = self.run_("--gpu", "8G", "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("8 GiB", result.stderr)


class Lost(DaemonTest):
    sim = "2xH200"

    def control(self, *words):
        done = subprocess.run([BUILD / "simgpu" / "mete-simgpu", "--ctl", *map(str, words)], env=self.env, capture_output=True, text=True,
                              timeout=BOUND_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def events(self):
        """From the log itself: the recorded events, not the output of a verb."""
        database = sqlite3.connect(f"file:{self.folder}/sim/meted.db?mode=ro", uri=True, timeout=BOUND_S)
        try:
            return [row[0] for row in database.execute("SELECT type FROM events ORDER BY seq")]
        finally:
            database.close()

    def test_a_card_is_lost_while_granted_and_comes_back(self):
        holder = self.holder("60%", "--devices", "0")
        self.control("lose-card", 0)
        wait_until(lambda: self.card(0)["state"] == "lost", "the loss is seen")
        self.assertEqual(self.job(1)["state"], "running", "its job goes on or fails by itself")
        result = self.run_("-q", "--gpu", "10%", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        self.assertEqual(result.stdout.strip(), self.card(1)["uuid"], "nothing new there")
        self.assert_refused(self.run_("--no-wait", "--gpu", "10%", "--devices", "0", "--", "true"), 75, "lost")
        waiting = self.start_run("--gpu", "10%", "--devices", "0", "--", "echo", "back")
        self.assertIn("lost", waiting.stderr.readline())
        self.control("restore-card", 0)
        self.assertEqual(waiting.communicate(timeout=BOUND_S)[0], "back\n")
        self.assertEqual(self.card(0)["state"], "ok")
        self.release(holder, 3)
        self.assert_nothing_left()
        self.kill_daemon(15)
        events = self.events()
        self.assertEqual([event for event in events if event.startswith("card.")], ["card.lost", "card.back"])

    def test_both_are_lost(self):
        self.assertEqual(self.run_("-q", "--gpu", "10%", "--", "true").returncode, 0)
        for card in (0, 1):
            self.control("lose-card", card)
        wait_until(lambda: {self.card(i)["state"] for i in (0, 1)} == {"lost"}, "the losses are seen")
        waiting = self.start_run("--gpu", "10%", "--", "echo", "back")
        self.assertIn("lost", waiting.stderr.readline())
        # A daemon that has never read them does not even know their names.
        self.kill_daemon()
        self.wait_state(2, "pending")
        for card in (0, 1):
            self.control("restore-card", card)
        self.assertEqual(waiting.communicate(timeout=BOUND_S)[0], "back\n")


class Wedged(DaemonTest):
    def test_a_driver_that_is_wedged_from_the_beginning(self):
        self.hang.touch()
        self.assertEqual(self.run_("-q", "--cpu-only", "--", "true").returncode, 0)
        self.assert_refused(self.run_("--gpu", "10%", "--", "true"), 75, "cannot be read at the moment", "does not answer")
        self.hang.unlink()
        wait_until(lambda: self.api("/v1/cards")[1]["cards"], "it is read again")
        self.assertEqual(self.run_("-q", "--gpu", "10%", "--", "true").returncode, 0)

    def setUp(self):
        super().setUp()
        self.hang = self.folder / "hang"
        self.env["METE_SIM_NVML_HANG"] = str(self.hang)

    def test_a_driver_that_wedges_and_comes_back(self):
        holder = self.holder("60%")
        self.hang.touch()
        wait_until(lambda: self.card()["reading_age_s"] > 6, "the reading grows old, and the daemon answers")
        waiting = self.start_run("--gpu", "10%", "--", "echo", "here")
        line = waiting.stderr.readline()
        self.assertIn("not read lately", line)
        self.assertEqual(self.job(1)["state"], "running")
        self.release(holder, 3)
        self.assertEqual(self.job(1)["exit_code"], 3)
        self.assertEqual(self.job(2)["state"], "pending", "not on an old reading")
        self.hang.unlink()
        self.assertEqual(waiting.communicate(timeout=BOUND_S)[0], "here\n")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
