#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report for an issue: what helps is in it, and nothing that belongs to people."""
import json
import os
import socket
import stat
import tarfile
import unittest

import jsonschema
from world import SOURCE, VerbTest, wait_until

# Planted wherever a user can put a word.
SECRETS = {"environment": "hunter2swordfish", "argument": "sk-live-0123456789abcdef", "plain": "zebraproject", "label": "labelvalueX9",
           "label key": "customerkey", "name": "merger-with-acme", "folder": "salaries2026", "token": "T0KENT0KENT0KEN",
           "mail": "carol@corp.example", "command": "topsecretbinary", "group": "board-members", "script": "scriptsecret77",
           "log": "privatelogname"}


class ReportTest(VerbTest):
    def setUp(self):
        super().setUp()
        self.home = self.folder / SECRETS["folder"]
        self.home.mkdir()
        config = self.home / "config.toml"
        config.write_text(f"""[daemon]\nadmin_group = "{SECRETS['group']}"\n[notify]
to = ["webhook:http://127.0.0.1:9/{SECRETS['token']}", "mail:{SECRETS['mail']}"]
sendmail = "{self.home}/sendmail"\n[queue]\ngrace_s = 7\n""")
        self.env.update(METE_CONFIG=str(config), HOME=str(self.home), SECRET_TOKEN=SECRETS["environment"])
        self.file = self.folder / "report.tar.gz"

    def report(self):
        """Name to content."""
        document = json.loads(self.ok("report", "--file", self.file, "-o", "json").stdout)
        jsonschema.validate(document, json.loads((SOURCE / "docs" / "formats" / "report.schema.json").read_text()))
        self.assertEqual(document["bytes"], self.file.stat().st_size)
        with tarfile.open(self.file) as archive:
            files = {os.path.basename(entry.name): archive.extractfile(entry).read().decode() for entry in archive}
        self.assertEqual(set(files), {each["name"] for each in document["files"]})
        return files

    def test_no_secret_is_in_it_and_what_helps_is(self):
        (self.home / "script.sh").write_text(f"#!/bin/sh\n# {SECRETS['script']}\nexit 3\n")
        jobs = [self.submit("--gpu", "1G", "--name", SECRETS["name"], "--label", f"{SECRETS['label key']}={SECRETS['label']}", "--",
                            "sh", "-c", "exit 4", SECRETS["argument"], SECRETS["plain"], SECRETS["environment"], cwd=self.home),
                self.submit("--gpu", "0", "--", f"./{SECRETS['command']}", cwd=self.home),
                self.submit("--gpu", "0", "--log", self.home / SECRETS["log"], "script.sh", cwd=self.home),
                self.submit("--gpu", "0", "--log", f"/nonexistent/{SECRETS['log']}", "--", "true")]
        self.mete("wait", *jobs)
        wait_until(lambda: self.api("/v1/daemon")[1]["notify"]["waiting"] > 0, "notifications fail")
        # What was said to users about bad words does not come back in the daemon's log either.
        self.mete("run", "--gpu", "8Q", "--", SECRETS["plain"])
        files = self.report()
        for name, content in files.items():
            for what, secret in SECRETS.items():
                self.assertNotIn(secret.lower(), content.lower(), f"the {what} is in {name}")
            for secret in (str(self.folder), socket.gethostname(), str(self.state)):
                self.assertNotIn(secret, content, name)
        self.assertIn("queue.grace_s = 7", files["config.txt"])
        self.assertIn("mete ", files["version.txt"])
        self.assertIn("NVIDIA H200", files["cards.json"])
        self.assertIn("glibc", files["machine.txt"])
        self.assertIn("state: ", files["doctor.txt"])
        events = [json.loads(line) for line in files["events.jsonl"].splitlines()]
        self.assertEqual(events[-1]["schema"], "mete.event/1")
        self.assertIn("job.submitted", {event["type"] for event in events})
        listed = {job["id"]: job for job in json.loads(files["jobs.json"])["jobs"]}
        self.assertEqual(listed[jobs[0]]["outcome"], "failed")
        self.assertEqual(listed[jobs[0]]["exit_code"], 4)
        # The same thing has the same word.
        words = {event["data"]["spec"]["name"] for event in events if event["type"] == "job.submitted" and event["job"] == jobs[0]}
        self.assertEqual(words, {listed[jobs[0]]["name"]})

    def test_the_file_is_ours_alone_and_never_replaces_another(self):
        self.report()
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.assertEqual(self.mete("report", "--file", self.file).returncode, 125)
        result = self.ok("report", cwd=self.home)
        self.assertTrue((self.home / result.stdout.strip()).is_file())
        self.assertIn("nothing was sent", result.stderr)

    def test_a_list_writes_nothing_and_needs_no_daemon(self):
        before = sorted(os.listdir(self.home))
        result = self.ok("report", "--list", cwd=self.home)
        for name in ("doctor.txt", "config.txt", "events.jsonl", "meted.log"):
            self.assertIn(name, result.stdout)
        self.assertEqual(sorted(os.listdir(self.home)), before)
        self.assertIsNone(self.daemon_pid())
        files = self.report()
        self.assertIn("no daemon answers", files["daemon.json"])
        self.assertEqual(self.mete("report", "--list", "--file", "x").returncode, 64)


if __name__ == "__main__":
    unittest.main()
