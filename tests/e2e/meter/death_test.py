#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of a dead process is free at once: kills and stops at each driver call, random kills, reused pids, exec chains, slow teardown."""
import os
import random
import signal

import support
from books import CONTEXT, MIB, MORE, RESERVE
from support import GIB, OOM

# What the victim does first, the commands of which the last one makes the driver call, and the number of that call.
PLAIN = ["init", "retain 0"]
STEPS = {
    "cuInit": ([], ["init"]),
    "cuDevicePrimaryCtxRetain": (["init"], ["retain 0"]),
    "cuDevicePrimaryCtxRelease_v2": (PLAIN, ["take alloc 512M", "release 0"]),
    "cuDevicePrimaryCtxReset_v2": (PLAIN, ["take alloc 512M", "reset 0"]),
    "cuCtxCreate_v2": (PLAIN, ["context 0"]),
    "cuCtxDestroy_v2": (PLAIN, ["context 0", "take alloc 512M", "destroy 1"]),
    "cuCtxSetLimit": (PLAIN, ["stack 2048"]),
    "cuMemAlloc_v2": (PLAIN, ["take alloc 512M"]),
    "cuMemFree_v2": (PLAIN, ["take alloc 512M", "take alloc 512", "drop 1"]),
    "cuMemAllocPitch_v2": (PLAIN, ["take pitch 64M"]),
    "cuMemAllocManaged": (PLAIN, ["take managed 512M"]),
    "cuMemCreate": (PLAIN, ["take create 512M"]),
    "cuMemMap": (PLAIN, ["take mapped 512M"]),
    "cuMemRelease": (PLAIN, ["take mapped 512M"]),
    "cuMemUnmap": (PLAIN, ["take mapped 512M", "drop 1"]),
    "cuMemAllocAsync": (PLAIN, ["take async 512M"]),
    "cuMemFreeAsync": (PLAIN, ["take async 512M", "drop 1"]),
    "cuStreamSynchronize": (PLAIN, ["take async 512M", "drop 1", "sync"]),
    "cuCtxSynchronize": (PLAIN, ["take async 512M", "drop 1", "synchronize"]),
    "cuMemPoolGetAttribute": (PLAIN, ["take async 512M"]),
    "cuMemAllocFromPoolAsync": (PLAIN, ["take own-pool 512M"]),
    "cuMemPoolDestroy": (PLAIN, ["take own-pool 512M", "drop 1", "sync", "destroy-pool 0"]),
    "cuGraphInstantiateWithFlags": (PLAIN, ["take graph 512M"]),
    "cuGraphLaunch": (PLAIN, ["take graph 512M"]),
    "cuDeviceGetGraphMemAttribute": (PLAIN, ["take graph 512M"]),
    "cuDeviceGraphMemTrim": (PLAIN, ["take graph 512M", "drop 1", "trim"]),
    "cuArrayCreate_v2": (PLAIN, ["take array 512M"]),
    "cuArray3DCreate_v2": (PLAIN, ["take array3d 512M"], 2),  # the first is the twin that reports the size
    "cuArrayDestroy": (PLAIN, ["take array 512M", "drop 1"], 2),
    "cuMipmappedArrayCreate": (PLAIN, ["take mipmap 512M"], 2),
    "cuMipmappedArrayDestroy": (PLAIN, ["take mipmap 512M", "drop 1"], 2),
    "cuArrayGetMemoryRequirements": (PLAIN, ["take array 512M"]),
    "cuIpcGetMemHandle": (PLAIN, ["take alloc 512M", "ipc-get 1"]),
    "cuIpcOpenMemHandle_v2": (PLAIN, ["ipc-open HANDLE"]),
    "cuIpcCloseMemHandle": (PLAIN, ["ipc-open HANDLE", "drop 1"]),
    "cuMemExportToShareableHandle": (PLAIN, ["take exportable 512M", "export 1 SOCKET"]),
    "cuMemGetInfo_v2": (PLAIN, ["take alloc 512M", "info"]),
}
LIMIT = 8 * GIB


