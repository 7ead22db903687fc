#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A running daemon takes a new configuration: by a verb and by SIGHUP, only what can change, nothing of a bad file."""
import json
import os
import signal
import unittest

import jsonschema
from world import SOURCE, DaemonTest, VerbTest, wait_until


class ReloadTest(VerbTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.toml"
        self.config.write_text("")
        self.env["METE_CONFIG"] = str(self.config)
        self.ok("cards")  # starts the daemon
        self.pid = self.daemon_pid()

    def reload(self, text, exit_code=0):
        self.config.write_text(text)
        result = self.mete("daemon", "reload", "-o", "json")
        self.assertEqual(result.returncode, exit_code, result.stderr)
        self.assertEqual(self.daemon_pid(), self.pid, "the same daemon")
        if exit_code:
            return json.loads(result.stderr)["error"]
        document = json.loads(result.stdout)
        jsonschema.validate(document, json.loads((SOURCE / "docs" / "formats" / "reload.schema.json").read_text()))
        return document

    def log(self):
        return (self.folder / "sim" / "meted.log").read_text()

    def test_what_changed_is_said_with_old_and_new_value(self):
        document = self.reload("[daemon]\npolicy = \"spread\"\n[queue]\ngrace_s = 7\n")
        self.assertEqual(document["files"], [str(self.config)])
        self.assertEqual(document["applied"],
                         [{"key": "daemon.policy", "old": '"best-fit"', "new": '"spread"', "origin": f"{self.config}:2"},
                          {"key": "queue.grace_s", "old": "30", "new": "7", "origin": f"{self.config}:4"}])
        self.assertEqual(self.document("daemon", "daemon", "status")["policy"], "spread")
        self.assertIn("queue.grace_s is now 7, was 30", self.log())
        self.assertEqual(self.reload(self.config.read_text())["applied"], [])
        self.assertIn("nothing changed", self.ok("daemon", "reload").stdout)

    def test_the_new_values_are_in_effect(self):
        self.reload("[cards]\ndevices = [1]\n")
        wait_until(lambda: self.card(0)["grantable_bytes"] == 0, "card 0 is left out")
        first = self.submit("--gpu", "40%", "--", *self.until())
        self.wait_state(first, "running")
        self.assertEqual(self.job(first)["grant"][0]["index"], 1)
        waits = self.submit("--gpu", "1", "--", "true")
        self.reload("")
        self.wait_state(waits, "ended")
        self.assertEqual(self.job(waits)["outcome"], "ok", "card 0 can be granted again")
        self.let_end()

    def test_metrics_move_to_the_new_address(self):
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.reload(f"[metrics]\nlisten = \"127.0.0.1:{port}\"\n")
        socket.create_connection(("127.0.0.1", port)).close()
        self.reload("")
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port)).close()

    def test_what_cannot_change_is_said_and_stays(self):
        text = f"[park]\nspill = \"{self.folder}\"\nspill_max = \"1G\"\n[queue]\ngrace_s = 3\n"
        document = self.reload(text)
        self.assertEqual([change["key"] for change in document["restart"]], ["park.spill", "park.spill_max"])
        self.assertEqual([change["key"] for change in document["applied"]], ["queue.grace_s"])
        self.assertEqual(self.document("daemon", "daemon", "status")["needs_restart"], ["park.spill", "park.spill_max"])
        self.assertIn("restart needed for park.spill, park.spill_max", self.ok("daemon", "status").stdout)
        again = self.ok("daemon", "reload").stdout
        self.assertIn("applies only after a restart", again)
        self.assertIn('"0B" -> "1G"', again)
        self.ok("daemon", "stop")
        self.ok("cards")
        self.assertNotIn("needs_restart", self.document("daemon", "daemon", "status"))

    def test_a_bad_file_changes_nothing_and_is_said(self):
        error = self.reload("[queue]\ngrace_s = 3\nstarve_after_s = 0\n", exit_code=65)
        self.assertIn(f"{self.config}:3:", error["message"])
        self.assertIn("config_trouble", self.document("daemon", "daemon", "status"))
        self.assertIn("the configuration was not reloaded", self.ok("daemon", "status").stdout)
        document = self.reload("[queue]\ngrace_s = 3\n")
        self.assertEqual(document["applied"][0]["old"], "30", "the bad file left it as it was")
        self.assertNotIn("config_trouble", self.document("daemon", "daemon", "status"))
        self.config.unlink()
        result = self.mete("daemon", "reload")
        self.assertEqual(result.returncode, 65, "METE_CONFIG must exist")
        self.assertEqual(self.daemon_pid(), self.pid)

    def test_sighup_reloads_and_ends_nothing(self):
        job = self.submit("--gpu", "40%", "--", *self.until())
        self.wait_state(job, "running")
        self.config.write_text("[daemon]\npolicy = \"first-fit\"\n")
        os.kill(self.pid, signal.SIGHUP)
        wait_until(lambda: self.api("/v1/daemon")[1]["policy"] == "first-fit", "the policy is the new one")
        self.config.write_text("[daemon]\npolicy = 5\n")
        os.kill(self.pid, signal.SIGHUP)
        wait_until(lambda: "not reloaded, nothing changed" in self.log(), "the log says it")
        self.assertEqual(self.api("/v1/daemon")[1]["policy"], "first-fit")
        self.assertEqual(self.daemon_pid(), self.pid)
        self.assertEqual(self.job(job)["state"], "running")
        self.let_end()

    def test_fewer_remembered_jobs_and_a_restart_agree(self):
        jobs = [self.submit("--gpu", "0", "--", "true") for _ in range(3)]
        self.ok("wait", *jobs)
        self.reload("[history]\njobs = 100\n[queue]\nhalf_life_s = 3600\nuser_bytes = \"1M\"\n")
        before = [job["id"] for job in self.jobs()]
        self.ok("wait", self.submit("--gpu", "0", "--", "true"))
        self.kill_daemon()
        self.ok("cards")
        self.assertEqual([job["id"] for job in self.jobs()][:len(before)], before)


