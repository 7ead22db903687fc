#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The processes of a job: it ends with its last one, whatever they fork, and a cancel reaches every one of them.

The standard output of a run is a pipe: the kernel says that it has ended when the last process that holds it is gone.
"""
import os
import select
import signal
import subprocess
import sys
import unittest

from world import BOUND_S, BUILD, METE, Screen, VerbTest, wait_until

DAEMONISE = str(BUILD / "tests" / "daemonise")
ROUNDS = int(os.environ.get("METE_ROUNDS", 100 if "METE_FULL" in os.environ else 30))

PYTHON = """import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
time.sleep(0.02)
open(sys.argv[1], "w").write("done\\n")
"""
PERL = """use POSIX;
exit if fork; POSIX::setsid(); exit if fork;
select(undef, undef, undef, 0.02);
open(my $file, ">", $ARGV[0]); print $file "done\\n";
"""
# A `mete run` that never reads anything.
DEAF = """import http.client, json, signal, socket, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
connection = Connection("mete")
connection.request("POST", "/v1/jobs", json.dumps(
    {"runner_start_ticks": ticks, "job": {"name": "deaf", "command": ["true"], "request": {"gpu": "8G"}}}))
print(connection.getresponse().status, flush=True)
signal.pause()
"""


class ProcessesTest(VerbTest):
    sim = "1xH200"
    config = "[queue]\ngrace_s = 3600\n"  # a process that TERM does not reach stays for longer than any test waits

    def setUp(self):
        super().setUp()
        path = self.folder / "config.toml"
        path.write_text(self.config)
        self.env["METE_CONFIG"] = str(path)

    def assert_all_gone(self, run, what):
        """No process holds the run's standard output any more."""
        poll = select.poll()
        poll.register(run.stdout, select.POLLIN)
        while events := poll.poll(0):
            if events[0][1] & select.POLLIN:
                os.read(run.stdout.fileno(), 4096)
            else:
                return
        self.fail(f"{what}: the job has ended, and a process of it lives")

    def program(self, language, path):
        words = {"C": [DAEMONISE, "daemon"], "Python": ["/usr/bin/python3", "-S", "-c", PYTHON], "Perl": ["perl", "-e", PERL]}
        return [*words[language], str(path)]


