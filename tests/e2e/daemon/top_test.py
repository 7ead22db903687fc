#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete top` and `--watch`: on terminals, into pipes, in sentences; a daemon that goes, a terminal that closes, names that bite."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest

from world import BOUND_S, BUILD, METE, VerbTest, wait_until

PROGRAM = str(BUILD / "bin" / "mete-demo-program")
GONE = re.compile(rb"\x1b\[\?1049l")


class Screen:
    """What a terminal would show of what was written to it: moves, erasures and text, which is all that mete sends."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.unknown = []
        self.pending = b""

    def feed(self, data):
        """In whatever pieces it comes: the beginning of a sequence or a character waits for its rest."""
        data = self.pending + data
        cut = len(data)
        if (escape := data.rfind(b"\x1b")) >= 0 and not re.match(rb"\x1b\[[?0-9;]*[A-Za-z]", data[escape:]):
            cut = escape
        while cut > 0 and cut == len(data) and data[cut - 1] >= 0x80:
            try:
                data[max(0, cut - 4):].decode("utf-8")
                break
            except UnicodeDecodeError as error:
                if error.reason != "unexpected end of data":
                    break
                cut = max(0, cut - 4) + error.start
        self.pending, data = data[cut:], data[:cut]
        text = data.decode("utf-8", "replace")
        for move, plain in re.findall(r"(\x1b\[[?0-9;]*[A-Za-z])|([^\x1b]+|\x1b)", text):
            if plain:
                self.put(plain)
            elif move[-1] == "H":
                place = [int(part or 1) for part in (move[2:-1] or "1;1").split(";")]
                self.row, self.column = place[0] - 1, place[1] - 1
            elif move == "\x1b[2J":
                self.cells = [[" "] * self.columns for _ in range(self.rows)]
            elif move[-1] not in "mhl":
                self.unknown.append(move)

    def put(self, text):
        for character in text:
            if ord(character) < 0x20:
                self.unknown.append(character)
            elif self.row < self.rows and self.column < self.columns:
                self.cells[self.row][self.column] = character
                self.column += 1

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


class TopTest(VerbTest):
    def setUp(self):
        super().setUp()
        self.env["TZ"] = "UTC"
        for name in ("NO_COLOR", "COLORTERM", "LC_ALL", "LC_CTYPE", "LANG"):
            self.env.pop(name, None)

    def look(self, *words, rows=30, columns=110, term="xterm-256color", shell=None):
        """mete top on a terminal of its own; (pid, master, Screen)."""
        env = {**self.env, "TERM": term, "METE": METE}
        pid, master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            if shell:
                os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-m", "-c", shell], env)
            os.execve(METE, [METE, "top", "--every", "0.1", *words], env)
        self.addCleanup(self.reap, pid)
        self.addCleanup(self.close, master)
        self.seen = b""
        return pid, master, Screen(rows, columns)

    @staticmethod
    def close(descriptor):
        try:
            os.close(descriptor)
        except OSError:
            pass

    @staticmethod
    def reap(pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def pump(self, master, screen, wait=0.05):
        if select.select([master], [], [], wait)[0]:
            try:
                data = os.read(master, 1 << 16)
            except OSError:
                return False
            self.seen += data
            screen.feed(data)
        return True

    def until(self, master, screen, condition, what):
        end = time.monotonic() + BOUND_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}; the screen is\n{screen.text()}")
            self.pump(master, screen)

    def shows(self, master, screen, *texts):
        self.until(master, screen, lambda: all(text in screen.text() for text in texts), f"shows {texts}")

    def quits(self, pid, master, screen, code=0):
        while self.pump(master, screen, 0.2):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                while select.select([master], [], [], 0)[0] and self.pump(master, screen, 0):
                    pass
                self.assertEqual(os.waitstatus_to_exitcode(status), code)
                return
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), code)

    def busy(self):
        """One job runs, one waits."""
        running = self.submit("--name", "train", "--gpu", "8G", "--", "sleep", "600")
        self.wait_state(running, "running")
        waiting = self.submit("--name", "later", "--gpu", "2", "--", "true")
        return running, waiting

    # ---- once ----

    def test_once_and_into_a_pipe(self):
        running, waiting = self.busy()
        for words in (["top"], ["top", "--once"]):
            result = self.mete(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("\x1b", result.stdout)
            self.assertIn("NVIDIA H200", result.stdout)
            self.assertRegex(result.stdout, rf"{running} .*train +running")
            self.assertRegex(result.stdout, rf"{waiting} .*later +pending")
            self.assertIn("waiting 1 (1 resources)", result.stdout)
        ascii_only = self.mete("top", "--once", "--no-unicode").stdout
        self.assertTrue(ascii_only.isascii())
        document = json.loads(self.mete("top", "--once", "-o", "json").stdout)
        self.assertEqual(document["schema"], "mete.snapshot/1")
        self.assertEqual(len(document["cards"]), 2)

    def test_words(self):
        self.assertEqual(self.error_object(self.mete("top", "-o", "json"))["message"], "-o json goes with --once")
        self.assert_refused(self.mete("top", "--every", "0"), 64, "--every '0' is too often")
        self.assert_refused(self.mete("top", "--every", "soon"), 64, "is no number of seconds")
        self.assert_refused(self.mete("top", "12"), 64)

    def test_without_a_daemon(self):
        result = self.mete("top", "--once")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertIn("no daemon runs", result.stderr)
        self.assertIsNone(self.daemon_pid(), "none is started")

    # ---- a screen ----

    def test_keys_on_a_screen(self):
        running, waiting = self.busy()
        pid, master, screen = self.look()
        self.shows(master, screen, "mete top", "NVIDIA H200", "train", "later", "q quit")
        os.write(master, b"h")
        self.shows(master, screen, "keys", "this page")
        os.write(master, b"\x1b")
        self.shows(master, screen, "CARDS")
        os.write(master, b"\r")
        self.shows(master, screen, f"job {running}  train", "command       sleep 600")
        os.write(master, b"\x1b[D")
        self.shows(master, screen, "CARDS")
        os.write(master, b"/later\r")
        self.until(master, screen, lambda: "train" not in screen.text() and "later" in screen.text(), "filters")
        os.write(master, b"\x1b")
        self.shows(master, screen, "train")
        os.write(master, b"q")
        self.quits(pid, master, screen)
        self.assertTrue(GONE.search(self.seen), "the screen of before is back")
        self.assertIn(b"\x1b[?25h", self.seen, "and the cursor")
        self.assertEqual(screen.unknown, [])

    def test_colours_and_signs_as_the_terminal_has_them(self):
        self.busy()
        for term, more, words, some, none in (("xterm-256color", {}, [], rb"38;5;", None), ("xterm", {}, [], rb"\x1b\[0;1;36m", rb"38;5;"),
                                              ("xterm-256color", {"NO_COLOR": "1"}, [], rb"\x1b\[0;1m", rb"38;5;|;3[0-7]m"),
                                              ("xterm", {"LC_ALL": "C"}, [], rb"-.{0,9} CARDS ", rb"[\x80-\xff]"),
                                              ("xterm", {}, ["--no-unicode"], rb"-.{0,9} CARDS ", rb"[\x80-\xff]")):
            self.env.update(more)
            pid, master, screen = self.look(*words, term=term)
            self.shows(master, screen, "train", "later", "q quit")
            self.assertRegex(self.seen, some)
            if none:
                self.assertNotRegex(self.seen, none)
            os.write(master, b"q")
            self.quits(pid, master, screen)
            for name in more:
                self.env.pop(name)

    def test_cancel_asks_first(self):
        running, waiting = self.busy()
        pid, master, screen = self.look()
        self.shows(master, screen, "train", "later")
        os.write(master, b"c")
        self.shows(master, screen, f"cancel job {running} (train of", "y yes")
        os.write(master, b"n")
        self.until(master, screen, lambda: "y yes" not in screen.text(), "the question is gone")
        self.assertEqual(self.job(running)["state"], "running")
        os.write(master, b"c")
        self.shows(master, screen, "y yes")
        os.write(master, b"y")
        self.shows(master, screen, f"job {running} is cancelled")
        self.wait_state(running, "ended")
        self.assertEqual(self.job(running)["outcome"], "cancelled")
        os.write(master, b"q")
        self.quits(pid, master, screen)

    def test_hold_release_and_logs(self):
        self.busy()
        held = self.submit("--name", "third", "--gpu", "2", "--", "true")
        talks = self.submit("--name", "talks", "--cpu-only", "--", "sh", "-c", "echo words of the job; exec sleep 600")
        self.wait_state(talks, "running")
        pid, master, screen = self.look()
        self.shows(master, screen, "third", "talks")
        os.write(master, b"\x1b[F" + b"H")
        self.shows(master, screen, f"job {held} is held; R releases it")
        self.assertEqual(self.job(held)["reason"], "held")
        os.write(master, b"R")
        self.shows(master, screen, f"job {held} is released")
        self.assertNotEqual(self.job(held)["reason"], "held")
        os.write(master, b"/talks\r" + b"l")
        self.until(master, screen, lambda: b"words of the job" in self.seen, "shows the log")
        self.seen = b""
        os.write(master, b"\x03")  # ends mete logs, not mete top
        self.until(master, screen, lambda: b"CARDS" in self.seen, "comes back")
        os.write(master, b"\x1b")
        self.ok("cancel", talks)
        ended = self.submit("--name", "brief", "--cpu-only", "--", "echo", "hello")
        self.ok("wait", ended)
        os.write(master, b"q")
        self.quits(pid, master, screen)
        self.assertEqual(self.job(held)["state"], "pending")

    def test_a_screen_of_80_columns(self):
        running, waiting = self.busy()
        for number in range(40):
            self.submit("--name", f"more-{number}", "--gpu", "2", "--", "true")
        pid, master, screen = self.look(rows=24, columns=80)
        self.shows(master, screen, "train", " more below", "l logs", "H hold", "R release")
        os.write(master, b"\x1b[F")
        self.shows(master, screen, "more-39")
        self.assertNotIn(" more below", screen.text())
        for _ in range(9):  # every order has its arrow
            os.write(master, b"s")
            self.until(master, screen, lambda: "▲" in screen.text(), "an arrow")
        os.write(master, b"q")
        self.quits(pid, master, screen)
        once = self.mete("top", "--once", env={**self.env, "COLUMNS": "80"}).stdout
        self.assertEqual(max(map(len, once.splitlines())), 80)
        self.assertIn("more-39", once, "all rows")
        self.assertRegex(once, rf"{waiting} .*later +pending .*(next|~\d)")

    def test_readonly_changes_nothing(self):
        running, _ = self.busy()
        pid, master, screen = self.look("--readonly")
        self.shows(master, screen, "train", "read only")
        for key in b"cHRTKI":
            os.write(master, bytes([key]))
            self.shows(master, screen, "--readonly: nothing is changed from here")
        os.write(master, b"yq")
        self.quits(pid, master, screen)
        self.assertEqual(self.job(running)["state"], "running")

    def test_signal_to_ones_own_process(self):
        ident = self.submit("--name", "holds", "--gpu", "8G", "--", "sh", "-c", f"sleep 600 | {PROGRAM} x 2")
        processes = []

        def on_its_card():
            processes[:] = [process for job in self.api("/v1/snapshot")[1]["jobs"] if job["id"] == ident
                            for process in job.get("processes", [])]
            return processes
        wait_until(on_its_card, "its process is seen")
        program = processes[0]["pid"]
        pid, master, screen = self.look()
        self.shows(master, screen, "holds")
        os.write(master, b"t")
        self.shows(master, screen, str(program))
        rows = [line for line in screen.text().splitlines() if "─ " in line[3:] and "CARDS" not in line]
        os.write(master, b"\x1b[B" * (1 + next(i for i, line in enumerate(rows) if str(program) in line)) + b"T")
        self.shows(master, screen, f"send TERM to process {program} of job {ident}")
        os.write(master, b"x")
        self.until(master, screen, lambda: "y yes" not in screen.text(), "the question is gone")
        self.assertTrue(self.alive(program), "only yes is yes")
        os.write(master, b"T")
        self.shows(master, screen, "y yes")
        os.write(master, b"y")
        self.shows(master, screen, "sent to one process")
        wait_until(lambda: not self.alive(program), "it has got it")
        os.write(master, b"q")
        self.quits(pid, master, screen)

    def test_the_tree_has_all_processes_of_a_job(self):
        ident = self.submit("--name", "deep", "--gpu", "8G", "--", "sh", "-c", f"(sleep 611; :) & sh -c 'sleep 612 | {PROGRAM} x 2; :'; wait")
        wait_until(lambda: any(job["processes"] for job in self.api("/v1/snapshot")[1]["jobs"]), "its process is seen")
        pid, master, screen = self.look("--no-unicode")
        self.shows(master, screen, "deep")
        os.write(master, b"t")
        self.shows(master, screen, "mete-demo")
        lines = [line for line in screen.text().splitlines() if "|-" in line or "`-" in line]
        shown = [(line.index("-") // 3, line.split("- ")[1].split()[0]) for line in lines]
        top = shown[0][0]
        tree = [(level - top, name) for level, name in shown]
        self.assertEqual(tree[0], (0, "sh"))
        self.assertEqual(sorted(tree[1:]), [(1, "sh"), (1, "sh"), (2, "mete-demo-pr~"), (2, "sleep"), (2, "sleep")])
        self.assertEqual([line.split()[-1] for line in lines if "sleep" in line], ["sleep", "sleep"], "no card, no bytes")
        os.write(master, b"q")
        self.quits(pid, master, screen)

    # ---- what happens to terminals ----

    def test_sizes(self):
        self.busy()
        for rows, columns in ((5, 20), (1, 1), (24, 80), (60, 200)):
            pid, master, screen = self.look(rows=rows, columns=columns)
            self.until(master, screen, lambda: len(self.seen) > 40, "draws")
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            screen.__init__(24, 80)
            os.kill(pid, signal.SIGWINCH)
            self.shows(master, screen, "mete top", "CARDS", "train")
            os.write(master, b"q")
            self.quits(pid, master, screen)

    def test_terminal_closes(self):
        self.busy()
        pid, master, screen = self.look()
        self.shows(master, screen, "train")
        os.close(master)
        status = os.waitpid(pid, 0)[1]
        self.assertIn(os.waitstatus_to_exitcode(status), (0, -signal.SIGHUP))

    def test_ctrl_c_and_term(self):
        self.busy()
        pid, master, screen = self.look()
        self.shows(master, screen, "train")
        os.write(master, b"\x03")
        self.quits(pid, master, screen, 0)
        self.assertTrue(GONE.search(self.seen))
        pid, master, screen = self.look()
        self.shows(master, screen, "train")
        os.kill(pid, signal.SIGTERM)
        self.quits(pid, master, screen, -signal.SIGTERM)
        self.assertTrue(GONE.search(self.seen), "the screen is put right before it goes")

    def test_ctrl_z_and_fg(self):
        self.busy()
        pid, master, screen = self.look(shell='"$METE" top --every 0.1; echo stopped; fg; echo over')
        self.shows(master, screen, "train")
        os.write(master, b"\x1a")
        self.until(master, screen, lambda: GONE.search(self.seen), "leaves")
        self.until(master, screen, lambda: b"stopped" in self.seen, "stops")
        self.until(master, screen, lambda: self.seen.count(b"\x1b[?1049h") == 2, "is there again")
        self.shows(master, screen, "train", "CARDS")
        os.write(master, b"q")
        self.until(master, screen, lambda: b"over" in self.seen, "ends")

    def test_dumb_terminal_is_told_in_sentences(self):
        running, _ = self.busy()
        pid, master, screen = self.look(term="dumb")
        self.until(master, screen, lambda: f"Job {running}, train of ".encode() in self.seen, "says it")
        self.assertNotIn(b"\x1b", self.seen)
        self.mete("cancel", running)
        self.until(master, screen, lambda: re.search(rf"Job {running}, train of [^:]*: gone".encode(), self.seen), "says the change")
        os.kill(pid, signal.SIGTERM)
        self.quits(pid, master, screen, -signal.SIGTERM)

    # ---- the daemon ----

    def test_daemon_goes_and_comes_back(self):
        self.busy()
        pid, master, screen = self.look()
        self.shows(master, screen, "train")
        self.kill_daemon()
        self.shows(master, screen, "! the daemon has gone; this is what was", "train")
        self.assertIsNone(self.daemon_pid(), "top starts none")
        self.assertEqual(self.mete("cards").returncode, 0)
        self.until(master, screen, lambda: "has gone" not in screen.text(), "goes on")
        self.shows(master, screen, "train", "later")
        os.write(master, b"q")
        self.quits(pid, master, screen)

    def stand_in(self, answer):
        """In the daemon's place, with its last snapshot: `answer` gets each connection's Accept header, and says what comes back, in pieces."""
        running, _ = self.busy()
        snapshot = self.api("/v1/snapshot")[1]
        self.kill_daemon()
        os.unlink(self.env["METE_SOCKET"])
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.env["METE_SOCKET"])
        server.listen(8)
        self.addCleanup(server.close)
        asked = []

        def serve():
            while True:
                try:
                    client = server.accept()[0]
                except OSError:
                    return
                with client:
                    try:
                        while head := client.recv(65536):
                            asked.append(b"text/event-stream" in head)
                            for piece in answer(asked, snapshot):
                                client.sendall(piece)
                            if asked[-1]:
                                break
                    except OSError:
                        pass  # it has quit
        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(server.shutdown, socket.SHUT_RDWR)
        return asked

    @staticmethod
    def whole(snapshot, number):
        body = json.dumps({**snapshot, "driver": f"n{number}"}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    @staticmethod
    def chunk(data):
        return b"%x\r\n%s\r\n" % (len(data), data)

    STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    def test_a_stream_that_is_cut_is_asked_for_again(self):
        def answer(asked, snapshot):
            if not asked[-1]:
                return [self.whole(snapshot, 0)]
            event = b"event: snapshot\ndata: %s\n\n" % json.dumps({**snapshot, "driver": f"n{len(asked)}"}).encode()
            return [self.STREAM, self.chunk(event[:100]), self.chunk(event[100:])]
        asked = self.stand_in(answer)
        pid, master, screen = self.look()
        self.shows(master, screen, "driver n5")
        self.assertEqual(asked[:5], [False, True, True, True, True])
        self.assertNotIn(b"has gone", self.seen)
        os.write(master, b"q")
        self.quits(pid, master, screen)

    def test_who_has_no_stream_is_asked_again_and_again(self):
        asked = self.stand_in(lambda asked, snapshot: [self.whole(snapshot, len(asked))])
        pid, master, screen = self.look()
        self.shows(master, screen, "driver n5")
        self.assertNotIn(b"has gone", self.seen)
        os.write(master, b"q")
        self.quits(pid, master, screen)

    def test_a_stream_of_nonsense_ends_it_with_an_error(self):
        self.stand_in(lambda asked, snapshot: [self.STREAM + self.chunk(b"data: {nonsense\n\n")] if asked[-1] else [self.whole(snapshot, 0)])
        pid, master, screen = self.look()
        self.until(master, screen, lambda: GONE.search(self.seen), "the screen of before is back")
        self.quits(pid, master, screen, 125)
        self.assertIn(b"this is not JSON", self.seen[GONE.search(self.seen).end():])

    # ---- names that bite ----

    def test_hostile_names_never_reach_the_terminal(self):
        evil = "evil\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
        ident = self.submit("--name", evil, "--gpu", "8G", "--", "sh", "-c", "sleep 600 # \x1b[31m\r\n")
        self.wait_state(ident, "running")
        pid, master, screen = self.look()
        self.shows(master, screen, "evil")
        os.write(master, b"t\r")
        self.shows(master, screen, "command")
        self.assertNotIn(b"owned\x07", self.seen)
        self.assertNotIn(b"\x1b]0", self.seen)
        self.assertNotIn("\u202e".encode(), self.seen)
        self.assertNotIn(b"\xc2\x9b", self.seen)
        os.write(master, b"q")
        self.quits(pid, master, screen)
        self.assertEqual(screen.unknown, [])
        for words in (["top", "--once"], ["top", "--once", "--plain"], ["cards", "-1"], ["ps"]):
            text = self.mete(*words).stdout
            self.assertIn("evil", text, words)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", words)

    # ---- tables ----

    def test_a_line_for_a_chat(self):
        ident = self.submit("--name", "train", "--gpu", "8G", "--", "sleep", "600")
        self.wait_state(ident, "running")
        lines = self.mete("cards", "-1").stdout.splitlines()
        self.assertEqual(len(lines), 2)
        user = self.job(ident)["user"]
        both = "\n".join(lines)
        self.assertRegex(both, rf"\| {user}/train#{ident}\((0|\?) of 8\.0G\)")
        self.assertRegex(both, r"(?m)^\[\d\] NVIDIA H200 \| \d+°C, \d+ % \| \d+\.\d / 140\.4 GiB \| free$")
        columns = self.mete("cards", "--columns", "card,power,grantable").stdout
        self.assertEqual(columns.splitlines()[0].split(), ["CARD", "POWER", "GRANTABLE"])
        self.assertIn("NVLink: cards 0,1", self.mete("cards").stdout)
        self.assertIn("NV", self.mete("cards", "--topology").stdout)
        self.assert_refused(self.mete("cards", "--columns", "pwr"), 64, "there is no such column")
        self.assert_refused(self.mete("ps", "--columns", "idd"), 64, "there is no such column")
        self.assertEqual(self.mete("ps", "--columns", "id,user").stdout.splitlines()[0].split(), ["ID", "USER"])

    def test_watch_into_a_pipe(self):
        ident = self.submit("--name", "train", "--gpu", "8G", "--", "sleep", "600")
        self.wait_state(ident, "running")
        for words, mark in ((["ps"], "train"), (["cards", "-1"], "[0] NVIDIA H200")):
            process = self.start(*words, "--watch=0.1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            blocks = 0
            while blocks < 3:
                blocks += mark in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=BOUND_S)
            self.assertEqual(process.returncode, -signal.SIGINT, rest)
        process = self.start("ps", "-o", "json", "--watch=0.1", stdout=subprocess.PIPE)
        for _ in range(2):
            self.assertEqual(json.loads(process.stdout.readline())["schema"], "mete.ps/1")
        process.stdout.close()
        self.assertEqual(process.wait(BOUND_S), 0, "no reader is left")
        self.assert_refused(self.mete("ps", "--watch=never"), 64, "is no number of seconds")

    def test_watch_on_a_terminal(self):
        ident = self.submit("--name", "train", "--gpu", "8G", "--", "sleep", "600")
        self.wait_state(ident, "running")
        pid, master, screen = self.look(shell='exec "$METE" cards -1 --watch=0.1')
        self.until(master, screen, lambda: self.seen.count(b"train") >= 3, "draws again")
        self.assertIn(b"\x1b[3A", self.seen, "over what was there: the time and two cards")
        os.write(master, b"\x03")
        self.quits(pid, master, screen, -signal.SIGINT)
        self.assertIn(b"\x1b[?25h", self.seen, "the cursor is back")


if __name__ == "__main__":
    unittest.main()
