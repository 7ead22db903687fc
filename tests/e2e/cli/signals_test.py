#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals, stops and the end of a job: mete in front of a program behaves as the program alone would.

The program is a small Python script that writes a line for each signal it gets; every test waits for what it expects.
"""
import os
import pathlib
import pty
import signal
import subprocess
import termios
import unittest

import support

# Waits for signals instead of handling them: a handler of Python runs only when something else happens.
PROGRAM = r"""
import os, signal, sys
names = "INT TERM HUP QUIT USR1 USR2 WINCH CONT".split()
wanted = {getattr(signal, "SIG" + name) for name in names}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
log = open(sys.argv[1], "a", buffering=1)
log.write(f"ready {os.getpid()}\n")
while True:
    number = signal.sigwait(wanted)
    log.write(signal.Signals(number).name + "\n")
    if number == signal.SIGTERM: sys.exit(7)
"""


class Signals(support.MeteTest):
    def setUp(self):
        super().setUp()
        self.log = self.folder / "log"
        self.program = self.folder / "program.py"
        self.program.write_text(PROGRAM)

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def wait_ready(self):
        support.wait_until(lambda: any(line.startswith("ready ") for line in self.lines()), "the program is ready")
        return int(self.lines()[0].split()[1])

    def seen(self, name):
        return self.lines().count(name)

    def start_program(self, **options):
        process = self.start("cap", "--gpu", "0", "-q", "--", "python3", self.program, self.log, **options)
        self.pid = self.wait_ready()
        return process

    def test_signals_sent_to_mete_reach_the_program(self):
        process = self.start_program()
        for name in ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGQUIT", "SIGWINCH"):
            process.send_signal(getattr(signal, name))
            support.wait_until(lambda n=name: self.seen(n) == 1, f"{name} arrives")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(support.BOUND_S), 7)
        self.assertEqual(self.seen("SIGTERM"), 1)

    def test_a_signal_to_the_whole_group_arrives_once(self):
        process = self.start_program(start_new_session=True)
        for round_number in range(1, 21):
            os.killpg(process.pid, signal.SIGUSR1)
            # The direct signal comes after the group's: when it has arrived, a copy of the group's would have too.
            process.send_signal(signal.SIGUSR2)
            support.wait_until(lambda n=round_number: self.seen("SIGUSR2") == n, "the direct signal arrives")
            self.assertEqual(self.seen("SIGUSR1"), round_number)
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(process.wait(support.BOUND_S), 7)

    def test_mete_stays_until_the_last_process_is_gone(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        # A daemon of the job: its own session, its parent gone, waiting for us.
        process = self.start("cap", "--gpu", "0", "-q", "--", "sh", "-c",
                             f"(setsid sh -c 'echo $$ > {self.folder}/pid; cat {fifo}' &) ; exit 5")
        support.wait_until(lambda: (self.folder / "pid").exists() and (self.folder / "pid").read_text().endswith("\n"),
                           "the daemon runs")
        daemon = int((self.folder / "pid").read_text())
        def parent():
            return int(pathlib.Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
        support.wait_until(lambda: parent() == process.pid, "the daemon becomes a child of mete")
        self.assertIsNone(process.poll())
        with open(fifo, "w"):
            pass
        self.assertEqual(process.wait(support.BOUND_S), 5)

    def test_a_signal_after_the_program_ended_reaches_what_it_left(self):
        process = self.start("cap", "--gpu", "0", "-q", "--", "sh", "-c",
                             f"(setsid python3 {self.program} {self.log} &) ; exit 5")
        daemon = self.wait_ready()
        def parent():
            return int(pathlib.Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
        support.wait_until(lambda: parent() == process.pid, "the daemon becomes a child of mete")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(support.BOUND_S), 5)
        self.assertEqual(self.seen("SIGTERM"), 1)

    def test_helpers_die_with_mete(self):
        process = self.start_program()
        children = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")
                    if self.stat(p.name) and self.stat(p.name)[1] == str(process.pid)]
        helpers = [p for p in children if p != self.pid]
        self.assertTrue(helpers)
        process.kill()
        process.wait()
        support.wait_until(lambda: not any(self.stat(p) and self.stat(p)[0] != "Z" for p in helpers), "helpers end")
        self.assertIsNotNone(self.stat(self.pid), "the program outlives a killed mete")
        os.kill(self.pid, signal.SIGKILL)

    @staticmethod
    def stat(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return None

    def test_masks_and_handlers_are_the_programs_own(self):
        code = ("import signal, sys; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),"
                " [n for n in range(1, 32) if n not in (9, 19) and signal.getsignal(n) == signal.SIG_IGN])")
        def prepare():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            os.umask(0o027)
        alone = subprocess.run(["python3", "-c", code], capture_output=True, text=True, preexec_fn=prepare)
        capped = self.mete("cap", "--gpu", "0", "-q", "--", "python3", "-c", code, preexec_fn=prepare)
        self.assertEqual(capped.stdout, alone.stdout)
        self.assertEqual(capped.returncode, 0)

    def test_descriptors_are_the_programs_own(self):
        code = "import os; print(sorted(f for f in os.listdir('/proc/self/fd')))"
        alone = subprocess.run(["python3", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        capped = self.mete("cap", "--gpu", "0", "-q", "--", "python3", "-c", code)
        self.assertEqual(capped.stdout, alone.stdout)


class Terminal(Signals):
    """On a terminal, below a shell with job control."""

    def start_program(self, **options):
        raise NotImplementedError

    def spawn(self, *words):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.execvpe(words[0], [str(w) for w in words], self.env)
        self.addCleanup(os.close, self.terminal)
        return pid

    def type(self, text):
        os.write(self.terminal, text)

    def wait_exit(self, pid):
        status = []
        def ended():
            done, code = os.waitpid(pid, os.WNOHANG)
            if done:
                status.append(code)
            return bool(done)
        try:
            support.wait_until(ended, "the program ends")
        except AssertionError:
            os.kill(pid, signal.SIGKILL)
            raise
        return os.waitstatus_to_exitcode(status[0])

    def quiet_echo(self):
        settings = termios.tcgetattr(self.terminal)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self.terminal, termios.TCSANOW, settings)

    def test_control_c_arrives_once(self):
        pid = self.spawn(support.METE, "cap", "--gpu", "0", "-q", "--", "python3", self.program, self.log)
        self.wait_ready()
        self.type(b"\x03")
        support.wait_until(lambda: self.seen("SIGINT") >= 1, "Ctrl-C arrives")
        os.kill(pid, signal.SIGUSR2)  # handled after the Ctrl-C: a second copy would be there by then
        support.wait_until(lambda: self.seen("SIGUSR2") == 1, "the later signal arrives")
        self.assertEqual(self.seen("SIGINT"), 1)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.wait_exit(pid), 7)

    def test_insisting_ends_a_program_that_ignores_control_c(self):
        pid = self.spawn(support.METE, "cap", "--gpu", "0", "-q", "--", "sh", "-c",
                         f"trap '' INT TERM; echo ready 0 > {self.log}; while :; do sleep 1000; done")
        self.wait_ready()
        codes = []
        def pressed():
            self.type(b"\x03")
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes.append(os.waitstatus_to_exitcode(status))
            return bool(done)
        support.wait_until(pressed, "Ctrl-C again and again ends it")
        self.assertEqual(codes, [128 + signal.SIGKILL])

    def test_control_z_stops_and_fg_continues(self):
        shell = self.spawn("bash", "--norc", "--noprofile", "-i")
        self.quiet_echo()
        self.type(f"{support.METE} cap --gpu 0 -q -- python3 {self.program} {self.log}; "
                  f"echo code $? > {self.folder}/code\n".encode())
        pid = self.wait_ready()
        mete = int(self.stat(pid)[1])
        self.type(b"\x1a")
        support.wait_until(lambda: self.stat(pid)[0] == "T" and self.stat(mete)[0] == "T", "both stop")
        self.type(b"fg\n")
        support.wait_until(lambda: self.stat(pid)[0] != "T" and self.stat(mete)[0] != "T", "both continue")
        support.wait_until(lambda: self.seen("SIGCONT") >= 1, "the program is told")
        os.kill(mete, signal.SIGUSR1)
        support.wait_until(lambda: self.seen("SIGUSR1") == 1, "mete forwards again")
        self.assertEqual(self.seen("SIGCONT"), 1)
        os.kill(mete, signal.SIGTERM)
        support.wait_until(lambda: self.stat(pid) is None, "the program ends")
        self.type(b"exit\n")
        self.type(b"exit\n")
        self.wait_exit(shell)


# The tests of the base class run once, as Signals.
for name in [n for n in dir(Signals) if n.startswith("test_") and n not in Terminal.__dict__]:
    setattr(Terminal, name, None)

if __name__ == "__main__":
    support.main()
