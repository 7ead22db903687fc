#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete simulate`: documents, decisions, bad input, and no daemon. The public traces are used where METE_TRACES (or a folder
shared/traces/openb beside the source) holds them: the tools in the folder beside it are the judge."""
import csv
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import jsonschema

BUILD = pathlib.Path(os.environ.get("METE_BUILD_DIR", "build/release"))
SOURCE = pathlib.Path(os.environ.get("METE_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
DATA = SOURCE / "tests" / "data" / "simulate"
TRACES = pathlib.Path(os.environ.get("METE_TRACES", SOURCE.parent / "shared" / "traces" / "openb"))
TOOLS = TRACES.parent / "tools"
SCHEMA = json.loads((SOURCE / "docs" / "formats" / "simulate.schema.json").read_text())


class SimulateTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = pathlib.Path(self.folder.name)

    def environment(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("METE_")}
        environment["METE_STATE_DIR"] = str(self.dir / "state")
        environment["METE_SOCKET"] = str(self.dir / "meted.sock")
        return environment

    def mete(self, *words):
        return subprocess.run([BUILD / "bin" / "mete", "simulate", *map(str, words)], env=self.environment(), capture_output=True,
                              text=True, check=False)

    def sample(self, *words, nodes=DATA / "nodes.csv", jobs=DATA / "jobs.csv", arrivals=DATA / "arrivals.txt"):
        return self.mete("--nodes", nodes, "--jobs", jobs, "--arrivals", arrivals, *words)

    def file(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def refused(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stdout, "")


class Small(SimulateTest):
    def test_document_and_decisions(self):
        decisions = self.dir / "d.csv"
        for policy in ("mete", "fgd", "best-fit", "spread", "first-fit", "random", "topology", "spread:instanceId,binpack:gpu"):
            result = self.sample("--policy", policy, "--decisions", decisions, "-o", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            jsonschema.validate(document, SCHEMA)
            self.assertEqual((document["policy"], document["nodes"], document["cards"], document["arrivals"]), (policy, 4, 12, 40))
            lines = decisions.read_text().splitlines()
            self.assertEqual([int(line.split(",")[0]) for line in lines], list(range(40)))
            self.assertEqual(sum(line.split(",")[1] == "-1" for line in lines), document["rejected"])

    def test_no_daemon_and_no_state(self):
        self.assertEqual(self.sample().returncode, 0)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_without_arrivals_every_job_comes_once(self):
        document = json.loads(self.mete("--nodes", DATA / "nodes.csv", "--jobs", DATA / "jobs.csv", "-o", "json").stdout)
        self.assertEqual(document["arrivals"], 7)

    def test_text(self):
        result = self.sample("--mix", "learned")
        self.assertRegex(result.stdout, r"^mete placed \d+ of 40 jobs on 4 nodes with 12 cards\n")
        self.assertEqual(result.stderr, "")

    def test_wrong_words_are_64(self):
        self.refused(self.mete(), 64, "--nodes, --instances and --pool")
        self.refused(self.mete("--nodes", DATA / "nodes.csv"), 64, "--jobs")
        self.refused(self.sample("stray"), 64, "'stray'")
        self.refused(self.sample("--policy", "best-fti"), 64, "'best-fti'", "best-fit")
        self.refused(self.sample("--mix", "future"), 64, "'future'")
        self.refused(self.sample("--seed", "x"), 64, "'x'")
        self.refused(self.sample("--max-moves", "many"), 64, "'many'")
        self.refused(self.sample("--where", "attribute:a == " + "x" * 1986), 64, "2001 characters; at most 2000")

    def test_wrong_files_are_65_with_their_line_and_leave_nothing(self):
        head = "sn,cpu_milli,memory_mib,gpu,model\n"
        jobs = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
        decisions = self.dir / "d.csv"
        for kind, text, message in (("nodes", "sn,cpu_milli,gpu,model\nx,1,1,T4\n", ":1: there is no column 'memory_mib'"),
                                    ("nodes", head + "a,1,1,1,T4\na,1,1,1,T4\n", ":3: there are two nodes 'a'"),
                                    ("nodes", head + "a,-5,1,1,T4\n", ":2: cpu_milli"),
                                    ("nodes", head + "a,1,99999999999999,1,T4\n", ":2: memory_mib is 99999999999999"),
                                    ("jobs", jobs + "a,1,1,1,5000,\n", ":2: gpu_milli is 5000"),
                                    ("jobs", jobs + "a,1,1,1,500,X9\n", ":2: no node has a card of type 'X9'"),
                                    ("arrivals", "0\n7\n", ":2: 7 is past the end"),
                                    ("arrivals", "0\n-1\n", ":2: not a number")):
            path = self.file("wrong", text)
            self.refused(self.sample("--decisions", decisions, **{kind: path}), 65, f"{path}{message}")
            self.assertFalse(decisions.exists())
        self.refused(self.sample(nodes=self.dir / "no-such"), 65, "no-such")
        error = json.loads(self.sample("-o", "json", arrivals=self.file("a", "99\n")).stderr)["error"]
        self.assertEqual((error["code"], error["exit"]), ("invalid", 65))

    def test_decisions_that_cannot_be_written_are_told(self):
        self.refused(self.sample("--decisions", "/no/such/folder/d.csv"), 125, "/no/such/folder")


@unittest.skipUnless(TOOLS.is_dir(), "the public traces are not here")
class Public(SimulateTest):
    def arrivals(self, trace, seed):
        nodes, jobs = TRACES / "openb_node_list_gpu_node.csv", TRACES / f"openb_pod_list_{trace}.csv"
        ranks, arrivals = self.dir / "ranks", self.dir / "arrivals"
        with arrivals.open("w") as out:
            subprocess.run([sys.executable, "-B", TOOLS / "arrivals.py", nodes, jobs, str(seed), "1.3", ranks], stdout=out,
                           check=True)
        return nodes, jobs, arrivals, ranks

    def simulate(self, nodes, jobs, arrivals, *words):
        result = self.mete("--nodes", nodes, "--jobs", jobs, "--arrivals", arrivals, "-o", "json", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_published_policies_are_reproduced_and_the_referee_agrees(self):
        nodes, jobs, arrivals, ranks = self.arrivals("gpuspec10", 43)
        with (TRACES / "expected.csv").open() as rows:
            expected = {row["policy"]: row for row in csv.DictReader(rows) if (row["trace"], row["seed"]) == ("gpuspec10", "43")}
        for policy, name in (("fgd", "06-FGD"), ("best-fit", "05-BestFit")):
            ours = self.simulate(nodes, jobs, arrivals, "--policy", policy, "--ties", ranks)
            for key in ("alloc100", "alloc130", "frag100", "frag130"):
                self.assertAlmostEqual(ours[key], float(expected[name][key]), delta=0.05, msg=f"{policy} {key}")
        ours = self.simulate(nodes, jobs, arrivals, "--decisions", self.dir / "d.csv")
        judged = json.loads(subprocess.run([sys.executable, "-B", TOOLS / "referee.py", nodes, jobs, arrivals, self.dir / "d.csv"],
                                           check=True, capture_output=True, text=True).stdout)
        for key in ("final_alloc", "alloc100", "alloc130", "frag100", "frag130", "first_reject_at", "rejected"):
            self.assertAlmostEqual(ours[key], judged[key], delta=0.011, msg=key)
        for key, value in judged["accepted_pct"].items():
            self.assertAlmostEqual(ours["accepted_pct"][key], value, delta=0.011, msg=key)

    def test_the_referee_agrees_with_moves(self):
        nodes, jobs, arrivals, _ = self.arrivals("cpu250", 42)
        ours = self.simulate(nodes, jobs, arrivals, "--max-moves", "1%", "--decisions", self.dir / "d.csv")
        judged = json.loads(subprocess.run([sys.executable, "-B", TOOLS / "referee.py", nodes, jobs, arrivals, self.dir / "d.csv"],
                                           check=True, capture_output=True, text=True).stdout)
        self.assertGreater(ours["moves"], 0)
        self.assertEqual((ours["moves"], ours["rejected"]), (judged["moves"], judged["rejected"]))
        self.assertAlmostEqual(ours["moved_gpu"], judged["moved_gpu"], delta=0.001)
        self.assertAlmostEqual(ours["frag130"], judged["frag130"], delta=0.011)
        self.assertLessEqual(ours["moved_gpu"], 0.01 * ours["cards"])

    def test_other_names_rows_and_ties_score_the_same(self):
        nodes, jobs, arrivals, _ = self.arrivals("default", 42)
        first = self.simulate(nodes, jobs, arrivals)
        chance = random.Random(3)
        rows = nodes.read_text().splitlines()
        body = rows[1:]
        chance.shuffle(body)
        other_nodes = self.file("n.csv", "\n".join([rows[0], *(f"x{line}" for line in body)]) + "\n")
        rows = jobs.read_text().splitlines()
        order = list(range(len(rows) - 1))
        chance.shuffle(order)
        other_jobs = self.file("j.csv", "\n".join([rows[0], *(rows[1 + i] for i in order)]) + "\n")
        place = {old: new for new, old in enumerate(order)}
        other_arrivals = self.file("a.txt", "\n".join(str(place[int(line)]) for line in arrivals.read_text().split()) + "\n")
        ranks = list(range(len(body)))
        chance.shuffle(ranks)
        ties = self.file("t.txt", "\n".join(map(str, ranks)) + "\n")
        second = self.simulate(other_nodes, other_jobs, other_arrivals, "--ties", ties)
        self.assertAlmostEqual(second["alloc130"], first["alloc130"], delta=0.15)


if __name__ == "__main__":
    unittest.main()
