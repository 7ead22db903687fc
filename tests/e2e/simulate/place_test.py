#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete place` and `mete advise`: decisions with reasons, documents, errors, and no daemon but for a job."""
import json
import subprocess
import unittest

import jsonschema

import simulate_test
from simulate_test import BUILD, SOURCE

POOL = """
nodes:
  - {name: desk, cards: 2xH200, cpus: 64, ram: 512G, attributes: {rack: r1}}
  - {name: cloud, instance: g4dn.12xlarge, count: 2}
jobs:
  - {gpu: 0.5, cpus: 4, node: desk, cards: [1]}
  - {gpu: 4, cpus: 40, node: cloud-0}
"""

TOO_LONG = "attribute:a == " + "x" * 1986


class Verb(simulate_test.SimulateTest):
    def mete(self, *words):
        return subprocess.run([BUILD / "bin" / "mete", *map(str, words)], env=self.environment(), capture_output=True, text=True, check=False)

    def document(self, verb, *words, code=0):
        result = self.mete(verb, *words, "-o", "json")
        self.assertEqual(result.returncode, code, result.stderr)
        document = json.loads(result.stdout)
        jsonschema.validate(document, json.loads((SOURCE / "docs" / "formats" / f"{verb}.schema.json").read_text()))
        return document


