#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pools of managed memory are charged by what they have committed, on every card of the job; pools on the host not at all."""
import support
from books import CONTEXT, MIB, RESERVE
from support import GIB, OOM

EACH = CONTEXT + RESERVE
STEP = 32 * MIB
MANAGED = ("managed-pool", "default-managed-pool", "current-managed-pool")
HOST = ("host-pool", "default-host-pool", "current-host-pool")


class Managed(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)
        self.actor_here = self.actor(self.books).start()

    def ask(self, *orders):
        for words in orders:
            self.assertEqual(self.actor_here.code(words), 0, words)

    def test_charged_by_what_is_committed_and_given_back(self):
        for kind in MANAGED:
            with self.subTest(kind):
                ident = self.actor_here.take(kind, "1G")
                small = self.actor_here.take(kind, "4K")
                reserved = self.actor_here.ask(f"reserved-special {kind}")[1]
                self.assertGreater(reserved, GIB)
                self.assertEqual(self.books.total(), EACH + reserved)
                self.assertEqual(self.books.unseen(self.actor_here.pid), reserved)
                self.assertEqual(self.actor_here.free(), 4 * GIB - EACH - reserved)
                self.ask(f"drop {ident}", f"drop {small}", "sync")
                self.assertEqual((self.books.total(), self.books.unseen(self.actor_here.pid)), (EACH, 0))

    def test_the_byte_past_the_cap_is_refused(self):
        for kind in MANAGED:
            with self.subTest(kind):
                got, code = self.actor_here.fill(kind, "64M")
                self.assertEqual(code, OOM)
                self.assertGreater(got, 4 * GIB - EACH - 64 * MIB - STEP)
                self.assertLessEqual(self.books.total(), 4 * GIB)
                self.assertEqual(self.actor_here.ask("take alloc 64M")[0], OOM)
                self.ask("drop-all", "sync")
                self.assertEqual(self.books.total(), EACH)

    def test_what_a_pool_keeps_is_fetched_back_first(self):
        self.ask(f"keep-special managed-pool {2 ** 64 - 1}")
        ident = self.actor_here.take("managed-pool", "2G")
        self.ask(f"drop {ident}", "sync")
        self.assertEqual(self.books.total(), EACH + 2 * GIB, "the pool keeps it")
        self.actor_here.take("alloc", str(4 * GIB - EACH))
        self.assertEqual(self.books.total(), 4 * GIB)

    def test_room_inside_a_full_pool_is_used(self):
        self.ask(f"keep-special managed-pool {2 ** 64 - 1}")
        idents = []
        while (said := self.actor_here.ask("take managed-pool 16M"))[0] == 0:
            idents.append(said[1])
        before = self.books.total()
        self.assertGreater(before, 4 * GIB - STEP)
        self.ask(f"drop {idents[3]}", "sync")
        self.actor_here.take("managed-pool", "16M")
        self.assertEqual(self.books.total(), before)

    def test_a_destroyed_pool_is_charged_while_its_memory_is_out(self):
        ident = self.actor_here.take("managed-pool", "1G")
        self.ask("destroy-special managed-pool")
        self.assertEqual(self.books.total(), EACH + GIB)
        self.ask(f"drop {ident}", "sync")
        self.assertEqual((self.books.total(), self.books.unseen(self.actor_here.pid)), (EACH, 0))

    def test_free_after_death(self):
        self.actor_here.take("managed-pool", "2G")
        self.actor_here.kill()
        other = self.actor(self.books).start()
        other.take("managed-pool", "3G")
        self.assertEqual(self.books.total(), EACH + 3 * GIB)


class OnEveryCard(support.World):
    sim = "2xH200"

    def test_as_single_managed_blocks_are(self):
        books = self.grant((0, 4 * GIB), (1, 2 * GIB))
        actor = self.actor(books).start()
        self.assertEqual(actor.code("retain 1"), 0)
        self.assertEqual(actor.code("retain 0"), 0)
        ident = actor.take("managed-pool", "1G")
        self.assertEqual((books.total(0), books.total(1)), (EACH + GIB, EACH + GIB))
        self.assertEqual(actor.ask("take managed-pool 1G")[0], OOM, "the second card has no room")
        self.assertEqual((books.total(0), books.total(1)), (EACH + GIB, EACH + GIB))
        self.assertEqual((books.pending(0), books.pending(1)), (0, 0))
        for words in (f"drop {ident}", "sync"):
            self.assertEqual(actor.code(words), 0)
        self.assertEqual((books.total(0), books.total(1)), (EACH, EACH))


class Host(support.World):
    def test_a_pool_on_the_host_costs_no_card_anything(self):
        books = self.grant(2 * GIB)
        actor = self.actor(books).start()
        for kind in HOST:
            with self.subTest(kind):
                ident = actor.take(kind, "3G")  # more than the grant
                self.assertEqual(books.total(), EACH)
                self.assertGreaterEqual(actor.ask(f"reserved-special {kind}")[1], 3 * GIB)
                self.assertEqual(actor.free(), 2 * GIB - EACH)
                for words in (f"drop {ident}", "sync"):
                    self.assertEqual(actor.code(words), 0)
        self.assertEqual(actor.code("destroy-special host-pool"), 0)
        self.assertEqual(self.physical(), CONTEXT)

    def test_also_when_the_grant_is_full(self):
        books = self.grant(2 * GIB)
        actor = self.actor(books).start()
        actor.take("alloc", str(2 * GIB - EACH))
        actor.take("host-pool", "256M")
        self.assertEqual((books.total(), books.refusals()), (2 * GIB, 0))


if __name__ == "__main__":
    support.main()
