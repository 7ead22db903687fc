#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/metrics: its content, for which users, and that a real Prometheus, its checks and our rules and dashboard accept it."""
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

from world import ACTOR, BOUND_S, BUILD, GIB, METE, DaemonTest, wait_until
from support import SOURCE

PACKAGING = SOURCE / "packaging"
SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def promtool(*words, **options):
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=BOUND_S, **options)


class MetricsTest(DaemonTest):
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.port = free_port()

    def configure(self, text):
        path = self.folder / "config.toml"
        path.write_text(text)
        self.env["METE_CONFIG"] = str(path)

    def listen(self, more=""):
        self.configure(f'[metrics]\nlisten = "127.0.0.1:{self.port}"\n{more}')

    def get(self, path="/metrics", method="GET", tcp=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)
        if not tcp:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(self.env["METE_SOCKET"])
        try:
            connection.request(method, path)
            reply = connection.getresponse()
            return reply.status, reply.headers["Content-Type"], reply.read().decode()
        finally:
            connection.close()

    def samples(self, text=None):
        """{(name, labels as a set): value}"""
        found = {}
        for line in (text or self.get()[2]).splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = SAMPLE.match(line).groups()
            key = (name, frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
            self.assertNotIn(key, found, "a series that is there twice")
            found[key] = float(value)
        return found

    def value(self, name, **labels):
        """The one sample with these labels; None: there is none."""
        for (known, its), value in self.samples().items():
            if known == name and set(labels.items()) <= its:
                return value
        return None

    def start_actor(self, *words):
        process = self.start_run("-q", *words, "--", ACTOR, stdin=subprocess.PIPE)
        for line in ("init", "retain 0", "take alloc 1G"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline().split()[0], "0", line)
        return process


class Metrics(MetricsTest):
    def test_cards_jobs_and_the_queue(self):
        actor = self.start_actor("--gpu", "4G", "--devices", "0")
        holder = self.holder("100%", "--devices", "1")
        waiting = self.start_run("-q", "--gpu", "100%", "--", "true")
        wait_until(lambda: self.value("mete_jobs", state="pending") == 1, "it waits")
        wait_until(lambda: (self.value("mete_job_memory_peak_bytes", job_id="1") or 0) >= GIB, "it was read")
        self.assertEqual(self.value("mete_job_memory_cap_bytes", job_id="1"), 4 * GIB)
        self.assertGreaterEqual(self.value("mete_job_memory_used_bytes", job_id="1"), GIB)
        self.assertEqual(self.value("mete_job_gpu_oom_total", job_id="1"), 0)
        self.assertGreaterEqual(self.value("mete_job_wait_seconds", job_id="1"), 0)
        self.assertEqual(self.value("mete_card_memory_granted_bytes", card="0"), 4 * GIB)
        self.assertGreaterEqual(self.value("mete_card_memory_used_bytes", card="0"), GIB)
        self.assertEqual(self.value("mete_card_state", card="0", state="ok"), 1)
        self.assertLess(self.value("mete_card_reading_age_seconds", card="0"), BOUND_S)
        self.assertEqual(sum(v for (name, _), v in self.samples().items() if name == "mete_queue_jobs"), 1)
        self.assertGreater(self.value("mete_decision_duration_seconds_count"), 0)
        self.assertGreater(self.value("mete_store_commit_duration_seconds_count"), 0)
        self.assertEqual(self.value("mete_build_info", mode="user"), 1)
        self.assertEqual(self.mete("drain", "1").returncode, 0)
        wait_until(lambda: self.value("mete_card_state", card="1", state="drained") == 1, "it is drained")
        self.assertEqual(self.mete("cancel", "3").returncode, 0)
        waiting.wait(BOUND_S)
        self.release(holder)
        actor.stdin.close()
        actor.stdin = None
        actor.wait(BOUND_S)
        wait_until(lambda: self.value("mete_jobs_ended_total", outcome="ok") == 2, "both have ended")
        self.assertEqual(self.value("mete_jobs_ended_total", outcome="cancelled"), 1)

    def test_what_the_cap_ended_is_counted(self):
        result = self.run_("-q", "--gpu", "2G", "--", "sh", "-c", f"{ACTOR} 'init,retain 0,take alloc 4G'; exit 3")
        self.assertNotEqual(result.returncode, 0)
        wait_until(lambda: self.value("mete_jobs_ended_total", outcome="gpu-oom") == 1, "it is counted")

    def test_nobodys_words_are_told(self):
        """Every client may read it: numbers and users, but no names or commands of jobs."""
        self.assertEqual(self.mete("submit", "--gpu", "8G", "--name", "secret-project", "--label", "client=acme", "--", "sleep",
                                   "4242").returncode, 0)
        wait_until(lambda: self.value("mete_job_memory_cap_bytes", job_id="1"), "it is there")
        text = self.get()[2]
        for word in ("secret", "acme", "client", "sleep", "4242", str(self.folder)):
            self.assertNotIn(word, text)
        self.assertEqual(self.mete("cancel", "1").returncode, 0)

    def test_the_number_of_series_is_bounded(self):
        self.configure("[metrics]\njobs = 3\n")
        self.assertEqual(self.mete("submit", "--array", "0-9", "--gpu", "1G", "--", "sleep", "600").returncode, 0)
        wait_until(lambda: self.value("mete_jobs", state="running") == 10, "all run")
        names = {dict(labels).get("job_id") for (name, labels) in self.samples() if name == "mete_job_memory_cap_bytes"}
        self.assertEqual(names, {"1_0", "1_1", "1_2", "other"})
        self.assertEqual(self.value("mete_job_memory_cap_bytes", job_id="other", user="other"), 7 * GIB)
        self.assertEqual(self.mete("cancel", "1").returncode, 0)

    def test_fifty_scrapes_a_second_get_one_text(self):
        """It is made once for each reading: requests in between get equal bytes."""
        self.mete("cards")
        texts = [self.get()[2] for _ in range(50)]
        made = {re.search(r"^mete_daemon_uptime_seconds (\S+)$", text, re.M).group(1) for text in texts}
        self.assertLess(len(made), 25, "a text of its own for every scrape")
        self.assertEqual(len(set(texts)), len(made))
        self.assertEqual(self.mete("run", "-q", "--gpu", "1G", "--", "true").returncode, 0)


class Tcp(MetricsTest):
    def test_over_tcp_there_is_this_and_nothing_else(self):
        self.listen()
        self.mete("cards")
        status, kind, text = self.get(tcp=True)
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertIn("mete_build_info", text)
        for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/snapshot"), ("POST", "/v1/jobs"), ("POST", "/v1/daemon/stop"),
                             ("GET", "/"), ("POST", "/metrics"), ("DELETE", "/v1/jobs/1")):
            self.assertEqual(self.get(path, method, tcp=True)[0], 404, path)
        self.assertIsNotNone(self.daemon_pid())
        self.assertIn(f"http://127.0.0.1:{self.port}/metrics", self.mete("daemon", "status").stdout)
        self.assertIn(f"served at 127.0.0.1:{self.port}", self.mete("doctor").stdout)

    def test_without_being_told_nobody_listens(self):
        self.mete("cards")
        with self.assertRaises(ConnectionRefusedError):
            self.get(tcp=True)
        self.assertEqual(self.get()[0], 200)

    def test_a_port_that_is_taken_is_said_and_stops_nobody(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.port))
            other.listen()
            self.listen()
            self.assertEqual(self.mete("run", "-q", "--gpu", "1G", "--", "true").returncode, 0)
            for text in (self.mete("daemon", "status").stdout, self.mete("doctor").stdout):
                self.assertIn(f"another program listens at 127.0.0.1:{self.port}", text)
            self.assertIn("metrics_trouble", self.api("/v1/daemon")[1])
        wait_until(lambda: "metrics" in self.api("/v1/daemon")[1], "it was tried again")
        self.assertEqual(self.get(tcp=True)[0], 200)

    def test_an_address_that_is_none_is_refused(self):
        for wrong in ('"localhost:9411"', '"127.0.0.1"', '"127.0.0.1:0"', '"127.0.0.1:99999"', '9411', '"[::1:80"'):
            self.configure(f"[metrics]\nlisten = {wrong}\n")
            result = self.mete("config", "check")
            self.assertEqual(result.returncode, 65, wrong)
            self.assertIn("metrics.listen", result.stderr)


