#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete simulate --service` beside the formula written down once more, and `mete simulate --models`."""
import json
import math
import random
import unittest

import jsonschema

import simulate_test
from simulate_test import SOURCE

DEFAULTS = {"min": 1, "max": 100, "init": None, "target": 16.0, "window": 60, "down": 300, "up": 60, "max_down": 0.75, "max_up": 1.5, "down_tol": 0.05,
            "up_tol": 0.05}
NAMES = {"min": "min_replicas", "max": "max_replicas", "init": "init_replicas", "target": "target_in_flight", "window": "window",
         "down": "downscale_stabilization_period", "up": "upscale_stabilization_period", "max_down": "max_downscale_factor",
         "max_up": "max_upscale_factor", "down_tol": "downscale_tolerance", "up_tol": "upscale_tolerance"}


def formula(load, **changes):
    """Cortex's formula over a list of requests in flight, as (t, avg, raw, recommended, replicas)."""
    p = {**DEFAULTS, **changes}
    c = p["init"] if p["init"] is not None else p["min"]
    remembered, ticks = [], []
    for t, value in enumerate(load):
        if c == 0 and value > 0:
            c = 1
            remembered.append((t, 1))
        if t == 0 or t % 10:
            continue
        samples = [load[s] for s in range(t + 1) if t - p["window"] < s <= t]
        avg = sum(samples) / len(samples)
        raw = avg / p["target"]
        rec = math.ceil(raw)
        if c * (1 - p["down_tol"]) < raw < c or c < raw < c * (1 + p["up_tol"]):
            rec = c
        rec = max(rec, min(c - 1, math.ceil(c * p["max_down"])))
        rec = min(rec, max(c + 1, math.ceil(c * p["max_up"])))
        rec = min(max(rec, p["min"]), p["max"])
        remembered.append((t, rec))
        if rec < c and t > 10 + p["down"]:
            c = max(rec, min(c, max(r for at, r in remembered if t - at <= p["down"])))
        elif rec > c and t > 10 + p["up"]:
            c = min(rec, max(c, min(r for at, r in remembered if t - at <= p["up"])))
        ticks.append((t, avg, raw, rec, c))
    return ticks


