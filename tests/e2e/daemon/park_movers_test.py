#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon and its movers: one for each card, asked without waiting, with a secret that outlives both."""
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import threading

import park_test
from park_test import PROGRAM
from world import BOUND_S, GIB, MIB, wait_until
from support import main

MESSAGE = struct.Struct("<IHHQQQQIIII16s")
NO_MOVER = 8


class Cards(park_test.ParkTest):
    """Two of them: each has a mover of its own."""
    sim = "2xT4"

    def on_two(self):
        job = self.submit("--gpu", "2x10G", "--preemptible", "--", PROGRAM, "cards", str(64 * MIB), str(self.go))
        wait_until(lambda: b"up" in self.log_of(job), "it has its memory")
        self.assertIn(b"2 cards", self.log_of(job))
        return job

    def movers(self):
        """By card."""
        found = {}
        for pid in self.processes("mete-mover"):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            found[words[words.index("--card") + 1]] = pid
        return found

    def granted_of_all(self):
        return [self.card(index)["granted_bytes"] for index in (0, 1)]

    def test_a_job_on_both(self):
        job = self.on_two()
        for _ in range(2):
            self.good("park", job)
            self.assertEqual(self.job(job)["park"]["moved_bytes"], 2 * 96 * MIB)
            self.assertEqual(set(self.movers()), {card["card"] for card in self.job(job)["grant"]})
            for granted in self.granted_of_all():
                self.assertLess(granted, GIB)
            self.good("unpark", job)
            self.assertEqual(self.granted_of_all(), [10 * GIB] * 2)
        self.ends_well(job)

    def test_a_job_on_both_is_parked_for_one_that_needs_both(self):
        job = self.on_two()
        other = self.run_("-q", "--gpu", "2x10G", "--priority", "5", "--", "true")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.wait_state(job, "running")
        self.assertIn(("job.parked", "parked"), self.events_of(job))
        self.ends_well(job)

    def test_a_job_on_both_and_one_of_its_movers_dies(self):
        """Before it is needed: another is started. With half of the memory: the job is lost as a whole, and reported as lost."""
        job = self.on_two()
        wait_until(lambda: len(self.movers()) == 2, "there are two movers")
        before = self.movers()
        os.kill(before[sorted(before)[1]], signal.SIGKILL)
        self.good("park", job)
        self.good("unpark", job)
        after = self.movers()
        self.assertEqual([after[card] == before[card] for card in sorted(before)], [True, False])
        self.good("park", job)
        os.kill(after[sorted(after)[1]], signal.SIGKILL)
        self.assert_refused(self.mete("unpark", job), 125, "cannot come back", "the mover that held its memory is gone")
        self.good("cancel", job)
        self.mete("wait", job)
        self.assertEqual(self.granted_of_all(), [0, 0])

    def test_a_job_on_each_and_one_of_the_movers_dies(self):
        jobs = [self.worker("--gpu", "10G", "--preemptible") for _ in range(2)]
        card_of = {job: self.job(job)["grant"][0]["card"] for job in jobs}
        self.assertEqual(len(set(card_of.values())), 2)
        self.good("park", *jobs)
        self.good("unpark", *jobs)
        self.good("park", *jobs)
        self.assertEqual(set(self.movers()), set(card_of.values()))
        os.kill(self.movers()[card_of[jobs[0]]], signal.SIGKILL)
        self.assert_refused(self.mete("unpark", jobs[0]), 125, "cannot come back")
        self.good("unpark", jobs[1])  # the other job is not affected
        self.good("requeue", jobs[0])
        wait_until(lambda: self.job(jobs[0])["attempt"] == 2 and self.job(jobs[0])["state"] == "running", "it runs anew")
        for job in jobs:
            self.ends_well(job)
        self.assertEqual(self.granted_of_all(), [0, 0])


