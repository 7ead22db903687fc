# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: a mete to run, a state folder of its own, and checks of what is left."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("METE_BUILD_DIR", "build/release")).resolve()
SOURCE = pathlib.Path(os.environ.get("METE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
METE = str(BUILD / "bin" / "mete")
# Built with a sanitizer: several times slower, and its own memory and descriptors are not the program's.
SANITIZED = os.path.exists(METE) and any(name in pathlib.Path(METE).read_bytes() for name in (b"__asan_init", b"__tsan_init"))
BOUND_S = 60  # far beyond the duration of anything that works


def wait_until(condition, what):
    """Waits for a condition, not for a time; gives up only when it will clearly never come."""
    deadline = time.monotonic() + BOUND_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.005)


class MeteTest(unittest.TestCase):
    sim = None  # METE_SIM for all tests of a class

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mete-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.state = self.folder / "state"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("METE_") and k not in ("CUDA_VISIBLE_DEVICES", "LD_PRELOAD", "NO_COLOR")}
        self.env["METE_STATE_DIR"] = str(self.state)
        if self.sim:
            self.env["METE_SIM"] = self.sim
            self.env["METE_SIM_DIR"] = str(self.folder / "sim")
            self.addCleanup(self.stop_simulation)

    def stop_simulation(self):
        """Ends the simulated cards' server of this test, found by the folder it serves."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--serve" in words and str(self.folder / "sim").encode() in words:
                os.kill(int(entry.name), 9)

    def mete(self, *args, env=None, program=METE, **options):
        options.setdefault("timeout", BOUND_S)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([program, *map(str, args)], env={**self.env, **(env or {})}, text=True,
                              capture_output=True, errors="replace", **options)

    def start(self, *args, env=None, **options):
        process = subprocess.Popen([METE, *map(str, args)], env={**self.env, **(env or {})}, text=True, **options)
        self.addCleanup(self.finish, process)
        return process

    @staticmethod
    def finish(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def grants(self):
        folder = self.state / "grants"
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def assert_refused(self, result, exit_code, *texts):
        """One error in the one shape, the exit code, nothing on stdout, nothing left."""
        self.assertEqual(result.returncode, exit_code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        self.assertEqual(sum(line.startswith("error: ") for line in result.stderr.splitlines()), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)
        self.assertEqual(self.grants(), [])

    def error_object(self, result):
        return json.loads(result.stderr)["error"]


def main():
    if not os.access(METE, os.X_OK):
        sys.exit(f"{METE} is not built")
    unittest.main(verbosity=2)
