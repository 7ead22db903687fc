#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Driver failures: a full card, failures of every call, a lost card, a hundred thousand blocks; the books stay true."""
import support
from books import CONTEXT, MIB, RESERVE
from support import GIB, OOM

EACH = CONTEXT + RESERVE

# The call that fails, and what the program does; the step before succeeds.
CALLS = {
    "cuMemAlloc_v2": "take alloc 64M", "cuMemAllocPitch_v2": "take pitch 64M", "cuMemAllocManaged": "take managed 64M",
    "cuMemCreate": "take create 64M", "cuMemMap": "take mapped 64M", "cuMemAllocAsync": "take async 64M",
    "cuMemAllocAsync_ptsz": "take async-ptsz 64M", "cuMemAllocFromPoolAsync": "take own-pool 64M",
    "cuMemPoolCreate": "take own-pool 64M", "cuGraphInstantiateWithFlags": "take graph 64M", "cuGraphLaunch": "take graph 64M",
    "cuGraphAddMemAllocNode": "take graph 64M", "cuArrayCreate_v2": "take array 64M",
    "cuCtxCreate_v2": "context 0", "cuCtxSetLimit": "stack 16384",
}
FREES = {
    "cuMemFree_v2": "alloc", "cuMemRelease": "create", "cuMemUnmap": "mapped", "cuMemFreeAsync": "async", "cuArrayDestroy": "array",
    "cuMipmappedArrayDestroy": "mipmap",
}


class Failing(support.World):
    def test_the_result_is_passed_on_and_the_books_do_not_change(self):
        for function, words in CALLS.items():
            for code in (1, OOM, 46, 201, 719, 999):
                with self.subTest(function=function, code=code):
                    books = self.grant(8 * GIB)
                    actor = self.actor(books, METE_SIM_FAULT=f"{function}:1:fail={code}").start()
                    self.assertEqual(actor.code("stream"), 0)
                    self.assertEqual(actor.code(words), code)
                    self.assertEqual((books.total(), books.pending()), (EACH, 0))
                    self.assert_exact(books)
                    self.assertEqual(actor.code(words), 0, "the next one works")
                    actor.kill()

    def test_a_full_card_is_believed_unless_somebody_died_just_now(self):
        """Recognised by the driver's second answer."""
        books = self.grant(8 * GIB)
        faults = "cuMemAlloc_v2:1:fail=2,cuMemAlloc_v2:2:fail=719"
        actor = self.actor(books, METE_SIM_FAULT=faults).start()
        self.assertEqual(actor.code("take alloc 64M"), OOM, "no process died: it was called once")
        actor.kill()
        neighbour = self.actor(books).start()
        actor = self.actor(books, METE_SIM_FAULT=faults).start()
        neighbour.kill()
        self.assertEqual(actor.code("take alloc 64M"), 719, "a process died: it was called again")
        self.assertEqual(books.total(), EACH)

    def test_a_context_that_fails(self):
        books = self.grant(8 * GIB)
        actor = self.actor(books, METE_SIM_FAULT="cuDevicePrimaryCtxRetain:1:fail=999")
        self.assertEqual(actor.code("init"), 0)
        self.assertEqual(actor.code("retain 0"), 999)
        self.assertEqual((books.total(), books.pending()), (0, 0))
        self.assertEqual(actor.code("retain 0"), 0)
        self.assertEqual(books.total(), EACH)

    def test_a_free_that_fails_leaves_the_charge(self):
        for function, kind in FREES.items():
            with self.subTest(function=function):
                books = self.grant(8 * GIB)
                when = 2 if kind in ("array", "mipmap", "mapped") and function != "cuMemUnmap" else 1  # a twin is destroyed first
                actor = self.actor(books, METE_SIM_FAULT=f"{function}:{when}:fail=999").start()
                ident = actor.take(kind, "64M")
                self.assertEqual(actor.code(f"drop {ident}"), 999)
                self.assertEqual(books.total(), EACH + 64 * MIB)
                self.assertEqual(actor.code(f"drop {ident}"), 0)
                self.assertEqual(actor.code("synchronize"), 0)
                self.assertEqual(books.total(), EACH)
                actor.kill()

    def test_a_sticky_fault(self):
        """After a fault in the context every call fails; death still gives everything back."""
        books = self.grant(8 * GIB)
        actor = self.actor(books, METE_SIM_FAULT="cuMemAlloc_v2:2:fault=700").start()
        ident = actor.take("alloc", "64M")
        self.assertEqual(actor.code("take alloc 64M"), 700)
        self.assertEqual(actor.code(f"drop {ident}"), 700)
        self.assertEqual(actor.code("take create 64M") in (0, 700), True)
        self.assert_exact(books)
        actor.kill()
        self.assertEqual(self.actor(books).start().fill("alloc", "2M")[0], 8 * GIB - EACH)

    def test_a_lost_card(self):
        books = self.grant(8 * GIB)
        actor = self.actor(books).start()
        ident = actor.take("alloc", "64M")
        before = books.total()
        self.assertEqual(self.control("lose-card", 0).returncode, 0)
        for kind in ("alloc", "create", "async", "array"):
            self.assertEqual(actor.ask(f"take {kind} 64M")[0], 46, kind)
        self.assertEqual(actor.code(f"drop {ident}"), 46)
        self.assertEqual((books.total(), books.pending()), (before, 0))
        self.assert_exact(books)
        self.assertEqual(self.control("restore-card", 0).returncode, 0)
        actor.kill()
        self.assertEqual(self.actor(books).start().code("take alloc 64M"), 0)


