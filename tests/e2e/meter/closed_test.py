#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail closed: without a grant that can be trusted there is no CUDA, one line says so, and the program goes on."""
import os
import shutil
import struct
import subprocess
import unittest

import support
from books import FILE_BYTES
from support import ACTOR, GIB


class NoGrant(support.World):
    def setUp(self):
        super().setUp()
        self.books = self.grant(4 * GIB)
        self.file = self.folder / "damaged"

    def damaged(self, change):
        data = bytearray(self.books.path.read_bytes())
        changed = change(data)
        self.file.write_bytes(data if changed is None else changed)
        return str(self.file)

    def assert_closed(self, grant, text=None):
        """304 from cuInit, again and again; one line in all; the rest of the program works; nothing is left open."""
        env = self.job_env(self.books, METE_GRANT=grant)
        done = subprocess.run([ACTOR, "init,init,uuids,retain 0,take alloc 64M,echo,files,pid"], env=env, capture_output=True,
                              text=True, timeout=support.BOUND_S, stdin=subprocess.DEVNULL)
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines[:2], ["304", "304"])
        self.assertEqual(lines[2], "3", "the driver was not even started")
        self.assertNotEqual(lines[3], "0")
        self.assertNotEqual(lines[4].split()[0], "0")
        self.assertEqual(lines[5], "0")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("mete: CUDA is refused in this process: "), done.stderr)
        if text:
            self.assertIn(text, done.stderr)
        self.assertEqual(lines[6].split()[1:2], ["/dev/null"])
        self.assertEqual(len(lines[6].split()), 4, "no descriptor stays open")

    def test_not_set(self):
        self.assert_closed(None, "METE_GRANT is not set")
        self.assert_closed("", "METE_GRANT is not set")

    def test_not_there(self):
        self.assert_closed(str(self.folder / "none"), "cannot open its grant file")

    def test_shortened(self):
        for size in (0, 1, 7, 8, 100, 4095, 4096, 65536, FILE_BYTES - 1):
            with self.subTest(size=size):
                self.assert_closed(self.damaged(lambda data: data[:size]))

    def test_of_a_newer_version(self):
        for at, format, value in ((8, "<H", 2), (16, "<Q", 1 << 31)):
            self.assert_closed(self.damaged(lambda data: struct.pack_into(format, data, at, value)), "newer version")

    def test_every_field_of_the_header(self):
        """One bit anywhere in what never changes, and the file is not believed."""
        for at in (0, 9, 12, 24, 40, 50, 84, 88, 92, 96, 100, 104, 2048, 2048 + 16, 2048 + 32, 2048 + 40):
            with self.subTest(at=at):
                def flip(data):
                    data[at] ^= 0x10
                self.assert_closed(self.damaged(flip))

    def test_something_else(self):
        self.file.write_text("not a grant\n" * 100000)
        self.assert_closed(str(self.file), "not a grant file")
        self.assert_closed("/dev/null")
        self.assert_closed(str(self.folder))

    def test_a_fifo_does_not_hang(self):
        os.mkfifo(self.folder / "fifo")
        self.assert_closed(str(self.folder / "fifo"))

    def test_a_link_is_not_followed(self):
        (self.folder / "link").symlink_to(self.books.path)
        self.assert_closed(str(self.folder / "link"))

    def test_that_may_not_be_opened(self):
        copy = self.folder / "locked"
        shutil.copy(self.books.path, copy)
        copy.chmod(0)
        if os.access(copy, os.R_OK):
            self.skipTest("root may open everything")
        self.assert_closed(str(copy), "cannot open")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_of_another_user(self):
        copy = self.folder / "theirs"
        shutil.copy(self.books.path, copy)
        copy.chmod(0o600)
        self.folder.chmod(0o711)
        env = self.job_env(self.books, METE_GRANT=copy)
        done = subprocess.run([ACTOR, "init,echo"], env=env, capture_output=True, text=True, timeout=support.BOUND_S,
                              stdin=subprocess.DEVNULL, user=65534, group=65534, extra_groups=[])
        if done.returncode != 0:
            self.skipTest(f"another user cannot run programs from here: {done.stderr}")
        self.assertEqual(done.stdout.splitlines(), ["304", "0"])
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_nvml_is_closed_too(self):
        env = self.job_env(self.books, METE_GRANT=None)
        done = subprocess.run([ACTOR, "nvml"], env=env, capture_output=True, text=True, timeout=support.BOUND_S)
        self.assertEqual(len(done.stdout.split()), 1, "no card is shown")
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_the_undamaged_copy_works(self):
        """Shows that the refusals above come from the damage."""
        env = self.job_env(self.books, METE_GRANT=self.damaged(lambda data: None))
        done = subprocess.run([ACTOR, "init,retain 0,take alloc 64M"], env=env, capture_output=True, text=True)
        self.assertEqual((done.stdout.splitlines(), done.stderr), (["0", "0", "0 1"], ""))


class FullOfProcesses(support.World):
    def test_no_slot_left(self):
        """1,024 living processes have one each: the next has no CUDA, and the others nothing to fear."""
        books = self.grant(4 * GIB)
        actor = self.actor(books).start()
        owner = books.word(books.slot_at(books.slot_of(actor.pid)))
        for slot in range(1024):
            if books.owner(slot) is None:
                books.set_word(books.slot_at(slot), owner)  # all of them this one, which lives
        books.set_word(128, 1024)
        late = self.actor(books)
        self.assertEqual(late.code("init"), 2)
        self.assertEqual(late.code("echo"), 0)
        self.assertEqual(actor.code("take alloc 64M"), 0)


if __name__ == "__main__":
    support.main()