class Place(Verb):
    def setUp(self):
        super().setUp()
        self.pool = self.file("pool.yaml", POOL)

    def place(self, *words, code=0):
        return self.document("place", "--pool", self.pool, *words, code=code)

    def test_a_place_with_its_bytes(self):
        job = self.file("job.yaml", "name: train\ngpu: 2x30G\ncpus: 8\ncommand: [python, train.py]\n")
        document = self.place("--job", job)
        self.assertEqual(document["placed"][0] | {"share_bytes": 0},
                         {"node": "desk", "cards": [0, 1], "card_type": "H200", "share_milli": 214, "share_bytes": 0})
        self.assertGreaterEqual(document["placed"][0]["share_bytes"], 30 << 30)
        self.assertEqual((document["causes"]["too-small"], document["causes"]["room"]), (2, 1))
        self.assertIn("desk, cards 0, 1 (H200)", self.mete("place", "--pool", self.pool, "--job", job).stdout)

    def test_no_room_now_is_75_with_changes_that_fit(self):
        document = self.place("--gpu", "2", "--gpu-type", "H200", "--cpus", "8", code=75)
        self.assertEqual(document["decision"], "wait")
        self.assertGreater(len(document["changes"]), 1)
        for change in document["changes"]:
            words = change["request"].split()
            self.assertEqual(self.place(*words)["decision"], "placed", words)
        text = self.mete("place", "--pool", self.pool, "--gpu", "2", "--gpu-type", "H200")
        self.assertEqual(text.returncode, 75)
        self.assertIn("what would fit now:", text.stdout)

    def test_what_can_never_fit_is_69(self):
        self.assertEqual(self.place("--gpu", "2x200G", code=69)["decision"], "never")
        self.assertEqual(self.place("--gpu", "1", "--cpus", "200", code=69)["causes"]["too-small"], 3)

    def test_every_node_says_why(self):
        nodes = self.place("--gpu", "1", "--cpus", "40", "--explain")["nodes"]
        self.assertEqual({n["name"]: n["cause"] for n in nodes}, {"desk": "room", "cloud-0": "cpu", "cloud-1": "room"})

    def test_copies_are_all_or_none(self):
        self.assertEqual(len(self.place("--gpu", "1", "--copies", "5")["placed"]), 5)
        self.assertEqual(self.place("--gpu", "1", "--copies", "6", code=75)["placed"], [])
        never = self.place("--gpu", "1", "--copies", "11", code=69)
        self.assertEqual((never["placed"], never["copies"], never["copies_fit"], never["copies_fit_empty"]), ([], 11, 5, 10))
        text = self.mete("place", "--pool", self.pool, "--gpu", "1", "--copies", "11").stdout
        self.assertIn("11 copies of --gpu 1 can never fit in this pool: 10 would, if it were empty", text)
        self.assertIn("nodes: has room, but not for all copies", text)
        self.assertIn("6 copies of --gpu 1: 5 would fit", self.mete("place", "--pool", self.pool, "--gpu", "1", "--copies", "6").stdout)

    def test_moves_make_room(self):
        pool = self.file("m.yaml", "nodes:\n  - {name: a, cards: 2xH200}\n  - {name: b, cards: 2xH200}\njobs:\n"
                         "  - {gpu: 0.5, node: a, cards: [0], name: large}\n  - {gpu: 0.2, node: b, cards: [1], name: small}\n")
        self.document("place", "--pool", pool, "--gpu", "2", code=75)
        document = self.document("place", "--pool", pool, "--gpu", "2", "--max-moves", "1")
        self.assertEqual([(m["job"], m["from"]["node"], m["to"]["node"]) for m in document["moves"]], [("small", "b", "a")])
        self.assertEqual((document["placed"][0]["node"], document["placed"][0]["cards"]), ("b", [0, 1]))
        text = self.mete("place", "--pool", pool, "--gpu", "2", "--max-moves", "50%").stdout
        self.assertIn("move small from b, card 1 (H200)", text)
        # No job has room elsewhere: then nothing is moved.
        self.assertEqual(self.document("place", "--pool", pool, "--gpu", "3", "--max-moves", "9", code=69)["moves"], [])
        self.refused(self.mete("place", "--pool", pool, "--gpu", "2", "--max-moves", "many"), 64, "'many'")
        self.refused(self.mete("place", "--pool", pool, "--gpu", "2", "--max-moves", "1", "--copies", "2"), 64, "--copies")

    def test_a_job_file_says_where(self):
        job = self.file("job.yaml", "gpu: 1\nwhere: attribute:rack == r1\ncommand: [a]\n")
        self.assertEqual(self.place("--job", job)["placed"][0]["node"], "desk")
        self.assertEqual(self.place("--job", job, "--where", "attribute:gpu.type == T4")["placed"][0]["node"], "cloud-1")

    def test_where_limits_the_nodes(self):
        for expression, node in (("attribute:rack == r1", "desk"), ("attribute:ecs.instance-type =~ g4dn.* and runningTasksCount == 0", "cloud-1"),
                                 ("attribute:gpu.memory >= 100G", "desk")):
            self.assertEqual(self.place("--gpu", "1", "--where", expression)["placed"][0]["node"], node)
        self.assertEqual(self.place("--gpu", "1", "--where", "attribute:rack == r9", code=69)["causes"]["room"], 0)
        self.assertIn("--where leaves no node", self.mete("place", "--pool", self.pool, "--gpu", "1", "--where", "attribute:rack == r9").stdout)

    def test_wrong_words_are_64_and_wrong_files_65(self):
        def refused(code, part, *words):
            self.refused(self.mete("place", *words), code, part)
        refused(64, "--pool", "--gpu", "1")
        refused(64, "how much of a card", "--pool", self.pool)
        refused(64, "'x'", "--pool", self.pool, "--gpu", "x")
        refused(64, "^", "--pool", self.pool, "--gpu", "1", "--where", "attribute:rack = ")
        refused(64, "'best-fti'", "--pool", self.pool, "--gpu", "1", "--policy", "best-fti")
        refused(64, "2001 characters; at most 2000", "--pool", self.pool, "--gpu", "1", "--where", TOO_LONG)
        refused(65, "no-such", "--pool", self.dir / "no-such", "--gpu", "1")
        refused(65, "there are two nodes 'a'", "--pool", self.file("p", "nodes: [{name: a, cards: T4}, {name: a, cards: T4}]"), "--gpu", "1")
        refused(65, ":1:26: there is no card type 'T9'", "--pool", self.file("p", "nodes: [{name: a, cards: 2xT9}]"), "--gpu", "1")
        refused(65, ":1:36: not a number of CPUs: '-3'", "--pool", self.file("p", "nodes: [{name: a, cards: T4, cpus: -3}]"), "--gpu", "1")
        refused(65, ":1:19: there is no key 'crads'", "--pool", self.file("p", "nodes: [{name: a, crads: 2xT4}]"), "--gpu", "1")
        for theirs, ours in (("gpus", "cards"), ("gpu", "cards"), ("cpu", "cpus"), ("memory", "ram"), ("nmae", "name")):
            refused(65, f"did you mean {ours}?", "--pool", self.file("p", "nodes: [{cards: T4, %s: 1}]" % theirs), "--gpu", "1")
        for theirs, ours in (("gpus", "gpu"), ("cpu", "cpus"), ("mem", "ram"), ("type", "gpu-type")):
            refused(65, f"did you mean {ours}?", "--pool", self.file("p", "cards: T4\njobs: [{%s: 1}]" % theirs), "--gpu", "1")
        refused(65, ":2:8: there is no room", "--pool", self.file("p", "cards: T4\njobs: [{gpu: 1, count: 2}]"), "--gpu", "1")
        refused(65, "there is no key 'gpus'", "--pool", self.pool, "--job", self.file("j", "gpus: 1\n"))
        self.assertFalse((self.dir / "state").exists())


