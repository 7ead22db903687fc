# SPDX-License-Identifier: Apache-2.0
"""A grant that grows: more is asked for and waited for, what is refused is an ordinary error, and no limit is passed by a byte."""
import signal
import unittest

from books import CONTEXT, RESERVE
from support import GIB, MIB, OOM, PROGRAMS, Actor, World, main, wait_until

BASE = CONTEXT + RESERVE
LOW, HIGH = 2 * GIB, 8 * GIB


class Runner(Actor):
    """grow_runner: an actor of another kind."""

    def expect(self, word):
        said = self.hear()
        if said[0] != word:
            raise AssertionError(f"{said} instead of {word}")
        return said[1:]

    def allow(self, size, card=0):
        self.say(f"allow {card} {size}")
        return self.expect("most")[0]

    def status(self, card=0):
        self.say(f"status {card}")
        return self.expect("status")


class Grow(World):
    def start(self, parkable=False, **more):
        self.books = self.grant(HIGH, guarantee=LOW, parkable=parkable)
        self.runner = Runner([PROGRAMS / "meter_grow_runner", self.books.path], self.env)
        self.actors.append(self.runner)
        # It listens from its first answer on.
        self.assertEqual(self.runner.status(), [0, LOW])
        return self.actor(self.books, **more).start()

    def test_a_program_sees_the_ceiling(self):
        actor = self.start()
        free, total = actor.ask("info")[1:3]
        self.assertEqual((free, total), (HIGH - BASE, HIGH))
        self.assertEqual(actor.ask("total 0"), [0, HIGH])

    def test_it_grows_in_steps_while_somebody_answers(self):
        actor = self.start()
        self.assertEqual(actor.code(f"take alloc {LOW - BASE}"), 0)
        for step in range(1, 5):
            actor.say("take alloc 512M")
            self.assertEqual(self.runner.expect("ask"), [0, LOW + step * 512 * MIB])
            self.assertEqual(self.runner.allow(LOW + step * 512 * MIB), LOW + step * 512 * MIB)
            self.assertEqual(actor.hear()[0], 0)
            self.assertEqual(self.books.total(), LOW + step * 512 * MIB)
        self.assertEqual(actor.free(), HIGH - LOW - 4 * 512 * MIB)
        self.assert_exact(self.books)
        self.assertEqual(self.books.refusals(), 0)

    def test_every_way_to_take_memory_grows(self):
        actor = self.start()
        self.runner.say(f"always {HIGH}")
        for kind in ("alloc", "pitch", "managed", "async", "create", "array", "graph"):
            with self.subTest(kind):
                before = self.books.total()
                self.runner.allow(0)
                self.assertEqual(actor.code(f"take {kind} 1G"), 0)
                self.assertGreaterEqual(self.books.total(), before + GIB)
        self.assertEqual(self.books.refusals(), 0)

    def test_a_no_is_an_ordinary_error(self):
        actor = self.start()
        actor.say(f"take alloc {LOW}")
        self.assertEqual(self.runner.expect("ask"), [0, LOW + BASE])
        self.runner.say("refuse 0")
        self.assertEqual(actor.hear()[0], OOM)
        self.assertEqual(self.books.refusals(), 1)
        self.assertEqual(self.books.total(), BASE)
        self.assertEqual(actor.code(f"take alloc {LOW - BASE}"), 0)  # the guarantee is available

    def test_beyond_the_ceiling_nobody_is_asked(self):
        actor = self.start()
        self.assertEqual(actor.code(f"take alloc {HIGH}"), OOM)
        self.assertEqual(self.runner.status(), [BASE, LOW])  # and no ask before it

    def test_nobody_answers(self):
        """It waits in vain once; from then on not before the runner has answered."""
        actor = self.start()
        self.runner.process.send_signal(signal.SIGSTOP)
        self.assertEqual(actor.code("take alloc 2G"), OOM)
        for _ in range(1000):
            self.assertEqual(actor.code("take alloc 2G"), OOM)
        self.runner.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.runner.expect("ask"), [0, BASE + 2 * GIB])
        self.runner.say("refuse 0")
        wait_until(lambda: self.books.word(2048 + 88) == self.books.word(2048 + 80), "all asks are answered")
        actor.say("take alloc 2G")
        self.assertEqual(self.runner.expect("ask"), [0, BASE + 2 * GIB])
        self.runner.allow(BASE + 2 * GIB)
        self.assertEqual(actor.hear()[0], 0)

    def test_a_runner_that_is_killed(self):
        actor = self.start()
        actor.say("take alloc 2G")
        self.runner.expect("ask")
        self.runner.kill()
        self.assertEqual(actor.hear()[0], OOM)
        for _ in range(1000):  # a dead runner is not waited for
            self.assertEqual(actor.code("take alloc 2G"), OOM)
        self.assertEqual(actor.code(f"take alloc {LOW - BASE}"), 0)

    def test_a_runner_that_ends(self):
        actor = self.start()
        self.runner.quit()
        self.assertEqual(actor.code("take alloc 2G"), OOM)

    def test_what_is_freed_can_be_taken_back_at_once(self):
        actor = self.start()
        self.runner.allow(HIGH)
        block = actor.take("alloc", "4G")
        self.assertEqual(self.runner.allow(LOW), BASE + 4 * GIB)
        self.assertEqual(actor.code(f"drop {block}"), 0)
        self.assertEqual(self.runner.status(), [BASE, LOW])
        self.assertEqual(self.runner.allow(LOW), LOW)

    def test_a_small_wish_is_not_refused_for_a_large_one(self):
        """Two processes ask at once; the larger wish is refused."""
        first = self.start()
        second = self.actor(self.books).start()
        self.runner.process.send_signal(signal.SIGSTOP)
        first.say("take alloc 6G")
        second.say("take alloc 1G")
        wait_until(lambda: self.books.word(2048 + 80) == 2, "both have asked")
        self.runner.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.runner.expect("ask"), [0, 2 * BASE + 6 * GIB])
        self.runner.say("refuse 0")
        self.assertEqual(self.runner.expect("ask"), [0, 2 * BASE + GIB])
        self.runner.allow(2 * BASE + GIB)
        self.assertEqual(first.hear()[0], OOM)
        self.assertEqual(second.hear()[0], 0)

    def test_threads_never_pass_a_limit_that_moves(self):
        actor = self.start()
        self.runner.say("always 0")
        actor.say("storm 8 4000 128M")
        wait_until(lambda: self.books.total() >= LOW - 128 * MIB, "they are at work")
        for i in range(60):
            self.runner.allow(HIGH - i % 3 * GIB)
            # Down again, wherever eight threads are in the middle of it.
            most = self.runner.allow(LOW + i % 5 * GIB)
            self.assertLessEqual(self.physical(pids=[actor.pid]), most)
            self.assertLessEqual(self.books.total(), most)
        code, taken, refused = actor.hear()
        self.assertEqual(code, 0)
        self.assertGreater(taken, 100)
        self.assertGreater(refused, 0)
        self.assertEqual(self.books.total(), BASE)
        self.assert_exact(self.books)

    def test_threads_grow_together(self):
        actor = self.start()
        self.runner.say(f"always {HIGH}")
        code, taken, _ = actor.ask("storm 8 2000 64M")
        self.assertEqual(code, 0)
        self.assertGreater(taken, 100)
        self.assertGreater(self.books.peak(), LOW)
        self.assertLessEqual(self.books.peak(), HIGH)
        self.assert_exact(self.books)

    def test_who_waits_for_room_does_not_hold_up_parking(self):
        actor = self.start(parkable=True, METE_PARKABLE=1)
        actor.say("take alloc 2G")
        self.assertEqual(self.runner.expect("ask"), [0, BASE + 2 * GIB])
        self.runner.say("park")
        self.assertEqual(self.runner.expect("park"), [1])
        self.assertEqual(self.books.total(), BASE)
        self.runner.say("refuse 0")  # while it is parked
        self.runner.say("unpark")
        self.assertEqual(self.runner.expect("unpark"), [1])
        # After its return it asks again: an answer from the time it was parked is old.
        self.assertEqual(self.runner.expect("ask"), [0, BASE + 2 * GIB])
        self.runner.allow(BASE + 2 * GIB)
        self.assertEqual(actor.hear()[0], 0)


if __name__ == "__main__":
    main()
