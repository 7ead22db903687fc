#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete demo` shows what it says, leaves nothing behind, also when it is interrupted, and fails without the meter.

For "real" cards the simulated drivers are put where the machine's own would be found: to the demo they are real.
"""
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import unittest

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import BOUND_S, BUILD, METE, SOURCE, MeteTest  # noqa: E402


class Demo(MeteTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.env["TMPDIR"] = str(self.temporary)
        self.real = {"LD_LIBRARY_PATH": str(BUILD / "simgpu"), "METE_SIM_DIR": str(self.folder / "sim")}
        self.addCleanup(self.stop_simulation)

    def processes(self):
        """Everything alive that was started on the demo's stage."""
        mark = f"METE_STATE_DIR={self.temporary}/".encode()
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
        return found

    def assert_nothing_left(self):
        self.assertEqual(self.processes(), [])
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertFalse(self.state.exists(), "the user's own state is not touched")

    def document(self, result):
        document = json.loads(result.stdout)
        schema = json.loads((SOURCE / "docs" / "formats" / "demo.schema.json").read_text())
        jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
        return document

    def check_document(self, *words, env=None):
        result = self.mete("demo", *words, "-o", "json", env=env)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        document = self.document(result)
        verdicts = [check["verdict"] for step in document["steps"] for check in step["checks"]]
        self.assertEqual(verdicts, ["ok"] * document["ok"])
        self.assertEqual(len(document["steps"]), 4)
        greedy = next(job for job in document["jobs"] if job["name"] == "greedy")
        self.assertEqual(greedy["outcome"], "gpu-oom")
        self.assertLessEqual(greedy["peak_bytes"], greedy["bytes"])
        self.assertGreater(greedy["peak_bytes"], greedy["bytes"] // 2)
        self.assert_nothing_left()
        return document

    def test_on_simulated_cards(self):
        document = self.check_document("--sim")
        self.assertTrue(document["simulated"])
        self.assertEqual([job["name"] for job in document["jobs"]], ["big", "anna", "bert", "greedy", "whole"])

    def test_on_a_real_card(self):
        for words in (["--real"], ["--yes"], ["-y"]):
            document = self.check_document(*words, env=self.real)
            self.assertFalse(document["simulated"])
            self.assertEqual([job["name"] for job in document["jobs"]], ["anna", "bert", "greedy", "whole"])

    def test_where_nobody_can_be_asked_the_cards_are_simulated(self):
        self.assertTrue(self.check_document(env=self.real)["simulated"])

    def test_for_people(self):
        result = self.mete("demo", "--sim")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stderr, "")
        for text in ("$ mete run --gpu 40% -- mete-demo-program anna 4", "CUDA_ERROR_OUT_OF_MEMORY", "| mete: hint: ",
                     "| mete: waiting, next in the queue;", "checks held"):
            self.assertIn(text, result.stdout)
        self.assertNotIn("FAIL", result.stdout)
        self.assertNotIn("\033", result.stdout)
        self.assert_nothing_left()

    def on_terminal(self, answer, env):
        """What is read from a terminal on which the demo runs and `answer` is typed."""
        ours, theirs = pty.openpty()
        process = self.start("demo", env={**env, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, answer)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(BOUND_S), 0, text)
        self.assert_nothing_left()
        return text.decode()

    def test_a_user_is_asked_before_a_real_card_is_used(self):
        agreed = self.on_terminal(b"y\n", self.real)
        self.assertIn("[y/N]", agreed)
        self.assertIn("Card 0 of this machine", agreed)
        for answer in (b"n\n", b"\n"):
            refused = self.on_terminal(answer, self.real)
            self.assertIn("[y/N]", refused)
            self.assertIn("4 simulated cards", refused)
        self.assertIn("\r\033[K   ... ", refused, "progress is shown")

    def test_interrupted_anywhere_it_leaves_nothing(self):
        after = ["simulated cards", "mete-demo-program big", "mete-demo-program anna", "mete-demo-program bert",
                 "mete-demo-program greedy", "mete-demo-program whole", "mete: waiting", "mete ps -a"]
        codes = []
        for number, text in enumerate(after):
            kind = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[number % 3]
            process = self.start("demo", "--sim", stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            for line in process.stdout:
                if text in line:
                    break
            else:
                self.fail(f"never seen: {text}\n{process.stderr.read()}")
            process.send_signal(kind)
            rest = process.stdout.read()
            codes.append(process.wait(BOUND_S))
            # It may have been about to end.
            self.assertIn(codes[-1], (128 + kind, 0), rest)
            self.assert_nothing_left()
        self.assertIn(130, codes)
        self.assertIn(143, codes)

    def test_ctrl_c_on_a_terminal(self):
        """The terminal signals the whole foreground; the programs are not in it, and are told by the demo."""
        process = self.start("demo", "--sim", stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             start_new_session=True)
        self.assertIn("simulated cards", process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
        self.assertEqual(process.wait(BOUND_S), 130)
        self.assertIn("nothing is left", process.stderr.read())
        self.assert_nothing_left()

    def test_output_that_nobody_reads(self):
        process = self.start("demo", "--sim", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        process.wait(BOUND_S)
        self.assert_nothing_left()

    def copy_without(self, *missing):
        copy = self.folder / "copy"
        for part in ("bin", "lib"):
            (copy / part).mkdir(parents=True)
        (copy / "simgpu").symlink_to(BUILD / "simgpu")
        for name in ("mete", "meted", "mete-probe", "mete-demo-program"):
            shutil.copy(BUILD / "bin" / name, copy / "bin")
        for library in (BUILD / "lib").glob("*.so"):
            shutil.copy(library, copy / "lib")
        for path in missing:
            (copy / path).unlink()
        return str(copy / "bin" / "mete")

    def test_without_the_meter(self):
        """An empty meter in its place: tests/checks/demo_without_meter.sh."""
        result = self.mete("demo", "--sim", program=self.copy_without("lib/libmete.so"))
        self.assert_refused(result, 125, "libmete.so is missing")
        self.assert_nothing_left()

    def test_without_its_program_or_the_daemon(self):
        program = self.copy_without("bin/mete-demo-program")
        self.assert_refused(self.mete("demo", "--sim", program=program), 125, "mete-demo-program is missing")
        shutil.rmtree(self.folder / "copy")
        result = self.mete("demo", "--sim", program=self.copy_without("bin/meted"))
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assert_nothing_left()

    def test_a_card_that_is_in_use_is_left_alone(self):
        somebody = subprocess.Popen([BUILD / "bin" / "mete-demo-program", "somebody", "1"], env={**self.env, **self.real},
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.finish, somebody)
        for _ in ("sees", "holds"):
            somebody.stdout.readline()
        self.assert_refused(self.mete("demo", "--real", env=self.real), 75, "no card is free for the demo", "mete demo --sim")
        somebody.communicate()
        self.assertEqual(somebody.returncode, 0)
        self.check_document("--real", env=self.real)

    def test_contradicting_words(self):
        self.assert_refused(self.mete("demo", "--real", "--sim"), 64, "exclude each other")

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a card")
    def test_real_without_a_card(self):
        self.assert_refused(self.mete("demo", "--real"), 69, "mete demo --sim")
        self.assertTrue(self.check_document("--yes")["simulated"])


if __name__ == "__main__":
    if not os.access(METE, os.X_OK):
        sys.exit(f"{METE} is not built")
    unittest.main(verbosity=2)
