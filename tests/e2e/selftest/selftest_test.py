#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete selftest` on simulated cards: it passes; and with any one hook of the meter left out it fails and names it.

The hooks are read from src/meter/hooks.def, so a hook whose absence no check notices fails this test. The runs
use a prefix of their own with the meter's variant for tests (METE_TEST_DISABLE_HOOKS) in place of libmete.so.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import jsonschema

BUILD = pathlib.Path(os.environ["METE_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["METE_SOURCE_DIR"])
METER = pathlib.Path(os.environ["SELFTEST_METER"])
# Hooks whose absence cannot show on simulated cards, and why. Each of them has its check nevertheless: on cards whose
# driver offers the function, `mete selftest` runs it, unless that would need a driver for graphics.
NOT_ON_SIMULATED_CARDS = {
    "cuGraphExecDestroy": "without it a graph that is gone stays in a table; no figure shows that",
    **{name: "needs a graphics driver; tests/e2e/meter/context_test.py looks at it on simulated cards"
       for name in ("cuGLCtxCreate", "cuGLCtxCreate_v2", "cuVDPAUCtxCreate", "cuVDPAUCtxCreate_v2")},
    **{f"nvmlDeviceGet{kind}RunningProcesses{version}": "no simulated process draws or runs under MPS"
       for kind in ("Graphics", "MPSCompute") for version in ("", "_v2", "_v3")},
}


def hooks():
    text = (SOURCE / "src/meter/hooks.def").read_text()
    return re.findall(r"^(?:NVML_)?HOOK\((\w+)", text, re.MULTILINE)


class Prefix:
    """bin/, lib/ and simgpu/ as a build has them, since programs find their parts relative to themselves."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        (self.root / "bin").mkdir()
        (self.root / "lib").mkdir()
        for name in ("mete", "mete-selftest", "mete-probe"):
            shutil.copy2(BUILD / "bin" / name, self.root / "bin" / name)
        for path in (BUILD / "lib").glob("libmete-*.so"):
            shutil.copy2(path, self.root / "lib" / path.name)
        shutil.copy2(METER, self.root / "lib/libmete.so")
        (self.root / "simgpu").symlink_to(BUILD / "simgpu")

    def run(self, *words, hook=None, sim="2xH200"):
        with tempfile.TemporaryDirectory(dir=self.root) as state:
            env = {name: value for name, value in os.environ.items()
                   if not name.startswith(("METE_", "CUDA_")) and name != "LD_PRELOAD"}
            env.update(METE_STATE_DIR=state, METE_SIM=sim, METE_SIM_IDLE_MS="100")
            # In a sanitized build: what the driver keeps for a program until it ends is no leak of ours.
            env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
            if hook:
                env["METE_DISABLE_HOOK"] = hook
            return subprocess.run([self.root / "bin/mete", "selftest", *words], env=env, text=True,
                                  capture_output=True, timeout=300)


class Selftest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = Prefix(cls.folder.name)

    def document(self, result):
        document = json.loads(result.stdout)
        schema = json.loads((SOURCE / "docs/formats/selftest.schema.json").read_text())
        jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
        return document

    def failed(self, result):
        rows = self.document(result)["checks"]
        return {row["entry"]: row["evidence"] for row in rows if row["verdict"] == "failed"}

    def test_every_promise_holds(self):
        result = self.prefix.run("-o", "json")
        self.assertEqual(self.failed(result), {})
        self.assertEqual(result.returncode, 0, result.stderr)
        document = self.document(result)
        self.assertGreater(document["ok"], 100)
        self.assertEqual(result.stderr, "")
        rows = document["checks"]
        skipped = {row["entry"] for row in rows if row["verdict"] == "skipped"}
        self.assertTrue(all(row["evidence"] for row in rows if row["verdict"] == "skipped"))
        named = {row["entry"] for row in rows}
        self.assertEqual(set(hooks()) - named, set(), "hooks without a check")
        # A skipped row is in the table above, or is proved by another row with its name.
        proved = {row["entry"] for row in rows if row["verdict"] == "ok"}
        self.assertLessEqual(skipped - proved, set(NOT_ON_SIMULATED_CARDS))

    def test_it_passes_on_other_machines(self):
        for sim in ("1xT4", "1xA100-40G"):
            with self.subTest(sim):
                result = self.prefix.run(sim=sim)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn(" 0 failed", result.stdout)
                self.assertIn("simulated", result.stdout)

    def test_a_hook_that_is_left_out_is_named(self):
        unknown = set(NOT_ON_SIMULATED_CARDS) - set(hooks())
        self.assertEqual(unknown, set(), "exceptions for hooks that do not exist")
        names = [name for name in hooks() if name not in NOT_ON_SIMULATED_CARDS]
        self.assertGreater(len(names), 80)

        def run(name):
            return name, self.prefix.run("-o", "json", hook=name)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for name, result in pool.map(run, names):
                with self.subTest(name):
                    self.assertIn(result.returncode, (0, 1), result.stderr)
                    self.assertIn(name, self.failed(result))
                    self.assertEqual(result.returncode, 1)

    def test_exceptions_are_true(self):
        # An exception whose hook is noticed after all must leave the table.
        def run(name):
            return name, self.prefix.run("-o", "json", hook=name)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for name, result in pool.map(run, NOT_ON_SIMULATED_CARDS):
                self.assertEqual(self.failed(result), {}, name)

    def test_every_group_can_be_run_alone(self):
        groups = {row["group"] for row in self.document(self.prefix.run("-o", "json"))["checks"]}
        self.assertGreater(len(groups), 10)
        for group in sorted(groups):
            with self.subTest(group):
                result = self.prefix.run("-o", "json", "--only", group)
                self.assertEqual({row["group"] for row in self.document(result)["checks"]}, {group})
        self.assertEqual(self.prefix.run("--only", "").returncode, 64)

    def test_text_says_what_failed_and_what_helps(self):
        result = self.prefix.run("--only", "linear", hook="cuMemFree_v2")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^  FAIL  cuMemFree_v2 .*expected 0$")
        self.assertRegex(result.stdout, r"\d+ ok, \d+ failed, \d+ skipped\n$")
        self.assertIn("hint:", result.stderr)

    def test_mistakes_have_the_documented_codes(self):
        for words, code in ((["--only", "graph"], 64), (["--gpu", "1.5"], 64), (["--gpu", "200G"], 69),
                            (["--device", "7"], 69), (["word"], 64)):
            with self.subTest(words):
                result = self.prefix.run(*words)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertIn("error:", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
