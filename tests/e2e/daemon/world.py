# SPDX-License-Identifier: Apache-2.0
"""A machine of one's own for a test: simulated cards, a state folder, a private daemon that is started by need."""
import json
import os
import pathlib
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import BOUND_S, BUILD, METE, SANITIZED, SOURCE, MeteTest, wait_until  # noqa: E402

ACTOR = str(BUILD / "tests" / "meter_actor")
GIB, MIB = 1 << 30, 1 << 20
CAPACITY = {"H200": 150109880320}  # what a simulated card can grant


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


class DaemonTest(MeteTest):
    sim = "1xH200"

    def setUp(self):
        super().setUp()
        self.env["METE_SOCKET"] = str(self.folder / "s")
        self.env["METE_CLAIMS_DIR"] = ""
        self.addCleanup(self.end_daemon)
        self.addCleanup(self.check_escapes)

    # ---- the daemon ----

    # Whether processes of this test hold memory outside their meter. All others are ordinary programs, for which no
    # escape may be reported.
    escapes = False

    def escapes_seen(self):
        after, found = 1, []
        while True:
            events = self.api(f"/v1/events?from={after}")[1]
            found += [event for event in events["events"] if event["type"] == "escape.seen"]
            if events["next"] == after:
                return found
            after = events["next"]

    def check_escapes(self):
        if self.escapes or self.daemon_pid() is None:
            return
        try:
            seen = self.escapes_seen()
        except (OSError, KeyError, ValueError):
            return  # it is stopped, full, or of another user
        self.assertEqual(seen, [], "an ordinary program was said to hold memory outside its meter")

    # ---- a program that does what it is told ----

    def start_actor(self, *words):
        """In a run, with a context from the start; 4 GiB unless the words say otherwise."""
        share = () if "--gpu" in words else ("--gpu", "4G")
        process = self.start_run("-q", *share, *words, "--", ACTOR, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        for line in ("init", "retain 0"):
            self.tell(process, line)
        return process

    def say(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return process.stdout.readline().split()

    def tell(self, process, line):
        """say(), and the command succeeds."""
        answer = self.say(process, line)
        self.assertEqual(answer[:1], ["0"], line)
        return answer

    def end_actor(self, process):
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(BOUND_S), 0)

    # ---- processes ----

    def daemon_pid(self):
        for process in self.processes("meted"):
            return process
        return None

    def processes(self, name):
        """Living processes of that program with this test's state folder in their environment."""
        mark = f"METE_STATE_DIR={self.state}".encode()
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            words = read(entry / "cmdline").split(b"\0")
            if os.path.basename(words[0]).decode(errors="replace") != name:
                continue
            if mark in read(entry / "environ").split(b"\0"):
                found.append(int(entry.name))
        return sorted(found)

    def kill_daemon(self, number=signal.SIGKILL):
        pid = self.daemon_pid()
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        wait_until(lambda: not self.alive(pid), "the daemon ends")
        return True

    @staticmethod
    def alive(pid):
        fields = read(f"/proc/{pid}/stat").rsplit(b")", 1)
        return len(fields) == 2 and fields[1].split()[0] not in (b"Z", b"X")

    def end_daemon(self):
        while (pid := self.daemon_pid()) is not None:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not self.alive(pid), "the daemon ends")

    def api(self, path, method="GET", body=None):
        """A request over the socket, by nothing of ours."""
        import http.client

        class Connection(http.client.HTTPConnection):
            def connect(this):
                this.sock = socket.socket(socket.AF_UNIX)
                try:
                    this.sock.connect(self.env["METE_SOCKET"])
                except OSError:
                    this.sock.close()
                    raise

        connection = Connection("mete", timeout=BOUND_S)
        try:
            connection.request(method, path, body)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read().decode())
        finally:
            connection.close()

    def jobs(self, everything=True):
        return self.api("/v1/jobs" + ("?all=1" if everything else ""))[1]["jobs"]

    def job(self, ident):
        return next(job for job in self.jobs() if job["id"] == str(ident))

    def card(self, index=0):
        return self.api("/v1/cards")[1]["cards"][index]

    # ---- runs ----

    def run_(self, *words, **options):
        return self.mete("run", *words, **options)

    def start_run(self, *words, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        return self.start("run", *words, **options)

    def holder(self, share="100%", *more):
        """A run that holds a share until it is told to end (by its standard input); returns when it runs."""
        process = self.start_run("-q", "--gpu", share, *more, "--", "sh", "-c", "echo up; read x; exit ${x:-0}",
                                 stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "up\n", process.stderr.read() if process.poll() else "")
        return process

    def release(self, process, code=0):
        process.stdin.write(f"{code}\n")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(BOUND_S), code)

    def assert_refused(self, result, exit_code, *texts):
        """As in every verb; grants of others may be there meanwhile."""
        before, self.grants = self.grants, lambda: []
        try:
            super().assert_refused(result, exit_code, *texts)
        finally:
            self.grants = before

    def wait_state(self, ident, *states):
        def reached():
            try:
                return self.job(ident)["state"] in states
            except (OSError, StopIteration):
                return False
        wait_until(reached, f"job {ident} is {' or '.join(states)}")

    def assert_nothing_left(self):
        """No grant, no file, no process but the daemon's own."""
        wait_until(lambda: all(job["state"] == "ended" for job in self.jobs()), "all jobs have ended")
        for card in self.api("/v1/cards")[1]["cards"]:
            self.assertEqual(card["granted_bytes"], 0)
        self.assertEqual(self.grants(), [])

    def ok(self, *words, **options):
        result = self.mete(*words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def document(self, name, *words):
        """What a verb prints with -o json, held to its schema."""
        document = json.loads(self.ok(*words, "-o", "json").stdout)
        schema = json.loads((SOURCE / "docs" / "formats" / f"{name}.schema.json").read_text())
        jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
        return document


class Forgetful:
    """Stands before the daemon and hands everything on, but the answers to the first requests that begin with `line`: it hangs
    up instead, as a daemon does that is killed when all is on disk."""

    def __init__(self, test, line, times=1, name="forgetful"):
        self.line, self.left, self.seen = line, times, 0
        self.daemon = test.env["METE_SOCKET"]
        self.path = str(test.folder / name)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(16)
        test.addCleanup(self.socket.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.hand_on, args=(client,), daemon=True).start()

    def hand_on(self, client):
        with client, socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(self.daemon)
            forget = False
            while True:
                ready = select.select([client, daemon], [], [])[0]
                if client in ready:
                    data = client.recv(1 << 20)
                    if data.startswith(self.line):
                        self.seen += 1
                        forget = self.seen <= self.left
                    daemon.sendall(data)
                else:
                    data = daemon.recv(1 << 20)
                    if forget:
                        return
                    client.sendall(data)
                if not data:
                    return


class Screen:
    """A program on a terminal of its own."""

    def __init__(self, test, *words):
        self.test, self.seen = test, b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(METE, [METE, *words], {**test.env, "TERM": "xterm"})
        test.addCleanup(self.close)

    def until(self, text):
        def read():
            if select.select([self.fd], [], [], 0.01)[0]:
                try:
                    self.seen += os.read(self.fd, 4096)
                except OSError:
                    pass
            return text in self.seen
        wait_until(read, f"{text} is shown, not {self.seen[-300:]}")

    def type(self, keys):
        os.write(self.fd, keys)

    def exit_code(self):
        def ended():
            if select.select([self.fd], [], [], 0)[0]:
                try:
                    self.seen += os.read(self.fd, 4096)
                except OSError:
                    pass
            self.status = os.waitpid(self.pid, os.WNOHANG)
            return self.status[0] == self.pid
        wait_until(ended, f"it ends after {self.seen[-300:]}")
        self.pid = None
        return os.waitstatus_to_exitcode(self.status[1])

    def close(self):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class VerbTest(DaemonTest):
    """For the verbs about jobs: jobs that run until they are let end, and documents held to their schemas."""
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_jobs)

    def end_jobs(self):
        """Jobs outlive their daemon: what a test has left running is ended before that."""
        if jobs := self.mete("ps", "-q").stdout.split():
            self.mete("cancel", *jobs)
            self.mete("wait", *jobs)

    def submit(self, *words, **options):
        result = self.mete("submit", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def flag(self, name="flag"):
        return self.folder / name

    def until(self, name="flag"):
        """A program that runs until it is told how to end."""
        path = self.flag(name)
        return ["sh", "-c", f"while [ ! -e {path} ]; do sleep 0.02; done; exit $(cat {path})"]

    def let_end(self, name="flag", code=0):
        new = self.flag(name + ".new")
        new.write_text(str(code))
        os.rename(new, self.flag(name))
