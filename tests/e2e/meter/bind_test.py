#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory bound to multicast objects and sparse arrays: charged once, as a handle's, and until the last binding is gone."""
import support
from books import CONTEXT, MIB, RESERVE
from support import GIB, OOM

EACH = CONTEXT + RESERVE


class Bound(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)
        self.actor_here = self.actor(self.books).start()

    def ask(self, *orders):
        for words in orders:
            self.assertEqual(self.actor_here.code(words), 0, words)

    def make(self, words):
        code, ident = self.actor_here.ask(words)
        self.assertEqual(code, 0, words)
        return ident

    def assert_held(self, size, why=""):
        """The books and the card agree."""
        self.assertEqual((self.books.total() - EACH, self.physical() - CONTEXT), (size, size), why)

    def assert_free(self):
        self.assert_held(0)
        ident = self.actor_here.take("alloc", str(4 * GIB - EACH))
        self.ask(f"drop {ident}")


class MulticastObjects(Bound):
    def test_a_binding_holds_what_it_was_given_and_costs_nothing(self):
        group = self.make("multicast 64M")
        self.assert_held(0, "the object itself has no memory")
        ident = self.actor_here.take("create", "64M")
        self.ask(f"mc-bind {group} 0 {ident} 0 64M")
        self.assert_held(64 * MIB)
        self.ask(f"drop {ident}")
        self.assert_held(64 * MIB, "the handle is released, the binding is there")
        self.ask(f"mc-unbind {group} 0 0 64M")
        self.assert_free()

    def test_unbound_first_then_released(self):
        group = self.make("multicast 64M")
        ident = self.actor_here.take("create", "64M")
        self.ask(f"mc-bind {group} 0 {ident} 0 64M", f"mc-unbind {group} 0 0 64M")
        self.assert_held(64 * MIB)
        self.ask(f"drop {ident}")
        self.assert_free()

    def test_one_handle_bound_in_parts(self):
        group = self.make("multicast 64M")
        ident = self.actor_here.take("create", "64M")
        self.ask(f"mc-bind {group} 0 {ident} 0 16M", f"mc-bind {group} 16M {ident} 16M 48M", f"drop {ident}")
        self.ask(f"mc-unbind {group} 0 0 16M")
        self.assert_held(64 * MIB, "all of it while a part is bound")
        self.ask(f"mc-unbind {group} 0 16M 48M")
        self.assert_free()

    def test_gone_with_the_object(self):
        group = self.make("multicast 64M")
        idents = [self.actor_here.take("create", "32M") for _ in range(2)]
        self.ask(*(f"mc-bind {group} {i * 32}M {ident} 0 32M" for i, ident in enumerate(idents)), f"drop {idents[0]}")
        mapped = self.make(f"map {group}")
        self.ask(f"drop {group}")
        self.assert_held(64 * MIB, "the object is mapped still")
        self.ask(f"drop {mapped}")
        self.assert_held(32 * MIB, "the second handle is not released")
        self.ask(f"drop {idents[1]}")
        self.assert_free()

    def test_bound_by_address(self):
        """Over two mappings, from the middle of the first."""
        group = self.make("multicast 64M")
        handles = [self.actor_here.take("create", "32M") for _ in range(2)]
        mapped = self.make(f"map-two {handles[0]} {handles[1]}")
        self.ask(f"mc-bind-addr {group} 0 {mapped} 16M 48M", *(f"drop {h}" for h in handles), f"drop {mapped}")
        self.assert_held(64 * MIB)
        self.ask(f"mc-unbind {group} 0 0 48M")
        self.assert_free()

    def test_a_refused_binding_holds_nothing(self):
        group = self.make("multicast 64M")
        one, two = (self.actor_here.take("create", "64M") for _ in range(2))
        self.ask(f"mc-bind {group} 0 {one} 0 64M")
        self.assertNotEqual(self.actor_here.code(f"mc-bind {group} 0 {two} 0 64M"), 0)
        self.assertNotEqual(self.actor_here.code(f"mc-unbind {group} 0 0 1M"), 0)
        self.ask(f"drop {two}")
        self.assert_held(64 * MIB)
        self.ask(f"drop {one}", f"drop {group}")
        self.assert_free()

    def test_bound_again_and_again(self):
        group = self.make("multicast 64M")
        for _ in range(300):
            ident = self.actor_here.take("create", "64M")
            self.ask(f"mc-bind {group} 0 {ident} 0 64M", f"drop {ident}", f"mc-unbind {group} 0 0 64M")
        self.assert_free()

    def test_a_full_grant_has_no_room_beside_what_is_bound(self):
        group = self.make("multicast 2G")
        ident = self.actor_here.take("create", "2G")
        self.ask(f"mc-bind {group} 0 {ident} 0 2G", f"drop {ident}")
        room = 4 * GIB - EACH - 2 * GIB
        self.assertEqual(self.actor_here.ask(f"take alloc {room + 2 * MIB}")[0], OOM)
        self.actor_here.take("alloc", str(room))

    def test_free_after_death(self):
        group = self.make("multicast 1G")
        ident = self.actor_here.take("create", "1G")
        self.ask(f"mc-bind {group} 0 {ident} 0 1G", f"drop {ident}")
        self.actor_here.kill()
        other = self.actor(self.books).start()
        other.take("alloc", str(4 * GIB - EACH))
        self.assertEqual(self.books.total(), 4 * GIB)