class Ends(ProcessesTest):
    def daemonised(self, language):
        for number in range(max(1, ROUNDS // 3)):
            path = self.flag(f"{language}{number}")
            share = "0" if number % 2 else "1G"
            run = self.start_run("-q", "--gpu", share, "--", *self.program(language, path))
            self.assertEqual(run.wait(BOUND_S), 0, run.stderr.read())
            self.assert_all_gone(run, f"try {number}")
            self.assertTrue(path.exists(), f"try {number}")
            run.stdout.close()
            run.stderr.close()

    def test_a_daemon_in_c_is_of_its_job(self):
        self.daemonised("C")

    def test_a_daemon_in_python_is_of_its_job(self):
        self.daemonised("Python")

    def test_a_daemon_in_perl_is_of_its_job(self):
        self.daemonised("Perl")

    def test_a_daemon_of_a_submitted_job_is_of_it(self):
        for number in range(max(2, ROUNDS // 20)):
            for language in ("C", "Python", "Perl"):
                path = self.flag(f"{language}{number}")
                ident = self.submit("--gpu", "1G", "--", *self.program(language, path))
                self.assertEqual(self.mete("wait", ident).returncode, 0)
                self.assertTrue(path.exists(), f"{language}, try {number}")

    def test_a_process_that_forks_on_is_of_its_job(self):
        for number in range(max(2, ROUNDS // 20)):
            path = self.flag(str(number))
            run = self.start_run("-q", "--gpu", "1G", "--", DAEMONISE, "chain", "100", path)
            self.assertEqual(run.wait(BOUND_S), 0)
            self.assert_all_gone(run, f"try {number}")
            self.assertTrue(path.exists(), f"try {number}")
            run.stdout.close()
            run.stderr.close()

    def test_what_a_killed_run_leaves_is_ended_though_it_forks_on(self):
        for number in range(max(2, ROUNDS // 20)):
            run = self.start_run("-q", "--gpu", "1G", "--", DAEMONISE, "stubborn", "20000")
            ident = number + 1
            self.wait_state(ident, "running")
            run.kill()
            run.wait()
            self.wait_state(ident, "ended")
            self.assert_all_gone(run, f"try {number}")
            self.assertEqual(self.job(ident)["outcome"], "lost")
            run.stdout.close()
            run.stderr.close()


class Cancels(ProcessesTest):
    def test_a_job_that_is_cancelled_at_once_ends_by_term(self):
        idents = []
        for number in range(max(6, ROUNDS // 3)):
            idents.append(self.submit("--gpu", "1G", "--", "sh", "-c", "sleep 3600; true"))
            self.ok("cancel", idents[-1])
        self.mete("wait", *idents)
        self.assertEqual({self.job(ident)["outcome"] for ident in idents}, {"cancelled"})

    def test_a_job_that_forks_on_ends_by_term(self):
        for number in range(max(2, ROUNDS // 20)):
            path = self.flag("never")
            run = self.start_run("-q", "--gpu", "1G", "--", DAEMONISE, "chain", "20000", path)
            ident = str(number + 1)
            self.wait_state(ident, "running")
            self.ok("cancel", ident)
            run.wait(BOUND_S)
            self.assert_all_gone(run, f"try {number}")
            self.wait_state(ident, "ended")
            self.assertEqual(self.job(ident)["outcome"], "cancelled")
            self.assertFalse(path.exists())
            run.stdout.close()
            run.stderr.close()

    def test_insisting_reaches_every_process_of_a_shell_that_forks(self):
        for number in range(max(2, ROUNDS // 20)):
            mark = f"36{number:03}"
            screen = Screen(self, "run", "-q", "--gpu", "0", "--", "sh", "-c",
                            f"trap '' INT; echo up; for i in $(seq 300); do sleep {mark} & done; wait")
            screen.until(b"up")

            def pressed():
                screen.type(b"\x03")
                ended = os.waitpid(screen.pid, os.WNOHANG)[0] == screen.pid
                if ended:
                    screen.pid = None
                return ended
            wait_until(pressed, "Ctrl-C again and again ends it")
            left = subprocess.run(["pgrep", "-fx", f"sleep {mark}"], capture_output=True, text=True).stdout
            self.assertEqual(left, "", "a process of the job lives")

    def test_a_run_that_was_stopped_by_ctrl_z_is_cancelled(self):
        run = self.start_run("-q", "--gpu", "60%", "--", "sh", "-c", "echo $$; sleep 3600; true", preexec_fn=os.setpgrp)
        program = int(run.stdout.readline())
        self.wait_state(1, "running")
        os.killpg(run.pid, signal.SIGTSTP)
        wait_until(lambda: self.stopped(run.pid) and self.stopped(program), "both stand still")
        self.ok("cancel", "1")
        run.wait(BOUND_S)
        self.assert_all_gone(run, "after Ctrl-Z")
        self.wait_state(1, "ended")
        self.assertEqual(self.job(1)["outcome"], "cancelled")
        self.assertEqual(self.card()["granted_bytes"], 0)

    @staticmethod
    def stopped(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"

    def test_a_program_that_is_its_own_runner_is_cancelled(self):
        run = self.start_run("-q", "--exec", "--gpu", "60%", "--", "sleep", "3600")
        self.wait_state(1, "running")
        self.ok("cancel", "1")
        self.assertEqual(run.wait(BOUND_S), -signal.SIGTERM)
        self.wait_state(1, "ended")
        self.assertEqual(self.job(1)["outcome"], "cancelled")
        self.assertEqual(self.card()["granted_bytes"], 0)


class Deaf(ProcessesTest):
    config = "[queue]\ngrace_s = 0\n"

    def test_a_runner_that_does_not_listen_is_ended_with_its_job(self):
        self.run_("-q", "--cpu-only", "--", "true")  # starts the daemon
        runner = subprocess.Popen([sys.executable, "-c", DEAF, self.env["METE_SOCKET"]], stdout=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(runner.stdout.close)
        self.addCleanup(runner.kill)
        self.assertEqual(runner.stdout.readline(), "201\n")
        self.wait_state(2, "starting")
        self.assertGreater(self.card()["granted_bytes"], 0)
        self.ok("cancel", "2")
        self.assertEqual(runner.wait(BOUND_S), -signal.SIGKILL)
        self.wait_state(2, "ended")
        self.assertEqual(self.job(2)["outcome"], "cancelled")
        self.assertEqual(self.card()["granted_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
