#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ways around the meter are noticed: NVML's reading counts what they take, and stops the growth of the job."""
import os
import signal

import support
from books import Books
from support import ACTOR, GIB, METE, OOM, SIMGPU, wait_until


class Bypass(support.World):
    def job(self, *words):
        """`mete cap` with an actor as its program, and the job's books."""
        actor = self.actor(None, command=[METE, "cap", "-q", *words, "--", ACTOR])
        self.assertEqual(actor.code("init"), 0)
        folder = self.folder / "state" / "grants"
        return actor, Books(folder / os.listdir(folder)[0])

    def assert_growth_stops(self, actor):
        def refused():
            code, ident = actor.ask("take alloc 64M")
            if code == 0:
                self.assertEqual(actor.code(f"drop {ident}"), 0)
            return code == OOM
        wait_until(refused, "growth of the others stops")

    def outside(self, actor, words, answers):
        """A child of the job that goes around the meter; its answers come on the stream of the actor."""
        actor.say(words)
        said = [actor.hear() for _ in range(answers + 1)]
        self.assertTrue(all(words[0] == 0 for words in said), said)
        pid = next(words[2] for words in said if words[1:2] == ["child"])
        self.addCleanup(self.kill_quietly, pid)
        return pid

    @staticmethod
    def kill_quietly(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_a_process_without_the_preload(self):
        actor, books = self.job("--gpu", "4G")
        self.assertEqual(actor.code("retain 0"), 0)
        self.assertEqual(actor.code("take alloc 1G"), 0)
        self.assertEqual(books.escapes(), 0)
        pid = self.outside(actor, "bare init,retain 0,take alloc 3G,pause", 3)
        wait_until(lambda: books.escapes() == 1, "the process is counted")
        self.assert_growth_stops(actor)
        wait_until(lambda: actor.ask("info")[1] == 0, "nothing is advertised")
        self.assertEqual(books.escapes(), 1, "counted once")
        # When it is gone, the job has its room again.
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: actor.ask("take alloc 1G")[0] == 0, "growth goes on")
        self.assertEqual(actor.quit(), 0)
        self.assertRegex(actor.errors(), r"warning: 1 process of the job held GPU memory outside the cap \(pid %d, up to 3\.5" % pid)

    def test_by_an_absolute_path(self):
        """The process has a meter, but takes memory behind its back."""
        actor, books = self.job("--gpu", "4G")
        self.assertEqual(actor.code("retain 0"), 0)
        self.assertEqual(actor.code(f"open {SIMGPU}/libcuda.so.1"), 0)
        self.assertEqual(actor.code("take alloc 3600M"), 0)
        self.assertEqual(actor.code("open libcuda.so.1"), 0)
        self.assert_growth_stops(actor)
        self.assertGreater(books.excess(), 0)
        self.assertEqual(books.escapes(), 0)  # it has a slot: what it holds is its own excess
        wait_until(lambda: actor.ask("info")[1] == 0, "nothing is advertised")
        self.assertEqual(actor.code("drop 1"), 0)
        wait_until(lambda: actor.ask("take alloc 3G")[0] == 0, "growth goes on")

    def test_with_an_empty_environment(self):
        actor, books = self.job("--gpu", "2G")
        self.assertEqual(actor.code("retain 0"), 0)
        kept = [f"{name}={self.env[name]}" for name in ("METE_SIM", "METE_SIM_DIR", "LD_LIBRARY_PATH")]
        script = f"exec env -i {' '.join(kept)} {ACTOR} init,retain 0,take alloc 1500M,pause"
        self.outside(actor, f"shell {script}", 3)
        wait_until(lambda: books.escapes() == 1, "the process is counted")
        self.assert_growth_stops(actor)

    def test_a_process_of_somebody_else_is_not_the_jobs(self):
        actor, books = self.job("--gpu", "4G")
        self.assertEqual(actor.code("retain 0"), 0)
        stranger = self.actor(None).start()
        stranger.take("alloc", "3G")
        # The reading that saw the foreign process also saw the card: its free memory is published.
        wait_until(lambda: 0 < books.word(2048 + 48) < 137 * GIB, "the card's free memory is published")
        before = books.word(2048 + 56)
        wait_until(lambda: books.word(2048 + 56) > before, "and once more")
        self.assertEqual((books.escapes(), books.excess()), (0, 0))
        self.assertEqual(actor.ask("take alloc 3G")[0], 0)


if __name__ == "__main__":
    support.main()