class Without(DaemonTest):
    def test_without_a_daemon_nothing_is_reloaded(self):
        result = self.mete("daemon", "reload")
        self.assertEqual(result.returncode, 0)
        self.assertIn("no daemon runs", result.stderr)


class ArenaTest(VerbTest):
    """A job that asks to be parkable and is too large is told when it is submitted."""

    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.toml"
        self.config.write_text("[park]\narena = \"16G\"\n")
        self.env["METE_CONFIG"] = str(self.config)

    def test_submit_and_run_warn_with_the_line_for_the_config(self):
        for words in (("submit",), ("run",)):
            result = self.mete(*words, "--gpu", "40G", "--preemptible", "--", "true")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("can be parked only while it uses at most 16 GiB of a card; its share is 40 GiB", result.stderr)
            self.assertRegex(result.stderr, rf'in {self.config}: \[park\] (arena = "40G"|spill = .*spill_max = "40G")')
        document = json.loads(self.ok("submit", "--gpu", "40G", "--preemptible", "-o", "json", "--", "true").stdout)
        self.assertIn("16 GiB", document["note"])
        self.assertEqual(self.mete("submit", "-q", "--gpu", "40G", "--preemptible", "--", "true").stderr, "")

    def test_nothing_is_said_of_what_fits_or_did_not_ask(self):
        for words in (("--gpu", "8G", "--preemptible"), ("--gpu", "40G")):
            self.assertEqual(self.mete("submit", *words, "--", "true").stderr, "", words)
        self.config.write_text("[park]\narena = \"64G\"\n")
        self.ok("daemon", "reload")
        self.assertEqual(self.mete("submit", "--gpu", "40G", "--preemptible", "--", "true").stderr, "")


if __name__ == "__main__":
    unittest.main()
