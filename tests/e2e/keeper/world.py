# SPDX-License-Identifier: Apache-2.0
"""Keepers of one's own for a test: a state folder, and a daemon that does nothing but keep jobs (driver.cc)."""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["METE_BUILD_DIR"])
DRIVER = str(BUILD / "tests" / "keeper_driver")
KEEPER = str(BUILD / "bin" / "mete-keeper")
# Built with a sanitizer: several times slower.
SANITIZED = os.path.exists(KEEPER) and any(name in pathlib.Path(KEEPER).read_bytes() for name in (b"__asan_init", b"__tsan_init"))
BOUND_S = 60
FINAL = ("ended", "runner_gone", "not_launched")


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def alive(pid):
    fields = read(f"/proc/{pid}/stat").rsplit(b")", 1)
    return len(fields) == 2 and fields[1].split()[0] not in (b"Z", b"X")


def wait_until(condition, what):
    end = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {BOUND_S} s still not: {what}")
        time.sleep(0.01)


def groups_of(keepers):
    """Control groups that these keepers have made; others may run keepers at the same time."""
    ends = tuple(f"-{pid}" for pid in keepers)
    # Not by glob, which fails on a folder that is removed meanwhile.
    return [os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith("mete-") and name.endswith(ends)]


class Driver:
    """One life of the daemon."""

    def __init__(self, state, keeper=KEEPER, **options):
        self.process = subprocess.Popen([DRIVER, keeper, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.buffer = b""
        self.events = []

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def _read(self, timeout):
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        if not ready:
            return False
        got = os.read(self.process.stdout.fileno(), 65536)
        if not got:
            raise AssertionError("the driver has ended")
        self.buffer += got
        *lines, self.buffer = self.buffer.split(b"\n")
        self.events += [json.loads(line) for line in lines]
        return True

    def wait(self, job, *kinds):
        """The next event of the job of one of these kinds; others stay for later."""
        end = time.monotonic() + BOUND_S
        while True:
            for event in self.events:
                if event["job"] == str(job) and event["event"] in kinds:
                    self.events.remove(event)
                    return event
            if time.monotonic() > end:
                raise AssertionError(f"job {job}: no {kinds} within {BOUND_S} s, but {self.events}")
            self._read(0.2)

    def settle(self, seconds=0.3):
        while self._read(seconds):
            pass
        return self.events

    def kill(self):
        self.process.kill()
        self.close()

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        self.process.wait()


class KeeperTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mete-keeper-"))
        self.state = self.folder / "state"
        self.state.mkdir()
        self.mark = f"METE_TEST_MARK={self.folder}"
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.end_everything)
        self.drivers = []
        self.keepers = set()
        self.driver = self.new_driver()

    def new_driver(self, **options):
        env = {"PATH": os.environ["PATH"], "METE_STATE_DIR": str(self.state)}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        driver = Driver(self.state, env=env, **options)
        self.drivers.append(driver)
        return driver

    def end_everything(self):
        for driver in self.drivers:
            driver.kill()
        mine = (self.mark.encode(), f"METE_STATE_DIR={self.state}".encode())
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            if any(mark in read(entry / "environ").split(b"\0") for mark in mine):
                try:
                    os.kill(int(entry.name), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def restart(self):
        self.driver.kill()
        self.driver = self.new_driver()

    # ---- jobs ----

    def plan(self, job, *command, **more):
        environment = ["PATH=/usr/bin:/bin", self.mark, f"OUT={self.folder}"] + more.pop("environment", [])
        return {"job": str(job), "command": list(command), "environment": environment, **more}

    def start(self, job, *command, driver=None, find=False, **more):
        (driver or self.driver).tell(do="start", plan=self.plan(job, *command, **more), find=find)

    def sh(self, job, text, **more):
        self.start(job, "sh", "-c", text, **more)

    def stop(self, job):
        self.driver.tell(do="stop", job=str(job))

    def forget(self, job):
        self.driver.tell(do="forget", job=str(job))

    def started(self, job):
        event = self.driver.wait(job, "started")
        self.keepers.add(event["keeper"][0])
        return event["keeper"][0], event["program"][0]

    def ended(self, job):
        return self.driver.wait(job, "ended")["exit"]

    def final(self, job):
        """The one word about the end, and that no second one comes."""
        event = self.driver.wait(job, *FINAL)
        rest = [one for one in self.driver.settle() if one["job"] == str(job) and one["event"] in FINAL]
        self.assertEqual(rest, [], "one word is the last")
        return event

    def hider(self):
        """A command whose process cannot be found by its parent, its session or its environment; TERM does not end it."""
        path = self.folder / "hider.py"
        path.write_text("import os, sys\n"
                        "if os.fork(): os._exit(0)\n"
                        "os.setsid()\n"
                        "if os.fork(): os._exit(0)\n"
                        "os.execve('/bin/sh', ['sh', '-c', 'trap \"\" TERM; echo $$ > $0; exec sleep 1000', sys.argv[1]], {})\n")
        return f"/usr/bin/python3 {path} {self.folder}/hidden"

    def hidden(self):
        wait_until(lambda: read(self.folder / "hidden").strip(), "the hidden one runs")
        pid = int(read(self.folder / "hidden"))
        self.assertNotIn(b"METE", read(f"/proc/{pid}/environ"))
        self.addCleanup(lambda: os.kill(pid, signal.SIGKILL) if alive(pid) else None)
        return pid

    def log(self, job):
        return (self.state / "logs" / f"{job}.log").read_text(errors="replace")

    def records(self):
        return sorted(os.listdir(self.state / "keep"))

    def assert_nothing_left(self, job=1):
        self.forget(job)
        wait_until(lambda: not any(name.startswith(f"{job}.") for name in self.records()), "the record is gone")
        wait_until(lambda: not groups_of(self.keepers), "no control group is left")
