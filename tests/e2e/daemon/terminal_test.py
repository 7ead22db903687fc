#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Terminals: one that closes, Ctrl-Z and fg, Ctrl-C, a run that is stopped. As if the program had been typed alone."""
import os
import pty
import signal
import unittest

from world import BOUND_S, DaemonTest, METE, read, wait_until


def state_of(pid):
    fields = read(f"/proc/{pid}/stat").rsplit(b")", 1)
    return fields[1].split()[0].decode() if len(fields) == 2 else "gone"


class Terminal(DaemonTest):
    """A session of its own on a terminal of its own; the leader is what a shell would be."""

    def on_terminal(self, script):
        """Runs a bash script with job control there; returns (pid of bash, master)."""
        pid, master = pty.fork()
        if pid == 0:
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-m", "-c", script], {**self.env, "METE": METE, "TERM": "xterm",
                                                                                         "OUT": str(self.folder)})
        self.addCleanup(self.reap, pid)
        self.addCleanup(self.close, master)
        return pid, master

    @staticmethod
    def close(descriptor):
        try:
            os.close(descriptor)
        except OSError:
            pass

    def reap(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def text(self, name):
        return read(self.folder / name).decode()

    def wait_text(self, name, what):
        wait_until(lambda: what in self.text(name), f"{what!r} in {name}")

    def end(self, pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def drain(self, master, until):
        """Reads what is on the screen until it shows that."""
        seen = b""
        while until not in seen:
            seen += os.read(master, 4096)
        return seen

    def test_closes_while_waiting(self):
        holder = self.holder("1")
        pid, master = self.on_terminal('"$METE" run --gpu 8G -- touch "$OUT/ran"')
        self.wait_state(2, "pending")
        os.close(master)
        self.wait_state(2, "ended")
        self.assertEqual(self.job(2)["outcome"], "cancelled")
        self.end(pid)
        self.release(holder)
        self.assertFalse((self.folder / "ran").exists())

    def test_closes_while_running(self):
        """Without a shell between (as by `ssh -t HOST mete run`, where the shell becomes it)."""
        pid, master = self.on_terminal('"$METE" run -q --gpu 8G -- bash -c \'trap "echo hup > $OUT/hup; exit 9" HUP; echo up > $OUT/up;'
                                       ' while :; do sleep 0.05; done\'')
        self.wait_text("up", "up")
        os.close(master)
        self.wait_state(1, "ended")
        self.assertEqual((self.text("hup"), self.job(1)["exit_code"]), ("hup\n", 9))
        self.end(pid)
        self.assert_nothing_left()

    def test_closes_while_running_below_a_shell(self):
        pid, master = self.on_terminal('"$METE" run -q --gpu 8G -- bash -c \'trap "echo hup >> $OUT/hup; exit 9" HUP; echo up > $OUT/up;'
                                       ' while :; do sleep 0.05; done\'; true')
        self.wait_text("up", "up")
        os.close(master)
        self.wait_state(1, "ended")
        self.assertEqual((self.text("hup"), self.job(1)["exit_code"]), ("hup\n", 9))
        self.end(pid)
        self.assert_nothing_left()

    def test_ctrl_z_and_fg(self):
        pid, master = self.on_terminal('"$METE" run -q --gpu 8G -- bash -c \'echo $$ > $OUT/up; read x; exit $x\'; echo stopped $? > $OUT/shell;'
                                       ' fg; echo code $? > $OUT/shell')
        self.wait_text("up", "\n")
        program = int(self.text("up"))
        wait_until(lambda: state_of(program) == "S", "it reads from the terminal")
        os.write(master, b"\x1a")
        self.wait_text("shell", "stopped 14")  # 128 + SIGTSTP or SIGSTOP
        os.write(master, b"6\n")
        self.wait_text("shell", "code 6")
        self.end(pid)
        self.assertEqual(self.job(1)["exit_code"], 6)
        self.assert_nothing_left()

    def test_ctrl_z_and_fg_while_waiting(self):
        holder = self.holder("1")
        pid, master = self.on_terminal('"$METE" run --gpu 8G -- bash -c "exit 7"; echo stopped > $OUT/shell; fg; echo code $? > $OUT/shell')
        self.drain(master, b"waiting")
        os.write(master, b"\x1a")
        self.wait_text("shell", "stopped")
        self.release(holder)
        self.wait_text("shell", "code 7")
        self.end(pid)
        self.assert_nothing_left()

    def test_ctrl_c_while_waiting(self):
        holder = self.holder("1")
        pid, master = self.on_terminal('"$METE" run --gpu 8G -- true; echo code $? > $OUT/shell')
        self.drain(master, b"waiting")
        os.write(master, b"\x03")
        self.wait_state(2, "ended")
        self.end(pid)
        self.release(holder)

    def test_ctrl_c_while_running_is_the_programs(self):
        pid, master = self.on_terminal('trap : INT; "$METE" run -q --gpu 8G -- bash -c \'trap "exit 8" INT; echo up > $OUT/up;'
                                       ' while :; do sleep 0.05; done\'; echo code $? > $OUT/shell')
        self.wait_text("up", "up")
        os.write(master, b"\x03")
        self.wait_text("shell", "code 8")
        self.end(pid)
        self.assertEqual(self.job(1)["exit_code"], 8)

    def test_a_background_job_that_reads(self):
        """A program that reads from the terminal in the background stops, and its run with it; fg brings both back."""
        pid, master = self.on_terminal('"$METE" run -q --gpu 8G -- bash -c \'echo $$ > $OUT/up; read x; exit $x\' & '
                                       'while ! [ -s $OUT/up ]; do sleep 0.02; done; run=$!; echo $run > $OUT/run;'
                                       ' while [ "$(cut -d" " -f3 /proc/$run/stat)" != T ]; do sleep 0.02; done; echo stopped > $OUT/shell;'
                                       ' fg; echo code $? > $OUT/shell')
        self.wait_text("shell", "stopped")
        os.write(master, b"3\n")
        self.wait_text("shell", "code 3")
        self.end(pid)


class Stopped(DaemonTest):
    def test_a_run_that_is_stopped_and_continued_while_waiting(self):
        holder = self.holder("1")
        waiting = self.start_run("--gpu", "8G", "--", "sh", "-c", "exit 5")
        waiting.stderr.readline()
        waiting.send_signal(signal.SIGSTOP)
        self.release(holder)
        self.wait_state(2, "starting")  # it has the card; whether it sleeps is its own decision
        waiting.send_signal(signal.SIGCONT)
        self.assertEqual(waiting.wait(BOUND_S), 5)
        self.assert_nothing_left()

    def test_a_run_that_is_stopped_while_its_program_runs(self):
        run = self.start_run("-q", "--gpu", "8G", "--", "sh", "-c", "echo up; exit 6")
        self.assertEqual(run.stdout.readline(), "up\n")
        run.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(run.pid) == "T", "it is stopped")
        run.send_signal(signal.SIGCONT)
        self.assertEqual(run.wait(BOUND_S), 6)
        self.assert_nothing_left()

    def test_a_stopped_run_that_is_killed(self):
        run = self.start_run("-q", "--gpu", "60%", "--", "sh", "-c", "echo $$; sleep 1000")
        program = int(run.stdout.readline())
        self.wait_state(1, "running")
        os.kill(program, signal.SIGSTOP)
        run.send_signal(signal.SIGSTOP)
        run.kill()
        run.wait()
        self.wait_state(1, "ended")
        self.assertFalse(self.alive(program))


if __name__ == "__main__":
    unittest.main()
