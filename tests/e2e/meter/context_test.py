#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contexts: counted uses, contexts for graphics, very many of them, stacks that grow and shrink, sticky errors."""
import support
from books import CONTEXT, MIB, MORE, RESERVE, UNIT
from support import GIB, OOM

EACH = CONTEXT + RESERVE
THREADS = 132 * 2048  # that an H200 can run
STACK = 1024  # of each, by default


def stack_bytes(size):
    """What a stack of this size takes beyond the usual one."""
    return -(-THREADS * (size - STACK) // UNIT) * UNIT


class Contexts(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(8 * GIB)
        self.actor_here = self.actor(self.books)
        self.assertEqual(self.actor_here.code("init"), 0)

    def ask(self, *orders):
        for words in orders:
            self.assertEqual(self.actor_here.code(words), 0, words)

    def held(self):
        return self.physical(pids=[self.actor_here.pid])

    def test_the_last_detach_ends_it(self):
        self.ask("context 0", "attach", "attach")
        ident = self.actor_here.take("alloc", "1G")
        for left in (2, 1):
            self.ask("detach 1")
            self.assertEqual(self.books.total(), EACH + GIB, f"{left} uses are left")
            self.assertEqual(self.held(), CONTEXT + GIB)
        self.ask("detach 1")
        self.assertEqual((self.books.total(), self.held()), (0, 0))
        self.assertNotEqual(self.actor_here.code(f"drop {ident}"), 0)

    def test_destroy_ends_it_whatever_the_count(self):
        self.ask("context 0", "attach", "destroy 1")
        self.assertEqual((self.books.total(), self.held()), (0, 0))

    def test_a_detach_that_fails_changes_nothing(self):
        self.ask("context 0", "attach", "context 0")
        self.assertNotEqual(self.actor_here.code("detach 1"), 0, "it is not current")
        self.ask("destroy 2", "current 1", "detach 1")
        self.assertEqual(self.books.total(), EACH)
        self.ask("detach 1")
        self.assertEqual(self.books.total(), 0)

    def test_contexts_for_graphics_are_reserved_beforehand(self):
        for kind in ("gl", "gl-2", "vdpau", "vdpau-2"):
            with self.subTest(kind):
                books = self.grant(EACH + MORE)
                actor = self.actor(books)
                self.assertEqual(actor.code("init"), 0)
                for number, total in ((1, EACH), (2, EACH + MORE)):
                    self.assertEqual(actor.ask(f"context 0 {kind}"), [0, number])
                    self.assertEqual(books.total(), total)
                self.assertEqual(actor.code(f"context 0 {kind}"), OOM)
                self.assertEqual(self.physical(pids=[actor.pid]), CONTEXT + MORE, "the driver was not asked")
                self.assertEqual(actor.code("destroy 1"), 0)
                self.assertEqual(books.total(), EACH + MORE - CONTEXT)


class ManyContexts(support.World):
    COUNT = 260

    def test_all_are_charged_and_all_come_back(self):
        books = self.grant(138 * GIB)
        actor = self.actor(books)
        self.assertEqual(actor.code("init"), 0)
        self.assertEqual(actor.ask(f"contexts {self.COUNT}"), [0, self.COUNT])
        everything = EACH + (self.COUNT - 1) * MORE
        self.assertEqual(books.total(), everything)
        self.assertEqual(self.physical(pids=[actor.pid]) + RESERVE, everything)
        for number in (1, self.COUNT):  # known, both: nothing is charged twice
            self.assertEqual(actor.code(f"current {number}"), 0)
            actor.take("alloc", "64M")
        self.assertEqual(books.total(), everything + 128 * MIB)
        got, code = actor.fill("alloc", "16M")
        self.assertEqual(code, OOM)
        self.assertLessEqual(self.physical(pids=[actor.pid]), 138 * GIB)
        self.assertEqual(actor.code("destroy-all"), 0)
        self.assertEqual((books.total(), self.physical(pids=[actor.pid])), (0, 0))


class Stacks(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)
        self.actor_here = self.actor(self.books).start()

    def assert_stack(self, size):
        self.assertEqual(self.books.total(), EACH + stack_bytes(size))
        # The card takes granules, the books count units.
        self.assertLess(abs(self.physical(pids=[self.actor_here.pid]) - CONTEXT - stack_bytes(size)), 2 * MIB)

    def test_the_charge_follows_up_and_down(self):
        for size in (4096, 8192, 2048, 4096, 1024, 3000, 1024):
            self.assertEqual(self.actor_here.code(f"stack {size}"), 0)
            self.assert_stack(-(-size // 16) * 16)

    def test_below_the_usual_size_the_contexts_own_cost_stays(self):
        for size in (256, 4096, 256):
            self.assertEqual(self.actor_here.code(f"stack {size}"), 0)
        self.assertEqual(self.books.total(), EACH)

    def test_what_was_given_back_can_be_had(self):
        self.assertEqual(self.actor_here.code("stack 8192"), 0)
        room = 4 * GIB - EACH
        self.assertEqual(self.actor_here.ask(f"take alloc {room}")[0], OOM)
        self.assertEqual(self.actor_here.code("stack 1024"), 0)
        self.actor_here.take("alloc", str(room))
        self.assertEqual(self.actor_here.code("stack 2048"), OOM)
        self.assertEqual(self.books.total(), 4 * GIB)

    def test_a_refusal_trims_first(self):
        self.assertEqual(self.actor_here.code(f"keep-pool {2 ** 64 - 1}"), 0)
        ident = self.actor_here.take("async", "3G")
        self.assertEqual(self.actor_here.code("stack 4096"), OOM, "the pool's memory is in use")
        for words in (f"drop {ident}", "sync"):
            self.assertEqual(self.actor_here.code(words), 0)
        self.assertGreaterEqual(self.books.total(), EACH + 3 * GIB, "the pool keeps it")
        self.assertEqual(self.actor_here.code("stack 4096"), 0)
        self.assert_stack(4096)

    def test_a_refusal_looks_for_the_dead_first(self):
        other = self.actor(self.books).start()
        other.take("alloc", "2G")
        self.assertEqual(self.actor_here.code("stack 8192"), OOM)
        other.kill()
        self.assertEqual(self.actor_here.code("stack 8192"), 0)
        self.assert_stack(8192)

    def test_gone_with_its_context(self):
        self.assertEqual(self.actor_here.code("stack 4096"), 0)
        self.assertEqual(self.actor_here.code("release 0"), 0)
        self.assertEqual((self.books.total(), self.physical(pids=[self.actor_here.pid])), (0, 0))


class StickyErrors(support.World):
    """While a sampler publishes the card's free memory, cuMemGetInfo is answered from the books: an error must still show."""

    def start(self, fault):
        self.books = self.grant(4 * GIB)
        actor = self.actor(self.books, METE_SIM_FAULT=fault)
        self.books.publish_free(100 * GIB)
        return actor.start()

    def test_the_driver_is_asked_now_and_then(self):
        """Its second answer is an error: there were some from the books in between, and it comes."""
        code, good = self.start("cuMemGetInfo_v2:2:fault=700").ask("info-until-error")
        self.assertEqual(code, 700)
        self.assertGreater(good, 1)

    def test_a_fault_that_no_hook_saw(self):
        actor = self.start("cuCtxGetFlags:1:fault=700")
        self.assertEqual(actor.code("info"), 0)
        self.assertEqual(actor.code("flags"), 700)
        support.wait_until(lambda: actor.code("info") == 700, "the error shows")
        self.assertEqual(actor.code("info"), 700, "and stays")

    def test_a_fault_that_a_hook_saw_shows_at_once(self):
        for entry, words in (("cuStreamSynchronize", "sync"), ("cuCtxSynchronize", "synchronize"), ("cuMemAlloc_v2", "take alloc 64M"),
                             ("cuMemFree_v2", "free 4096")):
            with self.subTest(entry):
                actor = self.start(f"{entry}:1:fault=700")
                self.assertEqual(actor.code("stream"), 0)
                self.assertEqual(actor.ask(f"info-around {words}")[:3], [0, 700, 700])

    def test_one_context_and_not_the_other(self):
        actor = self.start("cuCtxGetFlags:1:fault=700")
        self.assertEqual(actor.code("context 0"), 0)
        self.assertEqual(actor.code("info-around flags"), 0)
        support.wait_until(lambda: actor.code("info") == 700, "the error shows")
        self.assertEqual(actor.code("retain 0"), 0)
        self.assertEqual(actor.code("info"), 0, "the other context works")


class Graphs(support.World):
    def test_a_destroy_that_fails_leaves_the_graph_known(self):
        books = self.grant(2 * GIB)
        actor = self.actor(books, METE_SIM_FAULT="cuGraphExecDestroy:1:fail=719").start()
        ident = actor.take("graph", "64M")
        self.assertEqual(books.total(), EACH + 64 * MIB)
        self.assertEqual(actor.code(f"drop {ident}"), 719)
        self.assertEqual(actor.code("trim"), 0)
        self.assertEqual(books.total(), EACH)
        self.assertEqual(actor.code(f"launch {ident}"), 0, "the graph is still there")
        self.assertEqual(books.total(), EACH + 64 * MIB)

    def test_many_graphs_come_and_go(self):
        books = self.grant(2 * GIB)
        actor = self.actor(books).start()
        for _ in range(50):
            idents = [actor.take("graph", "32M") for _ in range(4)]
            for ident in idents:
                self.assertEqual(actor.code(f"drop {ident}"), 0)
        self.assertEqual(actor.code("trim"), 0)
        self.assertEqual((books.total(), self.physical(pids=[actor.pid])), (EACH, CONTEXT))


class SlowDeath(support.World):
    environment = {"METE_SIM_TEARDOWN_MS": "50"}
    sim = "1xT4"

    def test_a_driver_without_memory_is_asked_again(self):
        """The books have room, the card has not: the memory of a dead process is still on its way back."""
        books = self.grant(16 * GIB)
        other, actor = (self.actor(books).start() for _ in range(2))
        other.fill("alloc", "64M")
        other.fill("alloc", "2M")
        other.kill()
        self.assertEqual(actor.code("stack 16384"), 0)


if __name__ == "__main__":
    support.main()
