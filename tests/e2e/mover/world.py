# SPDX-License-Identifier: Apache-2.0
"""What the tests of the mover share: a machine of simulated cards, movers on it, and actors that follow commands.

Nothing here waits for a time: only for an answer, or until something has come true.
"""
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("METE_BUILD_DIR", "build/release")).resolve()
MOVER = str(BUILD / "bin/mete-mover")
ACTOR = str(BUILD / "tests/mover_actor")
SIMGPU = str(BUILD / "simgpu")
BOUND_S = 60  # far beyond the duration of anything that works
MIB, GIB = 1 << 20, 1 << 30
ALICE, BOB = "a1" * 16, "b2" * 16  # tokens

# ParkReason, kinds
NO_MOVER, NO_ROOM, DRIVER = 8, 9, 10
HELLO, OUT, IN, DROP, ALLOW, FORBID, ARENA, STATUS, DONE, REFUSED = 1, 2, 3, 4, 16, 17, 18, 19, 32, 33
MESSAGE = struct.Struct("<IHHQQQQIIII16s")


def wait_until(condition, what):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.002)


def message(kind, ident=0, size=0, token="00" * 16, uid=0, magic=0x4d455445, version=1):
    return MESSAGE.pack(magic, version, kind, ident, size, 0, 0, 0, 0, uid, 0, bytes.fromhex(token))


class Answer:
    def __init__(self, data):
        (self.magic, self.version, self.kind, self.ident, self.bytes, self.used, self.wanted, self.reason, self.detail,
         self.uid, _, self.token) = MESSAGE.unpack(data)


class Raw:
    """A raw connection, for messages that no honest process sends."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(BOUND_S)
        try:
            wait_until(lambda: self.connected(path), "there is room in the queue")
        except OSError:
            self.socket.close()
            raise

    def connected(self, path):
        try:
            self.socket.connect(path)
            return True
        except BlockingIOError:  # the queue is full
            return False

    def send(self, data, descriptors=()):
        socket.send_fds(self.socket, [data], list(descriptors)) if descriptors else self.socket.send(data)
        return self

    def hear(self):
        """The next answer; None at the end of the connection."""
        try:
            data = self.socket.recv(1000)
        except ConnectionResetError:
            return None
        return Answer(data) if data else None

    def ask(self, data, descriptors=()):
        return self.send(data, descriptors).hear()

    def close(self):
        self.socket.close()


class Actor:
    def __init__(self, env):
        self.process = subprocess.Popen([ACTOR], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the actor ended with {self.process.wait(BOUND_S)}")
        return line.strip()

    def ask(self, words):
        self.say(words)
        return self.hear()

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        self.process.stdin.close()
        self.process.wait(BOUND_S)
        self.process.stdout.close()


class MoverTest(unittest.TestCase):
    """Each test has a simulated machine of its own and, once asked for, a mover of its card 0."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mete-mover-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = str(self.folder / "mover")
        self.env = {**os.environ, "METE_SIM": "1xH200", "METE_SIM_DIR": str(self.folder / "sim"), "METE_SIM_IDLE_MS": "500",
                    "LD_LIBRARY_PATH": SIMGPU}
        self.uuid = self.actor().ask("uuid")

    def actor(self, **env):
        actor = Actor({**self.env, **env})
        self.addCleanup(self.finish, actor)
        return actor

    @staticmethod
    def finish(actor):
        if actor.process.poll() is None:
            actor.kill()

    def start(self, *words, env=None, before=()):
        """A mover, as the daemon would start it, or behind the arguments of another program."""
        command = [*before, MOVER, "--card", self.uuid, "--socket", self.socket, "--cuda", SIMGPU + "/libcuda.so.1", *map(str, words)]
        process = subprocess.Popen(command, env={**self.env, **(env or {})}, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.kill()
        process.wait(BOUND_S)
        process.stderr.close()

    def mover(self, *words, **options):
        process = self.start(*words, **options)
        wait_until(lambda: process.poll() is not None or self.listens(), "the mover listens")
        if process.poll() is not None:
            raise AssertionError(f"the mover ended with {process.returncode}: {process.stderr.read()}")
        return process

    def listens(self):
        try:
            self.raw().close()
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def raw(self):
        raw = Raw(self.socket)
        self.addCleanup(raw.close)
        return raw

    def daemon(self, allow=(ALICE,), size=4 * GIB):
        """A daemon's connection; the tokens are allowed for this user."""
        daemon = self.actor()
        self.assertEqual(daemon.ask(f"daemon {self.socket}"), "done")
        for token in allow:
            self.assertEqual(daemon.ask(f"allow {token} {os.geteuid()} {size}"), "done")
        return daemon

    def process(self, size, token=ALICE, pieces=()):
        """A process with memory {id: bytes}, each full of its own pattern, that has said hello."""
        actor = self.actor()
        for ident, piece in dict(pieces).items():
            self.assertEqual(actor.ask(f"make {ident} {piece} {ident}"), "made")
        self.assertEqual(actor.ask(f"connect {self.socket}"), "done")
        self.assertEqual(actor.ask(f"hello {token} {size}"), "done 0")
        return actor

    def status(self, daemon):
        """size, used, goal, pin error"""
        return [int(word) for word in daemon.ask("status").split()]

    def wait_size(self, daemon, size):
        wait_until(lambda: self.status(daemon)[0] == size, f"the arena has {size} bytes")

    def expect_refused(self, answer, reason, **figures):
        self.assertIsNotNone(answer, "the connection was closed")
        self.assertEqual((answer.kind, answer.reason), (REFUSED, reason))
        for name, value in figures.items():
            self.assertEqual(getattr(answer, name), value, name)


__all__ = [name for name in dir() if not name.startswith("_")]
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