class FullCard(support.World):
    sim = "1xT4"

    def test_somebody_else_holds_the_card(self):
        """The books have room, the card has not: the driver's own refusal, and nothing charged for it."""
        books = self.grant(12 * GIB)
        actor = self.actor(books).start()
        stranger = self.actor(None).start()
        stranger.fill("alloc", "64M")
        stranger.fill("alloc", "2M")
        for kind in ("alloc", "create", "mapped", "async", "own-pool", "graph", "array", "mipmap", "pitch"):
            with self.subTest(kind=kind):
                before = books.refusals()
                self.assertEqual(actor.ask(f"take {kind} 64M")[0], OOM)
                self.assertEqual(books.refusals(), before, "the meter refused nothing")
                self.assertEqual((books.total(), books.pending()), (EACH, 0))
        # No sampler publishes: the driver is called, and free is what the card has, not what the books would allow.
        self.assertLess(actor.ask("info")[1], 64 * MIB)
        stranger.kill()
        self.assertEqual(actor.ask("take alloc 4G")[0], 0)
        self.assert_exact(books)


class ManyBlocks(support.World):
    def test_a_hundred_thousand_live_blocks(self):
        books = self.grant(8 * GIB)
        actor = self.actor(books).start()
        self.assertEqual(actor.ask("blocks 100000 4K"), [0, 100000])
        slabs = -(-100000 * 4096 // (2 * MIB))
        self.assertEqual(books.total(), EACH + slabs * 2 * MIB)
        self.assertEqual(self.physical(), CONTEXT + slabs * 2 * MIB)
        self.assertEqual(actor.code("drop-all"), 0)
        self.assertEqual(books.total(), EACH)
        self.assertEqual(self.physical(), CONTEXT)
        self.assertEqual(actor.ask(f"take alloc {8 * GIB - EACH}")[0], 0)

    def test_small_blocks_up_to_the_last(self):
        """Blocks that share slabs fill the grant to the last slab, and the context's end gives all of them back."""
        books = self.grant(EACH + 20 * MIB)
        actor = self.actor(books).start()
        got, code = actor.fill("alloc", "4K")
        # The spare slab is used too; whether a further block opens another slab only the driver knows.
        self.assertEqual((got > 20 * MIB, got <= 22 * MIB, code), (True, True, OOM))
        self.assertLessEqual(self.physical(), EACH + 20 * MIB)
        self.assertEqual(actor.code("reset 0"), 0)
        self.assertEqual(books.total(), 0)
        self.assertEqual(actor.code("retain 0"), 0)
        self.assertEqual(actor.fill("alloc", "4K"), (got, OOM))


if __name__ == "__main__":
    support.main()
