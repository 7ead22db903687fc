#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete simulate` with times: on own cards, on instances, on the history of a daemon; and that it can be interrupted."""
import json
import os
import pty
import signal
import subprocess
import unittest

import jsonschema

import simulate_test
from simulate_test import BUILD, SCHEMA

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration,user,priority,time_limit\n"


class Timed(simulate_test.SimulateTest):
    def document(self, *words):
        result = self.mete(*words, "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def jobs(self, *rows):
        return self.file("jobs.csv", HEAD + "".join(row + "\n" for row in rows))

    def test_one_more_card_cuts_waits(self):
        jobs = self.jobs("a,1000,1,1,1000,0,100,ann,,", "b,1000,1,1,1000,10,100,bob,,", "c,1000,1,1,500,20,30,bob,,")
        one = self.document("--pool", "1xT4", "--jobs", jobs, "--timed", "--decisions", self.dir / "d.csv")
        self.assertEqual((one["cards"], one["nodes"], one["place"], one["policy"]), (1, 1, "1xT4", "best-fit"))
        self.assertEqual(one["waits"]["max_s"], 180)
        self.assertEqual((self.dir / "d.csv").read_text(), "0,0,0,0.000,100.000\n1,0,0,100.000,200.000\n2,0,0,200.000,230.000\n")
        two = self.document("--pool", "1xT4+1xH200", "--jobs", jobs, "--timed")
        self.assertEqual((two["cards"], two["waits"]["max_s"]), (2, 80))

    def test_priorities_and_back_fill_on_instances(self):
        # Both cards of the node until 500; the next needs four and waits; the short one fills the gap, the long one does not.
        jobs = self.jobs("a,1000,1,2,1000,0,500,ann,,500", "big,1000,1,4,1000,1,50,bob,,50", "short,1000,1,1,1000,2,100,cas,,100",
                         "long,1000,1,1,1000,3,5000,dan,,5000", "first,1000,1,4,1000,4,10,eve,7,10")
        document = self.document("--instances", "g4dn.12xlarge", "--jobs", jobs, "--timed", "--decisions", self.dir / "d.csv")
        starts = [line.split(",")[3] for line in (self.dir / "d.csv").read_text().splitlines()]
        self.assertEqual(starts, ["0.000", "510.000", "2.000", "560.000", "500.000"])
        self.assertEqual((document["place"], document["nodes"], document["cards"]), ("g4dn.12xlarge", 1, 4))

    def test_a_report_is_one_page_that_needs_nothing_else(self):
        jobs = self.jobs("a,1000,1,1,1000,0,100,ann,,", "b,1000,1,1,1000,10,100,bob,,", "c,1000,1,0,0,20,30,bob,,")
        report = self.dir / "r.html"
        for words, svgs in ((("--timed",), 3), ((), 2)):
            self.document("--pool", "1xT4", "--jobs", jobs, "--report", report, *words)
            page = report.read_text()
            self.assertEqual(page.count("<svg"), svgs)
            self.assertTrue(page.endswith("</html>\n"))
            self.assertNotIn("http", page)
        self.refused(self.mete("--pool", "1xT4", "--jobs", jobs, "--report", "/no/such/r.html"), 125, "/no/such")

    def test_cpus_of_instances_count(self):
        jobs = self.jobs("a,48000,1,1,1000,0,100,ann,,", "b,48000,1,1,1000,0,100,bob,,")
        self.assertEqual(self.document("--instances", "g4dn.12xlarge", "--jobs", jobs, "--timed")["waits"]["max_s"], 100)
        self.assertEqual(self.document("--instances", "2xg4dn.12xlarge", "--jobs", jobs, "--timed")["waits"]["max_s"], 0)

    def test_what_can_never_fit_is_told(self):
        jobs = self.jobs("a,1000,1,3,1000,0,100,ann,,", "b,1000,1,1,1000,0,100,bob,,")
        for place in ("--pool", "2xT4"), ("--instances", "g4dn.xlarge"):
            self.assertEqual(self.document(*place, "--jobs", jobs, "--timed")["rejected"], 1)
        result = self.mete("--pool", "2xT4", "--jobs", jobs, "--timed")
        self.assertIn("refused, since they can never fit", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_where_limits_the_nodes(self):
        nodes = self.file("n.csv", "sn,cpu_milli,memory_mib,gpu,model,rack\na,8000,100,1,T4,r1\nb,8000,100,2,T4,r2\nc,8000,100,1,P100,r2\n")
        jobs = self.jobs("a,1000,1,1,1000,0,100,ann,,", "b,1000,1,1,1000,0,100,bob,,")
        words = ("--nodes", nodes, "--jobs", jobs, "--decisions", self.dir / "d.csv", "--where")
        for more in ((), ("--timed",)):
            document = self.document(*words, "attribute:rack == r2 and attribute:gpu.type == T4", *more)
            self.assertEqual((document["nodes"], document["cards"], document["rejected"]), (1, 2, 0))
            rows = [line.split(",")[1] for line in (self.dir / "d.csv").read_text().splitlines()]
            self.assertEqual(rows, ["1", "1"])
        self.refused(self.mete(*words, "attribute:rack = "), 64, "^")
        self.refused(self.mete(*words, "attribute:rack == r9"), 69, "none of the nodes")
        self.refused(self.mete("--pool", "T4", "--jobs", jobs, "--where", "attribute:rack == r1"), 64, "--where is for")

    def test_gangs_start_together_on_several_nodes_or_not_at_all(self):
        head = HEAD.rstrip("\n") + ",inst_num\n"
        jobs = self.file("g.csv", head + "a,1000,1,1,1000,0,100,ann,,100,\ngang,1000,1,4,1000,1,50,bob,,50,2\nlate,1000,1,1,1000,2,500,cas,,500,1\n")
        words = ("--jobs", jobs, "--timed", "--decisions", self.dir / "d.csv")
        document = self.document("--instances", "2xg4dn.12xlarge", *words)
        self.assertEqual((document["rejected"], document["waits"]["jobs"], document["waits"]["max_s"]), (0, 3, 148))
        lines = [line.split(",") for line in (self.dir / "d.csv").read_text().splitlines()]
        self.assertEqual([line[0] for line in lines], ["0", "1", "1", "2"])
        self.assertEqual({(line[1], line[2], line[3]) for line in lines[1:3]}, {("0", "0-1-2-3", "100.000"), ("1", "0-1-2-3", "100.000")})
        self.assertEqual(self.document("--instances", "1xg4dn.12xlarge", *words)["rejected"], 1)
        self.refused(self.mete("--pool", "8xT4", *words), 65, "'gang' is 2 that start together", "--instances or --nodes")
        self.refused(self.mete("--instances", "2xg4dn.12xlarge", "--jobs", jobs), 65, "g.csv:3: job 'gang'", "--timed")
        for wrong in ("0", "-1", "99999", "two"):
            bad = self.file("bad.csv", head + f"a,1000,1,1,1000,0,100,ann,,100,{wrong}\n")
            self.refused(self.mete("--instances", "g4dn.12xlarge", "--jobs", bad, "--timed"), 65, f"bad.csv:2: inst_num must be from 1 to 10000, not '{wrong}'")

    def test_own_instance_types(self):
        types = self.file("t.csv", "name,gpus,gpu_type,gpu_memory_gib_total,vcpus,memory_gib\nours,2,T4,32,8,30.5\n")
        jobs = self.jobs("a,1000,1,1,1000,0,100,ann,,")
        self.assertEqual(self.document("--instances", "3xours", "--types", types, "--jobs", jobs)["cards"], 6)

    def test_wrong_words_are_64_and_wrong_files_65(self):
        jobs = self.jobs("a,1000,1,1,1000,0,100,ann,,")
        self.refused(self.mete("--pool", "2xH20", "--jobs", jobs), 64, "'H20'", "did you mean H200?")
        self.refused(self.mete("--instances", "g4dn.12xlrge", "--jobs", jobs), 64, "did you mean g4dn.12xlarge?")
        self.refused(self.mete("--pool", "2xT4", "--instances", "p3.2xlarge", "--jobs", jobs), 64, "one of")
        self.refused(self.mete("--pool", "+1xT4", "--jobs", jobs, "--timed"), 64, "say all of them")
        self.refused(self.mete("--pool", "2xT4", "--jobs", jobs, "--timed", "--max-moves", "3"), 64, "--max-moves")
        self.refused(self.mete("--pool", "2xT4", "--jobs", jobs, "--timed", "--policy", "fgd"), 64, "fgd")
        self.refused(self.mete("--pool", "2xT4", "--jobs", self.jobs("a,1,1,1,1000,soon,1,,,"), "--timed"), 65, ":2: creation_time", "'soon'")
        self.refused(self.mete("--pool", "2xT4", "--jobs", self.jobs("a,1,1,1,1000,1,1,,5000,"), "--timed"), 65, ":2: priority")
        self.refused(self.mete("--instances", "x", "--types", self.file("t", "name\n"), "--jobs", jobs), 65, "there is no column 'gpus'")
        self.assertFalse((self.dir / "state").exists())

    def test_an_interrupt_ends_it_and_leaves_nothing(self):
        jobs = self.jobs(*(f"j{i % 50},1000,1,1,{100 + i % 800},{i},{5000 + i % 97},u{i % 9},," for i in range(60_000)))
        control, terminal = pty.openpty()
        with subprocess.Popen([BUILD / "bin" / "mete", "simulate", "--pool", "8xT4", "--jobs", jobs, "--timed", "--decisions", self.dir / "d.csv"],
                              env=self.environment() | {"TERM": "xterm"}, stdout=subprocess.PIPE, stderr=terminal) as process:
            os.close(terminal)
            seen = b""
            while b"simulating " not in seen:
                seen += os.read(control, 4096)
            process.send_signal(signal.SIGINT)
            try:
                while chunk := os.read(control, 65536):
                    seen += chunk
            except OSError:  # the terminal is gone with its last user
                pass
            self.assertEqual(process.wait(60), -signal.SIGINT)
            self.assertEqual(process.stdout.read(), b"")
        os.close(control)
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen[-80:])
        self.assertFalse((self.dir / "d.csv").exists())


def recorded(number, submitted, started, ended, gpu="1", **more):
    def moment(second):
        return f"2026-11-15T{9 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"
    return {"id": str(number), "name": "train", "user": "alice", "uid": 1000, "state": "ended", "outcome": "ok", "attempt": 1, "exit_code": 0,
            "request": gpu, "priority": 0, "submitted_at": moment(submitted), "started_at": moment(started), "ended_at": moment(ended),
            "grant": [], "command": ["x"], "labels": {}} | more


class History(simulate_test.SimulateTest):
    document = Timed.document

    def test_a_file_of_it(self):
        jobs = [recorded(1, 0, 0, 600), recorded(2, 10, 600, 1200), recorded(3, 20, 1200, 1800), recorded(4, 30, 1800, 1900, attempt=2)]
        path = self.file("h.json", json.dumps({"schema": "mete.ps/1", "at": "2026-11-15T12:00:00.000Z", "jobs": jobs}))
        same = self.document("--history", path, "--pool", "1xH200")
        self.assertEqual(same["recorded_waits"], same["waits"])
        self.assertEqual((same["recorded_waits"]["jobs"], same["left_out"], same["waits"]["mean_s"]), (3, 1, 590))
        self.assertNotIn("today_waits", same)
        self.assertEqual(self.document("--history", path, "--pool", "3xH200")["waits"]["mean_s"], 0)
        self.assertEqual(self.document("--history", path, "--instances", "p3.8xlarge")["waits"]["mean_s"], 0)
        result = self.mete("--history", path, "--pool", "2xH200")
        self.assertIn("waits would have been shorter by", result.stdout)
        # Cards by name are whole cards: the document has them.
        card = {"card": "GPU-0", "index": 0, "bytes": 1 << 37, "whole": True}
        named = [{key: value for key, value in job.items() if key != "request"} | {"grant": [card]} for job in jobs]
        by_name = self.file("n.json", json.dumps({"schema": "mete.ps/1", "at": "2026-11-15T12:00:00.000Z", "jobs": named}))
        for place in (("--pool", "1xH200"), ("--pool", "3xH200"), ("--instances", "p3.8xlarge")):
            self.assertEqual(self.document("--history", by_name, *place)["waits"], self.document("--history", path, *place)["waits"])
        self.refused(self.mete("--history", path, "--pool", "+1xH200"), 64, "say all of them")
        self.refused(self.mete("--history", path), 64, "--pool")
        self.refused(self.mete("--history", self.file("x", "{}"), "--pool", "T4"), 65, "x: ")
        self.refused(self.mete("--history", path, path, "--pool", "T4"), 64, "one file")

    def test_no_daemon_is_started_for_it(self):
        result = self.mete("--history")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("mete ps -a -o json", result.stderr)
        self.assertFalse((self.dir / "meted.sock").exists())

    @unittest.skipUnless((BUILD / "bin" / "meted").exists(), "there is no daemon")
    def test_of_a_daemon_that_runs(self):
        environment = self.environment() | {"METE_SIM": "1xH200"}
        def run(*words):
            return subprocess.run([BUILD / "bin" / "mete", *words], env=environment, capture_output=True, text=True, check=False)
        try:
            ran = run("run", "--gpu", "1", "--", "true")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            result = run("simulate", "--history", "--pool", "+1xT4", "-o", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            jsonschema.validate(document, SCHEMA)
            self.assertEqual((document["place"], document["arrivals"]), ("1xH200+1xT4", 1))
            self.assertIn("today_waits", document)
        finally:
            run("daemon", "stop")


if __name__ == "__main__":
    unittest.main()
