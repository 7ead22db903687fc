#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that does not fit the arena goes to disk if configured, comes back byte for byte, and leaves nothing there."""
import os
import unittest

from world import *


class SpillTest(MoverTest):
    def spilling(self, arena, disk, **options):
        return self.mover("--arena", arena, "--spill", self.folder, "--spill-bytes", disk, **options)

    def on_disk(self, mover):
        """Bytes of the file without a name that the mover has open below our folder."""
        for name in os.listdir(f"/proc/{mover.pid}/fd"):
            path = f"/proc/{mover.pid}/fd/{name}"
            target = os.readlink(path)
            if target.startswith(str(self.folder)) and "(deleted)" in target:
                return os.stat(path).st_blocks * 512
        raise AssertionError("there is no spill file")

    def test_what_does_not_fit_goes_to_disk_and_comes_back(self):
        mover = self.spilling("32M", "256M")
        daemon = self.daemon(allow=(ALICE, BOB))
        self.wait_size(daemon, 288 * MIB)
        sizes = {1: 24 * MIB, 2: 64 * MIB, 3: 2 * MIB, 4: 34 * MIB}  # the second lies in both
        total = sum(sizes.values())
        job = self.process(total, pieces=sizes)
        self.assertEqual(job.ask("out 1 2 3 4"), "done 4")
        self.assertGreaterEqual(self.on_disk(mover), total - 32 * MIB)
        self.assertEqual(daemon.ask(f"token {ALICE}"), f"{4 * GIB} {total} {total} {total - 32 * MIB}")
        other = self.process(40 * MIB, BOB, {1: 8 * MIB})
        self.assertEqual(other.ask("out 1"), "done 1")
        self.assertEqual(job.ask("in 4 1 3 2"), "done 4")
        self.assertEqual(other.ask("in 1"), "done 1")
        for ident in sizes:
            self.assertEqual(job.ask(f"check {ident} {ident}"), "same")
        self.assertEqual(other.ask("check 1 1"), "same")
        self.assertEqual(job.ask("drop 0"), "done 0")
        other.kill()
        wait_until(lambda: self.on_disk(mover) == 0, "the disk has its room back")
        self.assertEqual([name for name in os.listdir(self.folder) if not name.startswith(("mover", "sim"))], [])

    def test_a_killed_process_leaves_nothing_on_disk(self):
        mover = self.spilling("2M", "128M")
        daemon = self.daemon()
        job = self.process(64 * MIB, pieces={1: 64 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertGreater(self.on_disk(mover), 0)
        job.kill()
        wait_until(lambda: self.status(daemon)[1] == 0, "the room is free")
        wait_until(lambda: self.on_disk(mover) == 0, "the disk has its room back")

    def test_beyond_both_it_is_refused(self):
        self.spilling("32M", "32M")
        daemon = self.daemon()
        self.wait_size(daemon, 64 * MIB)
        job = self.actor()
        job.ask(f"connect {self.socket}")
        self.assertEqual(job.ask(f"hello {ALICE} {80 * MIB}"), f"refused 0 {NO_ROOM} 0 {64 * MIB}")

    def test_a_full_disk_is_a_refusal(self):
        # A limit on the size of files stands for a disk that is full.
        limit = ["prlimit", f"--fsize={16 * MIB}"]
        self.spilling("2M", "128M", before=limit)
        daemon = self.daemon()
        job = self.process(72 * MIB, pieces={1: 64 * MIB, 2: 8 * MIB})
        self.assertEqual(job.ask("out 1"), f"refused 1 {NO_ROOM} 0 0")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertEqual(job.ask("out 2"), "done 1")
        self.assertEqual(job.ask("in 2"), "done 1")
        self.assertEqual(job.ask("check 2 2"), "same")
        self.assertEqual(int(daemon.ask(f"token {ALICE}").split()[1]), 8 * MIB)

    def test_an_error_of_the_driver_half_way_loses_nothing(self):
        # The fifth copy of 16 MiB or less is in the middle of the second piece.
        self.spilling("2M", "128M", env={"METE_SIM_FAULT": "cuMemcpyDtoHAsync_v2:5:fail=719"})
        self.daemon()
        job = self.process(128 * MIB, pieces={1: 32 * MIB, 2: 64 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertEqual(job.ask("out 2"), f"refused 2 {DRIVER} 719 0")
        self.assertEqual(job.ask("check 2 2"), "same")
        self.assertEqual(job.ask("out 2"), "done 1")
        self.assertEqual(job.ask("in 1 2"), "done 2")
        self.assertEqual([job.ask("check 1 1"), job.ask("check 2 2")], ["same", "same"])

    def test_a_folder_that_cannot_be_used_is_told(self):
        for words in (["--spill", str(self.folder / "none"), "--spill-bytes", "1G"], ["--spill", str(self.folder)], ["--spill-bytes", "1G"]):
            mover = self.start(*words)
            self.assertNotEqual(mover.wait(BOUND_S), 0)
            self.assertIn("none" if len(words) == 4 else "belong together", mover.stderr.read())


if __name__ == "__main__":
    unittest.main()
