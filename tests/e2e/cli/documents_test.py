#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every JSON document that a verb prints is valid by its schema in docs/formats, and the manual knows every option."""
import json
import re
import shutil
import subprocess
import unittest

import jsonschema

import support

FORMATS = support.SOURCE / "docs" / "formats"
MANUAL = support.SOURCE / "docs" / "man"


def schema(name):
    document = json.loads((FORMATS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    return document


class Documents(support.MeteTest):
    sim = "2xH200"

    def check(self, text, name):
        document = json.loads(text)
        jsonschema.validate(document, schema(name), jsonschema.Draft202012Validator)
        return document

    def test_every_schema_is_one_and_can_fail(self):
        names = sorted(p.name.removesuffix(".schema.json") for p in FORMATS.glob("*.schema.json"))
        self.assertIn("error", names)
        for name in names:
            with self.assertRaises(jsonschema.ValidationError, msg=name):
                jsonschema.validate({"no": "such document"}, schema(name))

    def test_version(self):
        self.check(self.mete("version", "-o", "json").stdout, "version")
        self.assertRegex(self.mete("version").stdout, r"^mete \d+\.\d+\.\d+ ")

    def test_cap(self):
        result = self.mete("cap", "--gpu", "2x40%", "--dry-run", "-o", "json", "--", "x", "a\udcff\"\n")
        document = self.check(result.stdout, "cap")
        self.assertEqual(result.returncode, 0)
        self.assertEqual([card["index"] for card in document["cards"]], [0, 1])
        self.assertEqual(document["request"], "2x40%")
        self.assertEqual(document["command"][0], "x")
        self.assertEqual(self.grants(), [])
        self.check(self.mete("cap", "--gpu", "0", "--dry-run", "-o", "json").stdout, "cap")
        self.check(self.mete("cap", "--devices", "1", "--dry-run", "-o", "json").stdout, "cap")

    def test_cap_says_it_on_stderr_when_it_runs(self):
        result = self.mete("cap", "--gpu", "8G", "-o", "json", "--", "echo", "out")
        self.assertEqual(result.stdout, "out\n")
        self.assertEqual(self.check(result.stderr, "cap")["cards"][0]["bytes"], 8 << 30)

    def test_errors(self):
        for words, code, exit_code in ((["cpa", "-o", "json"], "invalid", 64),
                                       (["service", "--output=json"], "unsupported", 64),
                                       (["cap", "-ojson", "--gpu", "1.5", "--", "true"], "invalid", 64),
                                       (["cap", "-o", "json", "--bogus"], "invalid", 64),
                                       (["cap", "-o", "json", "--gpu", "200G", "--", "true"], "infeasible", 69),
                                       (["cap", "-o", "json", "-q", "--gpu", "8G", "--", "no-such-program"],
                                        "not_found", 127)):
            result = self.mete(*words)
            error = self.check(result.stderr, "error")["error"]
            self.assertEqual((error["code"], error["exit"], result.returncode), (code, exit_code, exit_code), words)

    def test_the_word_json_of_the_program_is_not_ours(self):
        result = self.mete("cap", "--gpu", "8Q", "--", "prog", "-o", "json")
        self.assertTrue(result.stderr.startswith("error: "))


class Manual(support.MeteTest):
    def man_options(self, folder):
        return subprocess.run([support.SOURCE / "tools" / "man-options", "--check", support.METE, folder], env=self.env, text=True,
                              capture_output=True, timeout=support.BOUND_S)

    def test_names_and_options_are_those_of_the_verb_tables(self):
        result = self.man_options(MANUAL)
        self.assertEqual((result.stdout, result.returncode), ("", 0))

    def test_a_page_that_differs_is_found(self):
        for page, old, new in (("mete-run.1.scd", "*--or-cpu*\n", "*--or-not*\n"), ("mete.1.scd", "*submit*\n", "*remit*\n"),
                               ("mete-cap.1.scd", "mete-cap - run ", "mete-cap - walk "),
                               ("mete-ps.1.scd", "\tInclude ended jobs.", "\tAll jobs.")):
            folder = self.folder / page
            shutil.copytree(MANUAL, folder)
            text = (folder / page).read_text()
            self.assertIn(old, text)
            (folder / page).write_text(text.replace(old, new))
            result = self.man_options(folder)
            self.assertEqual(result.returncode, 1, page)
            self.assertIn(page, result.stdout)

    def test_every_option_of_help_is_in_the_manual(self):
        for page in sorted(MANUAL.glob("mete-*.1.scd")):
            verb = page.name.removeprefix("mete-").removesuffix(".1.scd")
            text = page.read_text()
            result = self.mete(verb, "--help")
            if verb == "selftest" and result.returncode == 64:
                continue
            options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", result.stdout, re.M)
            self.assertIn("--help", options)
            for option in options:
                self.assertRegex(text, rf"\*{option}\b", f"{page.name} does not know {option}")

    def test_every_verb_is_in_the_manual(self):
        text = (MANUAL / "mete.1.scd").read_text()
        verbs = re.findall(r"^  ([a-z]+)  +\S", self.mete().stdout, re.M)
        self.assertIn("cap", verbs)
        for verb in verbs:
            if verb != "mete":
                self.assertRegex(text, rf"^\*{verb}\*", f"mete.1 does not know {verb}", )

    def assertRegex(self, text, pattern, message=None):
        self.assertTrue(re.search(pattern, text, re.M), message or pattern)


if __name__ == "__main__":
    support.main()
