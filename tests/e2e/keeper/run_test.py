#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a keeper does with one job: its program, its output, its limits, its end."""
import os
import pathlib
import signal
import socket
import struct
import time
import unittest

from world import BOUND_S, KeeperTest, alive, read, wait_until

class Programs(KeeperTest):
    def test_its_exit_code_output_and_surroundings(self):
        self.sh("12_3", "echo out; echo err >&2; cat; echo in=$?; pwd; umask; env | sort; ulimit -n; exit 7",
                folder=str(self.folder), umask=0o27, limits=[[7, 321, 654]], environment=["METE_ARRAY_INDEX=99", "ODD=a\nb"])
        keeper, program = self.started("12_3")
        exit = self.ended("12_3")
        self.assertEqual((exit["exit_code"], exit.get("signal"), exit.get("note")), (7, None, None))
        self.assertEqual(exit["log_bytes"], os.stat(self.state / "logs" / "12_3.log").st_size)
        self.assertGreaterEqual(exit["ran_ms"], 0)
        lines = self.log("12_3").splitlines()
        self.assertEqual(lines[:5], ["out", "err", "in=0", str(self.folder), "0027"])
        for line in ("METE_JOB_ID=12_3", "METE_ATTEMPT=1", "METE_ARRAY_INDEX=3", "METE_ARRAY_JOB_ID=12", "ODD=a", "b",
                     f"METE_JOB_TOKEN={keeper}." + lines[[i for i, l in enumerate(lines) if "TOKEN" in l][0]].split(".")[1]):
            self.assertIn(line, lines)
        self.assertEqual(lines[-1], "321")
        self.assertEqual(os.stat(self.state / "logs" / "12_3.log").st_mode & 0o777, 0o600)
        self.assert_nothing_left("12_3")

    def test_it_is_in_a_session_of_its_own_without_a_terminal(self):
        self.sh(1, "ps -o pid=,ppid=,pgid=,sid=,tty= -p $$; "
                # Not by grep: a shell blocks signals while it starts a program.
                "while read key value; do case $key in Sig[BI][lg]*) echo $key $value;; esac; done < /proc/$$/status; ls -l /proc/$$/fd; sleep 1000")
        keeper, program = self.started(1)
        wait_until(lambda: self.log(1).count("->") >= 3, "it has said all")
        lines = self.log(1).splitlines()
        self.assertEqual(lines[0].split(), [str(program), str(keeper), str(program), str(program), "?"])
        self.assertIn("SigBlk: 0000000000000000", lines)
        ignored = next(line.split()[1] for line in lines if line.startswith("SigIgn"))
        self.assertEqual(int(ignored, 16) & 0x7fffffff, 0, "nothing is ignored (but what is the C library's own)")
        self.assertEqual(sum("->" in line for line in lines), 3, self.log(1))
        self.assertEqual(int(read(f"/proc/{keeper}/stat").rsplit(b")", 1)[1].split()[3]), keeper, "the keeper leads its session")
        self.stop(1)
        self.assertEqual(self.ended(1)["signal"], signal.SIGTERM)

    def test_a_signal_is_told(self):
        self.sh(1, "kill -9 $$")
        exit = self.ended(1)
        self.assertEqual((exit["signal"], exit.get("exit_code")), (9, None))
        self.assert_nothing_left()

    def test_what_cannot_be_run_is_said(self):
        self.start(1, "no-such-program")
        exit = self.ended(1)
        self.assertEqual((exit["exit_code"], exit["not_started"]), (127, True))
        self.assertEqual(exit["note"], "cannot run 'no-such-program': No such file or directory")
        self.assertIn(exit["note"], self.log(1))
        self.start(2, "/etc/passwd")
        self.assertEqual(self.ended(2)["exit_code"], 126)
        self.sh(3, "true", folder=str(self.folder / "none"))
        exit = self.ended(3)
        self.assertTrue(exit["not_started"])
        self.assertIn(str(self.folder / "none"), exit["note"])
        for job in (1, 2, 3):
            self.assert_nothing_left(job)

    def test_the_time_limit(self):
        self.sh(1, "trap '' TERM; while :; do sleep 1; done", time_s=1, grace_ms=200)
        exit = self.ended(1)
        self.assertEqual((exit["timed_out"], exit["signal"]), (True, 9))
        self.assertIn("mete: the time limit of 1 s is over", self.log(1))

    def test_ranks(self):
        self.sh(1, "echo rank $RANK of $WORLD_SIZE; exit $RANK", procs=3)
        self.assertEqual(self.ended(1)["exit_code"] in (1, 2), True)
        self.assertIn("rank 0 of 3", self.log(1))

    def test_a_second_attempt_adds_to_the_log(self):
        self.sh(1, "echo first; exit 1")
        self.ended(1)
        self.forget(1)
        self.sh(1, "echo second", attempt=2)
        self.ended(1)
        self.assertEqual(self.log(1), "first\nmete: attempt 2\nsecond\n")

    def test_a_script(self):
        script = "#!/bin/sh\necho $0 $*\n"
        self.start(1, "train.sh", "a b", "c", script=script)
        self.ended(1)
        path = self.state / "scripts" / "1.1"
        self.assertEqual(self.log(1), f"{path} a b c\n")
        self.assertFalse(path.exists())

    @unittest.skipUnless(os.geteuid() == 0, "needs root, for a control group")
    def test_memory_at_its_limit(self):
        self.start(1, "/usr/bin/python3", "-c", "b = bytearray(400 << 20)", ram=100 << 20)
        exit = self.ended(1)
        if "not enforced here" in self.log(1):
            self.skipTest(self.log(1))
        self.assertEqual((exit["signal"], exit["ram_oom"]), (9, True))
        self.assertIn("the limit of --ram 100 MiB was reached", self.log(1))
        self.assert_nothing_left()