class Prometheus(MetricsTest):
    def test_it_scrapes_and_answers(self):
        self.listen()
        holder = self.holder("8G", "--devices", "0")
        folder = self.folder / "prometheus"
        folder.mkdir()
        port = free_port()
        shutil.copy(PACKAGING / "prometheus" / "mete.rules.yml", folder)
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: [mete.rules.yml]\n"
            f"scrape_configs:\n  - job_name: mete\n    static_configs: [{{targets: ['127.0.0.1:{self.port}']}}]\n")
        log = open(folder / "log", "wb")
        self.addCleanup(log.close)
        server = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        self.addCleanup(self.finish, server)

        def ask(query):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}",
                                            timeout=BOUND_S) as reply:
                    return [(entry["metric"], float(entry["value"][1])) for entry in json.load(reply)["data"]["result"]]
            except OSError:
                self.assertIsNone(server.poll(), pathlib.Path(folder / "log").read_text())
                return []

        wait_until(lambda: ask('mete_card_memory_granted_bytes{card="0"} == 8589934592'), "it has scraped")
        wait_until(lambda: ask('up{job="mete"} == 1'), "a scrape was in time")
        wait_until(lambda: ask("mete_job_memory_cap_bytes"), "the job is there")
        metric, value = ask("mete_job_memory_cap_bytes")[0]
        self.assertEqual((metric["job_id"], metric["job"], value), ("1", "mete", 8 * GIB))
        self.assertNotIn("exported_job", metric)
        self.assertEqual(ask("mete_card_memory_grantable_bytes < 0"), [])
        self.release(holder)
        wait_until(lambda: not ask("mete_job_memory_cap_bytes"), "a job that has ended is gone")
        wait_until(lambda: ask('sum(mete_jobs_ended_total{outcome="ok"}) == 1'), "it is counted")

    def test_promtool_has_nothing_to_say(self):
        actor = self.start_actor("--gpu", "4G", "--devices", "0")
        wait_until(lambda: self.value("mete_job_memory_peak_bytes", job_id="1"), "it was read")
        result = promtool("check", "metrics", input=self.get()[2])
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))
        actor.kill()

    def test_the_rules_are_right_and_name_what_there_is(self):
        rules = sorted((PACKAGING / "prometheus").glob("*.rules.yml"))
        self.assertTrue(rules)
        for file in rules:
            result = promtool("check", "rules", file)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for file in sorted((PACKAGING / "prometheus").glob("*_test.yml")):
            result = promtool("test", "rules", file, cwd=file.parent)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        tested = "".join(file.read_text() for file in (PACKAGING / "prometheus").glob("*_test.yml"))
        for file in rules:
            for alert in re.findall(r"alert: (\w+)", file.read_text()):
                self.assertRegex(tested, rf"alertname: {alert}\n *exp_alerts", "an alert that was never seen to fire")


