#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input to `mete sweep`: one clear error, the documented exit code, and no sweep."""
import json
import os
import unittest

from sweeps import SweepTest, wait_until

TRUE = ("--", "true", "{a}")


class Words(SweepTest):
    def refused(self, code, *texts, words=(), space=None):
        if space is not None:
            path = self.folder / "space.yaml"
            path.write_text(space)
            words = ("--space", str(path), *words)
        result = self.sweep("--cpu-only", *words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)
        self.assertEqual(self.document("sweeps", "sweep", "ls")["sweeps"], [])

    def test_spaces_that_cannot_be(self):
        for space, *texts in (
                ("params:\n  a: {min: 1, max: 1}\n", "zero width"),
                ("params:\n  a: {min: 2, max: 1}\n", "above"),
                ("params:\n  a: {min: 0, max: 1, log: true}\n", "log"),
                ("params:\n  a: {min: -1, max: 1, log: true}\n", "log"),
                ("params:\n  a: {min: 0, max: 1, step: 0}\n", "step"),
                ("params:\n  a: [1, 2]\n  b: {values: [1, 2], when: c == 1}\n", "c"),
                ("params:\n  a: {values: [1, 2], when: b == 1}\n  b: {values: [1, 2], when: a == 1}\n", "space.yaml:1", "b needs a, a needs b"),
                ("params:\n  a: []\n", "a"),
                ("params:\n  a: [1, 1]\n", "twice"),
                ("params: 7\n", "params"),
                ("parameters:\n  a: [1]\n", "params"),
                ("params:\n  a: [1, 2]\nsampler: magic\n", "magic"),
                ("params:\n  a: [1\n", "space.yaml:3: this is no YAML")):
            with self.subTest(space=space):
                self.refused(65, *texts, words=TRUE, space=space)

    def test_words_that_cannot_be(self):
        grid = ("--grid", "a=1,2")
        for words, code, *texts in (
                ((*grid, "--", "true", "{b}"), 64, "'b'", "{a}"),
                ((*grid, "--keep", "a <", *TRUE), 64, "--keep", "  a <\n     ^"),
                ((*grid, "--keep", "c < 1", *TRUE), 64, "c"),
                ((*grid, "--keep", "a > 3", *TRUE), 64, "the space has no point"),
                ((*grid, "--target", "loss", *TRUE), 64, "compares a metric"),
                ((*grid, "--target", "loss < 1 and a > 1", *TRUE), 64, "a is a parameter"),
                ((*grid, "--sampler", "sobl", *TRUE), 64, "sobol"),
                ((*grid, "--fraction", "0", *TRUE), 64, "--fraction"),
                ((*grid, "--trials", "0", *TRUE), 64, "--trials"),
                ((*grid, "--metric", "loss=(", "--minimize", "loss", *TRUE), 64, "'loss' is no regular expression"),
                ((*grid, "--minimize", "x", "--maximize", "y", *TRUE), 64, "--maximize"),
                ((*grid, "--asha", "min=3,max=1", "--minimize", "x", *TRUE), 64, "max"),
                ((*grid, "--reduce", "method=magic", "--minimize", "x", *TRUE), 64, "magic"),
                ((*grid, "--grid", "a=3", *TRUE), 64, "a"),
                ((*grid, "--name", "a/b", *TRUE), 64, "name"),
                ((*grid,), 64, "command"),
                (TRUE, 64, "space"),
                (("--space", "/no/such", *TRUE), 65, "/no/such"),
                ((*grid, "--", "/no/such/program", "{a}"), 65, "/no/such/program")):
            with self.subTest(words=words):
                self.refused(code, *texts, words=words)

    def test_gpu_auto_is_for_sweeps_only(self):
        for verb in ("run", "submit"):
            self.assert_refused(self.mete(verb, "--gpu", "auto", "--", "true"), 64, "auto")

    def test_a_share_that_fits_no_card_is_refused_at_once(self):
        result = self.sweep("--gpu", "200G", "--grid", "a=1,2", *TRUE)
        self.assertEqual(result.returncode, 69, result.stderr)
        self.assertIn("--gpu 139.7G would fit", result.stderr)

    def test_a_metric_that_never_appears_and_one_that_is_no_number(self):
        for name, script, text in (("none", "true", "loss never appeared"), ("nan", "echo loss: nan", "")):
            result = self.sweep("--cpu-only", "--name", name, "--grid", "a=1", "--minimize", "loss", "--metric", "loss=loss: (.*)", "--", "sh", "-c", script)
            self.assertIn(text, result.stderr)
            self.assertNotIn("best", self.scan(name))
            self.assertEqual(self.sweep("best", name).returncode, 66)

    def test_two_sweeps_of_one_name_and_a_space_of_one_point(self):
        self.ok("sweep", "--cpu-only", "--name", "scan", "--grid", "a=1", *TRUE)
        again = self.sweep("--cpu-only", "--name", "scan", "--grid", "a=2", *TRUE)
        self.assert_refused(again, 64, "there is a sweep scan already", "--name")
        self.assertEqual([trial["params"] for trial in self.scan()["trials"]], [{"a": 1}])

    def test_a_table_that_was_edited_is_kept_and_written_anew(self):
        self.ok("sweep", "--cpu-only", "--name", "scan", "--grid", "a=1,2", *TRUE)
        table = self.folder_of() / "results.csv"
        wait_until(lambda: table.exists() and table.read_text().count("\n") == 3, "the table is whole")
        whole = table.read_text()
        table.write_text("n,state\nmine\n")
        self.ok("sweep", "extend", "scan", "--grid", "a=1,2,3")
        self.wait_sweep("done")
        wait_until(lambda: table.exists() and table.read_text().startswith(whole), "it is written anew")
        self.assertEqual(table.with_name("results.csv.1").read_text(), "n,state\nmine\n")
        self.assertEqual([trial["n"] for trial in self.scan()["trials"]], [1, 2, 3])

    def test_what_a_user_puts_in_place_of_the_table_does_not_stop_the_daemon(self):
        """A FIFO there made the daemon wait for ever; a folder there kept the tables of all others from being written."""
        self.ok("sweep", "--cpu-only", "--name", "first", "--grid", "a=1", *TRUE)
        folder = self.folder_of("first").parent
        for name, make in (("pipe", os.mkfifo), ("folder", os.mkdir), ("link", lambda path: os.symlink("/etc/passwd", path))):
            (folder / name).mkdir()
            make(folder / name / "results.csv")
            self.ok("sweep", "--cpu-only", "--name", name, "--grid", "a=1,2", *TRUE)
            wait_until(lambda: (folder / name / "results.csv.1").exists() or (folder / name / "results.csv.1").is_symlink(), f"the {name} is put aside")
            table = folder / name / "results.csv"
            wait_until(lambda: table.is_file() and table.read_text().count("\n") == 3, "it is written anew")
        self.ok("ps")

    def test_a_copy_that_cannot_be_written_is_found_before_the_start(self):
        for path, text in (("/no/such/folder/x.csv", "No such file"), (str(self.folder), "is a folder")):
            self.refused(64, text, words=("--grid", "a=1", "--csv", path, *TRUE))

    def test_unknown_sweeps_and_trials(self):
        self.ok("sweep", "--cpu-only", "--name", "scan", "--grid", "a=1", *TRUE)
        for words in (("show", "scam"), ("best", "scam"), ("logs", "scam"), ("pause", "scam"), ("rm", "scam"), ("logs", "scan", "2"), ("logs", "scan", "x")):
            with self.subTest(words=words):
                result = self.sweep(*words)
                self.assertEqual(result.returncode, 66, result.stderr)
        error = json.loads(self.sweep("show", "scam", "-o", "json").stderr)["error"]
        self.assertEqual((error["code"], error["exit"]), ("not_found", 66))


if __name__ == "__main__":
    unittest.main()
