#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of every process that takes part, at every step of a park and of the way back: the daemon, the keeper, the mover, the program."""
import json
import os
import pathlib
import socket
import sys

from world import GIB, MIB, wait_until
from support import main
import park_test
from park_movers_test import MESSAGE

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "park"))
from die_at import DieAt, every_step  # noqa: E402

# Each step needs fresh processes: every step only in the long tests.
APART = 1 if "METE_FULL" in os.environ else 4

STATUS, DONE = 19, 32


class Steps(park_test.ParkTest):
    config = "[park]\nmin_run_s = 0\narena = \"256M\"\n"

    def kept(self):
        """What the mover stores or has promised; None: no mover answers."""
        for path in self.folder.glob("**/movers/GPU-*"):
            if path.name.endswith(".lock"):
                continue
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as mover:
                try:
                    mover.connect(str(path))
                    mover.send(MESSAGE.pack(0x4d455445, 1, STATUS, 0, 0, 0, 0, 0, 0, 0, 0, b"\0" * 16))
                    said = mover.recv(MESSAGE.size)
                except OSError:
                    continue
                if len(said) == MESSAGE.size and MESSAGE.unpack(said)[2] == DONE:
                    return MESSAGE.unpack(said)[5]
        return None

    def worker(self, *words):
        """Its memory is two chunks, and its mover is there."""
        self.go.unlink(missing_ok=True)
        job = super().worker("--gpu", "10G", "--preemptible", *words, blocks=3, size=2 * MIB)
        wait_until(lambda: self.kept() is not None, "there is a mover")
        return job

    def out_and_back(self, job):
        for verb, state in (("park", "parked"), ("unpark", "running")):
            self.good(verb, job)
            self.assertEqual(self.job(job)["state"], state)
        self.assertEqual(self.granted(), 10 * GIB)
        wait_until(lambda: self.kept() == 0, "the mover has forgotten it")

    def nothing_is_left(self):
        wait_until(lambda: not self.processes("park_program"), "nothing of it runs")
        self.assertEqual(self.granted(), 0)
        wait_until(lambda: self.kept() in (0, None), "nothing of it is kept")

    def said_again(self, *words):
        """The daemon dies once: a client without an answer asks again."""
        result = self.mete(*words)
        return result if result.returncode == 0 else self.good(*words)

    def test_the_daemon(self):
        """Whatever was received: a repeated request is done, with one job and equal bytes all the time."""
        job = self.worker()

        def once(step):
            death = DieAt(self, self.daemon_pid(), step)
            for verb, state in (("park", "parked"), ("unpark", "running")):
                self.said_again(verb, job)
                self.assertEqual(json.loads(self.said_again("show", job, "-o", "json").stdout)["job"]["state"], state)
                granted = json.loads(self.said_again("cards", "-o", "json").stdout)["cards"][0]["granted_bytes"]
                self.assertTrue(granted < GIB if state == "parked" else granted == 10 * GIB, granted)
            said = death.close()
            wait_until(lambda: self.kept() == 0, "the mover has forgotten it")
            return said
        every_step(self, once, APART)
        self.ends_well(job)
        self.nothing_is_left()

    def test_the_keeper(self):
        """Its job is ended as lost, and nothing of it stays anywhere."""
        def once(step):
            job = self.worker()
            keeper = min(self.processes("mete-keeper"))  # and its helper
            death = DieAt(self, keeper, step)
            self.mete("park", job)
            self.mete("unpark", job)
            said = death.close()
            if said.startswith("died"):
                self.wait_state(job, "ended")
                self.assertEqual(self.job(job)["outcome"], "lost")
            else:
                self.ends_well(job)
            self.nothing_is_left()
            return said
        every_step(self, once, APART)

    def test_the_program(self):
        def once(step):
            job = self.worker()
            program, = self.processes("park_program")
            death = DieAt(self, program, step)
            self.mete("park", job)
            self.mete("unpark", job)
            said = death.close()
            if said.startswith("died"):
                self.wait_state(job, "ended")
                self.assertEqual(self.job(job)["outcome"], "signal")
            else:
                self.ends_well(job)
            self.nothing_is_left()
            return said
        every_step(self, once, APART)

    def test_the_mover(self):
        """Its job runs, and is parked by the next mover; or it is parked and known to be lost."""
        def once(step):
            job = self.worker()
            mover, = self.processes("mete-mover")
            death = DieAt(self, mover, step)
            self.mete("park", job)
            self.mete("unpark", job)
            said = death.close()
            self.wait_state(job, "running", "parked")
            if self.job(job)["state"] == "running":
                self.out_and_back(job)
                self.ends_well(job)
            else:
                self.assertTrue(self.job(job)["park"]["lost"], said)
                self.assert_refused(self.mete("unpark", job), 64, "cannot come back", "the mover that held its memory is gone")
                self.good("cancel", job)
                self.mete("wait", job)
                self.assertEqual(self.job(job)["outcome"], "cancelled")
            self.nothing_is_left()
            return said
        every_step(self, once, APART)


if __name__ == "__main__":
    main()