class Advise(Verb):
    def test_the_smallest_type_that_holds_it(self):
        document = self.document("advise", "--gpu", "2x30G", "--cpus", "8")
        first = document["instances"][0]
        self.assertEqual((first["name"], first["cards"], first["card_type"]), ("g6e.12xlarge", 4, "L40S"))
        self.assertEqual(len({i["card_type"] for i in document["instances"]}), len(document["instances"]))
        self.assertGreater(len(self.document("advise", "--gpu", "2x30G", "--cpus", "8", "--all")["instances"]), len(document["instances"]))
        for spelled in ("T4", "t4"):
            self.assertEqual(self.document("advise", "--gpu", "1", "--gpu-type", spelled)["instances"][0]["name"], "g4dn.xlarge")

    def test_the_share_of_ones_own_cards(self):
        cards = self.document("advise", "--gpu", "12G", "--pool", "2xH200+1xT4")["cards"]
        self.assertEqual([(c["card_type"], c["cards"], c["share_milli"]) for c in cards], [("T4", 1, 800), ("H200", 2, 86)])

    def test_what_nothing_holds_is_69(self):
        self.refused(self.mete("advise", "--gpu", "900G"), 69, "no instance type holds --gpu 900G")
        self.refused(self.mete("advise", "--gpu", "20G", "--pool", "T4"), 69, "none of these cards")
        self.refused(self.mete("advise", "--gpu", "1", "--gpu-type", "H200", "--pool", "T4"), 69, "none of these cards")
        self.refused(self.mete("advise"), 64, "mete advise --gpu 2x30G")
        self.refused(self.mete("advise", "--gpu", "1", "--gpu-type", "H20"), 64, "there is no card type 'H20'", "did you mean H200?")
        self.refused(self.mete("advise", "--gpu", "1", "--pool", "2xX9"), 64, "there is no card type 'X9'")
        self.assertFalse((self.dir / "state").exists())

    @unittest.skipUnless((BUILD / "bin" / "meted").exists(), "there is no daemon")
    def test_a_job(self):
        environment = self.environment() | {"METE_SIM": "1xH200"}
        def run(*words):
            return subprocess.run([BUILD / "bin" / "mete", *words], env=environment, capture_output=True, text=True, check=False)
        try:
            self.assertEqual(run("run", "--gpu", "40G", "--", "true").returncode, 0)
            result = run("advise", "1", "-o", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            jsonschema.validate(document, json.loads((SOURCE / "docs" / "formats" / "advise.schema.json").read_text()))
            self.assertEqual(document["job"], "1")
            self.assertNotEqual(document["why"], "")
            self.assertNotEqual(document["instances"], [])
            self.assertNotEqual(run("advise", "99").returncode, 0)
        finally:
            run("daemon", "stop")


if __name__ == "__main__":
    unittest.main()
