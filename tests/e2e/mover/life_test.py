#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One mover for a socket; it ends when it is not needed and not before, whatever the request."""
import os
import signal
import subprocess
import time
import unittest

from world import *


class LifeTest(MoverTest):
    def test_there_is_one_for_a_socket(self):
        first = self.mover("--arena", "64M")
        second = self.start()
        self.assertEqual(second.wait(BOUND_S), 75)
        self.assertIn("another mover holds", second.stderr.read())
        self.assertIsNone(first.poll())
        self.assertTrue(self.listens())
        # A killed mover leaves its socket behind, which the next one replaces.
        first.kill()
        first.wait()
        self.assertTrue(os.path.exists(self.socket))
        self.mover()
        self.daemon()

    def test_it_ends_when_nobody_needs_it(self):
        mover = self.mover("--idle-s", "0", "--arena", "64M", env={"METE_SIM_FAULT": "cuInit:1:block=500"})
        self.assertEqual(mover.wait(BOUND_S), 0)
        self.assertFalse(os.path.exists(self.socket))

    def test_it_stays_while_a_daemon_or_parked_bytes_are_there(self):
        mover = self.mover("--idle-s", "1", "--arena", "64M")
        daemon = self.daemon()
        job = self.process(32 * MIB, pieces={1: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        daemon.kill()
        deadline = time.monotonic() + 2.5  # longer than it would stay without a reason
        while time.monotonic() < deadline:
            self.assertIsNone(mover.poll())
            time.sleep(0.05)
        self.assertEqual(job.ask("in 1"), "done 1")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertEqual(job.ask("drop 0"), "done 0")
        self.assertEqual(mover.wait(BOUND_S), 0)

    def test_asked_to_end_it_waits_for_what_it_keeps(self):
        mover = self.mover("--arena", "64M")
        self.daemon()
        job = self.process(32 * MIB, pieces={1: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        mover.send_signal(signal.SIGTERM)
        self.assertIn("waiting until nothing is parked", mover.stderr.readline())
        self.expect_refused(self.raw().ask(message(HELLO, size=0, token=ALICE)), NO_MOVER)  # no new clients
        self.assertEqual(job.ask("in 1"), "done 1")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertIsNone(mover.poll())
        self.assertEqual(job.ask("drop 0"), "done 0")
        self.assertEqual(mover.wait(BOUND_S), 0)
        self.assertFalse(os.path.exists(self.socket))

    def test_asked_twice_it_ends(self):
        mover = self.mover("--arena", "64M")
        self.daemon()
        job = self.process(32 * MIB, pieces={1: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        mover.send_signal(signal.SIGTERM)
        mover.stderr.readline()
        mover.send_signal(signal.SIGTERM)
        self.assertEqual(mover.wait(BOUND_S), 0)
        self.assertEqual(job.ask("in 1"), "closed")

    def test_idle_and_asked_to_end_it_does(self):
        mover = self.mover("--arena", "64M")
        self.daemon()
        mover.send_signal(signal.SIGTERM)
        self.assertEqual(mover.wait(BOUND_S), 0)

    def test_the_socket_has_the_mode_that_was_asked_for(self):
        self.mover()
        self.assertEqual(os.stat(self.socket).st_mode & 0o777, 0o600)
        self.socket += "2"
        self.mover("--mode", "0666")
        self.assertEqual(os.stat(self.socket).st_mode & 0o777, 0o666)

    def test_wrong_words_are_told(self):
        for words in ([], ["--card"], ["--card", self.uuid], ["--card", self.uuid, "--socket", "relative"],
                      ["--card", self.uuid, "--socket", self.socket, "--mode", "999"],
                      ["--card", self.uuid, "--socket", self.socket, "--nonsense", "1"],
                      ["--card", self.uuid, "--socket", "/" + "x" * 200]):
            done = subprocess.run([MOVER, *words], env=self.env, capture_output=True, text=True, timeout=BOUND_S)
            self.assertEqual(done.returncode, 64, words)
            self.assertTrue(done.stderr.startswith("mete-mover: "), done.stderr)

    def test_without_card_or_driver_it_says_so(self):
        words = ["--socket", self.socket, "--cuda", SIMGPU + "/libcuda.so.1"]
        for more, text in ((["--card", "GPU-00000000-0000-0000-0000-00000000ffff"], "GPU-0"),
                           (["--card", self.uuid, "--cuda", "/nowhere.so"], "/nowhere.so")):
            done = subprocess.run([MOVER, *words, *more], env=self.env, capture_output=True, text=True, timeout=BOUND_S)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertFalse(os.path.exists(self.socket))

    def test_a_file_that_is_no_socket_stays(self):
        with open(self.socket, "w") as file:
            file.write("precious")
        self.assertEqual(self.start().wait(BOUND_S), 64)
        with open(self.socket) as file:
            self.assertEqual(file.read(), "precious")


if __name__ == "__main__":
    unittest.main()
