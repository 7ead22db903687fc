#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of `mete submit`: they run without a client, outlive their daemon, and how they ended is known whatever was killed."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from world import BOUND_S, METE, DaemonTest, wait_until


class QueueTest(DaemonTest):
    sim = "2xH200"

    def submit(self, *words, **options):
        result = self.mete("submit", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def config(self, text):
        path = self.folder / "config.toml"
        path.write_text(text)
        return path

    def log_of(self, ident):
        status, document = self.api(f"/v1/jobs/{ident}/show")
        self.assertEqual(status, 200, document)
        return pathlib.Path(document["job"]["log"])

    def ended(self, ident):
        """The job, once it has ended; also over restarts of the daemon."""
        self.mete("wait", ident)
        job = self.job(ident)
        self.assertEqual(job["state"], "ended")
        return job

    def runs(self, flag):
        """A program that reports that it runs, and ends with the code that it reads."""
        return ["sh", "-c", f'echo $$ > {flag}; while [ ! -e {flag}.end ]; do sleep 0.02; done; exit $(cat {flag}.end)']

    def let_end(self, flag, code):
        pathlib.Path(f"{flag}.tmp").write_text(str(code))
        os.rename(f"{flag}.tmp", f"{flag}.end")


class Alone(QueueTest):
    def test_a_job_runs_and_its_end_and_output_are_known(self):
        job = self.submit("--gpu", "40%", "--name", "first", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual(job, "1")
        done = self.ended(job)
        self.assertEqual((done["outcome"], done["exit_code"], done["name"]), ("failed", 3, "first"))
        self.assertEqual(self.log_of(job).read_text(), "out\nerr\n")
        self.assertEqual(self.log_of(job).stat().st_mode & 0o777, 0o600)
        self.assert_nothing_left()

    def test_it_has_the_submitters_folder_environment_umask_and_limits(self):
        folder = self.folder / "here"
        folder.mkdir()
        script = "pwd; echo $COLOUR; umask; ulimit -n; ulimit -Hn; echo $METE_JOB_ID $METE_ATTEMPT; cat; echo $METE_GPU_MEM_BYTES"
        command = f"umask 027; ulimit -n 333; exec {self.words('submit', '--gpu', '8G', '--', 'sh', '-c', script)}"
        result = subprocess.run(["bash", "-c", command], env={**self.env, "COLOUR": "green"}, cwd=folder, text=True,
                                capture_output=True, timeout=BOUND_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        job = result.stdout.strip()
        self.ended(job)
        self.assertEqual(self.log_of(job).read_text().splitlines(),
                         [str(folder), "green", "0027", "333", "333", f"{job} 1", str(8 << 30)])

    def test_it_has_no_priority_or_processors_of_whoever_started_the_daemon(self):
        tell = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), *sorted(os.sched_getaffinity(0)))"
        everything = subprocess.run([sys.executable, "-c", "import os; os.sched_setaffinity(0, range(os.cpu_count())); " + tell],
                                    capture_output=True, text=True, check=True).stdout.split()[1:]
        one = min(os.sched_getaffinity(0))
        result = subprocess.run(["nice", "-n", "7", "taskset", "-c", str(one), METE, "submit", "--cpu-only", "--", sys.executable,
                                 "-c", tell], env=self.env, capture_output=True, text=True, timeout=BOUND_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        job = result.stdout.strip()
        self.ended(job)
        nice, *processors = self.log_of(job).read_text().split()
        self.assertEqual(processors, everything)
        if os.geteuid() == 0:  # other users may not raise it again
            self.assertEqual(nice, "0")

    def words(self, *words):
        import shlex
        from world import METE
        return shlex.join([str(METE), *words])

    def test_cancel_reaches_every_process_it_ever_forked(self):
        flag = self.folder / "pids"
        hide = f"setsid env -i sh -c 'echo $$ >> {flag}; trap \"\" TERM; while :; do sleep 1; done' &"
        job = self.submit("--cpu-only", "--", "bash", "-c",
                          f"echo $$ >> {flag}; ({hide}) ; (sleep 1000 & echo $! >> {flag}); trap '' TERM; while :; do sleep 1; done",
                          env={"METE_CONFIG": str(self.config("[queue]\ngrace_s = 1\n"))})
        wait_until(lambda: flag.exists() and len(flag.read_text().split()) == 3, "all of them run")
        pids = [int(pid) for pid in flag.read_text().split()]
        self.assertEqual(self.mete("cancel", job).returncode, 0)
        done = self.ended(job)
        self.assertEqual((done["state"], done["outcome"]), ("ended", "cancelled"))
        for pid in pids:
            self.assertFalse(self.alive(pid), pid)
        self.assert_nothing_left()

    def test_time_limit(self):
        job = self.submit("--cpu-only", "--time", "1s", "--", "sleep", "1000")
        self.assertEqual(self.mete("wait", job).returncode, 124)
        self.assertEqual(self.job(job)["outcome"], "timeout")

    def test_an_array_runs_at_most_so_many_at_a_time(self):
        log = self.folder / "log"
        job = self.submit("--cpu-only", "--array", "0-11%3", "--", "sh", "-c",
                          f"echo + $METE_ARRAY_INDEX >> {log}; sleep 0.1; echo - >> {log}; exit $((METE_ARRAY_INDEX == 7))")
        self.assertEqual(self.mete("wait", job).returncode, 1)
        running = most = 0
        for line in log.read_text().splitlines():
            running += 1 if line.startswith("+") else -1
            most = max(most, running)
        self.assertLessEqual(most, 3)
        self.assertEqual(sorted(int(line.split()[1]) for line in log.read_text().splitlines() if line[0] == "+"), list(range(12)))
        self.assertEqual(self.job(f"{job}_7")["outcome"], "failed")

    def test_dependencies(self):
        first = self.submit("--cpu-only", "--hold", "--", "false")
        good = self.submit("--cpu-only", "--after", f"{first}:fail", "--", "true")
        bad = self.submit("--cpu-only", "--after", first, "--", "true")
        after_bad = self.submit("--cpu-only", "--after", bad, "--", "true")
        self.assertEqual(self.mete("release", first).returncode, 0)
        self.assertEqual(self.ended(good)["outcome"], "ok")
        self.assertEqual(self.ended(bad)["outcome"], "dependency")
        self.assertEqual(self.ended(after_bad)["outcome"], "dependency")

    def test_retries_and_requeue(self):
        flag = self.folder / "tries"
        job = self.submit("--cpu-only", "--retries", "2", "--", "sh", "-c", f"echo x >> {flag}; exit $(wc -l < {flag})",
                          env={"METE_CONFIG": str(self.config("[queue]\nretry_pause_s = 0\n"))})
        done = self.ended(job)
        self.assertEqual((done["attempt"], done["exit_code"], done["outcome"]), (3, 3, "failed"))
        self.assertEqual(self.mete("requeue", job).returncode, 0)
        done = self.ended(job)
        self.assertEqual((done["attempt"], done["exit_code"]), (6, 6))


class Killed(QueueTest):
    def test_a_job_outlives_its_daemon_and_is_found_again(self):
        flag = self.folder / "flag"
        job = self.submit("--gpu", "40%", "--", *self.runs(flag))
        wait_until(flag.exists, "it runs")
        self.wait_state(job, "running")
        self.kill_daemon()
        self.assertTrue(self.alive(int(flag.read_text())))
        self.mete("cards")  # starts one
        self.assertEqual(self.job(job)["state"], "running")
        self.assertEqual(sum(card["granted_bytes"] > 0 for card in self.api("/v1/cards")[1]["cards"]), 1)
        self.let_end(flag, 7)
        self.assertEqual(self.ended(job)["exit_code"], 7)
        self.assert_nothing_left()

    def test_an_end_that_nobody_saw(self):
        flag = self.folder / "flag"
        job = self.submit("--gpu", "40%", "--", *self.runs(flag))
        waits = self.submit("--gpu", "all", "--", "true")
        wait_until(flag.exists, "it runs")
        self.wait_state(job, "running")
        self.kill_daemon()
        self.let_end(flag, 9)
        wait_until(lambda: not self.processes("mete-keeper"), "its keeper has ended")
        self.mete("cards")
        done = self.ended(job)
        self.assertEqual((done["outcome"], done["exit_code"], done["attempt"]), ("failed", 9, 1))
        self.assertEqual(self.ended(waits)["outcome"], "ok")
        self.assert_nothing_left()

    def test_a_keeper_that_is_killed(self):
        flag = self.folder / "flag"
        lost = self.submit("--gpu", "40%", "--", *self.runs(flag))
        wait_until(flag.exists, "it runs")
        self.wait_state(lost, "running")
        program = int(flag.read_text())
        os.kill(self.processes("mete-keeper")[0], signal.SIGKILL)
        self.assertEqual(self.ended(lost)["outcome"], "lost")
        self.assertFalse(self.alive(program))
        again = self.submit("--gpu", "40%", "--requeue", "--", "sh", "-c", f'echo $METE_ATTEMPT >> {flag}.n; [ $METE_ATTEMPT = 2 ] || sleep 1000')
        wait_until(pathlib.Path(f"{flag}.n").exists, "it runs")
        self.wait_state(again, "running")
        os.kill(self.processes("mete-keeper")[0], signal.SIGKILL)
        done = self.ended(again)
        self.assertEqual((done["outcome"], done["attempt"]), ("ok", 2))
        self.assert_nothing_left()

    def test_kills_at_random_moments_of_many_jobs(self):
        """Every job runs once, and ends with its own code, however often the daemon is killed."""
        dice = random.Random(11)
        count = int(os.environ.get("METE_KILL_JOBS", "60"))
        log = self.folder / "log"
        ids = {}
        for number in range(count):
            word = f'echo {number} >> {log}; sleep 0.0$((RANDOM % 9)); exit {number % 7}'
            while True:  # the daemon may be killed meanwhile: then nothing or one job is there
                result = self.mete("submit", "--gpu", "30%", "--name", f"n{number}", "--", "bash", "-c", word)
                if result.returncode == 0:
                    ids[result.stdout.strip()] = number
                    break
            if dice.random() < 0.3:
                self.kill_daemon()
        deadline = time.monotonic() + BOUND_S
        while any(job["state"] != "ended" for job in self.jobs_or_none()) or not self.jobs_or_none():
            self.assertLess(time.monotonic(), deadline)
            if dice.random() < 0.5:
                self.kill_daemon()
            self.mete("cards")
            time.sleep(dice.random() * 0.3)
        for ident, number in ids.items():
            job = self.job(ident)
            self.assertEqual((job["exit_code"], job["attempt"]), (number % 7, 1), job)
        lines = [int(line) for line in log.read_text().split()]
        for number in range(count):
            self.assertEqual(lines.count(number), 1 if list(ids.values()).count(number) == 1 else 2)
        self.assert_nothing_left()

    def jobs_or_none(self):
        try:
            return self.jobs()
        except OSError:
            return []


class History(QueueTest):
    def test_old_jobs_are_forgotten_with_their_logs(self):
        self.env["METE_CONFIG"] = str(self.config("[history]\njobs = 100\n[queue]\ncpus = 16\n"))
        first = self.submit("--cpu-only", "--", "echo", "old")
        self.ended(first)
        log = self.log_of(first)
        self.assertEqual(log.read_text(), "old\n")
        mine = self.folder / "mine"
        self.ended(self.submit("--cpu-only", "--log", mine, "--", "echo", "kept"))
        array = self.submit("--cpu-only", "--array", "1-250", "--log", "/dev/null", "--", "true")
        self.mete("wait", array)
        wait_until(lambda: not log.exists(), "its log has gone")
        self.assertEqual(self.api(f"/v1/jobs/{first}/show")[0], 404)
        self.assertEqual(mine.read_text(), "kept\n")
        self.assertLessEqual(len(self.jobs()), 200)


class Rebooted(QueueTest):
    """The machine's id of this boot is another file's, seen by a daemon in a mount namespace of its own."""

    def boot(self, number):
        """A shell that starts daemons of such a boot."""
        fake = self.folder / f"boot{number}"
        fake.write_text(f"0000000{number}-0000-4000-8000-000000000000\n")
        self.boot_file = fake

    def in_boot(self, *words):
        import shlex
        from world import METE
        command = f"mount --bind {self.boot_file} /proc/sys/kernel/random/boot_id && exec {shlex.join([str(METE), *words])}"
        return subprocess.run(["unshare", "-m", "sh", "-c", command], env=self.env, text=True, capture_output=True, timeout=BOUND_S)

    def test_what_ran_is_lost_or_starts_again(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespaces")
        self.boot(1)
        flags = [self.folder / f"flag{i}" for i in range(3)]
        ids = [self.in_boot("submit", "--gpu", "30%", *more, "--", "sh", "-c", f"echo $METE_ATTEMPT >> {flag}; [ -e {flag}.go ] || exec sleep 1000").stdout.strip()
               for flag, more in zip(flags, ([], ["--requeue"], []))]
        self.assertEqual(ids, ["1", "2", "3"])
        waits = self.in_boot("submit", "--gpu", "all", "--", "true").stdout.strip()
        for ident in ids:
            self.wait_state(ident, "running")
        # One ends while no daemon runs: its keeper writes its record before the machine goes down.
        self.kill_daemon()
        third = next(pid for pid in self.processes("mete-keeper") if f"METE_JOB_ID=3" in self.words_of_children(pid))
        self.end_program_of(third)
        wait_until(lambda: not self.alive(third), "the third has ended")
        for pid in self.processes("mete-keeper"):  # power failure
            os.kill(pid, signal.SIGKILL)
        for pid in self.processes("sleep"):
            os.kill(pid, signal.SIGKILL)
        for flag in flags:
            pathlib.Path(f"{flag}.go").touch()
        self.boot(2)
        self.in_boot("cards")
        self.assertEqual(self.ended(ids[0])["outcome"], "lost")
        again = self.ended(ids[1])
        self.assertEqual((again["outcome"], again["attempt"]), ("ok", 2))
        self.assertEqual(flags[1].read_text().split(), ["1", "2"])
        self.assertEqual(self.ended(ids[2])["outcome"], "signal")
        self.assertEqual(flags[0].read_text().split(), ["1"], "it was not started twice")
        self.assertEqual(self.ended(waits)["outcome"], "ok")

    def children(self, pid):
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(word) for word in text.split()]

    def words_of_children(self, pid):
        return "\n".join(pathlib.Path(f"/proc/{child}/environ").read_text(errors="replace").replace("\0", "\n") for child in self.children(pid))

    def end_program_of(self, pid):
        for child in self.children(pid):
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "sleep":
                os.kill(child, signal.SIGKILL)


class FullDisk(QueueTest):
    def test_exits_are_kept_and_nothing_new_is_taken(self):
        """On a real disk of 8 MiB that is full while jobs end, and while their daemon is killed."""
        if os.geteuid() != 0:
            self.skipTest("mounts")
        disk = self.folder / "sim"
        disk.mkdir(mode=0o700)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "none", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no tmpfs here: " + mounted.stderr.decode())
        self.addCleanup(lambda: subprocess.run(["umount", "-l", disk], check=True))
        self.addCleanup(self.end_daemon)
        self.env["METE_CONFIG"] = str(self.config("[queue]\ncpus = 8\n"))
        flags = [self.folder / f"flag{i}" for i in range(4)]
        ids = [self.submit("--cpu-only", "--log", "/dev/null", "--", *self.runs(flag)) for flag in flags]
        for flag in flags:
            wait_until(flag.exists, "it runs")
        for ident in ids:
            self.wait_state(ident, "running")
        stuffing = disk / "stuffing"
        self.fill(stuffing)
        refused = None
        for _ in range(500):
            result = self.mete("submit", "--cpu-only", "--hold", "--log", "/dev/null", "--", "true")
            if result.returncode != 0:
                refused = result
                break
        self.assertIsNotNone(refused, "the log has grown into the last page")
        self.assertEqual(refused.returncode, 75, refused.stderr)
        self.assertIn("full", refused.stderr)
        self.let_end(flags[0], 4)
        self.let_end(flags[1], 5)
        wait_until(lambda: len(self.processes("mete-keeper")) == 2, "two have ended")
        self.kill_daemon()
        self.let_end(flags[2], 6)
        wait_until(lambda: len(self.processes("mete-keeper")) == 1, "one more")
        stuffing.unlink()
        self.let_end(flags[3], 7)
        self.mete("cards")
        self.assertEqual([self.ended(ident)["exit_code"] for ident in ids], [4, 5, 6, 7])
        self.assertEqual(self.mete("submit", "--cpu-only", "--", "true").returncode, 0)

    @staticmethod
    def fill(path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        for size in (65536, 4096):
            try:
                while os.write(file, bytes(size)) == size:
                    pass
            except OSError:
                pass
        os.close(file)


if __name__ == "__main__":
    unittest.main()
