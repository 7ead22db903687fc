#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that lie, send junk, never read, come in crowds, or belong to another user: one clear answer each, no other client harmed."""
import os
import resource
import socket
import tempfile
import unittest

from world import *

OTHER_USER = 61001  # an unused number: no account is made


def speak_as(uid, path, messages):
    """Sends them from a process of that user; returns kind and reason of each answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            raw = Raw(path)
            answers = [raw.ask(data) for data in messages]
            os.write(writer, " ".join(f"{a.kind} {a.reason}" for a in answers).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        words = list(map(int, file.read().split()))
    os.waitpid(child, 0)
    return list(zip(words[::2], words[1::2]))


def crowd_of(uid, path, messages):
    """That many connections of another user, each with a message or b""; how many are still there, and what ends them all."""
    reader, writer = os.pipe()
    end, ended = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ended)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            crowd, answers = [], 0
            for data in messages:
                crowd.append(Raw(path))
                if data:
                    try:
                        answers += crowd[-1].ask(data) is not None
                    except BrokenPipeError:
                        pass
            os.write(writer, str(answers).encode())
            os.close(writer)
            os.read(end, 1)
        finally:
            os._exit(0)
    os.close(writer)
    os.close(end)
    with os.fdopen(reader) as file:
        answers = int(file.read())

    def leave():
        os.close(ended)
        os.waitpid(child, 0)
    return answers, leave


class HostileTest(MoverTest):
    def setUp(self):
        super().setUp()
        self.running = self.mover("--arena", "128M")
        self.controller = self.daemon()

    def tearDown(self):
        """Whatever came before: an honest process is served, and nothing has leaked."""
        wait_until(lambda: self.status(self.controller)[1] == 0, "nothing is held")
        self.controller.ask(f"allow {BOB} {os.geteuid()} {GIB}")
        job = self.process(64 * MIB, BOB, {1: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertEqual(job.ask("in 1"), "done 1")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertIsNone(self.running.poll())

    def hello(self, size=64 * MIB):
        raw = self.raw()
        self.assertEqual(raw.ask(message(HELLO, size=size, token=ALICE)).kind, DONE)
        return raw

    def null(self):
        file = open("/dev/null", "rb")
        self.addCleanup(file.close)
        return file.fileno()

    def test_junk_is_answered_once_and_closed(self):
        for data in (b"x", b"GET / HTTP/1.1\r\n\r\n", message(HELLO)[:-1], message(HELLO) + b"x", message(HELLO, magic=1),
                     message(HELLO, version=2), message(HELLO, version=0)):
            raw = self.raw()
            answer = raw.ask(data)
            self.expect_refused(answer, NO_MOVER, version=1)
            self.assertIsNone(raw.hear(), data)

    def test_an_unknown_kind_is_refused(self):
        raw = self.hello()
        for kind in (0, 5, 15, 20, DONE, REFUSED, 65535):
            self.expect_refused(raw.ask(message(kind, 7)), DRIVER, detail=1, ident=7)
        raw.close()

    def test_nothing_goes_without_a_token(self):
        raw = self.raw()
        self.expect_refused(raw.ask(message(HELLO, size=MIB, token="99" * 16)), NO_MOVER)
        self.expect_refused(raw.ask(message(HELLO, size=MIB)), NO_MOVER)
        for kind in (OUT, IN, DROP):
            self.expect_refused(raw.ask(message(kind, 1, 2 * MIB), [self.null()]), NO_MOVER)

    def test_wrong_sizes_ids_and_descriptors(self):
        raw, null = self.hello(), self.null()
        for size in (0, 1, 4096, 3 * MIB, (1 << 64) - 1):
            self.expect_refused(raw.ask(message(OUT, 1, size), [null]), DRIVER, detail=1)
        self.expect_refused(raw.ask(message(OUT, 0, 2 * MIB), [null]), DRIVER, detail=1)
        self.expect_refused(raw.ask(message(OUT, 1, 2 * MIB)), DRIVER, detail=1)  # no descriptor
        for count in (2, 3, 100):
            self.expect_refused(raw.ask(message(OUT, 1, 2 * MIB), [null] * count), DRIVER, detail=1)
        self.expect_refused(raw.ask(message(OUT, 1, 2 * MIB), [null]), DRIVER)  # not memory: the driver's own code
        self.expect_refused(raw.ask(message(OUT, 1, 66 * MIB), [null]), NO_ROOM, bytes=64 * MIB)
        self.expect_refused(raw.ask(message(IN, 1, 2 * MIB), [null]), DRIVER, detail=1)
        self.expect_refused(raw.ask(message(DROP, 1)), DRIVER, detail=1)
        self.expect_refused(raw.ask(message(HELLO, size=(1 << 64) - 1, token=ALICE)), NO_ROOM, bytes=128 * MIB)
        raw.close()

    def test_a_size_that_is_not_the_memorys_own(self):
        job = self.actor()
        job.ask(f"make 1 {8 * MIB} 1")
        job.ask(f"connect {self.socket}")
        job.ask(f"hello {ALICE} {64 * MIB}")
        for wrong in (6 * MIB, 16 * MIB):
            self.assertRegex(job.ask(f"lie 1 {wrong}"), rf"refused 1 {DRIVER} (1|801) 0")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertRegex(job.ask(f"lie 1 {8 * MIB}"), rf"refused 1 {DRIVER} 1 0")  # the same id again
        self.assertEqual(job.ask("in 1"), "done 1")
        self.assertEqual(job.ask("check 1 1"), "same")
        job.kill()

    def test_a_file_in_place_of_memory_ends_the_trust(self):
        raw = self.hello()
        with tempfile.TemporaryFile() as file:
            self.expect_refused(raw.ask(message(OUT, 1, 2 * MIB), [file.fileno()]), DRIVER, detail=1)
        self.assertIsNone(raw.hear())
        self.expect_refused(self.raw().ask(message(HELLO, size=MIB, token=ALICE)), NO_MOVER)

    def test_who_never_listens_stops_himself_alone(self):
        raw, null = self.hello(), self.null()
        raw.socket.setblocking(False)
        sent = 0
        try:
            while sent < 100000:
                raw.send(message(OUT, 1, 2 * MIB), [null])
                sent += 1
        except BlockingIOError:
            pass
        self.assertLess(sent, 100000)
        job = self.process(32 * MIB, pieces={1: 8 * MIB})  # another process is served meanwhile
        self.assertEqual(job.ask("out 1"), "done 1")
        job.kill()
        raw.close()

    def test_answers_come_in_order(self):
        raw, null = self.hello(), self.null()
        for ident in range(1, 21):
            raw.send(message(OUT, ident, 2 * MIB), [null])  # refused by the driver, later
            raw.send(message(IN, 1000 + ident, 2 * MIB), [null])  # refused at once
        self.assertEqual([raw.hear().ident for _ in range(40)], [n for i in range(1, 21) for n in (i, 1000 + i)])
        raw.close()

    def test_a_crowd_is_bounded(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        crowd = [self.raw() for _ in range(1000)]
        self.assertEqual(self.status(self.controller)[0], 128 * MIB)
        # Most have been disconnected again, the oldest first; the latest may still send.
        wait_until(lambda: len(os.listdir(f"/proc/{self.running.pid}/fd")) < 400, "strangers are sent off")
        self.assertEqual(crowd[-1].ask(message(HELLO, size=0, token=ALICE)).kind, DONE)
        self.assertIsNone(crowd[0].hear())
        for raw in crowd:
            raw.close()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_a_crowd_of_one_user_keeps_nobody_else_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        os.chmod(self.folder, 0o755)
        os.chmod(self.socket, 0o666)
        first = self.raw()  # says nothing yet
        _, leave = crowd_of(OTHER_USER, self.socket, [b""] * 600)
        try:
            wait_until(lambda: len(os.listdir(f"/proc/{self.running.pid}/fd")) < 400, "strangers are sent off")
            self.assertEqual(first.ask(message(HELLO, size=0, token=ALICE)).kind, DONE)
        finally:
            leave()
        tokens = ["71" * 16, "72" * 16, "73" * 16]
        for token in tokens:
            self.controller.ask(f"allow {token} {OTHER_USER} {GIB}")
        answers, leave = crowd_of(OTHER_USER, self.socket, [message(HELLO, token=tokens[i % 3]) for i in range(2148)])
        try:
            self.assertEqual(answers, 2048)
            self.assertEqual(self.raw().ask(message(HELLO, size=0, token=ALICE)).kind, DONE)
        finally:
            leave()
        first.close()

    def test_half_a_conversation_leaves_nothing_behind(self):
        for kind in (OUT, IN):
            raw = self.hello()
            raw.send(message(kind, 1, 2 * MIB), [self.null()])
            raw.socket.shutdown(socket.SHUT_RDWR)
            raw.close()
        wait_until(lambda: self.status(self.controller)[1] == 0, "nothing is held")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_another_user_has_another_token(self):
        os.chmod(self.folder, 0o755)
        os.chmod(self.socket, 0o666)
        self.controller.ask(f"allow {BOB} {OTHER_USER} {GIB}")

        def speak(*messages):
            return speak_as(OTHER_USER, self.socket, messages)

        self.assertEqual(speak(message(HELLO, size=MIB, token=ALICE)), [(REFUSED, NO_MOVER)])
        self.assertEqual(speak(message(HELLO, size=MIB, token=BOB)), [(DONE, 0)])
        words = [message(ALLOW, size=GIB, token="77" * 16, uid=OTHER_USER), message(FORBID, token=ALICE), message(ARENA),
                 message(STATUS)]
        self.assertEqual(speak(*words), [(REFUSED, NO_MOVER)] * 4)
        self.assertEqual(self.controller.ask(f"token {ALICE}").split()[0], str(4 * GIB))

    def test_a_forbidden_job_comes_home_and_no_more(self):
        job = self.process(64 * MIB, pieces={1: 8 * MIB, 2: 8 * MIB})
        self.assertEqual(job.ask("out 1"), "done 1")
        self.assertEqual(self.controller.ask(f"forbid {ALICE}"), "done")
        self.assertEqual(job.ask("out 2"), f"refused 2 {NO_MOVER} 0 0")
        self.assertEqual(job.ask("in 1"), "done 1")
        self.assertEqual(job.ask("check 1 1"), "same")
        self.assertEqual(job.ask("drop 0"), "done 0")
        job.kill()
        wait_until(lambda: self.controller.ask(f"token {ALICE}") == "error not_found", "the token is forgotten")


if __name__ == "__main__":
    unittest.main()