class Ends(KeeperTest):
    def test_stop_reaches_every_process(self):
        self.sh(1, f"sleep 1000 & {self.hider()} & sh -c 'sleep 1000 & sleep 1000' & wait", grace_ms=500)
        self.started(1)
        hidden = self.hidden()
        self.stop(1)
        self.ended(1)
        self.assertFalse(alive(hidden))
        self.assert_nothing_left()

    def test_what_ignores_term_is_killed_after_the_grace(self):
        self.sh(1, "trap '' TERM; echo up; while :; do sleep 1000; done", grace_ms=300)
        self.started(1)
        wait_until(lambda: "up" in self.log(1), "it ignores TERM")
        self.stop(1)
        self.stop(1)
        self.assertEqual(self.ended(1)["signal"], 9)

    def test_what_ends_well_at_term_says_so(self):
        self.sh(1, "trap 'echo saved; exit 3' TERM; echo up; while :; do sleep 0.05; done", grace_ms=60000)
        self.started(1)
        wait_until(lambda: "up" in self.log(1), "it listens")
        self.stop(1)
        self.assertEqual(self.ended(1)["exit_code"], 3)
        self.assertIn("saved", self.log(1))

    def test_a_stopped_program_hears_it_too(self):
        self.sh(1, "kill -STOP $$; exit 5", grace_ms=60000)
        _, program = self.started(1)
        wait_until(lambda: b"T (stopped)" in read(f"/proc/{program}/status"), "it stands")
        self.stop(1)
        self.assertEqual(self.ended(1)["signal"], 15)

    def test_it_waits_for_what_was_left_in_the_background(self):
        self.sh(1, "(while [ ! -e $OUT/go ]; do sleep 0.05; done; echo late) & exit 4")
        self.started(1)
        self.assertEqual([e for e in self.driver.settle() if e["event"] == "ended"], [])
        (self.folder / "go").touch()
        self.assertEqual(self.ended(1)["exit_code"], 4)
        self.assertEqual(self.log(1), "late\n")

    def test_a_stop_before_the_start(self):
        self.start(1, "sh", "-c", "echo ran >> $OUT/ran; sleep 1000")
        self.stop(1)
        event = self.final(1)
        self.assertIn(event["event"], ("ended", "not_launched"))
        self.assert_nothing_left()


