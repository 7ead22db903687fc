# SPDX-License-Identifier: Apache-2.0
"""A simulated card, a mover and a program under park_driver, for the tests beside this file."""
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ["METE_BUILD_DIR"])
BOUND_S = 60
MIB = 1 << 20
TOTAL = 150755278848
CONTEXT = 518 * MIB
RUNNING, PARKED = 0, 3
TOKEN = b"\x11" * 16
MESSAGE = struct.Struct("<IHHQQQQIIII16s")


def wait_until(condition, what):
    end = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {BOUND_S} s still not: {what}")
        time.sleep(0.01)


class Lines:
    """The lines of a pipe, as they come."""

    def __init__(self, pipe):
        self.lines = queue.Queue()
        self.thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self.thread.start()

    def _read(self, pipe):
        for line in pipe:
            self.lines.put(line.strip())

    def next(self, want):
        """The first that `want` takes; others are passed over."""
        seen = []
        end = time.monotonic() + BOUND_S
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing more within {BOUND_S} s, but {seen}") from None
            if want(line):
                return line
            seen.append(line)


class ParkTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mete-park-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "m").mkdir()
        self.go = self.folder / "go"
        self.env = {**os.environ, "METE_SIM": "1xH200", "METE_STATE_DIR": str(self.folder)}
        self.env.pop("METE_PARKABLE", None)
        bare = {**self.env, "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
        self.card = subprocess.run([BUILD / "tests/park_program", "uuid"], env=bare, check=True, capture_output=True, text=True).stdout.strip()
        self.mover = None

    def start_mover(self, arena=4096 * MIB):
        path = self.folder / "m" / self.card
        self.mover = subprocess.Popen([BUILD / "bin/mete-mover", "--card", self.card, "--socket", path, "--arena", str(arena), "--cuda",
                                       BUILD / "simgpu/libcuda.so.1"], env=self.env)
        self.addCleanup(self.mover.wait)
        self.addCleanup(self.mover.kill)
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.control.close)

        def answers():
            try:
                self.control.connect(str(path))
                return True
            except OSError:
                return False
        wait_until(answers, "the mover listens")
        self.assertEqual(self.ask(16, size=64 << 30)[2], 32)  # allow

    def ask(self, kind, size=0):
        self.control.send(MESSAGE.pack(0x4d455445, 1, kind, 0, size, 0, 0, 0, 0, os.getuid(), 0, TOKEN))
        return MESSAGE.unpack(self.control.recv(MESSAGE.size))

    def arena_used(self):
        return self.ask(19)[5]

    def run_(self, *program, limit=4096 * MIB, procs=1, up=True, options=(), before=()):
        self.driver = subprocess.Popen(
            [BUILD / "tests/park_driver", "--state", self.folder, "--movers", self.folder / "m", "--token", TOKEN.hex(), "--preload",
             BUILD / "lib/libmete.so", "--simgpu", BUILD / "simgpu", "--card", self.card, str(limit), str(TOTAL), "--procs", str(procs),
             "--checkpoint", BUILD / "bin/mete-checkpoint", *options, "--", *before, BUILD / "tests/park_program", *map(str, program)],
            env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(self.end_driver)
        self.said = Lines(self.driver.stderr)
        self.events = Lines(self.driver.stdout)
        self.pids = []
        self.pids = [self.event("started")["pid"] for _ in range(procs)]
        for _ in range(procs if up else 0):
            self.up()

    def end_driver(self):
        if self.driver is None:
            return
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.driver.kill()
        for pipe in (self.driver.stdin, self.driver.stdout, self.driver.stderr):
            pipe.close()
        self.driver.wait()
        self.driver = None

    def up(self):
        return self.said.next(lambda line: line == "up")

    def event(self, kind):
        return json.loads(self.events.next(lambda line: json.loads(line)["event"] == kind))

    def tell(self, text):
        self.driver.stdin.write(text + "\n")
        self.driver.stdin.flush()

    def park(self, patience_ms=30000):
        self.tell(f"park {patience_ms}")
        return self.event("park")

    def unpark(self):
        self.tell("unpark")
        return self.event("unpark")

    def deep(self, patience_ms=30000):
        self.tell(f"deep {patience_ms}")
        return self.event("deep")

    def undeep(self):
        self.tell("undeep")
        return self.event("undeep")

    def on_card(self):
        """What processes hold on the card, as the simulator says."""
        said = subprocess.run([BUILD / "simgpu/mete-simgpu", "--ctl", "dump"], env=self.env, check=True, capture_output=True, text=True).stdout
        return json.loads(said)["cards"][0]["used_bytes"]

    def status(self):
        self.tell("status")
        return self.event("status")

    def assert_parked(self, end):
        self.assertEqual((end["ok"], end["state"], end["why"]), (True, PARKED, ""))

    def assert_refused(self, end, why):
        self.assertEqual((end["ok"], end["state"]), (False, RUNNING), end)
        self.assertIn(why, end["why"])

    def assert_ends(self, code=0):
        self.assertEqual(self.event("ended")["code"], code)
