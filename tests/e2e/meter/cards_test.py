#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits follow the card, whatever the program does with its list of visible cards; parts of a job; limits that change."""
import itertools
import os
import subprocess

import support
from books import CONTEXT, MIB, RESERVE
from support import GIB, METE, OOM

MIXED = """H200
T4
A100-40G numa=1
name="My card" memory=24G reserved=256M sms=64 cc=8.9
"""


class RightCard(support.World):
    sim = "4xH200"

    def setUp(self):
        super().setUp()
        self.books = self.grant((3, 4 * GIB), (1, 3 * GIB))  # grant's card 0 is the machine's 3, card 1 its 1

    def limits(self, actor):
        return dict(zip(actor.ask("uuids")[1:], [actor.ask(f"total {i}")[1] for i in range(len(actor.ask("uuids")) - 1)]))

    def test_order_of_the_grant(self):
        actor = self.actor(self.books)
        self.assertEqual(actor.code("init"), 0)
        self.assertEqual(actor.ask("uuids")[1:], [self.uuids()[3], self.uuids()[1]])
        self.assertEqual([actor.ask("total 0")[1], actor.ask("total 1")[1]], [4 * GIB, 3 * GIB])

    def visible(self):
        """Ways to write the list of visible cards, with the machine's cards they mean."""
        u = self.uuids()
        yield "3,1", [3, 1]
        yield "1,3", [1, 3]
        yield f"{u[1]},{u[3]}", [1, 3]
        yield f"{u[3][:12]},{u[1][:14]}", [3, 1]
        yield u[1], [1]
        yield "3", [3]
        yield "0,3,2,1", [0, 3, 2, 1]
        yield "1,9,3", [1]  # the list ends at the first card that is not there
        yield None, [0, 1, 2, 3]

    def test_limits_follow_the_uuid(self):
        size = {1: 3 * GIB, 3: 4 * GIB}
        for (value, cards), order in itertools.product(self.visible(), ("PCI_BUS_ID", "FASTEST_FIRST")):
            for nvml_first in (False, True):
                with self.subTest(visible=value, order=order, nvml_first=nvml_first):
                    actor = self.actor(self.books, CUDA_VISIBLE_DEVICES=value, CUDA_DEVICE_ORDER=order)
                    seen = actor.ask("nvml") if nvml_first else None
                    self.assertEqual(actor.code("init"), 0)
                    seen = seen or actor.ask("nvml")
                    # NVML: the granted cards in the order of the grant, whatever CUDA shows.
                    self.assertEqual([c.split(":")[:2] for c in seen[1:]],
                                     [[self.uuids()[3], str(4 * GIB)], [self.uuids()[1], str(3 * GIB)]])
                    self.assertEqual(self.limits(actor), {self.uuids()[c]: size.get(c, 0) for c in cards})
                    for ordinal, card in enumerate(cards):
                        if card in size:
                            self.assertEqual(actor.code(f"retain {ordinal}"), 0)
                            got, code = actor.fill("alloc", "64M")
                            self.assertEqual(code, OOM)
                            self.assertLessEqual(got, size[card] - CONTEXT - RESERVE)
                            self.assertGreater(got, size[card] - CONTEXT - RESERVE - 64 * MIB)
                        else:
                            self.assertEqual(actor.code(f"retain {ordinal}"), OOM, "a card outside the grant")
                            self.assertEqual(actor.code(f"context {ordinal}"), OOM)
                    actor.kill()

    def test_no_road_to_a_card_outside(self):
        """Made visible, a card outside the grant gives no memory by any call that names a card."""
        actor = self.actor(self.books, CUDA_VISIBLE_DEVICES="3,2").start(0)
        for kind in ("create", "exportable", "mapped", "own-pool", "default-pool", "graph"):
            self.assertEqual(actor.ask(f"take {kind} 64M 1")[0], OOM, kind)
        self.assertEqual(self.physical(2), 0)
        self.assertEqual(actor.ask("total 1"), [0, 0])
        self.assertNotEqual(actor.code(f"nvml-uuid {self.uuids()[2]}"), 0)

    def test_the_card_that_is_named_is_charged(self):
        actor = self.actor(self.books).start(1)
        self.assertEqual(actor.code("stream"), 0)
        self.assertEqual(actor.code("retain 0"), 0)  # current is the grant's card 0 from here on
        for kind in ("create", "mapped", "own-pool", "default-pool", "async-other", "graph"):
            before = self.books.total(0), self.books.total(1)
            ident = actor.take(kind, "64M", 1)
            self.assertEqual((self.books.total(0) - before[0], self.books.total(1) - before[1]), (0, 64 * MIB), kind)
            self.assertEqual(actor.code(f"drop {ident}"), 0)
            for words in ("synchronize", "retain 1", "synchronize", "trim", "retain 0"):
                self.assertEqual(actor.code(words), 0)
            self.assertEqual((self.books.total(0), self.books.total(1)), before, kind)
        for card in (0, 1):
            self.assert_exact(self.books, card)

    def test_default_pool_of_the_only_visible_card(self):
        """The first card of the grant is hidden by the program: what the second takes is the second's."""
        actor = self.actor(self.books, CUDA_VISIBLE_DEVICES="1").start(0)
        before = self.books.total(0), self.books.total(1)
        actor.take("default-pool", "64M", 0)
        self.assertEqual((self.books.total(0) - before[0], self.books.total(1) - before[1]), (0, 64 * MIB))

    def test_a_graph_on_two_cards(self):
        actor = self.actor(self.books).start(1).start(0)
        before = self.books.total(0), self.books.total(1)
        self.assertEqual(actor.code("two-card-graph 100M"), 0)
        self.assertEqual((self.books.total(0) - before[0], self.books.total(1) - before[1]), (128 * MIB, 128 * MIB))
        self.books.set_limit(self.books.total(1) + 32 * MIB, 1)
        self.assertEqual(actor.code("two-card-graph 100M"), OOM)
        self.assertEqual(actor.code("two-card-graph 10M"), 0)

    def test_managed_memory_is_charged_on_every_card(self):
        actor = self.actor(self.books).start(0)
        before = self.books.total(0), self.books.total(1)
        ident = actor.take("managed", "256M")
        self.assertEqual((self.books.total(0) - before[0], self.books.total(1) - before[1]), (256 * MIB, 256 * MIB))
        # Only what fits on the smallest card: the rest of the larger one does not help.
        self.assertEqual(actor.ask("take managed 3G")[0], OOM)
        self.assertEqual(actor.code(f"drop {ident}"), 0)
        self.assertEqual((self.books.total(0), self.books.total(1)), before)
        got, code = actor.fill("managed", "64M")
        self.assertEqual((got, code), (3 * GIB, OOM))

    def test_cap_pins_and_caps(self):
        """Visible cards and limits through `mete cap`, as a user runs it."""
        script = ("import os,sys,subprocess\nfor v in ('3,1', '1', os.environ['CUDA_VISIBLE_DEVICES']):\n"
                  "  subprocess.run([sys.argv[1], 'init,uuids,total 0,retain 0,fill alloc 64M'],"
                  " env={**os.environ, 'CUDA_VISIBLE_DEVICES': v})\n")
        done = subprocess.run([METE, "cap", "-q", "--gpu", "2x4G", "--devices", "3,1", "--", "python3", "-c", script,
                               support.ACTOR], env=self.env, capture_output=True, text=True, timeout=support.BOUND_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual([lines[i].split()[1:] for i in (1, 6, 11)],
                         [[self.uuids()[3], self.uuids()[1]], [self.uuids()[1]], [self.uuids()[3], self.uuids()[1]]])
        self.assertEqual([lines[i] for i in (2, 7, 12)], [f"0 {4 * GIB}"] * 3)
        for i in (4, 9, 14):
            code, got = map(int, lines[i].split())
            self.assertEqual(code, OOM)
            self.assertLessEqual(got, 4 * GIB - CONTEXT)
            self.assertGreaterEqual(got, 4 * GIB - CONTEXT - RESERVE - 64 * MIB)


class MixedCards(support.World):
    def setUp(self):
        super().setUp()
        (self.folder / "machine").write_text(MIXED)
        self.env["METE_SIM"] = str(self.folder / "machine")

    def test_each_card_has_its_own_limit(self):
        books = self.grant((2, 5 * GIB), (0, 7 * GIB), (3, 2 * GIB), (1, 3 * GIB))
        for order in ("PCI_BUS_ID", "FASTEST_FIRST"):
            for value in (None, "3,2,1,0", "0,1,2,3"):
                actor = self.actor(books, CUDA_DEVICE_ORDER=order, CUDA_VISIBLE_DEVICES=value)
                self.assertEqual(actor.code("init"), 0)
                uuids = actor.ask("uuids")[1:]
                self.assertEqual(len(uuids), 4)
                wanted = {self.uuids()[c]: size for c, size in ((2, 5 * GIB), (0, 7 * GIB), (3, 2 * GIB), (1, 3 * GIB))}
                self.assertEqual({u: actor.ask(f"total {i}")[1] for i, u in enumerate(uuids)}, wanted)
                actor.kill()


class Parts(support.World):
    def test_each_process_has_its_part(self):
        books = self.grant(12 * GIB, parts=3)
        actors = [self.actor(books, METE_PART=p).start() for p in range(3)]
        got = []
        for actor in actors:
            self.assertEqual(actor.ask("total 0")[1], 4 * GIB)
            free, total = actor.ask("info")[1:]
            self.assertEqual((total, free), (4 * GIB, 4 * GIB - CONTEXT - RESERVE))
            self.assertEqual(actor.ask("nvml")[1].split(":")[1], str(4 * GIB))
        for actor in actors:
            actor.say("fill alloc 16M")
        for part, actor in enumerate(actors):
            code, bytes_got = actor.hear()
            got.append(bytes_got)
            self.assertEqual(code, OOM)
            self.assert_exact(books, part=part)
        free = 4 * GIB - CONTEXT - RESERVE
        self.assertEqual(got, [free // (16 * MIB) * 16 * MIB] * 3)
        # A part's bytes come back to the part, whichever process looks for dead ones.
        actors[1].kill()
        again = self.actor(books, METE_PART=1).start()
        self.assertEqual(again.fill()[0], got[1])
        self.assertEqual(actors[0].ask("take alloc 16M")[0], OOM)

    def test_two_processes_share_a_part(self):
        books = self.grant(8 * GIB, parts=2)
        one, two = (self.actor(books, METE_PART=1).start() for _ in range(2))
        one.fill("alloc", "512M")
        self.assertEqual(two.ask("take alloc 512M")[0], OOM)
        self.assertEqual(self.actor(books, METE_PART=0).start().code("take alloc 2G"), 0)

    def test_words_that_are_no_part(self):
        books = self.grant(8 * GIB, parts=2)
        for value in ("7", "99999999999", "x", "", "-1"):
            actor = self.actor(books, METE_PART=value)
            self.assertEqual(actor.code("init"), 0)
            self.assertEqual(actor.ask("total 0")[1], 4 * GIB, value)


class LiveChange(support.World):
    def test_raise_and_lower(self):
        books = self.grant(4 * GIB)
        actor = self.actor(books).start()
        got, _ = actor.fill()
        self.assertEqual(actor.ask("take alloc 16M")[0], OOM)
        books.set_limit(6 * GIB)
        self.assertEqual(actor.ask("info")[2], 6 * GIB)
        more, code = actor.fill()
        self.assertEqual((code, more), (OOM, 2 * GIB))
        # Below what is held: growth stops, nothing is taken away, queries still have answers.
        books.set_limit(2 * GIB)
        self.assertEqual(actor.ask("info"), [0, 0, 2 * GIB])
        self.assertEqual(actor.ask("nvml")[1].split(":")[1:], [str(2 * GIB)] * 2)
        for kind in ("alloc", "create", "async", "graph", "array", "managed"):
            self.assertEqual(actor.ask(f"take {kind} 16M")[0], OOM, kind)
        self.assertEqual(books.total(), CONTEXT + RESERVE + got + more)
        self.assertEqual(actor.code("drop-all"), 0)
        free = 2 * GIB - CONTEXT - RESERVE
        self.assertEqual(actor.ask("info")[1], free)
        self.assertEqual(actor.fill()[0], free // (16 * MIB) * 16 * MIB)
        self.assert_exact(books)

    def test_changes_under_way(self):
        """The limit moves while several processes fill and free: no process ever passes the highest one."""
        books = self.grant(6 * GIB)
        actors = [self.actor(books, METE_SIM_DELAY_US="200").start() for _ in range(4)]
        for turn in range(6):
            for actor in actors:
                actor.say("fill alloc 64M")
            for step in range(40):
                books.set_limit((6 if step % 2 else 3) * GIB + (step % 5) * 2 * MIB)
            books.set_limit(4 * GIB)
            for actor in actors:
                self.assertEqual(actor.hear()[0], OOM)
            self.assertLessEqual(books.peak(), 6 * GIB + 8 * MIB)
            for actor in actors:
                self.assertEqual(actor.code("drop-all"), 0)
            self.assert_exact(books)
            self.assertEqual(books.total(), 4 * (CONTEXT + RESERVE))
        self.assertEqual(books.pending(), 0)


if __name__ == "__main__":
    support.main()
