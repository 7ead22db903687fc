#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that outlives its maker: shared with other processes, in pools that were destroyed. Charged once, until the last process releases it."""
import support
from books import CONTEXT, EXPORTS, MIB, RESERVE
from support import GIB, OOM

EACH = CONTEXT + RESERVE  # what a process with a context holds


class Shared(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(8 * GIB)
        self.sockets = 0

    def share_legacy(self, owner, opener, size="1G"):
        ident = owner.take("alloc", size)
        handle = owner.ask(f"ipc-get {ident}")[1]
        code, opened = opener.ask(f"ipc-open {handle}")
        self.assertEqual(code, 0)
        return ident, opened

    def share_descriptor(self, owner, opener, size="1G"):
        self.sockets += 1
        path = f"{self.folder}/s{self.sockets}"
        self.assertEqual(opener.code(f"listen {path}"), 0)
        ident = owner.take("exportable", size)
        self.assertEqual(owner.code(f"export {ident} {path}"), 0)
        code, opened = opener.ask(f"import {path} {size}")
        self.assertEqual(code, 0)
        return ident, opened

    def ways(self):
        return (("legacy", self.share_legacy), ("descriptor", self.share_descriptor))

    def test_an_import_costs_nothing_and_keeps_a_dead_owners_memory_charged(self):
        for name, share in self.ways():
            with self.subTest(way=name):
                owner, opener = (self.actor(self.books).start() for _ in range(2))
                _, opened = share(owner, opener)
                owner.take("alloc", "512M")
                self.assertEqual(self.books.total(), 2 * EACH + GIB + 512 * MIB)
                owner.kill()
                watcher = self.actor(self.books).start()
                self.assertEqual(self.books.total(), 2 * EACH + GIB, "the shared part stays, the rest is back")
                self.assertEqual(self.physical() - 2 * CONTEXT, GIB)
                free = 8 * GIB - 2 * EACH - GIB
                self.assertEqual(watcher.ask(f"take alloc {free + 2 * MIB}")[0], OOM)
                self.assertEqual(opener.code(f"drop {opened}"), 0)
                ident = watcher.take("alloc", str(free + GIB))
                self.assertEqual(watcher.code(f"drop {ident}"), 0)
                for actor in (opener, watcher):
                    actor.kill()

    def test_given_back_when_the_last_of_several_openers_dies(self):
        for name, share in self.ways():
            with self.subTest(way=name):
                owner, one = (self.actor(self.books).start() for _ in range(2))
                share(owner, one)
                two = self.actor(self.books).start()
                if name == "legacy":
                    handle = owner.ask("ipc-get 1")[1]
                    self.assertEqual(two.code(f"ipc-open {handle}"), 0)
                else:
                    path = f"{self.folder}/again"
                    self.assertEqual(two.code(f"listen {path}"), 0)
                    self.assertEqual(owner.code(f"export 1 {path}"), 0)
                    self.assertEqual(two.code(f"import {path} 1G"), 0)
                owner.kill()
                one.kill()
                watcher = self.actor(self.books).start()
                self.assertEqual(self.books.total(), 2 * EACH + GIB)
                two.kill()
                watcher.take("alloc", str(8 * GIB - EACH))
                self.assertEqual(self.books.total(), 8 * GIB)
                self.assert_exact(self.books)
                watcher.kill()

    def test_an_owner_that_frees_stays_charged_while_somebody_holds_it(self):
        for name, share in self.ways():
            with self.subTest(way=name):
                owner, opener = (self.actor(self.books).start() for _ in range(2))
                ident, opened = share(owner, opener)
                self.assertEqual(owner.code(f"drop {ident}"), 0)
                self.assertEqual(self.books.total(), 2 * EACH + GIB)
                self.assertEqual(self.physical() - 2 * CONTEXT, GIB)
                self.assertEqual(opener.code(f"drop {opened}"), 0)
                owner.take("alloc", str(8 * GIB - 2 * EACH))
                for actor in (owner, opener):
                    actor.kill()

    def test_several_shared_blocks_of_one_size(self):
        """A descriptor has no name of its own; each import must still stand for memory of its own."""
        for name, share in self.ways():
            with self.subTest(way=name):
                owner, opener = (self.actor(self.books).start() for _ in range(2))
                opener.take("exportable", "512M")  # one of equal size, its own
                for _ in range(3):
                    share(owner, opener, "512M")
                before = self.books.total()
                self.assertEqual(before, 2 * EACH + 4 * 512 * MIB)
                owner.kill()
                watcher = self.actor(self.books).start()
                self.assertEqual(self.books.total(), before)
                self.assertEqual(self.physical() - 2 * CONTEXT, 4 * 512 * MIB)
                for actor in (opener, watcher):
                    actor.kill()

    def test_from_another_job_at_full_price(self):
        stranger_books = self.grant(8 * GIB)
        for name, share in self.ways():
            with self.subTest(way=name):
                owner, opener = self.actor(stranger_books).start(), self.actor(self.books).start()
                _, opened = share(owner, opener)
                self.assertEqual((stranger_books.total(), self.books.total()), (EACH + GIB, EACH + GIB))
                self.assertEqual(opener.code(f"drop {opened}"), 0)
                self.assertEqual(self.books.total(), EACH)
                opener.fill("alloc", "64M")
                ident = owner.take("alloc", "1G")
                handle = owner.ask(f"ipc-get {ident}")[1]
                self.assertEqual(opener.code(f"ipc-open {handle}"), OOM, "no room for it in this job")
                for actor in (owner, opener):
                    actor.kill()

    def test_many_small_shared_blocks_fill_no_table(self):
        owner, opener = (self.actor(self.books).start() for _ in range(2))
        for _ in range(300):
            ident = owner.take("alloc", "4K")
            self.assertEqual(owner.code(f"ipc-get {ident}"), 0)
            self.assertEqual(owner.code(f"drop {ident}"), 0)
            owner.take("alloc", "4K")  # takes the place, so that the next block has another address
        self.assertLess(self.books.exports(), 10)
        before = self.books.total()
        self.share_legacy(owner, opener)
        self.assertEqual(self.books.total(), before + GIB)

    def test_memory_of_a_destroyed_pool_stays_charged(self):
        actor = self.actor(self.books).start()
        ident = actor.take("own-pool", "1G")
        self.assertEqual(actor.code("destroy-pool 0"), 0)
        self.assertEqual(self.physical() - CONTEXT, GIB)
        self.assertEqual(self.books.total(), EACH + GIB, "the pool is gone, its memory is not")
        self.assertEqual(actor.code(f"drop {ident}"), 0)
        self.assertEqual(actor.code("sync"), 0)
        self.assertEqual(self.books.total(), EACH)
        self.assertEqual(self.physical() - CONTEXT, 0)

    def test_a_destroyed_pool_is_no_longer_the_current_one(self):
        actor = self.actor(self.books).start()
        ident = actor.take("own-pool", "64M")
        self.assertEqual(actor.code("set-pool 0"), 0)
        other = actor.take("async", "64M")  # from this pool
        self.assertEqual(actor.code("destroy-pool 0"), 0)
        self.assertEqual(actor.code("default-is-current"), 0)
        third = actor.take("async", "64M")  # from the default pool
        self.assertEqual(self.books.total(), EACH + 192 * MIB)
        for piece in (ident, other, third):
            self.assertEqual(actor.code(f"drop {piece}"), 0)
        self.assertEqual(actor.code("sync"), 0)
        self.assertEqual(self.books.total(), EACH)

    def test_another_streams_synchronisation_comes_first(self):
        actor = self.actor(self.books).start()
        ident = actor.take("async", "512M")
        self.assertEqual(actor.code(f"drop {ident}"), 0)
        self.assertEqual(actor.code("sync-another"), 0)
        self.assertEqual(actor.code("sync"), 0)
        self.assertEqual((self.books.total(), self.physical()), (EACH, CONTEXT))

    def test_pool_memory_freed_by_the_plain_call(self):
        actor = self.actor(self.books).start()
        ident = actor.take("async", "512M")
        self.assertEqual(actor.code(f"drop-plain {ident}"), 0)
        self.assertEqual(actor.code("synchronize"), 0)
        self.assertEqual(self.books.total() - EACH, self.physical() - CONTEXT)

    def test_frees_and_unknown_pointers_reach_the_driver(self):
        alone = self.actor(None).start()
        actor = self.actor(self.books).start()
        for words in ("free 0", "free 4711", "free 0x7f0000000000"):
            self.assertEqual(actor.code(words), alone.code(words), words)
        ident = actor.take("async", "64M")
        pointer_free = actor.code(f"drop {ident}")
        self.assertEqual(pointer_free, 0)
        self.assertEqual(actor.code("sync"), 0)
        self.assertEqual(self.books.total(), EACH)


class TwoCards(support.World):
    """Memory is charged where it lies, whichever context is current when it is exported or opened."""
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.books = self.grant((0, 8 * GIB), (1, 8 * GIB))

    def both(self, books):
        """A process with a context on each card; that of card 1 is current."""
        actor = self.actor(books).start(0)
        self.assertEqual(actor.code("retain 1"), 0)
        return actor

    def totals(self, books):
        return books.total(0), books.total(1)

    def share_from_card_0(self, owner, opener):
        self.assertEqual(owner.code("retain 0"), 0)
        ident = owner.take("alloc", "1G")
        self.assertEqual(owner.code("retain 1"), 0)
        code, handle = owner.ask(f"ipc-get {ident}")
        self.assertEqual(code, 0)
        code, opened = opener.ask(f"ipc-open {handle}")
        self.assertEqual(code, 0)
        return ident, opened

    def test_exported_while_the_other_card_is_current(self):
        owner, opener = self.both(self.books), self.both(self.books)
        _, opened = self.share_from_card_0(owner, opener)
        self.assertEqual(self.totals(self.books), (2 * EACH + GIB, 2 * EACH))
        owner.kill()
        watcher = self.both(self.books)
        self.assertEqual(self.totals(self.books), (2 * EACH + GIB, 2 * EACH), "the opener and the watcher, and what is shared")
        self.assertEqual((self.physical(0) - 2 * CONTEXT, self.physical(1) - 2 * CONTEXT), (GIB, 0))
        self.assertEqual(opener.code(f"drop {opened}"), 0)
        self.assertEqual(watcher.code("retain 0"), 0)
        watcher.take("alloc", str(8 * GIB - 2 * EACH))

    def test_freed_while_the_other_card_is_current(self):
        owner, opener = self.both(self.books), self.both(self.books)
        ident, opened = self.share_from_card_0(owner, opener)
        self.assertEqual(owner.code(f"drop {ident}"), 0)
        self.assertEqual(self.totals(self.books), (2 * EACH + GIB, 2 * EACH), "the opener has it")
        self.assertEqual(opener.code(f"drop {opened}"), 0)
        self.assertEqual(owner.ask("take alloc 8G")[0], OOM)  # a refused process looks for what came back
        self.assertEqual(owner.code("retain 0"), 0)
        owner.take("alloc", str(8 * GIB - 2 * EACH))

    def test_from_another_job_it_costs_the_card_that_it_lies_on(self):
        stranger = self.grant((0, 8 * GIB), (1, 8 * GIB))
        owner, opener = self.both(stranger), self.both(self.books)
        _, opened = self.share_from_card_0(owner, opener)
        self.assertEqual(self.totals(self.books), (EACH + GIB, EACH))
        self.assertEqual(opener.code(f"drop {opened}"), 0)
        self.assertEqual(self.totals(self.books), (EACH, EACH))

    def test_on_a_card_that_the_opener_does_not_see_it_costs_that_of_its_context(self):
        stranger, narrow = self.grant((0, 8 * GIB)), self.grant((1, 8 * GIB))
        owner, opener = self.actor(stranger).start(), self.actor(narrow).start()
        ident = owner.take("alloc", "1G")
        code, opened = opener.ask(f"ipc-open {owner.ask(f'ipc-get {ident}')[1]}")
        self.assertEqual(code, 0)
        self.assertEqual(narrow.total(), EACH + GIB)
        self.assertEqual(opener.code(f"drop {opened}"), 0)
        self.assertEqual(narrow.total(), EACH)


class MoreExportsThanTheTableHolds(support.World):
    COUNT = 300  # 256 entries

    def test_the_rest_is_charged_twice_and_never_less_than_held(self):
        books = self.grant(8 * GIB)
        owner, opener = (self.actor(books).start() for _ in range(2))
        idents, opened = [], []
        for _ in range(self.COUNT):
            idents.append(owner.take("alloc", "2M"))
            code, handle = owner.ask(f"ipc-get {idents[-1]}")
            self.assertEqual(code, 0)
            code, piece = opener.ask(f"ipc-open {handle}")
            self.assertEqual(code, 0)
            opened.append(piece)
        size = self.COUNT * 2 * MIB
        over = (self.COUNT - EXPORTS) * 2 * MIB
        self.assertEqual(books.exports(), EXPORTS)
        self.assertEqual(books.total(), 2 * EACH + size + over)
        for ident in idents:
            self.assertEqual(owner.code(f"drop {ident}"), 0)
        self.assertEqual(books.total(), 2 * EACH + size, "what the opener holds, by whomever it is charged")
        self.assertEqual(self.physical() - 2 * CONTEXT, size)
        owner.kill()
        watcher = self.actor(books).start()
        self.assertEqual(books.total(), 2 * EACH + size)
        self.assertEqual(self.physical() - 2 * CONTEXT, size)
        for piece in opened:
            self.assertEqual(opener.code(f"drop {piece}"), 0)
        watcher.take("alloc", str(8 * GIB - 2 * EACH))
        self.assertEqual(books.exports(), 0)
        self.assert_exact(books)

    def test_there_is_room_again_when_some_have_gone(self):
        books = self.grant(8 * GIB)
        owner, opener = (self.actor(books).start() for _ in range(2))
        idents = [owner.take("alloc", "2M") for _ in range(self.COUNT)]
        for ident in idents:
            self.assertEqual(owner.code(f"ipc-get {ident}"), 0)
        for ident in idents:
            self.assertEqual(owner.code(f"drop {ident}"), 0)
        self.assertEqual((books.exports(), books.total()), (0, 2 * EACH))
        ident = owner.take("alloc", "1G")
        self.assertEqual(opener.code(f"ipc-open {owner.ask(f'ipc-get {ident}')[1]}"), 0)
        self.assertEqual(books.total(), 2 * EACH + GIB)


if __name__ == "__main__":
    support.main()