class AtEachCall(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(LIMIT)
        self.sibling = self.actor(self.books).start()
        self.shared = self.sibling.take("alloc", "256M")
        self.handle = self.sibling.ask(f"ipc-get {self.shared}")[1]
        self.base = self.books.total()
        self.whole = (LIMIT - self.base) // (16 * MIB) * 16 * MIB

    def victim(self, function, action):
        """An actor that meets its fault in the last of its steps; returns when it has."""
        before, steps, *rest = STEPS[function]
        victim = self.actor(self.books, METE_SIM_FAULT=f"{function}:{1 if len(rest) == 0 else rest[0]}:{action}")
        for words in before:
            self.assertEqual(victim.code(words), 0, words)
        if any("SOCKET" in words for words in steps):
            self.assertEqual(victim.code(f"listen {self.folder}/{function}-{action}"), 0)
        for words in steps:
            victim.say(words.replace("HANDLE", str(self.handle)).replace("SOCKET", f"{self.folder}/{function}-{action}"))
            if words != steps[-1]:
                self.assertEqual(victim.hear()[0], 0, words)
        if action.endswith("stop"):
            victim.wait_state("T")
        return victim

    def everything(self, what):
        """The sibling takes all there is at its first attempt, in one piece and in many, and gives it back."""
        code, ident = self.sibling.ask(f"take alloc {self.whole}")
        self.assertEqual(code, 0, f"{what}: the first attempt after the kernel reaped the process")
        self.assertEqual(self.sibling.code(f"drop {ident}"), 0)
        self.assertEqual(self.sibling.fill("create"), (self.whole, OOM), what)
        self.drop_fill()
        self.assertEqual(self.books.total(), self.base, what)
        self.assert_exact(self.books)
        self.assertEqual(self.books.pending(), 0, what)

    def drop_fill(self):
        # Everything but the shared block, which is piece 1 of the sibling.
        self.assertEqual(self.sibling.code("drop-others 1"), 0)

    def test_killed(self):
        for function in STEPS:
            for action in ("kill", "after-kill"):
                with self.subTest(function=function, action=action):
                    victim = self.victim(function, action)
                    self.assertEqual(victim.process.wait(support.BOUND_S), -signal.SIGKILL)
                    self.everything(f"{function} {action}")

    def test_stopped(self):
        for function in STEPS:
            for action in ("stop", "after-stop"):
                with self.subTest(function=function, action=action):
                    victim = self.victim(function, action)
                    held = self.books.total() - self.base
                    self.assert_exact(self.books)
                    # Whatever the stopped process has in the books, the rest is available, and no more.
                    got, code = self.sibling.fill("alloc", "2M")
                    self.assertEqual((got, code), (LIMIT - self.base - held, OOM))
                    self.assertEqual(self.sibling.ask("info")[1], 0)
                    self.drop_fill()
                    self.assert_exact(self.books)
                    # It goes on as if nothing had happened ...
                    victim.process.send_signal(signal.SIGCONT)
                    self.assertEqual(victim.hear()[0], 0)
                    self.assert_exact(self.books)
                    # ... and a stopped process that is killed gives everything back.
                    victim.process.send_signal(signal.SIGSTOP)
                    victim.wait_state("T")
                    victim.kill()
                    self.everything(f"{function} {action}")

    def test_what_a_stopped_process_reserved_is_waited_for_but_not_long(self):
        victim = self.actor(self.books, METE_SIM_FAULT="cuMemAlloc_v2:1:stop").start()
        victim.say("take alloc 2G")
        victim.wait_state("T")
        free = LIMIT - self.books.total()
        self.assertEqual(self.books.pending(), 2 * GIB)
        self.assertEqual(self.sibling.ask(f"take alloc {free + 2 * MIB}")[0], OOM)
        self.assertEqual(self.sibling.ask(f"take alloc {free}")[0], 0)


class Forked(support.World):
    """A child forked without exec keeps its dead parent's memory on the card, and so in the books."""

    def test_a_dead_parent_stays_charged_while_its_child_lives(self):
        books = self.grant(LIMIT)
        sibling = self.actor(books).start()
        base = books.total()
        parent = self.actor(books).start()
        parent.take("alloc", "2G")
        code, child = parent.ask("linger")
        self.assertEqual(code, 0)
        held = books.total() - base
        physical = self.physical()
        parent.kill()
        self.assertEqual(self.physical(), physical, "the card still holds it")
        self.assertEqual(sibling.fill("alloc", "2M"), (LIMIT - base - held, OOM))
        self.assertEqual(sibling.code("drop-all"), 0)
        os.kill(child, signal.SIGKILL)
        support.wait_until(lambda: not os.path.exists(f"/proc/{child}"), "the end of the child")
        self.assertEqual(sibling.code(f"take alloc {LIMIT - base}"), 0)
        self.assertEqual(books.total(), LIMIT)
        self.assert_exact(books)

    def test_a_child_with_another_program_keeps_nothing(self):
        books = self.grant(LIMIT)
        sibling = self.actor(books).start()
        base = books.total()
        parent = self.actor(books).start()
        parent.take("alloc", "2G")
        self.assertEqual(parent.code("shell sleep 5"), 0)
        parent.kill()
        self.assertEqual(sibling.code(f"take alloc {LIMIT - base}"), 0)


class Many(support.World):
    def test_300_random_kills(self):
        """Processes of every habit die at random moments; then a new one fills the grant as the first did."""
        chance = random.Random(int(os.environ.get("METE_SEED", "1")))
        limit = 12 * GIB
        books = self.grant(limit)
        first = self.actor(books).start()
        whole, code = first.fill()
        self.assertEqual(code, OOM)
        first.kill()
        survivor = self.actor(books).start()
        survivor.take("alloc", "100M")
        survivor.take("async", "100M")
        alone = books.of(survivor.pid)
        habits = ["alloc", "create", "mapped", "async", "own-pool", "graph", "array", "managed", "alloc"]
        crowd = []
        for n in range(300):
            while len(crowd) < 5:
                actor = self.actor(books, METE_SIM_DELAY_US=f"{chance.choice((20, 300))}")
                habit = chance.choice(habits)
                size, few, many = chance.choice((("512", "100K", "1M"), ("1M", "50M", "1G"), ("17M", "200M", "2G"), ("64M", "1G", "4G")))
                for words in ("init", "retain 0", f"fill {habit} {size} {few}", "drop-all", f"fill {habit} {size} {many}"):
                    actor.say(words)
                crowd.append(actor)
            victim = crowd.pop(chance.randrange(len(crowd)))
            for _ in range(chance.randrange(4)):
                try:
                    victim.hear()
                except support.Gone:
                    break
            if chance.random() < 0.2:
                victim.process.send_signal(signal.SIGSTOP)
                self.assertEqual(survivor.code("info"), 0)
            victim.end()
            self.actors.remove(victim)
        for actor in crowd:
            actor.kill()
        self.assertLessEqual(books.peak(), limit)
        self.assertEqual(survivor.ask("info")[1], limit - alone)
        self.assertEqual(books.total(), alone)
        self.assert_exact(books)
        survivor.kill()
        last = self.actor(books).start()
        self.assertEqual(last.fill(), (whole, OOM))
        self.assertEqual(books.owners(), [last.pid])


class Identity(support.World):
    def test_a_reused_pid_is_another_process(self):
        books = self.grant(4 * GIB)
        victim = self.actor(books).start()
        victim.take("alloc", "2G")
        slot = books.slot_of(victim.pid)
        # The books after the pid of a dead process was given to a new one, which lives.
        raw = books.word(books.slot_at(slot))
        books.set_word(books.slot_at(slot), raw ^ 1 << 20)  # a bit of the start time
        other = self.actor(books).start()
        self.assertEqual(other.code("take alloc 2G"), 0)
        self.assert_exact(books)

    def test_a_zombie_holds_nothing(self):
        books = self.grant(4 * GIB)
        victim = self.actor(books).start()
        victim.take("alloc", "2G")
        victim.process.kill()
        victim.wait_state("Z")
        self.assertEqual(self.actor(books).start().code("take alloc 2G"), 0)

    def test_an_exec_chain(self):
        books = self.grant(4 * GIB)
        actor = self.actor(books).start()
        actor.take("alloc", "2G")
        for _ in range(4):
            actor.say("exec")
            self.assertEqual(actor.code("init"), 0)
            self.assertEqual(books.total(), 0, "exec released what the program before it held")
            self.assertEqual(actor.code("retain 0"), 0)
            self.assertEqual(actor.ask("take alloc 2G")[0], 0)
            self.assertEqual(books.owners(), [actor.pid])
        # A program without CUDA is run in its place: another process of the job finds the bytes free.
        actor.say("exec echo")
        self.assertEqual(actor.process.wait(support.BOUND_S), 0)

    def test_exec_into_a_program_without_cuda(self):
        books = self.grant(4 * GIB)
        actor = self.actor(books).start()
        actor.take("alloc", "2G")
        actor.say("exec")
        self.assertEqual(actor.code("echo"), 0)  # it lives, under the same pid and start time
        other = self.actor(books).start()
        self.assertEqual(other.code("take alloc 2G"), 0)

    def test_all_slots(self):
        """A thousand processes, one after the other and some at once: no slot is lost."""
        books = self.grant(4 * GIB)
        for slot in range(1024):  # what a thousand dead processes leave: a pid above any living one, and a charge of
                                  # nothing
            books.set_word(books.slot_at(slot), (4194303 - slot) << 42 | 12345)
        books.set_word(128, 1024)
        # Their namespace is index 0, which the first process registers as its own.
        actor = self.actor(books).start()
        self.assertEqual(actor.code("take alloc 2G"), 0)
        self.assertEqual(len(books.owners()), 1)


class SlowTeardown(support.World):
    sim = "1xT4"
    environment = {"METE_SIM_TEARDOWN_MS": "100"}

    def test_an_allocation_right_after_a_death_succeeds(self):
        """The books are free at once, the card a tenth of a second later: the meter tries again."""
        for kind in ("alloc", "create", "mapped", "async", "own-pool", "array", "pitch", "graph", "captured"):
            with self.subTest(kind=kind):
                books = self.grant(64 * GIB)  # more than the card has: the card is what is short
                neighbour = self.actor(books).start()
                neighbour.fill("alloc", "64M")
                for _ in range(12):
                    self.assertEqual(neighbour.code("drop-last"), 0)
                waiter = self.actor(books).start()
                self.assertEqual(waiter.ask(f"take {kind} 2G")[0], OOM, "the card is full")
                neighbour.kill()
                self.assertEqual(waiter.ask(f"take {kind} 2G")[0], 0)
                self.assertEqual(books.owners(), [waiter.pid])
                waiter.kill()
                support.wait_until(lambda: self.dump()["cards"][0]["used_bytes"] == 0, "the card is empty")

    def test_a_context_right_after_a_death(self):
        books = self.grant(64 * GIB)
        neighbour = self.actor(books).start()
        neighbour.fill("alloc", "64M")
        waiter = self.actor(books)
        self.assertEqual(waiter.code("init"), 0)
        neighbour.kill()
        self.assertEqual(waiter.code("retain 0"), 0)


if __name__ == "__main__":
    support.main()
