#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--where: a job goes to cards of which the expression is true, waits for them, or is refused at once."""
import json
import unittest

from world import BOUND_S, DaemonTest


class TwoTypes(DaemonTest):
    def setUp(self):
        super().setUp()
        machine = self.folder / "machine"
        machine.write_text("H200\nT4\nT4\n")
        self.env["METE_SIM"] = str(machine)

    def types_of(self, job):
        names = {card["uuid"]: card["type"] for card in self.api("/v1/cards")[1]["cards"]}
        return [names[grant["card"]] for grant in job["grant"]]

    def document(self, verb, *words):
        result = self.mete(verb, "-o", "json", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def submit(self, *words):
        result = self.mete("submit", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_run_goes_where_it_is_true(self):
        for where, card in (("attribute:gpu.type == T4", "T4"), ("attribute:gpu.type != T4", "H200"),
                            ("attribute:gpu.memory >= 100G", "H200"), ("not(attribute:gpu.memory >= 100G)", "T4"),
                            ("attribute:gpu.count == 3 and attribute:gpu.type in [T4, L4]", "T4")):
            with self.subTest(where):
                self.assertEqual(self.run_("-q", "--gpu", "4G", "--where", where, "--", "true").returncode, 0)
                self.assertEqual(self.types_of(self.jobs()[-1]), [card])
        self.assertEqual(self.run_("-q", "--gpu", "allx4G", "--where", "attribute:gpu.type == T4", "--", "true").returncode, 0)
        self.assertEqual(self.types_of(self.jobs()[-1]), ["T4", "T4"])

    def test_a_bad_expression_is_shown_where_it_is_bad(self):
        for verb in ("run", "submit"):
            result = self.mete(verb, "--gpu", "4G", "--where", "attribute:gpu.type = T4", "--", "true")
            self.assert_refused(result, 64, "--where", "an operator belongs here (character 20)")
            self.assertIn("attribute:gpu.type = T4", result.stderr)
            self.assert_refused(self.mete(verb, "--gpu", "4G", "--where", "attribute:x == " + "y" * 2000, "--", "true"), 64, "too long")
        self.assertIsNone(self.daemon_pid(), "a typing mistake starts nothing")

    def test_what_can_never_be_true_is_refused_at_once(self):
        for verb in ("run", "submit"):
            self.assert_refused(self.mete(verb, "--gpu", "4G", "--where", "attribute:gpu.type == A100", "--", "true"), 69,
                                "is never true here", "gpu.count 3", "2 cards of gpu.type T4")
            self.assert_refused(self.mete(verb, "--gpu", "4G", "--where", "attribute:gpu.free >= 200G", "--", "true"), 69)
            self.assert_refused(self.mete(verb, "--gpu", "4G", "--devices", "0", "--where", "attribute:gpu.type == T4", "--", "true"),
                                69, "--devices names card 0")
            self.assert_refused(self.mete(verb, "--cpu-only", "--where", "attribute:gpu.count > 3", "--", "true"), 69)
        self.assertEqual(self.jobs(), [])

    def test_what_is_not_true_now_is_waited_for(self):
        first = self.holder("100G")
        where = "attribute:gpu.free >= 60G"
        self.assert_refused(self.run_("--no-wait", "--gpu", "4G", "--where", where, "--", "true"), 75, "--where is not true of it now")
        ident = self.submit("--gpu", "4G", "--where", where, "--", "true")
        self.wait_state(ident, "pending")
        self.assertIn("--where is not true of it now", self.job(ident)["wait"]["for"])
        why = self.document("explain", ident)
        self.assertIn("--where is never true of it", [card.get("text") for card in why["cards"]])
        changes = {change["kind"]: change["text"] for change in why["changes"]}
        self.assertEqual(changes["where"], f"without --where '{where}'")
        self.assertIn("job-ends", changes)
        # The job and its expression survive a killed daemon.
        self.kill_daemon()
        self.assertEqual(self.document("show", ident)["job"]["where"], where)
        self.assertRegex(self.mete("show", ident).stdout, r"where +attribute:gpu.free >= 60G")
        self.assertEqual(self.job(ident)["state"], "pending")
        self.release(first)
        self.assertEqual(self.mete("wait", ident).returncode, 0)
        self.assertEqual(self.types_of(self.job(ident)), ["H200"])

    def test_small_jobs_do_not_keep_it_from_ever_being_true(self):
        first = self.holder("100G")
        waits = self.submit("--gpu", "4G", "--where", "attribute:gpu.free >= 60G", "--", "true")
        self.wait_state(waits, "pending")
        behind = self.submit("--gpu", "30G", "--", "true")
        self.assertEqual(self.job(behind)["state"], "pending", "the card is kept for the first job in the queue")
        self.release(first)
        for ident in (waits, behind):
            self.assertEqual(self.mete("wait", ident).returncode, 0)

    def test_files_and_scripts_say_it_too(self):
        (self.folder / "job.yaml").write_text("gpu: 4G\nwhere: attribute:gpu.type == T4\ncommand: [\"true\"]\n")
        (self.folder / "job.sh").write_text("#!/bin/sh\n#METE --gpu 4G --where 'attribute:gpu.type == T4'\ntrue\n")
        (self.folder / "bad.yaml").write_text("gpu: 4G\nwhere: attribute:gpu.type ~ T4\ncommand: [\"true\"]\n")
        for words in (["-f", str(self.folder / "job.yaml")], [str(self.folder / "job.sh")]):
            plan = self.document("submit", "--print", *words)
            self.assertEqual(plan["jobs"][0]["where"], "attribute:gpu.type == T4")
            ident = self.submit(*words)
            self.assertEqual(self.mete("wait", ident).returncode, 0)
            self.assertEqual(self.types_of(self.job(ident)), ["T4"])
        result = self.mete("submit", "-f", str(self.folder / "bad.yaml"))
        self.assert_refused(result, 65, "bad.yaml:2", "character 20")
        # The output can be read again.
        text = self.mete("submit", "--print", "-f", str(self.folder / "job.yaml")).stdout
        (self.folder / "again.yaml").write_text(text)
        again = self.document("submit", "--print", "-f", str(self.folder / "again.yaml"))
        self.assertEqual(again["jobs"][0]["where"], "attribute:gpu.type == T4")

    def test_the_api_refuses_what_it_does_not_understand(self):
        self.assertEqual(self.run_("-q", "--gpu", "4G", "--", "true").returncode, 0)
        body = {"job": {"name": "x", "command": ["true"], "cwd": "/", "request": {"gpu": "4G", "where": "attribute:"},
                        "detached": {"umask": 18}}}
        status, answer = self.api("/v1/jobs", "POST", json.dumps(body))
        self.assertEqual(status, 400, answer)
        self.assertIn("no subject", json.dumps(answer))

    def test_where_asks_card_by_card(self):
        for text, found in (("attribute:gpu.type == T4", 1), ("attribute:gpu.type == T4 and attribute:gpu.memory > 100G", 0),
                            ("attribute:gpu.free > 100G", 1), ("attribute:gpu.count == 3 and runningTasksCount == 0", 1)):
            self.assertEqual(len(self.document("where", text)["match"]), found, text)


if __name__ == "__main__":
    unittest.main()
