# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests of the meter share: a machine of simulated cards, grants, and actors that follow commands.

A `World` is one simulated machine in a folder of its own. `world.grant(...)` makes a grant file; `world.actor(...)` starts
the actor under it with the real preload, the way a launcher does. Nothing here waits for a time: only for an answer.
"""
import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from books import Books, CONTEXT, MORE

BUILD = pathlib.Path(os.environ.get("METE_BUILD_DIR", "build/release")).resolve()
SOURCE = pathlib.Path(os.environ.get("METE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
PROGRAMS = BUILD / "tests"
ACTOR = str(PROGRAMS / "meter_actor")
METE = str(BUILD / "bin/mete")
SIMGPU = str(BUILD / "simgpu")
PRELOAD = [str(BUILD / "lib" / name) for name in ("libmete.so", "libmete-cuda.so", "libmete-nvml.so", "libmete-nvml-1.so")]
BOUND_S = 60  # far beyond the duration of anything that works
MIB, GIB = 1 << 20, 1 << 30
OOM = 2


def wait_until(condition, what):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.002)


class Gone(Exception):
    """The actor ended instead of answering."""


class Actor:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.pid = self.process.pid
        self.buffer = b""

    def say(self, words):
        try:
            self.process.stdin.write(words.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # noticed when no answer comes

    def hear(self, bound_s=BOUND_S):
        """The next line of the answer as a list of words; numbers are numbers."""
        deadline = time.monotonic() + bound_s
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if not ready.select(max(0, deadline - time.monotonic())):
                    raise AssertionError(f"actor {self.pid} did not answer")
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    raise Gone(f"actor {self.pid} ended with {self.process.wait()}: {self.errors()}")
                self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return [int(w) if w.lstrip("-").isdigit() else w for w in line.decode().split()]

    def ask(self, words):
        self.say(words)
        return self.hear()

    def code(self, words):
        return self.ask(words)[0]

    def start(self, device=0):
        """cuInit and a primary context; both must work."""
        for words in ("init", f"retain {device}"):
            code = self.code(words)
            if code != 0:
                raise AssertionError(f"{words}: {code} {self.errors()}")
        return self

    def take(self, kind, size, *rest):
        code, ident = self.ask(" ".join(["take", kind, size, *map(str, rest)]))
        if code != 0:
            raise AssertionError(f"take {kind} {size}: {code}")
        return ident

    def free(self):
        return self.ask("info")[1]

    def fill(self, kind="alloc", chunk="16M", *most):
        """Everything there is, in chunks; returns (bytes, code of the refusal)."""
        code, got = self.ask(" ".join(["fill", kind, chunk, *most]))
        return got, code

    def wait_state(self, state):
        """Until the kernel says T (stopped) or Z (dead and not reaped) of it."""
        def reached():
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == state
        wait_until(reached, f"actor {self.pid} is in state {state}")

    def kill(self):
        """SIGKILL; returns when the kernel has reaped it."""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(BOUND_S)

    def errors(self):
        return self.process.stderr.read().decode(errors="replace") if self.process.poll() is not None else ""

    def quit(self):
        self.process.stdin.close()
        return self.process.wait(BOUND_S)

    def end(self):
        self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


class World(unittest.TestCase):
    sim = "1xH200"
    environment = {}

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mete-meter-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("METE_", "CUDA_", "NVIDIA_")) and k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        self.env.update(METE_SIM=self.sim, METE_SIM_DIR=str(self.folder / "sim"), METE_STATE_DIR=str(self.folder / "state"),
                        LD_LIBRARY_PATH=SIMGPU, **self.environment)
        self.addCleanup(self.control, "stop")
        self.actors = []
        self.addCleanup(self.end_actors)
        self.grants = 0

    def end_actors(self):
        for actor in self.actors:
            actor.end()

    def control(self, *words):
        return subprocess.run([f"{SIMGPU}/mete-simgpu", "--ctl", *map(str, words)], env=self.env, capture_output=True, text=True,
                              timeout=BOUND_S)

    def dump(self):
        return json.loads(self.control("dump").stdout)

    def uuids(self):
        """The machine's cards in their own order."""
        if not hasattr(self, "all_cards"):
            self.outside = self.actor(None)  # stays, so that the server does too
            self.assertEqual(self.outside.code("init"), 0)
            self.all_cards = self.outside.ask("uuids")[1:]
        return self.all_cards

    def grant(self, *shares, parts=1, first=CONTEXT, more=MORE, guarantee=None, parkable=False):
        """A grant file; shares are bytes on card 0, or (card, bytes). With a guarantee they are what it may grow to."""
        self.grants += 1
        path = self.folder / f"grant-{self.grants}"
        cards = [share if isinstance(share, tuple) else (0, share) for share in shares]
        words = [f"{self.uuids()[card]}:{size}:{first}:{more}" + (f":{guarantee}" if guarantee else "") for card, size in cards]
        subprocess.run([PROGRAMS / "meter_make_grant", *(["--parkable"] if parkable else []), path, str(parts), *words], check=True)
        books = Books(path)
        books.order = [card for card, _ in cards]
        return books

    def job_env(self, books, **more):
        env = {**self.env, "METE_GRANT": str(books.path), "LD_PRELOAD": ":".join(PRELOAD), "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
               "CUDA_VISIBLE_DEVICES": ",".join(self.uuids()[c] for c in books.order)}
        for name, value in more.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def actor(self, books, *words, command=None, **more):
        """An actor inside the grant, or outside of every job when `books` is None."""
        env = {**self.env, **more} if books is None else self.job_env(books, **more)
        actor = Actor([*(command or [ACTOR]), *words], env)
        self.actors.append(actor)
        return actor

    def assert_exact(self, books, card=0, part=0):
        self.assertEqual(books.sum_of_charges(card, part), books.total(card, part), "the charges and the total")

    def physical(self, card=0, pids=None):
        """Bytes of the simulated card that the processes hold (all of them when not said)."""
        return sum(p["bytes"] for p in self.dump()["pieces"] if p["card"] == card and (pids is None or p["owner_pid"] in pids))


def main():
    for needed in (ACTOR, METE, PRELOAD[0], f"{SIMGPU}/libcuda.so.1"):
        if not os.path.exists(needed):
            sys.exit(f"{needed} is not built")
    unittest.main(verbosity=2)