class Output(KeeperTest):
    def test_two_logs(self):
        out, err = self.folder / "out", self.folder / "err"
        self.sh(1, "echo one; echo two >&2", log=str(out), err=str(err), umask=0o002)
        exit = self.ended(1)
        self.assertEqual((out.read_text(), err.read_text(), exit["log_bytes"]), ("one\n", "two\n", 8))
        self.assertEqual(out.stat().st_mode & 0o777, 0o664)

    def test_one_file_by_two_names(self):
        (self.folder / "link").symlink_to(self.folder / "out")
        self.sh(1, "echo one; echo two >&2", log=str(self.folder / "out"), err=str(self.folder / "link"))
        self.ended(1)
        self.assertEqual((self.folder / "out").read_text(), "one\ntwo\n")

    def test_rotation_and_bound(self):
        self.start(1, "/usr/bin/python3", "-c", "for i in range(200000): print('line', i)", log_limit=1 << 20)
        exit = self.ended(1)
        log = self.state / "logs" / "1.log"
        self.assertLessEqual(log.stat().st_size, 1 << 20)
        self.assertLessEqual((self.state / "logs" / "1.log.1").stat().st_size, 1 << 20)
        self.assertTrue(log.read_text().endswith("line 199999\n"))
        self.assertEqual(exit["log_bytes"], log.stat().st_size + (self.state / "logs" / "1.log.1").stat().st_size)
        self.assertNotIn("note", exit)

    def test_every_byte_of_much_output(self):
        self.start(1, "/usr/bin/python3", "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40000)")
        self.ended(1)
        self.assertEqual((self.state / "logs" / "1.log").read_bytes(), bytes(range(256)) * 40000)

    def test_removed_while_it_runs(self):
        self.sh(1, "echo one; while [ ! -e $OUT/go ]; do sleep 0.02; done; echo two")
        self.started(1)
        wait_until(lambda: "one" in self.log(1), "the first line")
        os.unlink(self.state / "logs" / "1.log")
        (self.folder / "go").touch()
        self.ended(1)
        self.assertEqual(self.log(1), "two\n")

    def test_what_is_no_log(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for job, path, words in ((1, fifo, "is a FIFO"), (2, self.folder, "is a folder"), (3, "/dev/zero", "is a device"),
                                 (4, self.folder / "none" / "log", "No such file")):
            self.sh(job, "echo ran > $OUT/ran", log=str(path))
            exit = self.ended(job)
            self.assertTrue(exit["not_started"], path)
            self.assertIn(words, exit["note"])
            self.assert_nothing_left(job)
        self.assertFalse((self.folder / "ran").exists())
        self.sh(5, "echo fine", log="/dev/null")
        self.assertEqual(self.ended(5)["exit_code"], 0)

    def test_a_pipe_that_somebody_else_holds_does_not_keep_it(self):
        """A process outside the job has the job's output open."""
        self.sh(1, "echo $$; while [ ! -e $OUT/go ]; do sleep 0.02; done")
        _, program = self.started(1)
        holder = os.open(f"/proc/{program}/fd/1", os.O_WRONLY)
        try:
            (self.folder / "go").touch()
            self.assertEqual(self.ended(1)["exit_code"], 0)
        finally:
            os.close(holder)


class Containers(KeeperTest):
    def test_a_container_is_noticed(self):
        tool = self.folder / "docker"
        tool.write_bytes(pathlib.Path("/bin/sh").resolve().read_bytes())
        tool.chmod(0o755)
        (self.folder / "run").write_text("while [ ! -e $OUT/go ]; do sleep 0.05; done\n")
        self.sh(1, f"cd $OUT && PATH={self.folder}:$PATH && docker run --gpus all image & wait")
        self.started(1)
        wait_until(lambda: "docker run" in self.log(1), "it is noticed")
        (self.folder / "go").touch()
        note = self.ended(1)["note"]
        self.assertIn("'docker run': what runs in containers is not held to the job's GPU memory", note)
        self.assertEqual(self.log(1).count("docker run"), 1)


class Terminals(KeeperTest):
    def attach(self, job=1):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(BOUND_S)
        self.addCleanup(client.close)
        path = self.state / "terminals" / f"{job}.1"
        folder = os.open(path.parent, os.O_PATH)  # the path may be too long for an address
        try:
            client.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        return client

    @staticmethod
    def type(client, text):
        client.sendall(b"i" + struct.pack("<H", len(text)) + text)

    @staticmethod
    def read_until(client, text):
        seen = b""
        while text not in seen:
            got = client.recv(4096)
            if not got:
                raise AssertionError(f"the end came before {text}: {seen}")
            seen += got
        return seen

    def test_a_terminal_for_several(self):
        self.sh(1, "tty; stty size; while read line; do echo got $line; stty size; [ \"$line\" = end ] && exit 6; done", tty=True)
        self.started(1)
        one = self.attach()
        self.read_until(one, b"24 80\r\n")
        two = self.attach()
        self.assertIn(b"/dev/pts/", self.read_until(two, b"24 80\r\n"), "who comes later sees what was before")
        one.sendall(b"?" + struct.pack("<H", 3) + b"abc")  # from a newer client: ignored
        two.sendall(b"w" + struct.pack("<HHH", 4, 50, 132))
        self.type(one, b"hello\n")
        for client in (one, two):
            self.read_until(client, b"got hello\r\n50 132\r\n")
        two.close()
        self.type(one, b"end\n")
        self.read_until(one, b"got end\r\n")
        self.assertEqual(self.ended(1)["exit_code"], 6)
        while one.recv(4096):
            pass
        self.assertIn("got hello\n", self.log(1).replace("\r", ""))
        self.assertEqual(os.listdir(self.state / "terminals"), [])

    def test_the_terminal_is_its_own(self):
        self.start(1, "cat", tty=True)  # not a shell: dash loses an interrupt that comes while it starts a program
        _, program = self.started(1)
        client = self.attach()
        self.type(client, b"up\n")
        self.read_until(client, b"up\r\nup\r\n")
        stat = read(f"/proc/{program}/stat").rsplit(b")", 1)[1].split()
        self.assertNotEqual(int(stat[4]), 0, "it has a controlling terminal")
        self.type(client, b"\x03")
        exit = self.ended(1)
        self.assertEqual(exit["signal"], signal.SIGINT)

    def test_who_does_not_read_is_let_go(self):
        self.start(1, "/usr/bin/python3", "-c", "import sys\nfor i in range(60000): sys.stdout.write('x' * 99 + '\\n')", tty=True)
        self.started(1)
        client = self.attach()
        self.assertEqual(self.ended(1)["exit_code"], 0)
        self.assertEqual(self.log(1).count("\n"), 60000)

    def test_a_socket_path_that_is_too_long(self):
        state = self.folder / ("a" * 120)
        state.mkdir()
        self.sh(1, "read line; echo got $line", tty=True, state=str(state))
        self.started(1)
        self.state = state
        client = self.attach()
        self.type(client, b"it\n")
        self.read_until(client, b"got it")


if __name__ == "__main__":
    unittest.main()
