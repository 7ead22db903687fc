#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The meter in special programs: sanitizers, wrappers of malloc, fork and its relatives, threads, and machines without a driver."""
import os
import shutil
import subprocess

import support
from books import CONTEXT, MIB, RESERVE
from support import ACTOR, BOUND_S, GIB, METE, OOM, PRELOAD, PROGRAMS, SIMGPU

EACH = CONTEXT + RESERVE
KINDS = "alloc/pitch/managed/create/async/array"


class Guest(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)

    def run_capped(self, *command, words=(), **more):
        return subprocess.run([METE, "cap", "-q", "--gpu", "4G", *words, "--", *map(str, command)], env={**self.env, **more},
                              capture_output=True, text=True, timeout=BOUND_S, stdin=subprocess.DEVNULL)

    def under_sanitizer(self, name, *words):
        """The sanitized actor inside a cap; skipped where the sanitizer does not run at all."""
        program = PROGRAMS / f"meter_actor_{name}"
        commands = f"init,retain 0,fill alloc 64M,drop-all,crowd 4 60 {KINDS},take alloc 1G"
        alone = subprocess.run([program, "init,retain 0,take alloc 64M"], env=self.env, capture_output=True, text=True,
                               timeout=BOUND_S, stdin=subprocess.DEVNULL)
        if alone.returncode != 0:
            self.skipTest(f"the sanitizer does not run here: {alone.stderr[-300:]}")
        done = self.run_capped(program, commands, words=words)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["0", "0"])
        code, got = map(int, lines[2].split())
        self.assertEqual((code, got), (OOM, (4 * GIB - EACH) // (64 * MIB) * 64 * MIB))
        self.assertEqual(lines[4].split()[:2], ["0", "0"])
        self.assertTrue(lines[5].startswith("0 "))

    def test_address_sanitizer(self):
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
        runtime = os.path.realpath(runtime)
        self.under_sanitizer("address", "--env", f"LD_PRELOAD={runtime}")

    def test_thread_sanitizer(self):
        self.under_sanitizer("thread")

    def test_looking_for_the_next_definition(self):
        """Before and behind the meter, and repeatedly."""
        wrap, library = PROGRAMS / "libmeter_wrap.so", PROGRAMS / "libmeter_next.so"
        for preload in (PRELOAD, [str(wrap), *PRELOAD], [*PRELOAD, str(wrap)]):
            with self.subTest(preload=preload):
                actor = self.actor(self.books, LD_PRELOAD=":".join(preload)).start()
                self.assertEqual(actor.ask(f"library {library} next_works 1000"), [0, 1000])
                self.assertEqual(actor.ask(f"thread library {library} next_works 1000"), [0, 1000])
                if len(preload) > len(PRELOAD):
                    self.assertGreater(actor.ask(f"library {wrap} wrapped_calls 0")[1], 10)
                self.assertEqual(actor.code("take alloc 64M"), 0)
                self.assertEqual(actor.ask("take alloc 8G")[0], OOM)
                actor.kill()

    def test_a_program_without_cuda_opens_nothing(self):
        alone, inside = self.actor(None), self.actor(self.books)
        for actor in (alone, inside):
            self.assertEqual(actor.code("echo"), 0)
        pipes = [[w for w in actor.ask("files")[1:] if not w.startswith("pipe:")] for actor in (alone, inside)]
        self.assertEqual(pipes[0], pipes[1])
        maps = inside.ask("maps")[1:]
        self.assertIn(PRELOAD[0], maps)
        self.assertFalse([m for m in maps if m.startswith(SIMGPU) or m == str(self.books.path)], maps)
        self.assertEqual(self.books.owners(), [])
        # The first call loads the driver, and no descriptor but the driver's own stays open.
        self.assertEqual(inside.code("init"), 0)
        self.assertIn(f"{SIMGPU}/libcuda.so.1", inside.ask("maps"))
        self.assertFalse([f for f in inside.ask("files")[1:] if f == str(self.books.path)])

    def test_errno(self):
        actor = self.actor(self.books).start()
        self.assertEqual(actor.code("stream"), 0)
        for words in ("take alloc 64M", "take alloc 512", "take alloc 8G", "take create 64M", "take async 64M", "take array 64M", "info"):
            alone = 4711
            self.assertEqual(actor.ask(f"errno {alone} {words}")[0], alone, words)

    def test_fork_without_exec(self):
        parent = self.actor(self.books)
        # Before the parent's first call: the child may use CUDA by itself, and has an account of its own.
        self.assertEqual(parent.code("fork echo"), 0)
        self.assertEqual(parent.code("fork init / retain 0 / take alloc 1G"), 0)
        self.assertEqual(parent.code("fork init / retain 0 / take alloc 8G"), OOM)
        parent.start()
        self.assertEqual(self.books.owners(), [parent.pid])
        self.assertEqual(parent.code("take alloc 1G"), 0)
        before = self.books.total()
        # Afterwards the driver refuses the child, as it would without us; what the parent holds stays the parent's.
        self.assertEqual(parent.code("fork echo"), 0)
        self.assertEqual(parent.code("fork info"), 3)
        self.assertEqual(parent.code("fork take alloc 64M"), 3)
        self.assertEqual(parent.code("fork drop 1"), 3)
        self.assertEqual((self.books.total(), parent.code("drop 1")), (before, 0))
        self.assertEqual(self.books.total(), EACH)
        self.assert_exact(self.books)

    def test_vfork_and_spawn(self):
        parent = self.actor(self.books).start()
        self.assertEqual(parent.code("take alloc 1G"), 0)
        for word in ("vfork", "spawn"):
            parent.say(f"{word} init,retain 0,take alloc 1G,take alloc 8G")
            self.assertEqual([parent.hear()[0] for _ in range(5)], [0, 0, 0, OOM, 0], word)
        self.assertEqual(parent.ask("info")[1], 4 * GIB - EACH - GIB)

    def test_threads_that_end(self):
        actor = self.actor(self.books).start()
        for _ in range(50):
            self.assertEqual(actor.code("thread take alloc 2M"), 0)
        self.assertEqual(self.books.total(), EACH + 100 * MIB)
        self.assertEqual(actor.code("drop-all"), 0)
        self.assertEqual(self.books.total(), EACH)

    def test_many_threads(self):
        """Eight threads by all calls at once, with room and without; the books are exact at the end."""
        for limit, delay in ((4 * GIB, 0), (4 * GIB, 30), (EACH + 48 * MIB, 0), (EACH + 48 * MIB, 30)):
            with self.subTest(limit=limit, delay=delay):
                books = self.grant(limit)
                more = {"METE_SIM_DELAY_US": delay} if delay else {}
                actor = self.actor(books, **more).start()
                answer = actor.ask(f"crowd 8 {60 if delay else 300} {KINDS}")
                self.assertEqual(answer[:2], [0, 0], "no call failed but for want of memory")
                self.assertEqual(answer[2] > 0, limit != 4 * GIB, "refused only where there is little room")
                # A pool that grew where it should have had room inside is undone: one step, within the reserve.
                self.assertLessEqual(books.peak(), limit + 32 * MIB)
                self.assertEqual(actor.code("synchronize"), 0)
                self.assertEqual((books.total(), books.pending()), (EACH, 0))
                self.assert_exact(books)
                self.assertEqual(self.physical(pids={actor.pid}), CONTEXT)

    def test_many_threads_in_one_small_pool(self):
        """All count on the room inside a pool that cannot grow: what it takes past the limit stays within the reserve."""
        for delay in (0, 200):
            books = self.grant(EACH + 40 * MIB)
            actor = self.actor(books, METE_SIM_DELAY_US=delay).start()
            self.assertEqual(actor.code("keep-pool 1G"), 0)
            answer = actor.ask("crowd 8 40 async")
            self.assertEqual(answer[:2], [0, 0])
            self.assertLessEqual(books.peak(), books.limit() + RESERVE)
            self.assertEqual(actor.code("keep-pool 0"), 0)
            self.assertEqual(actor.code("synchronize"), 0)
            self.assertEqual(books.total(), EACH)
            self.assertEqual(actor.code("take async 32M"), 0)

    def test_many_threads_in_many_processes(self):
        actors = [self.actor(self.books, METE_SIM_DELAY_US=50).start() for _ in range(4)]
        for actor in actors:
            actor.say(f"crowd 4 80 {KINDS}")
        for actor in actors:
            self.assertEqual(actor.hear()[:2], [0, 0])
        self.assertLessEqual(self.books.peak(), 4 * GIB)
        self.assertEqual((self.books.total(), self.books.pending()), (4 * EACH, 0))
        self.assert_exact(self.books)


class Drivers(support.World):
    def test_without_a_driver(self):
        """cuInit fails as without the meter, without a message."""
        if "libcuda.so.1" in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout:
            self.skipTest("this machine has a driver")
        books = self.grant(4 * GIB)
        actor = self.actor(books, LD_LIBRARY_PATH=None)
        self.assertEqual(actor.code("init"), 100)
        self.assertEqual(actor.code("echo"), 0)
        self.assertNotEqual(actor.ask("nvml")[0], 0)
        self.assertEqual(actor.quit(), 0)
        self.assertEqual(actor.errors(), "")
        self.assertEqual(books.owners(), [])

    def test_the_library_that_the_loader_would_have_taken(self):
        """A second driver library, first in LD_LIBRARY_PATH, as cuda-compat is."""
        compat = self.folder / "compat"
        compat.mkdir()
        shutil.copy(f"{SIMGPU}/libcuda.so.1", compat)
        books = self.grant(4 * GIB)
        actor = self.actor(books, LD_LIBRARY_PATH=f"{compat}:{SIMGPU}", METE_SIMGPU_SERVER=f"{SIMGPU}/mete-simgpu").start()
        self.assertEqual(actor.ask("take alloc 8G")[0], OOM)
        maps = actor.ask("maps")
        self.assertIn(f"{compat}/libcuda.so.1", maps)
        self.assertNotIn(f"{SIMGPU}/libcuda.so.1", maps)


if __name__ == "__main__":
    support.main()