class Names(MetricsTest):
    def test_dashboard_rules_and_guide_name_what_is_exported(self):
        actor = self.start_actor("--gpu", "4G", "--devices", "0")
        waiting = self.start_run("-q", "--gpu", "100%", "--devices", "0", "--", "true")
        wait_until(lambda: self.value("mete_job_memory_peak_bytes", job_id="1"), "it was read")
        wait_until(lambda: self.value("mete_queue_oldest_wait_seconds") is not None, "one waits")
        wait_until(lambda: self.value("mete_job_idle_seconds", job_id="1") is not None, "it is idle")
        text = self.get()[2]
        families = set(re.findall(r"^# TYPE (\w+)", text, re.M))
        samples = families | {name for name, _ in self.samples(text)}
        dashboard = (PACKAGING / "grafana" / "mete.json").read_text()
        queries = [target["expr"] for panel in json.loads(dashboard)["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 20)
        for where, said in (("the dashboard", "\n".join(queries)),
                            ("the rules", (PACKAGING / "prometheus" / "mete.rules.yml").read_text()),
                            ("the guide", (SOURCE / "docs" / "guide" / "metrics.md").read_text())):
            names = set(re.findall(r"\bmete_[a-z_]+[a-z]\b", said)) - {"mete_test"}
            self.assertTrue(names, where)
            self.assertEqual(names - samples, set(), f"in {where}, and not exported")
        guide = (SOURCE / "docs" / "guide" / "metrics.md").read_text()
        self.assertEqual({name for name in families if f"`{name}`" not in guide}, set(), "exported, and not in the guide")
        for query in queries:  # in place of Grafana's own variables
            plain = query.replace("$__rate_interval", "5m").replace("$instance", ".*")
            result = promtool("check", "rules", "/dev/stdin", input=json.dumps(
                {"groups": [{"name": "a", "rules": [{"record": "a", "expr": plain}]}]}))
            self.assertEqual(result.returncode, 0, (query, result.stderr))
        for process in (waiting, actor):
            process.kill()


if __name__ == "__main__":
    unittest.main()
