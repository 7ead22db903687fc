#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a process does not need of the reserve that comes with its context is given back while it runs, and what the driver
takes later is charged. Inside `mete cap`, whose sampler does it (docs/adr/0020-lent-reserves.md)."""
import json
import os
import subprocess
import sys
import time

import support
from books import Books, CONTEXT, MIB, MORE, RESERVE
from support import ACTOR, GIB, METE, OOM, SIMGPU, Actor, wait_until

EACH = CONTEXT + RESERVE
HEADROOM = 8 * MIB
STEP = 32 * MIB  # by which a pool grows


def physical():
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    dump = subprocess.run([f"{SIMGPU}/mete-simgpu", "--ctl", "dump"], env=env, capture_output=True, text=True, check=True).stdout
    return sum(piece["bytes"] for piece in json.loads(dump)["pieces"])


def inside(count):
    """The program of the job: `count` processes with a context, a block and code of their own; then one takes all there is."""
    books = Books(os.environ["METE_GRANT"])
    actors = [Actor([ACTOR], dict(os.environ)).start() for _ in range(count)]
    for actor in actors:
        actor.take("alloc", "64M")
        if actor.code(f"module {9 * MIB}") != 0:
            raise AssertionError("no module")
    said = {"charged": books.total(), "held": physical()}
    deadline = time.monotonic() + 30
    while books.total() + books.excess() > physical() + count * HEADROOM and time.monotonic() < deadline:
        time.sleep(0.05)
    said["rested"] = books.total() + books.excess()
    said["got"], said["code"] = actors[0].fill("alloc", "2M")
    said["full"] = physical()
    # One of the others grows unasked: that is beyond the grant, and nothing else is granted until it is back.
    said["module"] = actors[1].code(f"module {40 * MIB}")
    grown = physical()
    wait_until(lambda: books.total() + books.excess() >= grown + count * HEADROOM, "growth is charged")
    said["refused"] = actors[0].ask("take alloc 2M")[0]
    actors[1].kill()
    wait_until(lambda: books.total() + books.excess() == physical() + (count - 1) * HEADROOM, "the rest, exactly")
    for actor in actors:
        actor.kill()
    wait_until(lambda: books.total() + books.excess() == 0, "nothing")
    print(json.dumps(said), flush=True)


class Crowd(support.World):
    def test_eight_processes_lose_8_mib_each_at_most(self):
        limit = 8 * GIB
        done = subprocess.run([METE, "cap", "-q", "--gpu", "8G", "--", sys.executable, __file__, "--inside", "8"], text=True,
                              env={**self.env, "METE_BUILD_DIR": str(support.BUILD)}, capture_output=True, timeout=4 * support.BOUND_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(said["charged"], 8 * (EACH + 64 * MIB))
        self.assertEqual(said["held"], 8 * (CONTEXT + 64 * MIB + 10 * MIB))
        self.assertEqual(said["rested"], said["held"] + 8 * HEADROOM)
        self.assertEqual(said["code"], OOM)
        self.assertLessEqual(said["full"], limit)
        self.assertLessEqual(limit - said["full"], 8 * HEADROOM, "lost")
        self.assertEqual((said["module"], said["refused"]), (0, OOM))


class Alone(support.World):
    def setUp(self):
        super().setUp()
        self.one = self.actor(None, command=[METE, "cap", "-q", "--gpu", "4G", "--", ACTOR])
        self.assertEqual(self.one.code("init"), 0)
        folder = self.folder / "state" / "grants"
        self.books = Books(folder / os.listdir(folder)[0])
        self.pid = self.one.ask("pid")[1]
        self.assertEqual(self.one.code("retain 0"), 0)
        self.assertEqual(self.books.of(self.pid), EACH)
        self.rest()

    def rest(self):
        wait_until(lambda: self.books.of(self.pid) == CONTEXT + HEADROOM, "the reserve is given back")
        self.assertEqual((self.books.total(), self.books.excess()), (CONTEXT + HEADROOM, 0))

    def test_the_program_sees_it_and_can_have_it(self):
        self.assertEqual(self.one.free(), 4 * GIB - CONTEXT - HEADROOM)
        self.assertEqual(self.one.fill("alloc", "2M"), (4 * GIB - CONTEXT - HEADROOM, OOM))
        self.assertEqual(self.physical(pids=[self.pid]), 4 * GIB - HEADROOM)

    def test_contexts_come_and_go(self):
        self.assertEqual(self.one.ask("context 0"), [0, 1])
        self.assertEqual(self.books.total(), CONTEXT + HEADROOM + MORE)
        self.assertEqual(self.one.code("release 0"), 0)
        self.assertEqual(self.books.total(), HEADROOM + MORE)
        self.assertEqual(self.one.code("destroy 1"), 0)
        self.assertEqual(self.books.total(), 0)
        self.assertEqual(self.one.code("retain 0"), 0)
        self.assertEqual(self.books.total(), EACH, "a new context has a reserve of its own")
        self.rest()
        self.assertEqual(self.one.code("reset 0"), 0)
        self.assertEqual(self.books.total(), 0)

    def test_a_pool_needs_the_reserve(self):
        self.one.take("async", "1M")
        self.assertEqual(self.books.of(self.pid), EACH + STEP, "what was lent is taken back")
        self.assertIsNone(self.books.reserve(self.pid))

    def test_without_room_for_the_reserve_a_pool_does_not_count_on_it(self):
        ident = self.one.take("alloc", str(4 * GIB - CONTEXT - HEADROOM - STEP))
        self.one.take("async", "1M")
        self.assertEqual(self.books.total(), 4 * GIB)
        self.assertEqual(self.one.ask(f"take async {STEP}")[0], OOM)
        self.assertEqual(self.one.code(f"drop {ident}"), 0)
        self.one.take("async", "1M")
        self.assertGreaterEqual(self.books.total(), EACH + STEP)

    def test_of_a_heap_that_is_charged_and_not_yet_taken_nothing_is_lent(self):
        self.assertEqual(self.one.code("release 0"), 0)
        self.assertEqual(self.one.code("retain 0"), 0)
        self.assertEqual(self.one.code(f"heap {512 * MIB}"), 0)
        before = self.books.total()
        readings = {self.books.read_at(self.pid)}

        def many():
            readings.add(self.books.read_at(self.pid))
            return len(readings) > 14
        wait_until(many, "enough readings for any other process")
        self.assertEqual(self.books.total(), before)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(int(sys.argv[2]))
    else:
        support.main()
