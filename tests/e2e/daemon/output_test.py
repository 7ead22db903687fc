#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jobs write and read: their logs as they grow, are rotated and end, and their terminals."""
import os
import pathlib
import signal
import subprocess
import unittest

from world import BOUND_S, METE, Screen, VerbTest, wait_until


class Logs(VerbTest):
    def test_prints_tails_and_says_where(self):
        job = self.submit("--cpu-only", "--", "sh", "-c", "seq 1 1000; echo no >&2")
        self.ok("wait", job)
        self.assertEqual(self.ok("logs", job).stdout, "".join(f"{i}\n" for i in range(1, 1001)) + "no\n")
        self.assertEqual(self.ok("logs", "--tail", "2", job).stdout, "1000\nno\n")
        self.assertEqual(self.ok("logs", "-n", "0", job).stdout, "")
        self.assertEqual(self.ok("logs", "--since", "1h", "--tail", "1", job).stdout, "no\n")
        document = self.document("logs", "logs", job)
        path = pathlib.Path(document["logs"][0]["log"])
        self.assertEqual(document["logs"][0]["size_bytes"], path.stat().st_size)
        self.assert_refused(self.mete("logs", "--err", job), 125, "--err")
        self.assert_refused(self.mete("logs", "--tail", "many", job), 64, "--tail")
        path.unlink()
        self.assert_refused(self.mete("logs", job), 125, "not there any more", str(path))

    def test_since_leaves_out_what_was_written_before(self):
        job = self.submit("--cpu-only", "--", "sh", "-c",
                          f"echo early; while [ ! -e {self.flag()} ]; do sleep 0.02; done; sleep 1.1; echo late")
        wait_until(lambda: "early" in self.mete("logs", job).stdout, "it writes")
        # Times are kept about once a second; "early" is earlier by more than any test waits.
        path = pathlib.Path(self.document("logs", "logs", job)["logs"][0]["log"])
        times = path.parent / f".{path.name}.times"
        ms, offset, holds = times.read_text().split()
        times.write_text(f"{int(ms) - 600_000} {offset} {holds}\n")
        self.let_end()
        self.ok("wait", job)
        self.assertEqual(self.ok("logs", job).stdout, "early\nlate\n")
        self.assertEqual(self.ok("logs", "--since", "5m", job).stdout, "late\n")
        self.assertEqual(self.ok("logs", "--since", "20m", job).stdout, "early\nlate\n")

    def test_follows_until_the_end_over_restart_and_removal(self):
        go = [self.flag(f"go{i}") for i in range(3)]
        steps = "; ".join(f"while [ ! -e {go[i]} ]; do sleep 0.02; done; echo step {i}" for i in range(3))
        job = self.submit("--cpu-only", "--hold", "--", "sh", "-c", steps)
        log = self.start("logs", "-f", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn(f"job {job} waits", log.stderr.readline())
        self.ok("release", job)
        go[0].touch()
        self.assertEqual(log.stdout.readline(), "step 0\n")
        self.kill_daemon()
        go[1].touch()
        self.assertEqual(log.stdout.readline(), "step 1\n")
        path = self.document("logs", "logs", job)["logs"][0]["log"]
        os.unlink(path)
        go[2].touch()
        self.assertEqual(log.stdout.read(), "step 2\n")
        self.assertEqual(log.wait(BOUND_S), 0)

    def test_rotation_is_followed_and_both_files_are_printed(self):
        config = self.folder / "config.toml"
        config.write_text('[logs]\nmax = "64K"\n')
        self.env["METE_CONFIG"] = str(config)
        lines = "".join(f"line {i}\n" for i in range(12_000))  # a little more than 64 KiB, less than twice
        # Not before a client follows: in the time between, more than one file may be filled.
        job = self.submit("--cpu-only", "--", "sh", "-c", f"echo ready; while [ ! -e {self.flag('go')} ]; do sleep 0.02; done; "
                          f"seq -f 'line %.0f' 0 11999; while [ ! -e {self.flag()} ]; do sleep 0.02; done")
        log = self.start("logs", "-f", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(log.stdout.readline(), "ready\n")
        self.flag("go").touch()
        read = "".join(log.stdout.readline() for _ in range(12_000))
        self.assertEqual(read[-200:], lines[-200:])
        self.let_end()
        self.assertEqual(log.wait(BOUND_S), 0)
        path = self.document("logs", "logs", job)["logs"][0]["log"]
        self.assertTrue(os.path.exists(path + ".1"))
        whole = self.ok("logs", job).stdout
        self.assertTrue(("ready\n" + lines).endswith(whole), whole[:100])
        self.assertGreater(len(whole), 64 << 10)

    def test_what_is_gone_of_a_long_log_is_said(self):
        config = self.folder / "config.toml"
        config.write_text('[logs]\nmax = "64K"\n')
        self.env["METE_CONFIG"] = str(config)
        lines = [f"line {i}" for i in range(40_000)]  # several times what is kept
        # In pieces that end anywhere in a line.
        job = self.submit("--cpu-only", "--", "sh", "-c", "seq -f 'line %.0f' 0 39999 | dd bs=997 status=none")
        self.ok("wait", job)
        result = self.ok("logs", job)
        kept = result.stdout.splitlines()
        self.assertEqual(kept, lines[-len(kept):])
        self.assertRegex(result.stderr, rf"^mete: the first \d.* of the output of job {job} are not kept any more\n$")
        self.assertEqual(self.ok("logs", "--tail", "3", job).stderr, "")
        short = self.submit("--cpu-only", "--", "echo", "words")
        self.ok("wait", short)
        self.assertEqual(self.ok("logs", short).stderr, "")

    def test_of_an_array_each_log_has_its_name(self):
        job = self.submit("--cpu-only", "--array", "0-1", "--", "sh", "-c", "echo I am $METE_ARRAY_INDEX")
        self.ok("wait", job)
        self.assertEqual(self.ok("logs", job).stdout,
                         f"==> job {job}_0 <==\nI am 0\n\n==> job {job}_1 <==\nI am 1\n")
        self.assertEqual(self.ok("logs", f"{job}_1").stdout, "I am 1\n")

    def test_a_job_that_has_written_nothing_says_why(self):
        job = self.submit("--cpu-only", "--hold", "--", "true")
        result = self.ok("logs", job)
        self.assertEqual(result.stdout, "")
        self.assertIn(f"job {job} waits: held", result.stderr)
        runner = self.holder("8G")
        run = self.jobs(everything=False)[-1]["id"]
        self.assert_refused(self.mete("logs", run), 64, "mete run")
        self.release(runner)


class Attach(VerbTest):
    def test_types_leaves_and_returns_the_code(self):
        job = self.submit("--cpu-only", "--tty", "--", "sh", "-c",
                          "stty -echo; echo ready; while read line; do [ $line = bye ] && exit 5; echo got $line; done")
        self.wait_state(job, "running")
        first = Screen(self, "attach", job)
        first.until(b"ready")
        first.type(b"one\r")
        first.until(b"got one")
        other = Screen(self, "attach", job)
        other.until(b"got one")  # earlier output
        first.type(b"\x1c\x1c")
        self.assertEqual(first.exit_code(), 0)
        first.until(b"runs on")
        self.assertEqual(self.job(job)["state"], "running")
        other.type(b"two\r")
        other.until(b"got two")
        look = self.start("attach", "--read-only", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
        while "got two" not in look.stdout.readline():
            pass
        other.type(b"bye\r")
        self.assertEqual(other.exit_code(), 5)
        self.assertEqual(look.wait(BOUND_S), 5)

    def test_the_terminal_is_as_it_was(self):
        job = self.submit("--cpu-only", "--tty", "--", "sh", "-c", "echo ready; cat")
        self.wait_state(job, "running")
        import termios
        for end, code in ((lambda s: s.type(b"\x1c\x1c"), 0), (lambda s: os.kill(s.pid, signal.SIGTERM), 143)):
            screen = Screen(self, "attach", job)
            before = termios.tcgetattr(screen.fd)
            screen.until(b"ready")
            self.assertNotEqual(termios.tcgetattr(screen.fd), before)
            end(screen)
            self.assertEqual(screen.exit_code(), code)
            self.assertEqual(termios.tcgetattr(screen.fd), before)
        self.ok("cancel", job)

    def test_one_that_was_cut_says_so_and_obeys_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            job = self.submit("--cpu-only", "--tty", "--", "sh", "-c", "echo here; exec sleep 1000")
            self.wait_state(job, "running")
            looker = self.start("attach", "-r", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            self.assertEqual(looker.stdout.readline(), "here\n")
            keeper, = self.processes("mete-keeper")
            daemon = self.daemon_pid()
            os.kill(daemon, signal.SIGSTOP)  # no daemon reports what has become of the job
            try:
                os.kill(keeper, signal.SIGKILL)
                self.assertIn("was cut", looker.stderr.readline())
                looker.send_signal(number)
                self.assertEqual(looker.wait(BOUND_S), -number)
            finally:
                os.kill(daemon, signal.SIGCONT)
            self.mete("wait", job)

    def test_a_job_without_a_terminal_says_so(self):
        job = self.submit("--cpu-only", "--", *self.until())
        self.wait_state(job, "running")
        self.assert_refused(self.mete("attach", job), 64, "needs a terminal")
        self.assert_refused(self.mete("attach", "-r", job), 64, "has no terminal", "--tty", "mete logs")
        held = self.submit("--cpu-only", "--tty", "--hold", "--", "true")
        self.assert_refused(self.mete("attach", "-r", held), 75, f"job {held} waits")
        self.let_end()


if __name__ == "__main__":
    unittest.main(verbosity=2)