class TwoCards(support.World):
    sim = "2xH200"

    def test_each_card_for_itself(self):
        books = self.grant((0, 4 * GIB), (1, 4 * GIB))
        actor = self.actor(books).start()
        _, group = actor.ask("multicast 64M 2")
        handles = [actor.take("create", "64M", card) for card in (0, 1)]
        for handle in handles:
            self.assertEqual(actor.code(f"mc-bind {group} 0 {handle} 0 64M"), 0)
            self.assertEqual(actor.code(f"drop {handle}"), 0)
        self.assertEqual((books.total(0), books.total(1)), (EACH + 64 * MIB, 64 * MIB))
        self.assertEqual(actor.code(f"mc-unbind {group} 1 0 64M"), 0)
        self.assertEqual((books.total(0), books.total(1)), (EACH + 64 * MIB, 0))
        self.assertEqual((self.physical(0) - CONTEXT, self.physical(1)), (64 * MIB, 0))
        self.assertEqual(actor.code(f"drop {group}"), 0)
        self.assertEqual((books.total(0), books.total(1)), (EACH, 0))


class SparseArrays(Bound):
    """Tiles of 64 KiB; the array below has 16 by 16 of them."""

    def setUp(self):
        super().setUp()
        self.array = self.make("sparse 1024 1024")
        self.assert_held(0)

    def sync(self):
        self.ask("sync")

    def test_tiles_hold_their_memory(self):
        ident = self.actor_here.take("create", "16M")
        self.ask(f"tiles {self.array} 0 0 16 16 {ident}", f"drop {ident}")
        self.sync()
        self.assert_held(16 * MIB)
        self.ask(f"tiles {self.array} 0 0 8 16")
        self.sync()
        self.assert_held(16 * MIB, "half of the tiles")
        self.ask(f"tiles {self.array} 8 0 8 8", f"tiles {self.array} 8 8 8 8")
        self.sync()
        self.assert_free()

    def test_bound_anew_lets_go_of_what_was_there(self):
        first, second = (self.actor_here.take("create", "16M") for _ in range(2))
        self.ask(f"tiles {self.array} 0 0 4 4 {first}", f"drop {first}", f"tiles {self.array} 0 0 4 4 {second}", f"drop {second}")
        self.sync()
        self.assert_held(16 * MIB)
        self.ask(f"tiles {self.array} 0 0 4 4")
        self.sync()
        self.assert_free()

    def test_gone_with_the_array(self):
        for _ in range(3):
            ident = self.actor_here.take("create", "2M")
            self.ask(f"tiles {self.array} 0 0 4 4 {ident}", f"tiles {self.array} 8 8 4 4 {ident}", f"drop {ident}")
        self.sync()
        self.ask(f"drop {self.array}")
        self.assert_free()

    def test_gone_with_the_context(self):
        """Its tiles are; a handle belongs to the process."""
        ident = self.actor_here.take("create", "2M")
        other = self.actor_here.take("create", "2M")
        self.ask(f"tiles {self.array} 0 0 4 4 {ident}", f"tiles {self.array} 4 0 4 4 {other}", f"drop {ident}", "sync", "release 0")
        self.assertEqual((self.books.total(), self.physical()), (2 * MIB, 2 * MIB))
        self.ask(f"drop {other}")
        self.assertEqual((self.books.total(), self.physical()), (0, 0))

    def test_charged_until_the_stream_has_come_to_it(self):
        ident = self.actor_here.take("create", "16M")
        self.ask(f"tiles {self.array} 0 0 16 16 {ident}", f"drop {ident}", "sync")
        self.ask("hold-stream", f"tiles {self.array} 0 0 16 16")
        self.assert_held(16 * MIB, "the card still has it")
        self.assertEqual(self.actor_here.ask(f"take alloc {4 * GIB - EACH}")[0], OOM)
        self.assert_held(16 * MIB)
        self.ask("let-go", "sync")
        self.assert_free()

    def test_an_array_of_deferred_mapping(self):
        array = self.make("sparse 1024 1024 0x80")
        ident = self.actor_here.take("create", "16M")
        self.ask(f"tiles {array} 0 0 16 16 {ident}", f"drop {ident}")
        self.sync()
        self.assert_held(16 * MIB)
        self.ask(f"tiles {array} 0 0 16 16")
        self.sync()
        self.assert_free()

    def test_a_refused_binding_holds_nothing(self):
        ident = self.actor_here.take("create", "2M")
        self.assertNotEqual(self.actor_here.code(f"tiles {self.array} 0 0 16 16 {ident}"), 0, "2 MiB are 32 tiles")
        self.ask(f"drop {ident}")
        self.assert_free()


if __name__ == "__main__":
    support.main()
