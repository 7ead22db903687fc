#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever is killed, and when: one word about each job, no attempt run twice, nothing left behind."""
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from world import BOUND_S, FINAL, KEEPER, KeeperTest, SANITIZED, alive, read, wait_until

RAN = "echo ran >> $OUT/ran-$METE_JOB_ID.$METE_ATTEMPT"


class Daemons(KeeperTest):
    """The daemon is killed and comes back."""

    def ran(self, job, attempt=1):
        return read(self.folder / f"ran-{job}.{attempt}").count(b"ran")

    def test_a_job_outlives_it_and_is_found(self):
        text = RAN + "; while [ ! -e $OUT/go ]; do sleep 0.02; done; echo over; exit 3"
        self.sh(1, text)
        keeper, program = self.started(1)
        self.restart()
        self.sh(1, text)
        self.assertEqual(self.started(1), (keeper, program))
        (self.folder / "go").touch()
        self.assertEqual(self.ended(1)["exit_code"], 3)
        self.assertEqual((self.ran(1), self.log(1)), (1, "over\n"))
        self.assert_nothing_left()

    def test_an_end_that_nobody_saw(self):
        text = RAN + "; while [ ! -e $OUT/go ]; do sleep 0.02; done; exit 3"
        self.sh(1, text)
        keeper, program = self.started(1)
        self.driver.kill()
        (self.folder / "go").touch()
        wait_until(lambda: not alive(keeper), "it ends")
        self.driver = self.new_driver()
        self.sh(1, text)
        event = self.driver.wait(1, *FINAL)
        self.assertEqual((event["event"], event["exit"]["exit_code"], event["program"][0]), ("ended", 3, program))
        self.assertEqual(self.ran(1), 1)
        self.assert_nothing_left()

    def test_found_to_be_stopped(self):
        self.sh(1, f"{self.hider()} & sleep 1000", grace_ms=300)
        self.started(1)
        hidden = self.hidden()
        self.restart()
        self.sh(1, "never", find=True)
        self.stop(1)
        self.assertEqual(self.ended(1)["signal"], signal.SIGTERM)
        self.assertFalse(alive(hidden))
        self.assert_nothing_left()

    def test_to_be_stopped_and_never_started(self):
        self.sh(1, "never", find=True)
        self.stop(1)
        self.assertEqual(self.final(1)["event"], "not_launched")

    def test_killed_while_it_starts_one(self):
        """At any moment: the next one has it run once, and learns its end."""
        source = random.Random(1)
        for job in range(1, 25):
            self.sh(job, RAN + "; exit 3")
            time.sleep(source.random() * 0.02)
            self.restart()
            for _ in range(5):
                self.sh(job, RAN + "; exit 3")
                event = self.final(job)
                if event["event"] != "not_launched":
                    break
                self.assertEqual((event["why"], self.ran(job)), ("", 0))
            self.assertEqual((event["event"], event["exit"]["exit_code"], self.ran(job)), ("ended", 3, 1), job)
            self.forget(job)

    def test_a_keeper_that_comes_too_late_runs_nothing(self):
        """It was started by a daemon that is gone, and its job was run and put away meanwhile."""
        slow = self.folder / "slow-keeper"
        slow.write_text(f"#!/bin/sh\nwhile [ ! -e {self.folder}/now ]; do sleep 0.02; done\necho $$ > {self.folder}/late\nexec {KEEPER} \"$@\"\n")
        slow.chmod(0o755)
        self.driver.kill()
        self.driver = self.new_driver(keeper=str(slow))
        self.sh(1, RAN)
        time.sleep(0.2)
        self.restart()
        self.sh(1, RAN)
        self.assertEqual(self.ended(1)["exit_code"], 0)
        self.assert_nothing_left()
        (self.folder / "now").touch()
        wait_until(lambda: read(self.folder / "late").strip(), "the late one is there")
        wait_until(lambda: not alive(int(read(self.folder / "late"))), "it ends")
        self.assertEqual((self.ran(1), self.records()), (1, []))

    def test_two_daemons_want_the_same_attempt(self):
        """(A lock forbids that; the claim holds all the same.)"""
        for job in range(1, 11):
            other = self.new_driver()
            other.wait("", "ready")  # it has searched the folder, as if it were the only one
            for driver in (self.driver, other):
                self.sh(job, RAN + "; sleep 0.2; exit 3", driver=driver)
            for driver in (self.driver, other):
                self.assertEqual(driver.wait(job, *FINAL)["exit"]["exit_code"], 3)
            self.assertEqual(self.ran(job), 1)
            other.kill()
            self.assert_nothing_left(job)

    def test_records_that_nobody_knows_go_and_drafts_too(self):
        wait_until((self.state / "keep").exists, "there is a folder")
        (self.state / "keep" / ".7.1.4000").write_text("half")
        self.restart()
        self.sh(1, "true")
        self.ended(1)
        self.assertEqual(self.records(), ["1.1"])