class Services(simulate_test.SimulateTest):
    def document(self, name, *words):
        result = self.mete(*words, "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        jsonschema.validate(document, json.loads((SOURCE / "docs/formats" / f"{name}.schema.json").read_text()))
        return document

    def ticks(self, load, **changes):
        keys = "".join(f"    {NAMES[key]}: {value}{'s' if key in ('window', 'down', 'up') else ''}\n" for key, value in changes.items())
        service = self.file("s.yaml", "services:\n- name: chat\n  command: serve\n" + ("  autoscaling:\n" + keys if keys else ""))
        trace = self.file("t.csv", "t_s,in_flight\n" + "".join(f"{t},{value}\n" for t, value in enumerate(load)))
        document = self.document("autoscale", "--service", service, "--in-flight", trace)
        return [(tick["t_s"], tick["avg"], tick["raw"], tick["recommended"], tick["replicas"]) for tick in document["ticks"]]

    def test_formula(self):
        dice = random.Random(7)
        for turn in range(12):
            changes = {} if turn == 0 else {
                "min": dice.choice((0, 1, 2)), "max": dice.choice((5, 30)), "init": dice.choice((2, 4)), "target": dice.choice((1, 2.5, 8)),
                "window": dice.choice((10, 30, 60)), "down": dice.choice((0, 30, 120)), "up": dice.choice((0, 20, 60)),
                "max_down": dice.choice((0, 0.5, 0.75)), "max_up": dice.choice((1.5, 2, 10)), "down_tol": 0.1, "up_tol": dice.choice((0, 0.2))}
            level, load = 0, []
            for t in range(700):
                if t % 45 == 0:
                    level = dice.choice((0, 0, 3, 20, 90))
                load.append(max(0, level + dice.randint(-2, 2)) if level else 0)
            self.assertEqual(self.ticks(load, **changes), formula(load, **changes), changes)

    def test_text(self):
        service = self.file("s.yaml", "services: [{name: chat, concurrency: 2, command: serve}]\n")
        trace = self.file("t.csv", "t_s,in_flight\n" + "".join(f"{t},3\n" for t in range(21)))
        result = self.mete("--service", service, "--in-flight", trace)
        self.assertEqual(result.stdout.splitlines(), ["SECOND  IN FLIGHT   RAW  RECOMMENDED  REPLICAS",
                                                      "    10       3.00  1.50            2         1",
                                                      "    20       3.00  1.50            2         1"])

    def test_models(self):
        models = self.file("m.yaml", "room: 20G\nswap_rate: 50G\ngpu: 20G\nconcurrency: 1\nservices: [{name: A}, {name: B}, {name: C, models: [c, cc]}]\n")
        trace = self.file("r.csv", "t_s,model,answer_s\n" + "".join(f"0,{model},0.1\n" for model in ("A", "B", "A", "A", "c", "A", "B", "cc")))
        document = self.document("residency", "--models", models, "--requests", trace)
        self.assertEqual((document["requests"], document["swaps"]), (8, 2))
        self.assertAlmostEqual(document["mean_wait_s"], (0.4 + 0.5 + 0.6 + 0.7 + 1.2 + 1.3 + 1.8 + 1.9) / 8)
        self.assertAlmostEqual(document["max_wait_s"], 1.9)
        self.assertEqual(self.mete("--models", models, "--requests", trace).stdout,
                         "8 requests for 3 models, 2 swaps\nwaits: 1.05 s on average, 99 % at most 1.90 s, the longest 1.90 s\n")

    def test_errors(self):
        service = self.file("s.yaml", "services: [{name: chat, command: serve}]\n")
        two = self.file("two.yaml", "services: [{name: a}, {name: b}]\n")
        bad = self.file("bad.yaml", "services:\n- name: chat\n  replicas: 5..2\n")
        gap = self.file("gap.csv", "t_s,in_flight\n0,1\n2,1\n")
        small = self.file("small.yaml", "room: 10G\nservices: [{name: chat, gpu: 20G}]\n")
        none = self.file("none.yaml", "room: 10G\nservices: [{name: chat, gpu: 40%}]\n")
        requests = self.file("r.csv", "t_s,model,answer_s\n0,chat,1\n")
        other = self.file("other.csv", "t_s,model,answer_s\n0,chad,1\n")
        self.refused(self.mete("--service", service), 64, "--service needs --in-flight")
        self.refused(self.mete("--in-flight", gap), 64, "--in-flight needs --service")
        self.refused(self.mete("--service", service, "--in-flight", gap, "--timed"), 64, "--service and --timed contradict each other")
        self.refused(self.mete("--service", service, "--in-flight", gap), 65, "gap.csv:3: t_s is 2, and 1 is next", "each second")
        self.refused(self.mete("--service", two, "--in-flight", gap), 65, "has 2 services")
        self.refused(self.mete("--service", bad, "--in-flight", gap), 65, "bad.yaml:2: min_replicas is 5, more than max_replicas, 2")
        self.refused(self.mete("--service", self.dir / "no.yaml", "--in-flight", gap), 65, "no.yaml")
        self.refused(self.mete("--models", service, "--requests", requests), 65, "does not say how much room there is", "room: 60G")
        self.refused(self.mete("--models", small, "--requests", requests), 65, "the model chat never fits", "20 GiB", "10 GiB")
        self.refused(self.mete("--models", none, "--requests", requests), 65, "none.yaml:2", "has no size", "gpu: 20G")
        self.refused(self.mete("--models", small, "--requests", other), 65, "other.csv:2: there is no model 'chad'", "did you mean chat?")


if __name__ == "__main__":
    unittest.main()
