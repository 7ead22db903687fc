#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One user with many requests or unread answers, and others: users are served in turn, and an answer that is not read is not made."""
import json
import os
import re
import signal
import socket
import subprocess
import unittest

from world import BOUND_S, BUILD, METE, SANITIZED, DaemonTest, read, wait_until

GREEDY, OTHER = 61011, 61012  # unused numbers: no account is made
TRIES, LISTS, JOBS = 300, 60, 5000
PLACES = 4  # large answers of a user that are being written (src/serve/work_queue.h)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be two other users")
class Fair(DaemonTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.path = str(self.folder / "run" / "s")
        self.env["METE_SOCKET"] = self.path
        self.daemon = subprocess.Popen([BUILD / "bin" / "meted", "--system", "--state-dir", str(self.state)], env=self.env,
                                       stderr=subprocess.DEVNULL)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.kill)
        wait_until(lambda: os.path.exists(self.path), "the daemon listens")
        wait_until(lambda: self.mete("cards").returncode == 0, "it has read its cards")

    def connect(self, uid):
        """As that user: the kernel reports the user of a connection to the daemon."""
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(BOUND_S)
        os.seteuid(uid)
        try:
            connection.connect(self.path)
        finally:
            os.seteuid(0)
        return connection

    @staticmethod
    def ask(connection, method, path, body=""):
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: mete\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    @staticmethod
    def hear(connection):
        """Status and body of one answer."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += Fair.some(connection)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head.lower())[1])
        parts, have = [body], len(body)
        while have < length:
            parts.append(Fair.some(connection))
            have += len(parts[-1])
        return int(head.split()[1]), b"".join(parts).decode()

    @staticmethod
    def some(connection):
        data = connection.recv(1 << 20)
        if not data:
            raise AssertionError("it hung up")
        return data

    def waiting(self):
        connection = self.connect(0)
        self.ask(connection, "GET", "/metrics")
        text = self.hear(connection)[1]
        connection.close()
        return int(re.search(r"^mete_daemon_requests_waiting (\d+)", text, re.MULTILINE)[1])

    def memory(self):
        return int(re.search(rb"VmRSS:\s+(\d+) kB", read(f"/proc/{self.daemon.pid}/status"))[1]) << 10

    def test_what_another_asks_is_answered_in_between(self):
        body = json.dumps({"job": {"name": "x", "command": ["true"], "cwd": "/", "request": {"gpu": "10%"}, "array": "0-49999",
                                   "detached": {"umask": 18}}, "environment": []})
        greedy = [self.connect(GREEDY) for _ in range(TRIES)]
        other = self.connect(OTHER)
        for connection in [*greedy, other]:  # they are accepted, and wait for nothing
            self.ask(connection, "GET", "/v1/version")
            self.assertEqual(self.hear(connection)[0], 200)
        # All are there before the first is served.
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            for connection in greedy:
                self.ask(connection, "POST", "/v1/try", body)
            self.ask(other, "GET", "/v1/cards")
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        status, answer = self.hear(other)
        self.assertEqual(status, 200)
        answers = [self.hear(connection) for connection in greedy]
        self.assertEqual({status for status, _ in answers}, {200})
        before = [text for _, text in answers if json.loads(text)["at"] < json.loads(answer)["at"]]
        self.assertLess(len(before), TRIES // 3, "the other user waited for most of them")

    def test_an_answer_that_is_not_read_is_not_made(self):
        owner = self.connect(GREEDY)
        home = self.folder / "greedy"
        home.mkdir(mode=0o700)
        os.chown(home, GREEDY, GREEDY)
        env = {**self.env, "HOME": str(home), "METE_STATE_DIR": str(home / "state"), "METE_SIM_DIR": str(home / "sim")}
        submitted = subprocess.run([METE, "submit", "--cpu-only", "--hold", "--array", f"0-{JOBS - 1}", "--", "true"], env=env, cwd=home,
                                   user=GREEDY, group=GREEDY, extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True,
                                   text=True, timeout=BOUND_S)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.ask(owner, "GET", "/v1/jobs")
        status, text = self.hear(owner)
        self.assertEqual((status, len(json.loads(text)["jobs"])), (200, JOBS))
        memory = self.memory()
        greedy = [self.connect(GREEDY) for _ in range(LISTS)]
        for connection in greedy:
            self.ask(connection, "GET", "/v1/jobs")
        wait_until(lambda: self.waiting() == LISTS - PLACES, "all others wait for a place")
        if not SANITIZED:
            self.assertLess(self.memory() - memory, LISTS * len(text) // 3)
        # Small requests are answered, to this user too; and other users have places of their own.
        self.ask(owner, "GET", "/v1/version")
        self.assertEqual(self.hear(owner)[0], 200)
        other = self.connect(OTHER)
        self.ask(other, "GET", "/v1/jobs")
        self.assertEqual(json.loads(self.hear(other)[1])["jobs"], [])
        self.assertEqual(self.waiting(), LISTS - PLACES)
        # A client that hangs up gives its place to the next; all that read get everything.
        greedy.pop(0).close()
        for connection in greedy:
            status, again = self.hear(connection)
            self.assertEqual((status, len(json.loads(again)["jobs"])), (200, JOBS))
        wait_until(lambda: self.waiting() == 0, "nothing waits any more")


if __name__ == "__main__":
    unittest.main()
