# SPDX-License-Identifier: Apache-2.0
"""The configuration: every key with its default in the documentation and in the file of the package, what a check says
of a bad file, and where values come from."""
import json
import re
import tomllib
import unittest

import jsonschema
import support

FORMATS = support.SOURCE / "docs" / "formats"
PACKAGED = support.SOURCE / "packaging" / "config.toml"


class ConfigTest(support.MeteTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "config.toml"
        self.file.write_text("")
        self.env["METE_CONFIG"] = str(self.file)

    def shown(self):
        """Key to value, None where it is not set; in a file of ours with nothing in it these are the defaults."""
        result = self.mete("config", "show", "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        jsonschema.validate(document, json.loads((FORMATS / "config.schema.json").read_text()))
        return {setting["key"]: setting.get("value") for setting in document["settings"]}


class Documented(ConfigTest):
    @staticmethod
    def packaged():
        """(key, commented-out value as TOML, the comment before it); only lines '#key = value' are settings."""
        section, comment, found = "", [], []
        for line in PACKAGED.read_text().splitlines():
            if match := re.fullmatch(r"\[(\w+)\]", line):
                section = match[1] + "."
            elif match := re.fullmatch(r"#(\w+) = (.+)", line):
                found.append((section + match[1], match[2], " ".join(comment)))
                comment = []
            elif line.startswith("# "):
                comment.append(line[2:])
            else:
                comment = []
        return found

    def test_the_page_has_every_key_with_its_default(self):
        page = (FORMATS / "config.md").read_text()
        rows = re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \| [^|]+\|$", page, re.M)
        defaults = {key: None if value == "not set" else tomllib.loads("v = " + value)["v"]
                    for key, value in rows if key != "version"}
        self.assertEqual(defaults, self.shown())
        self.assertEqual(len(rows), len(defaults) + 1, "and version, and none twice")

    def test_the_packaged_file_has_every_key_with_its_default(self):
        known = self.shown()
        found = {key: (value, comment) for key, value, comment in self.packaged()}
        self.assertEqual(set(found) - {"version"}, set(known))
        for key, (text, comment) in found.items():
            self.assertNotEqual(comment, "", f"{key} is not explained")
            value = tomllib.loads("v = " + text)["v"]
            if key == "version":
                self.assertEqual(value, 1)
            elif known[key] is None:
                self.assertIn("Not set by default", comment, key)
            else:
                self.assertEqual(value, known[key], key)

    def test_the_packaged_file_changes_nothing_and_all_its_lines_are_valid(self):
        before = self.shown()
        self.file.write_text(PACKAGED.read_text())
        self.assertEqual(self.shown(), before)
        # With every '#' removed it is a file that mete accepts, but for a folder without room in it.
        text = re.sub(r"^#(\w+ = )", r"\1", PACKAGED.read_text(), flags=re.M)
        self.assertGreater(text.count("\n") - len(re.findall("^[#\n]", text, re.M)), 30)
        self.file.write_text(text)
        self.assertEqual(self.mete("config", "check").returncode, 0, self.mete("config", "check").stderr)

    def test_keys_that_need_a_restart_say_so(self):
        page = (FORMATS / "config.md").read_text()
        for key in ("park.spill", "park.spill_max"):
            self.assertRegex(page, rf"\| `{key}` .*restart")
        for key, _, comment in self.packaged():
            self.assertEqual("restart" in comment, key in ("park.spill", "park.spill_max"), key)


class Checked(ConfigTest):
    def test_each_mistake_with_its_line_and_the_nearest_key(self):
        self.file.write_text("[daemon]\nidel_s = 5\npolicy = \"best\"\n\n[quueue]\ngrace_s = 1\n")
        result = self.mete("config", "check")
        self.assertEqual(result.returncode, 65)
        for text in (f"{self.file}:2:1: there is no key 'daemon.idel_s'", "did you mean daemon.idle_s?",
                     f"{self.file}:3:10: daemon.policy must be", f"{self.file}:5:2: there is no key 'quueue'",
                     "did you mean [queue]?"):
            self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_as_json_one_object_on_each_line(self):
        self.file.write_text("a = 1\n[daemon]\nidle_s = -1\n")
        result = self.mete("config", "check", "-o", "json")
        self.assertEqual(result.returncode, 65)
        documents = [json.loads(line) for line in result.stderr.splitlines()]
        for document in documents:
            jsonschema.validate(document, json.loads((FORMATS / "error.schema.json").read_text()))
            self.assertEqual(document["error"]["exit"], 65)
        self.assertEqual([document["error"]["message"].split(":")[1] for document in documents], ["1", "3"])

    def test_a_file_of_a_newer_version_is_one_error(self):
        other = self.folder / "newer.toml"
        other.write_text("version = 7\n[daemon]\nidle_s = \"soon\"\n[clouds]\nheight = 1\n")
        for words in (("config", "check", other), ("config", "show")):
            result = self.mete(*words, env={"METE_CONFIG": str(other)})
            self.assertEqual(result.returncode, 65)
            self.assertEqual(result.stderr.count("error:"), 1, result.stderr)
            self.assertIn("the file has version 7, this mete reads version 1", result.stderr)

    def test_a_file_that_cannot_be_read_is_one_error(self):
        large = self.folder / "large.toml"
        large.write_text("#" * (2 << 20))
        for path in (self.folder / "missing.toml", self.folder, large):
            result = self.mete("config", "check", path)
            self.assertEqual(result.returncode, 65, result.stderr)
            self.assertEqual(result.stderr.count("error:"), 1, result.stderr)
            self.assertIn(str(path), result.stderr)

    def test_a_good_file_is_said_to_be_good(self):
        self.file.write_text("version = 1\n[queue]\ngrace_s = 5\n")
        result = self.mete("config", "check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(str(self.file), result.stdout)

    def test_what_is_shown_is_a_file(self):
        self.file.write_text("[queue]\ngrace_s = 5\n")
        shown = self.mete("config", "show").stdout
        before = self.shown()
        self.file.write_text(shown)
        self.assertEqual(self.mete("config", "check").returncode, 0)
        self.assertEqual(self.shown(), before)


class Origins(ConfigTest):
    def test_default_file_and_environment(self):
        self.file.write_text("[queue]\n\ngrace_s = 5\n")
        text = self.mete("config", "show", "--origin").stdout
        self.assertRegex(text, rf"grace_s = 5 +# {self.file}:3\n")
        self.assertRegex(text, r"retry_pause_s = 10 +# default\n")
        self.assertIn(f"METE_CONFIG={self.file} in the environment", text)


if __name__ == "__main__":
    unittest.main()
