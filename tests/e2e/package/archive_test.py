#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archive: it runs from any folder with glibc alone; install.sh puts it under a prefix, over an earlier version while jobs run, and takes it
away again without a trace; what goes wrong changes nothing."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import packages
from packages import in_root
from support import SOURCE, MeteTest, wait_until


def files(folder):
    """Every path below the folder, with the size of its file."""
    return {str(p.relative_to(folder)): p.lstat().st_size if not p.is_dir() else 0 for p in pathlib.Path(folder).rglob("*")}


class Archive(MeteTest):
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.env["METE_SOCKET"] = str(self.folder / "s")
        self.env["HOME"] = str(self.folder / "home")
        (self.folder / "home").mkdir()
        (self.folder / "unpacked").mkdir()
        self.unpacked = packages.unpack(packages.make()[1], self.folder / "unpacked")
        self.prefix = self.folder / "prefix"

    def install(self, *words, folder=None, env=None):
        return subprocess.run([(folder or self.unpacked) / "install.sh", "--prefix", self.prefix, *words], env={**self.env, **(env or {})},
                              capture_output=True, text=True, timeout=120, check=False)

    def installed(self, *words, **options):
        return self.mete(*words, program=str(self.prefix / "bin/mete"), **options)

    def stop(self):
        self.installed("daemon", "stop")

    # ---- what is in it ----

    def test_it_is_small(self):
        self.assertLessEqual(packages.make()[1].stat().st_size, 12_000_000)
        self.assertLessEqual(sum(files(self.unpacked).values()), 40_000_000)

    def test_its_programs_name_no_folder_of_their_build(self):
        """A build with ccache named its headers ../../src/base/bytes.h, so that its packages were not those of a build without ccache."""
        programs = [p for p in self.unpacked.rglob("*") if p.is_file() and p.read_bytes().startswith(b"\x7fELF")]
        self.assertGreater(len(programs), 10)
        for path in programs:
            # The static libstdc++ has names of its own build: ../src/libstdc++-v3/...
            found = re.search(rb"\.\./src/[a-z]+/[\w./]*|" + re.escape(os.fsencode(SOURCE)) + rb"/[\w./]*", path.read_bytes())
            self.assertIsNone(found, path.name)

    def test_it_runs_where_there_is_glibc_alone(self):
        root = packages.bare_root(self.folder / "root")
        shutil.copytree(self.unpacked, root / "any-where", symlinks=True)
        ran = in_root(root, ["/any-where/bin/mete", "run", "--gpu", "2G", "--", "/any-where/libexec/mete/mete-demo-program", "greedy", "20"],
                      env={"METE_SIM": "1xH200", "HOME": "/home"})
        self.assertEqual(ran.returncode, 2, ran.stdout + ran.stderr)
        self.assertIn("refused", ran.stdout + ran.stderr)
        listed = in_root(root, ["/any-where/bin/mete", "demo", "--sim"], env={"HOME": "/home"})
        self.assertEqual(listed.returncode, 0, listed.stdout + listed.stderr)

    # ---- install.sh ----

    def test_installs_and_removes_without_a_trace(self):
        (self.prefix / "bin").mkdir(parents=True)
        (self.prefix / "bin/other").write_text("another program\n")
        before = files(self.prefix)
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'export PATH="{self.prefix}/bin:$PATH"', done.stdout)
        self.assertEqual(self.installed("run", "-q", "--gpu", "1G", "--", "true").returncode, 0)
        self.assertTrue((self.prefix / "share/man/man1/mete-run.1").exists())
        self.assertFalse((self.prefix / "lib/systemd").exists())  # only for root's /usr/local
        self.stop()
        gone = self.install("--uninstall")
        self.assertEqual(gone.returncode, 0, gone.stderr)
        self.assertEqual(files(self.prefix), before)

    def test_an_upgrade_replaces_the_files_under_a_running_job(self):
        self.install()
        job = self.installed("submit", "--gpu", "1G", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; mete-demo-program greedy 100; exit 3",
                             cwd=self.folder, env={"PATH": f"{self.prefix}/libexec/mete:/usr/bin:/bin"}).stdout.strip()
        self.addCleanup(self.stop)
        wait_until(lambda: '"running"' in self.installed("show", job, "-o", "json").stdout, "the job runs")
        (self.prefix / "lib/mete/1/libmete-old.txt").write_text("")
        with open(self.prefix / "share/mete/installed", "a", encoding="utf-8") as listed:
            listed.write("share/mete/only-in-the-old-one\n")
        (self.prefix / "share/mete/only-in-the-old-one").write_text("")
        meter = (self.prefix / "lib/mete/1/libmete.so").stat().st_ino
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual((self.prefix / "lib/mete/1/libmete.so").stat().st_ino, meter)
        self.assertFalse((self.prefix / "share/mete/only-in-the-old-one").exists())
        (self.folder / "go").touch()
        self.assertEqual(self.installed("wait", job).returncode, 3)
        self.assertIn("refused", self.installed("logs", job).stdout)  # the process that came later has its limit

    def test_is_not_removed_while_a_job_runs(self):
        self.install()
        self.addCleanup(self.stop)
        job = self.installed("submit", "--gpu", "1G", "--", "sleep", "100").stdout.strip()
        wait_until(lambda: '"running"' in self.installed("show", job, "-o", "json").stdout, "the job runs")
        before = files(self.prefix)
        refused = self.install("--uninstall")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("jobs still run", refused.stderr)
        self.assertEqual(files(self.prefix), before)
        self.installed("cancel", job)
        self.installed("wait", job)

    def test_a_full_disk_leaves_the_version_that_was_there(self):
        self.prefix.mkdir()
        room = sum(files(self.unpacked).values()) * 3 // 2  # a second copy does not fit
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", self.prefix], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("needs mount(2)")
        self.addCleanup(subprocess.run, ["umount", "-l", self.prefix], check=False)
        self.assertEqual(self.install().returncode, 0)
        before = files(self.prefix)
        refused = self.install()
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("nothing was changed", refused.stderr)
        self.assertIn("No space left", refused.stderr)
        self.assertEqual(files(self.prefix), before)
        self.assertEqual(self.installed("version").returncode, 0)

    def test_what_it_refuses(self):
        older = self.folder / "older"
        shutil.copytree(self.unpacked, older, symlinks=True)
        (older / "share/mete/release").write_text("version=0.0.9\ngrant=1\n")
        self.install()
        self.addCleanup(self.stop)
        before = files(self.prefix)
        for words, folder, text in (((), older, "older 0.0.9"), (("--what",), None, "unknown option --what"),
                                    (("--prefix", self.folder / "with space"), None, "no path with a space"),
                                    (("--uninstall", "--prefix", self.folder / "nothing"), None, "not installed")):
            with self.subTest(text):
                refused = self.install(*words, folder=folder)
                self.assertIn(refused.returncode, (1, 64))
                self.assertIn(text, refused.stderr)
                self.assertEqual(files(self.prefix), before)
        self.assertFalse((self.folder / "with space").exists())

    def test_says_that_another_mete_comes_first(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "mete").write_text("#!/bin/sh\n")
        (other / "mete").chmod(0o755)
        done = self.install(env={"PATH": f"{other}:{self.env['PATH']}"})
        self.assertIn(f"finds another mete first: {other}/mete", done.stdout)


if __name__ == "__main__":
    unittest.main()
