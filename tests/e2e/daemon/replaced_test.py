#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An installation that is taken away, damaged or replaced under a running daemon: nothing runs without the cap that it asked for, and
no job that was acknowledged is lost. What waits says for what, and runs once the installation is whole again."""
import os
import shutil
import subprocess
import unittest

from world import BUILD, DaemonTest, read, wait_until
from support import main


class Replaced(DaemonTest):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        for name in ("bin", "lib", "simgpu"):
            shutil.copytree(BUILD / name, self.prefix / name, symlinks=True)
        self.meter = self.prefix / "lib" / "libmete.so"
        self.keeper = self.prefix / "bin" / "mete-keeper"
        self.ran = self.folder / "ran"
        self.assertEqual(self.ours("run", "-q", "--gpu", "1G", "--", "true").returncode, 0)  # its daemon runs from now on

    def ours(self, *words, **options):
        return self.mete(*words, program=str(self.prefix / "bin" / "mete"), **options)

    def submit(self, *words):
        result = self.ours("submit", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def put_off(self, job, *texts):
        """It waits, and every verb says for what."""
        wait_until(lambda: self.job(job).get("reason") == "retry", "the job is put off")
        self.assertEqual((self.job(job)["state"], self.job(job)["attempt"]), ("pending", 1))
        for verb in ("explain", "show"):
            said = " ".join(self.mete(verb, job).stdout.split())
            for text in texts:
                self.assertIn(text, said)
        self.assertFalse(self.ran.exists())

    def ends_well(self, *jobs):
        for job in jobs:
            result = self.mete("wait", job)
            self.assertEqual((result.returncode, self.job(job)["outcome"]), (0, "ok"), result.stderr)


class Meter(Replaced):
    def test_it_is_gone_for_a_while(self):
        os.rename(self.meter, self.prefix / "away")
        job = self.submit("--gpu", "1G", "--", "sh", "-c", f"echo $LD_PRELOAD >> {self.ran}")
        self.put_off(job, "libmete.so", "No such file")
        os.rename(self.prefix / "away", self.meter)
        self.ends_well(job)
        self.assertEqual(self.ran.read_text().count("libmete.so"), 1)

    def test_one_that_waits_is_not_run_without_it(self):
        holder = self.holder("100%")
        words = [str(self.prefix / "bin" / "mete"), "run", "--gpu", "1G", "--", "touch", str(self.ran)]
        for more in ([], ["--exec"]):
            with self.subTest(more=more):
                holder = holder or self.holder("100%")
                waits = subprocess.Popen(words[:2] + more + words[2:], env=self.env, stderr=subprocess.PIPE, text=True)
                self.addCleanup(self.finish, waits)
                wait_until(lambda: any(job["state"] == "pending" for job in self.jobs()), "it waits")
                os.rename(self.meter, self.prefix / "away")
                self.release(holder)
                holder = None
                _, said = waits.communicate(timeout=60)
                os.rename(self.prefix / "away", self.meter)
                self.assertEqual(waits.returncode, 125, said)
                self.assertIn("libmete.so", said)
                self.assertFalse(self.ran.exists())
        self.assertEqual({job["outcome"] for job in self.jobs()}, {"ok", "launch-failed"})

    def test_it_is_damaged(self):
        whole = self.meter.read_bytes()
        # The last half may be what only a debugger reads.
        for what, bytes_ in (("truncated", whole[:len(whole) // 8]), ("not a library", b"#!/bin/sh\n"), ("not a library", b""),
                             ("not mete's meter", (self.prefix / "simgpu" / "libcuda.so.1").read_bytes())):
            with self.subTest(what=what):
                self.meter.unlink()
                self.meter.write_bytes(bytes_)
                for verb in (["run"], ["run", "--exec"], ["cap"]):
                    result = self.ours(*verb, "--gpu", "1G", "--", "touch", str(self.ran))
                    self.assertEqual(result.returncode, 125, result.stderr)
                    self.assertIn(what, result.stderr)
                self.assertFalse(self.ran.exists())
        job = self.submit("--gpu", "1G", "--", "touch", str(self.ran))
        self.put_off(job, "not mete's meter")
        self.assertEqual(self.ours("run", "-q", "--cpu-only", "--", "true").returncode, 0, "which needs none")
        self.meter.unlink()
        self.meter.write_bytes(whole)
        self.ends_well(job)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount")
    def test_on_a_file_system_without_programs(self):
        libraries = self.prefix / "lib"
        copy = self.prefix / "copy"
        shutil.copytree(libraries, copy)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=16m", "none", str(libraries)], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("mount: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", str(libraries)])
        shutil.copytree(copy, libraries, dirs_exist_ok=True)
        result = self.ours("cap", "--gpu", "1G", "--", "touch", str(self.ran))
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertIn("noexec", result.stderr)
        self.assertFalse(self.ran.exists())


class Keeper(Replaced):
    def test_it_is_gone_for_a_while(self):
        os.rename(self.keeper, self.prefix / "away")
        jobs = [self.submit("--gpu", "1G", "--", "sh", "-c", f"echo >> {self.ran}") for _ in range(3)]
        for job in jobs:
            self.put_off(job, "mete-keeper", "No such file")
        self.assertEqual(self.mete("cancel", jobs[1]).returncode, 0)
        self.kill_daemon()
        self.assertEqual(self.ours("ps").returncode, 0)  # another daemon, which never saw the keeper
        self.put_off(jobs[0], "mete-keeper")
        os.rename(self.prefix / "away", self.keeper)
        self.ends_well(jobs[0], jobs[2])
        self.assertEqual(self.job(jobs[1])["outcome"], "cancelled")
        self.assertEqual(self.ran.read_text(), "\n\n")

    def test_it_is_of_another_version(self):
        os.rename(self.keeper, self.prefix / "away")
        self.keeper.write_text("#!/bin/sh\necho 'refused the plan is of version 9' >&4\nexit 64\n")
        self.keeper.chmod(0o755)
        job = self.submit("--cpu-only", "--", "touch", str(self.ran))
        self.put_off(job, "has another version", "version 9")
        # The log says it, but not at every attempt.
        wait_until(lambda: sum(event["type"] == "job.ungranted" for event in self.api("/v1/events?from=1")[1]["events"]) >= 3, "it is tried again")
        self.assertEqual(read(self.folder / "sim" / "meted.log").count(b"cannot be launched now"), 1)
        os.rename(self.prefix / "away", self.keeper)
        self.ends_well(job)

    def test_it_dies_at_once(self):
        os.rename(self.keeper, self.prefix / "away")
        self.keeper.write_text("#!/bin/sh\nexit 1\n")
        self.keeper.chmod(0o755)
        job = self.submit("--cpu-only", "--", "touch", str(self.ran))
        self.put_off(job, "its keeper died")
        os.rename(self.prefix / "away", self.keeper)
        self.ends_well(job)


if __name__ == "__main__":
    main()