class Room(park_test.ParkTest):
    def test_a_mover_without_jobs_makes_room_for_a_job_that_waits(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        self.good("unpark", job)
        self.ends_well(job)
        mover, = self.processes("mete-mover")
        # Its context and its buffers are on the card, so that the whole card is not free.
        all_of_it = self.submit("--gpu", "100%", "--", "true")
        self.wait_state(all_of_it, "ended")
        self.assertNotIn(mover, self.processes("mete-mover"))
        log, = self.folder.glob("**/meted.log")
        self.assertIn("has no job, and another job waits for room", log.read_text())


class Doors(park_test.ParkTest):
    def test_a_mover_that_is_slow_keeps_nobody_else_waiting(self):
        """It does not answer: other clients are answered meanwhile, and its late answer is read."""
        self.good("cards")
        path = next(self.folder.glob("**/movers")) / self.card()["uuid"]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind(str(path))
            door.listen()
            door.settimeout(BOUND_S)
            job = self.submit("--gpu", "10G", "--preemptible", "--", "sh", "-c", f"until [ -e {self.go} ]; do sleep 0.02; done")
            mover, _ = door.accept()
        with mover:
            mover.settimeout(BOUND_S)

            def answers(kind):
                asked = MESSAGE.unpack(mover.recv(MESSAGE.size))
                self.assertEqual(asked[2], kind)
                self.wait_state(job, "running")  # answered by a daemon that still waits for us
                mover.send(MESSAGE.pack(0x4d455445, 1, 32, 0, 0, 0, 0, 0, 0, 0, asked[10], b"\0" * 16))
            for kind in (19, 16, 18):  # status, allow, arena: on one connection
                answers(kind)
            path.unlink()
            self.ends_well(job)

    def test_a_mover_of_another_version_is_left_alone(self):
        """It may hold parked memory of others: it stays, its jobs run unharmed, and both sides report the problem."""
        self.good("cards")
        path = next(self.folder.glob("**/movers")) / self.card()["uuid"]
        log, = self.folder.glob("**/meted.log")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door, open(f"{path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the holder of the lock is the mover
            door.bind(str(path))
            door.listen()
            threading.Thread(target=self.answer_in_another_version, args=(door,), daemon=True).start()
            job = self.worker("--gpu", "10G", "--preemptible")
            wait_until(lambda: "the mover speaks another protocol version" in log.read_text(), "it is said")
            self.assert_refused(self.mete("park", job), 75, "was not parked, and runs on", "no mover answers")
            self.assertTrue(path.is_socket())
            path.unlink()  # it has ended, as it does when it stores nothing
            door.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: self.mete("park", job).returncode == 0, "there is one of ours")
        self.good("unpark", job)
        self.ends_well(job)

    @staticmethod
    def answer_in_another_version(door):
        while True:
            try:
                line, _ = door.accept()
            except OSError:
                return
            with line:
                line.recv(MESSAGE.size)
                line.send(MESSAGE.pack(0x4d455445, 2, 33, 0, 0, 0, 0, NO_MOVER, 0, 0, 0, b"\0" * 16))

    def test_without_its_secret_on_disk_nobody_is_parked(self):
        """The next daemon would not know its jobs at their movers. Once it can be written all goes on, also with the next daemon."""
        self.good("cards")
        secret, = self.folder.glob("**/park-secret")
        log, = self.folder.glob("**/meted.log")
        self.kill_daemon()
        secret.unlink()
        (secret / "in-the-way").mkdir(parents=True)
        job = self.worker("--gpu", "10G", "--preemptible")
        wait_until(lambda: "jobs cannot be parked for now" in log.read_text() and "park-secret" in log.read_text(), "it is said")
        self.assertEqual(self.processes("mete-mover"), [])
        shutil.rmtree(secret)
        self.good("park", job)
        self.assertEqual((secret.stat().st_size, secret.stat().st_mode & 0o777), (32, 0o600))
        self.kill_daemon()
        self.good("unpark", job)
        self.good("park", job)
        self.good("unpark", job)
        self.ends_well(job)


if __name__ == "__main__":
    main()
