#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory goes to the mover and comes back byte for byte; what is kept goes with its process; room is promised before."""
import random
import time
import unittest

from world import *


class ParkTest(MoverTest):
    def test_memory_comes_home_byte_for_byte(self):
        self.mover("--arena", "512M")
        daemon = self.daemon()
        sizes = {1: 2 * MIB, 2: 32 * MIB, 3: 64 * MIB, 4: 6 * MIB}
        job = self.process(sum(sizes.values()), pieces=sizes)
        free = int(job.ask("free"))
        self.assertEqual(job.ask("out 1 2 3 4"), "done 4")
        self.assertEqual(self.status(daemon)[1], sum(sizes.values()))
        self.assertEqual(int(job.ask("free")), free + sum(sizes.values()))  # the card has all of it again
        self.assertEqual(daemon.ask(f"token {ALICE}"), f"{4 * GIB} {sum(sizes.values())} {sum(sizes.values())} 0")
        self.assertEqual(job.ask("in 4 3 2 1"), "done 4")
        for ident in sizes:
            self.assertEqual(job.ask(f"check {ident} {ident}"), "same")
        self.assertEqual(self.status(daemon)[1], sum(sizes.values()))  # stored until it is dropped
        self.assertEqual(job.ask("drop 2"), "done 2")
        self.assertEqual(job.ask("drop 0"), "done 0")
        self.assertEqual(self.status(daemon)[1], 0)
        # And once more, over the same arena.
        self.assertEqual(job.ask(f"hello {ALICE} {sum(sizes.values())}"), "done 0")
        self.assertEqual(job.ask("out 1 2 3 4"), "done 4")
        self.assertEqual(job.ask("in 1 2 3 4"), "done 4")
        for ident in sizes:
            self.assertEqual(job.ask(f"check {ident} {ident}"), "same")

    def test_many_pieces_of_two_processes_at_once(self):
        self.mover("--arena", "600M")
        daemon = self.daemon(allow=(ALICE, BOB))
        self.wait_size(daemon, 600 * MIB)
        sizes = {ident: (1 + ident % 5) * 2 * MIB for ident in range(1, 41)}
        total = sum(sizes.values())
        jobs = [self.process(total, token, sizes) for token in (ALICE, BOB)]
        everything = " ".join(map(str, sizes))
        for verb in ("out", "in"):
            for job in jobs:
                job.say(f"{verb} {everything}")
            self.assertEqual([job.hear() for job in jobs], ["done 40"] * 2)
            self.assertEqual(self.status(daemon)[1], 2 * total)
        for job in jobs:
            for ident in sizes:
                self.assertEqual(job.ask(f"check {ident} {ident}"), "same")

    def test_a_killed_process_gives_its_room_back(self):
        self.mover("--arena", "256M")
        daemon = self.daemon()
        job = self.process(200 * MIB, pieces={1: 64 * MIB, 2: 64 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        job.ask("send-out 2")  # perhaps on its way, perhaps not begun
        job.kill()
        wait_until(lambda: self.status(daemon)[1] == 0, "the arena is free again")
        other = self.process(256 * MIB, pieces={1: 64 * MIB})
        self.assertEqual(other.ask("out 1"), "done 1")
        self.assertEqual(other.ask("in 1"), "done 1")
        self.assertEqual(other.ask("check 1 1"), "same")

    def test_processes_may_be_killed_at_any_moment(self):
        self.mover("--arena", "256M", env={"METE_SIM_DELAY_US": "300,7"})
        daemon = self.daemon(allow=(ALICE, BOB))
        sizes = {ident: (1 + ident % 3) * 2 * MIB for ident in range(1, 9)}
        everything = " ".join(map(str, sizes))
        witness = self.process(sum(sizes.values()), BOB, sizes)
        self.assertEqual(witness.ask(f"out {everything}"), "done 8")
        chance = random.Random(4)
        for _ in range(25):
            job = self.process(128 * MIB, pieces=sizes)
            for words in chance.choice(([f"out {everything}"], [f"out {everything}", f"in {everything}"])):
                job.say(words)
            time.sleep(chance.uniform(0, 0.06))  # at any moment
            job.kill()
        wait_until(lambda: self.status(daemon)[1] == sum(sizes.values()), "all but the witness's is free")
        self.assertEqual(witness.ask(f"in {everything}"), "done 8")
        for ident in sizes:
            self.assertEqual(witness.ask(f"check {ident} {ident}"), "same")

    def test_room_is_promised_and_refused_with_what_there_is(self):
        self.mover("--arena", "128M")
        daemon = self.daemon(allow=(ALICE, BOB))
        self.process(100 * MIB)
        other = self.actor()
        other.ask(f"connect {self.socket}")
        self.assertEqual(other.ask(f"hello {BOB} {64 * MIB}"), f"refused 0 {NO_ROOM} 0 {28 * MIB}")
        self.assertEqual(other.ask(f"hello {BOB} {28 * MIB}"), "done 0")
        other.ask(f"make 1 {32 * MIB} 1")
        self.assertEqual(other.ask("out 1"), f"refused 1 {NO_ROOM} 0 {28 * MIB}")
        self.assertEqual(other.ask("check 1 1"), "same")  # it is unharmed
        self.assertEqual(self.status(daemon)[:3], [128 * MIB, 128 * MIB, 128 * MIB])

    def test_a_token_has_a_limit_of_its_own(self):
        self.mover("--arena", "128M")
        self.wait_size(self.daemon(size=32 * MIB), 128 * MIB)  # memory that is not pinned yet is not reported
        job = self.actor()
        job.ask(f"connect {self.socket}")
        self.assertEqual(job.ask(f"hello {ALICE} {64 * MIB}"), f"refused 0 {NO_ROOM} 0 {32 * MIB}")

    def test_the_arena_grows_and_shrinks_as_told(self):
        self.mover()
        daemon = self.daemon()
        self.assertEqual(self.status(daemon), [0, 0, 0, 0])
        self.assertEqual(daemon.ask(f"arena {700 * MIB}"), "done")
        job = self.process(600 * MIB, pieces={1: 32 * MIB})  # its hello waits until there is room
        self.wait_size(daemon, 700 * MIB)
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertEqual(daemon.ask("arena 0"), "done")
        self.assertEqual(self.status(daemon)[:3], [700 * MIB, 600 * MIB, 0])  # all of it is promised
        self.assertEqual(job.ask(f"hello {ALICE} {32 * MIB}"), "done 0")
        wait_until(lambda: self.status(daemon)[0] <= 256 * MIB, "free segments go")
        self.assertEqual(job.ask("in 1"), "done 1")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertEqual(job.ask("drop 0"), "done 0")
        self.wait_size(daemon, 0)

    def test_room_that_does_not_come_is_not_waited_for_for_ever(self):
        self.mover("--arena", "64M", env={"METE_SIM_FAULT": "cuMemHostAlloc:1:block"})
        daemon = self.daemon()
        job = self.actor()
        job.ask(f"connect {self.socket}")
        job.say(f"hello {ALICE} {32 * MIB}")
        self.assertEqual(self.status(daemon), [0, 0, 64 * MIB, 0])  # other clients are answered meanwhile
        self.assertEqual(job.hear(), f"refused 0 {NO_ROOM} 0 0")
        self.assertEqual(job.ask(f"hello {ALICE} 0"), "done 0")

    def test_a_kernel_that_pins_no_more_is_told(self):
        mover = self.mover("--arena", "1G", env={"METE_SIM_FAULT": "cuMemHostAlloc:2:fail=2"})
        daemon = self.daemon()
        wait_until(lambda: self.status(daemon)[3] == 2, "pinning has failed")
        self.assertEqual(self.status(daemon)[:3], [256 * MIB, 0, GIB])
        self.assertIn("cannot pin more than 256 MiB", mover.stderr.readline())
        job = self.actor()
        job.ask(f"connect {self.socket}")
        self.assertEqual(job.ask(f"hello {ALICE} {512 * MIB}"), f"refused 0 {NO_ROOM} 0 {256 * MIB}")
        self.assertEqual(job.ask(f"hello {ALICE} {256 * MIB}"), "done 0")

    def test_an_error_of_the_driver_loses_nothing(self):
        self.mover("--arena", "128M", env={"METE_SIM_FAULT": "cuMemcpyDtoHAsync_v2:2:fail=719"})
        daemon = self.daemon()
        job = self.process(128 * MIB, pieces={1: 8 * MIB, 2: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertEqual(job.ask("out 2"), f"refused 2 {DRIVER} 719 0")
        self.assertEqual(job.ask("check 2 2"), "same")
        self.assertEqual(job.ask("out 2"), "done 1")
        self.assertEqual(job.ask("in 2 1"), "done 2")
        self.assertEqual([job.ask("check 1 1"), job.ask("check 2 2")], ["same", "same"])
        self.assertEqual(int(daemon.ask(f"token {ALICE}").split()[1]), 16 * MIB)

    def test_a_failed_way_back_can_be_tried_again(self):
        self.mover("--arena", "128M", env={"METE_SIM_FAULT": "cuMemMap:2:fail=2"})
        self.daemon()
        job = self.process(128 * MIB, pieces={1: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertEqual(job.ask("in 1"), f"refused 1 {DRIVER} 2 0")
        other = self.raw()  # and only by its own connection
        self.assertEqual(other.ask(message(HELLO, size=0, token=ALICE)).kind, DONE)
        with open("/dev/null", "rb") as null:
            self.expect_refused(other.ask(message(IN, 1, 8 * MIB), [null.fileno()]), DRIVER, detail=1)


if __name__ == "__main__":
    unittest.main()