class Keepers(KeeperTest):
    """The keeper is killed."""

    def test_gone_without_a_word_and_what_it_left_is_ended(self):
        self.sh(1, f"{self.hider()} & sleep 1000 & sleep 1000")
        keeper, program = self.started(1)
        hidden = self.hidden()
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(self.final(1)["event"], "runner_gone")
        self.assertTrue(alive(program))
        self.stop(1)
        self.driver.wait(1, "job_gone")
        self.assertFalse(alive(program))
        if os.geteuid() == 0:  # with a control group
            self.assertFalse(alive(hidden))
        self.assert_nothing_left()

    def test_killed_while_it_ends_its_job(self):
        self.sh(1, f"trap '' TERM; {self.hider()} & while :; do sleep 1; done", grace_ms=60000)
        keeper, program = self.started(1)
        hidden = self.hidden()
        self.stop(1)
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(self.final(1)["event"], "runner_gone")
        self.driver.wait(1, "job_gone")
        self.assertFalse(alive(program))
        if os.geteuid() == 0:
            self.assertFalse(alive(hidden))
        self.assert_nothing_left()

    def test_one_that_stands_still_is_killed_in_the_end(self):
        self.sh(1, "trap '' TERM; echo up; while :; do sleep 1; done", grace_ms=300_000)
        keeper, program = self.started(1)
        wait_until(lambda: "up" in self.log(1), "it ignores TERM")
        self.stop(1)
        self.assertEqual(self.final(1)["event"], "runner_gone")  # the driver's patience is five seconds
        self.driver.wait(1, "job_gone")
        self.assertFalse(alive(program))
        self.assert_nothing_left()

    def test_one_that_was_stopped_is_continued(self):
        self.sh(1, "sleep 1000")
        keeper, _ = self.started(1)
        os.kill(keeper, signal.SIGSTOP)
        self.stop(1)
        self.assertEqual(self.ended(1)["signal"], signal.SIGTERM)

    def test_killed_at_any_moment(self):
        """Exactly one word; the program ran at most once; what is told to have ended did."""
        source = random.Random(2)
        seen = set()
        for job in range(1, 60):
            self.sh(job, "echo ran >> $OUT/ran-$METE_JOB_ID; exit 3")
            wait_until(lambda: self.keeper_of(job) or self.driver.events or self.driver.settle(0.001), "there is a keeper")
            time.sleep(source.random() * (0.12 if SANITIZED else 0.012))
            keeper = self.keeper_of(job)
            if keeper:
                try:
                    os.kill(keeper, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            event = self.driver.wait(job, *FINAL)
            seen.add(event["event"])
            ran = read(self.folder / f"ran-{job}").count(b"ran")
            if event["event"] == "ended":
                self.assertEqual((event["exit"]["exit_code"], ran), (3, 1))
            elif event["event"] == "not_launched":
                self.assertEqual(ran, 0)
            else:
                self.stop(job)
                self.driver.wait(job, "job_gone")
                self.assertLessEqual(read(self.folder / f"ran-{job}").count(b"ran"), 1)
            self.assertEqual([e for e in self.driver.settle(0.001) if e["event"] in FINAL], [])
            self.driver.events.clear()
            self.forget(job)
        self.assertIn("runner_gone", seen)

    def keeper_of(self, job):
        """By its name, not by its record: before the claim too."""
        children = read(f"/proc/{self.driver.process.pid}/task/{self.driver.process.pid}/children").split()
        for pid in children:
            words = read(f"/proc/{int(pid)}/cmdline").split(b"\0")
            if len(words) > 1 and words[1] == f"{job}.1".encode():
                return int(pid)
        return None

    def test_one_that_dies_again_and_again_is_tried_less_often(self):
        broken = self.folder / "broken"
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
        self.driver.kill()
        self.driver = self.new_driver(keeper=str(broken))
        for _ in range(3):
            self.sh(1, "true")
            self.assertEqual(self.driver.wait(1, *FINAL)["why"], "")
            self.forget(1)
        self.sh(1, "true")
        event = self.driver.wait(1, *FINAL)
        self.assertIn("its keeper died 4 times", event["why"])
        self.assertTrue(event["later"])

    def test_one_that_cannot_be_executed(self):
        self.driver.kill()
        self.driver = self.new_driver(keeper=str(self.folder / "none"), stderr=subprocess.DEVNULL)
        self.sh(1, "true")
        event = self.final(1)
        self.assertEqual(event["event"], "not_launched")
        self.assertIn("No such file", event["why"])
        self.assertTrue(event["later"])


@unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small disk")
class FullDisk(KeeperTest):
    def setUp(self):
        super().setUp()
        self.driver.kill()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(self.state)], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.state)], check=True)
        self.addCleanup(self.end_everything)
        self.driver = self.new_driver(stderr=subprocess.DEVNULL)

    def fill(self):
        with open(self.state / "ballast", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass

    def test_exits_are_kept_and_output_is_dropped(self):
        for job in range(1, 6):
            self.sh(job, f"echo up; while [ ! -e $OUT/go ]; do sleep 0.02; done; seq 5000; exit {job}")
        for job in range(1, 6):
            self.started(job)
            wait_until(lambda: "up" in self.log(job), "it writes")
        self.fill()
        self.driver.kill()  # while no driver runs
        (self.folder / "go").touch()
        wait_until(lambda: all(b"exit\n" in read(self.state / "keep" / f"{job}.1") for job in range(1, 6)), "all have ended")
        self.driver = self.new_driver(stderr=subprocess.DEVNULL)
        for job in range(1, 6):
            self.sh(job, "never again")
            exit = self.ended(job)
            self.assertEqual(exit["exit_code"], job)
            self.assertIn("bytes of output could not be written", exit["note"])

    def test_nothing_is_begun_and_all_goes_on_when_there_is_room(self):
        self.fill()
        self.sh(1, "echo ran >> $OUT/ran")
        event = self.final(1)
        self.assertEqual((event["event"], event["later"]), ("not_launched", True))
        self.assertIn("No space", event["why"])
        self.assertFalse((self.folder / "ran").exists())
        self.assertEqual(self.records(), [])
        os.unlink(self.state / "ballast")
        self.sh(1, "echo fine")
        self.assertEqual(self.ended(1)["exit_code"], 0)

    def test_what_was_lost_is_said_once_there_is_room(self):
        self.sh(1, "echo up; while [ ! -e $OUT/go ]; do sleep 0.02; done; seq 20000; echo more; touch $OUT/said;"
                   "while [ ! -e $OUT/room ]; do sleep 0.02; done; echo last")
        self.started(1)
        wait_until(lambda: "up" in self.log(1), "it writes")
        self.fill()
        (self.folder / "go").touch()
        wait_until((self.folder / "said").exists, "the job is not held up")
        os.unlink(self.state / "ballast")
        (self.folder / "room").touch()
        self.assertEqual(self.ended(1)["exit_code"], 0)
        self.assertRegex(self.log(1), r"mete: \d+ bytes of output were lost here: No space left on device\nlast\n$")


if __name__ == "__main__":
    unittest.main()
