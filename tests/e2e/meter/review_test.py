#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What hostile or unlucky programs once did to the books: nothing is lost, nothing is charged for ever.

Each test stands for a mistake that was there; the races run long enough that the mistake would show.
"""
import os
import signal
import subprocess

import support
from books import Books, CONTEXT, MIB, RESERVE
from support import ACTOR, GIB, METE, OOM, wait_until

EACH = CONTEXT + RESERVE  # what a process with a context holds
PIECE = 96 * MIB


class OneProcess(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)
        self.actor_here = self.actor(self.books).start()
        self.assertEqual(self.books.total(), EACH)

    def test_contexts_destroyed_under_a_thread_that_asks(self):
        self.assertEqual(self.actor_here.ask("destroy-while-asked 40"), [0, 40])
        self.assertEqual(self.books.total(), EACH)
        self.assertEqual(self.actor_here.free(), 4 * GIB - EACH)
        self.actor_here.take("alloc", str(4 * GIB - EACH))

    def test_a_plain_block_freed_in_stream_order(self):
        for number in range(20):
            ident = self.actor_here.take("alloc", "1G")
            self.assertEqual(self.books.total(), EACH + GIB)
            self.assertEqual(self.actor_here.code(f"drop-async {ident}"), 0)
            self.assertEqual(self.actor_here.code("sync"), 0)
            self.assertEqual(self.books.total(), EACH, f"round {number}")
        self.assertEqual(self.physical(), CONTEXT)

    def test_a_large_request_to_a_full_pool_in_pieces(self):
        """Room in pieces is no room for a large block: the pool would grow for it, past the cap."""
        actor = self.actor_here
        self.assertEqual(actor.code(f"keep-pool {2 ** 64 - 1}"), 0)
        idents = []
        while (said := actor.ask(f"take async {PIECE}"))[0] == 0:
            idents.append(said[1])
        self.assertEqual(said[0], OOM)
        self.assertGreater(len(idents) // 2 * PIECE, GIB, "the pieces together would do")
        self.assertLess(self.actor_here.free(), PIECE, "the grant is full")
        for ident in idents[::2]:
            self.assertEqual(actor.code(f"drop {ident}"), 0)
        self.assertEqual(actor.code("sync"), 0)
        self.assertIn(actor.code("take async 1G"), (0, OOM))
        code, _, most = actor.ask("pool-reserved")
        self.assertEqual(code, 0)
        self.assertGreaterEqual(most, len(idents) * PIECE)
        self.assertLessEqual(most + EACH, 4 * GIB)
        self.assertLessEqual(self.books.peak(), 4 * GIB)

    def test_a_thread_cancelled_inside_a_refusal(self):
        """A lock that it left behind would stop the process for good. The neighbour is what a refusal looks at."""
        self.actor(self.books).start()
        self.assertEqual(self.actor_here.ask("cancel 200 8G"), [0, 0])
        ident = self.actor_here.take("alloc", "1G")
        self.assertEqual(self.actor_here.code("thread take alloc 64M"), 0)
        self.assertEqual(self.actor_here.code(f"drop {ident}"), 0)
        self.assertEqual(self.books.total(), 2 * EACH + 64 * MIB)


class PoolRace(support.World):
    environment = {"METE_SIM_DELAY_US": "200"}

    def test_a_pool_that_shrinks_and_grows_between_two_looks(self):
        books = self.grant(4 * GIB)
        actor = self.actor(books).start()
        self.assertEqual(actor.code(f"keep-pool {2 ** 64 - 1}"), 0)
        code, uncharged, blocks = actor.ask("pool-race 2000 64M")
        self.assertEqual((code, uncharged), (0, 0), f"of {blocks} blocks")
        self.assertGreater(blocks, 0)
        self.assertEqual(books.total(), EACH)


class Importers(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)
        self.owner, self.importer = (self.actor(self.books).start() for _ in range(2))
        self.path = f"{self.folder}/socket"
        self.assertEqual(self.importer.code(f"listen {self.path}"), 0)

    def export(self):
        ident = self.owner.take("exportable", "1G")
        self.assertEqual(self.owner.code(f"export {ident} {self.path}"), 0)
        return ident

    def assert_nobody_holds_anything(self):
        wait_until(lambda: self.owner.free() == 4 * GIB - 2 * EACH, "everything is back")
        self.assertEqual(self.books.total(), 2 * EACH)
        self.assertEqual(self.books.exports(), 0)

    def test_mapped_again_and_again_and_let_go_first(self):
        for _ in range(5):
            ident = self.export()
            self.assertEqual(self.importer.code(f"import-briefly {self.path} 1G 3"), 0)
            self.assertEqual(self.books.total(), 2 * EACH + GIB)
            self.assertEqual(self.owner.code(f"drop {ident}"), 0)
            self.assert_nobody_holds_anything()

    def test_mapped_again_and_again_and_let_go_last(self):
        for _ in range(5):
            ident = self.export()
            code, mapped = self.importer.ask(f"import {self.path} 1G 3")
            self.assertEqual(code, 0)
            self.assertEqual(self.owner.code(f"drop {ident}"), 0)
            self.assertEqual(self.owner.free(), 4 * GIB - 2 * EACH - GIB, "the importer still has it")
            self.assertEqual(self.importer.code(f"drop {mapped}"), 0)
            self.assert_nobody_holds_anything()


class Namespaces(support.World):
    ROUNDS = 4

    def setUp(self):
        super().setUp()
        try:
            tried = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True, timeout=support.BOUND_S)
        except FileNotFoundError:
            self.skipTest("there is no unshare")
        if tried.returncode != 0:
            self.skipTest(f"new pid namespaces are not permitted here: {tried.stderr.strip()}")

    def wait_for_readings(self, books):
        """Two more of the launcher's readings of NVML: the second began after this call."""
        for _ in range(2):
            before = books.word(2048 + 56)
            wait_until(lambda: books.word(2048 + 56) > before, "the launcher reads NVML")

    def test_the_dead_of_another_namespace_give_back(self):
        actor = self.actor(None, command=[METE, "cap", "-q", "--gpu", "4G", "--", ACTOR])
        self.assertEqual(actor.code("init"), 0)
        grants = self.folder / "state" / "grants"
        books = Books(next(grants.iterdir()))
        inside = f"exec unshare -pf --kill-child --mount-proc {ACTOR}"
        for number in range(self.ROUNDS):
            actor.say(f"shell {inside} init,retain 0,take alloc 3G,pause")
            said = [actor.hear() for _ in range(4)]
            self.assertTrue(all(words[0] == 0 for words in said), f"round {number}: {said}")
            pid = next(words[2] for words in said if words[1:2] == ["child"])
            self.assertEqual(books.total(), EACH + 3 * GIB)
            self.wait_for_readings(books)
            self.assertEqual((books.escapes(), books.excess()), (0, 0), "it has a slot, it is no escape")
            self.assertEqual(books.total(), EACH + 3 * GIB, "alive, it keeps what it has")
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: books.total() == 0, f"round {number}: what it held is given back")
        # One that lives and dies between two readings.
        actor.say(f"shell {inside} init,retain 0,take alloc 3G")
        said = [actor.hear() for _ in range(4)]
        self.assertTrue(all(words[0] == 0 for words in said), said)
        wait_until(lambda: books.total() == 0, "what it held is given back")
        self.assertEqual(books.escapes(), 0)
        self.assertEqual(actor.quit(), 0)
        self.assertNotIn("outside the cap", actor.errors())


if __name__ == "__main__":
    support.main()
