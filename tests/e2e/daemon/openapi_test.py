#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/formats/openapi.yaml is what the daemon does: every path in it is served, every answer is valid.

src/serve/routes_test.cc compares its paths with the table of routes.

This process is the parent of a run, as `mete run` would be, so that the paths for runners are asked too.
"""
import http.client
import json
import os
import pathlib
import re
import socket
import unittest

import jsonschema
import yaml

from world import BOUND_S, GIB, DaemonTest, wait_until
from support import SOURCE

FORMATS = SOURCE / "docs" / "formats"
METHODS = ("get", "post", "delete")


def load():
    return yaml.safe_load((FORMATS / "openapi.yaml").read_text())


def operations(spec):
    return {(method.upper(), path) for path, item in spec["paths"].items() for method in item if method in METHODS}


class Valid:
    """Looks whether bodies are what the file says."""

    def __init__(self, spec):
        self.spec = spec
        self.documents = {"": spec}

    def whole(self, node, file=""):
        """A schema with what it refers to in its place: files refer to others beside them, and none to itself."""
        if isinstance(node, list):
            return [self.whole(each, file) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" not in node:
            return {key: self.whole(value, file) for key, value in node.items() if key not in ("$id", "$schema", "$defs")}
        name, _, pointer = node["$ref"].partition("#")
        name = name or file
        if name not in self.documents:
            self.documents[name] = json.loads((FORMATS / name).read_text())
        target = self.documents[name]
        for word in pointer.split("/")[1:]:
            target = target[word]
        return self.whole(target, name)

    def check(self, schema, value):
        jsonschema.Draft202012Validator(self.whole(schema)).validate(value)

    def request(self, method, path, body):
        self.check(self.spec["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"], body)

    def answer(self, method, path, status, kind, text):
        responses = self.spec["paths"][path][method.lower()]["responses"]
        said = responses.get(str(status), responses.get("default") if status >= 400 else None)
        if said is None:
            raise AssertionError(f"{method} {path}: {status} is not in the file")
        content = self.whole(said)["content"]
        if kind not in content:
            raise AssertionError(f"{method} {path}: {kind} is not in the file")
        self.check(content[kind]["schema"], json.loads(text) if kind == "application/json" else text)


class Description(unittest.TestCase):
    def test_the_file_is_whole(self):
        """What it refers to is there, and every part of a path in braces is described."""
        spec = load()
        valid = Valid(spec)
        for path, item in spec["paths"].items():
            for method in METHODS:
                if method in item:
                    self.assertTrue(valid.whole(item[method])["summary"], path)
            described = {each["name"] for each in valid.whole(item.get("parameters", [])) if each["in"] == "path" and each["required"]}
            self.assertEqual(described, set(re.findall(r"{(\w+)}", path)), path)

    def test_every_path_of_the_description_for_people_is_in_the_file(self):
        known = operations(load())
        said = re.findall(r"`(GET|POST|DELETE) (/[^`?\[ ]*)", (FORMATS / "api.md").read_text())
        said = {(method, re.sub(r"/reservations/ID", "/reservations/{reservation}", path).replace("/ID", "/{id}")
                 .replace("/CARD", "/{card}").replace("/NAME", "/{sweep}")) for method, path in said}
        self.assertGreater(len(said), 20)
        self.assertEqual(said - known, set(), "in api.md and not in openapi.yaml")


class Answers(DaemonTest):
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.spec = load()
        self.valid = Valid(self.spec)
        self.called = set()
        self.assertEqual(self.mete("cards").returncode, 0)  # starts the daemon

    def connect(self):
        connection = http.client.HTTPConnection("mete", timeout=BOUND_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.env["METE_SOCKET"])
        self.addCleanup(connection.close)
        return connection

    def call(self, method, path, body=None, query="", wants=range(200, 300), headers=None, **parts):
        """Asks, and returns the status and the body; both must be what the file says."""
        if body is not None:
            self.valid.request(method, path, body)
        connection = self.connect()
        connection.request(method, path.format(**parts) + query, json.dumps(body) if body is not None else None, headers or {})
        reply = connection.getresponse()
        kind, text = reply.headers["Content-Type"].split(";")[0], reply.read().decode()
        self.valid.answer(method, path, reply.status, kind, text)
        self.assertIn(reply.status, wants, (method, path, text))
        self.called.add((method, path))
        return reply.status, json.loads(text) if kind == "application/json" else text

    def stream(self, path):
        """The first event of a stream."""
        connection = self.connect()
        connection.request("GET", path, headers={"Accept": "text/event-stream"})
        reply = connection.getresponse()
        self.assertEqual(reply.headers["Content-Type"], "text/event-stream")
        self.assertIn("text/event-stream", self.spec["paths"][path.split("?")[0]]["get"]["responses"]["200"]["content"])
        lines = []
        while not lines or lines[-1] != b"\n":
            lines.append(reply.readline())
        return dict(line.decode().rstrip("\n").split(": ", 1) for line in lines[:-1])

    def look(self):
        for path in ("/v1/version", "/v1/daemon", "/v1/cards", "/v1/stats", "/v1/quotas", "/v1/reservations", "/v1/snapshot",
                     "/metrics", "/v1/events", "/v1/jobs"):
            self.call("GET", path)
        self.call("GET", "/v1/jobs", query="?all=1", headers={"Accept": "text/tab-separated-values"})
        self.call("GET", "/v1/events", query="?last=1")
        snapshot = json.loads(self.stream("/v1/snapshot?every=0.5")["data"])
        self.valid.check({"$ref": "snapshot.schema.json"}, snapshot)
        self.valid.check({"$ref": "event.schema.json"}, json.loads(self.stream("/v1/events?from=1")["data"]))

    def run_job(self):
        ticks = int(pathlib.Path("/proc/self/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[19])
        body = {"job": {"name": "run", "command": ["true"], "request": {"gpu": "8G"}}, "runner_start_ticks": ticks}
        self.assertEqual(self.call("POST", "/v1/try", body)[1]["grant"][0]["bytes"], 8 * GIB)
        self.call("POST", "/v1/try", {"job": {**body["job"], "request": {"gpu": "99"}}, "runner_start_ticks": ticks}, wants=[422])
        run = self.call("POST", "/v1/jobs", body)[1]
        job = {"id": run["job"]["id"]}
        wait_until(lambda: self.call("GET", "/v1/jobs/{id}", **job)[1]["job"]["state"] == "starting", "it is granted")
        self.call("POST", "/v1/jobs/{id}/started", {"pid": os.getpid(), "start_ticks": ticks, "ago_ms": 0}, query="?order=1", **job)
        self.call("GET", "/v1/jobs/{id}", query="?tag=old", **job)
        self.call("GET", "/v1/jobs/{id}", query="?since=old", **job)
        self.call("POST", "/v1/jobs/{id}/grow", {"bytes": [9 * GIB]}, query="?order=2", wants=range(200, 500), **job)
        self.call("POST", "/v1/jobs/{id}/parked", {"parked": False, "why": "no"}, query="?order=3", wants=range(200, 500), **job)
        self.call("POST", "/v1/jobs/{id}/metrics", {"points": [{"step": 3, "metrics": [{"name": "loss", "value": 0.5}]}]}, wants=[400], **job)
        for verb in ("park", "unpark"):
            self.call("POST", f"/v1/jobs/{{id}}/{verb}", wants=range(200, 500), **job)
        self.look()  # with a job that runs
        self.call("POST", "/v1/jobs/{id}/ended", {"exit_code": 0, "peak_bytes": [GIB]}, query="?order=4", **job)
        self.call("GET", "/v1/jobs/{id}/wait", **job)

    def submitted_job(self):
        body = {"job": {"name": "sub", "command": ["true"], "cwd": "/", "request": {"gpu": "8G"}, "labels": {"a": "b"},
                        "detached": {"umask": 18}}, "environment": ["PATH=/usr/bin:/bin"]}
        self.assertTrue(self.call("POST", "/v1/try", body)[1]["starts"])
        body["job"]["held"] = True
        job = {"id": self.call("POST", "/v1/jobs", body)[1]["id"]}
        self.look()  # with a job that waits
        self.call("GET", "/v1/jobs/{id}/explain", **job)
        self.call("GET", "/v1/jobs/{id}/show", **job)
        self.call("POST", "/v1/jobs/{id}/priority", {"priority": -5}, **job)
        for verb in ("release", "hold", "release"):
            self.call("POST", f"/v1/jobs/{{id}}/{verb}", wants=range(200, 500), **job)
        self.call("GET", "/v1/jobs/{id}/wait", **job)
        self.call("GET", "/v1/jobs/{id}/show", **job)
        self.call("POST", "/v1/jobs/{id}/requeue", **job)
        self.call("DELETE", "/v1/jobs/{id}", wants=range(200, 500), **job)
        self.call("GET", "/v1/jobs/{id}/wait", **job)

    def sweep(self):
        body = {"plan": {"name": "scan", "sampler": "random", "seed": 7, "trials": 3, "keep": "lr > 0.1 or opt == 'sgd'", "target": "loss < -1",
                         "metrics": [{"name": "loss", "pattern": "loss: ([0-9.]+)"}], "goal": {"metric": "loss"},
                         "params": [{"name": "lr", "range": {"min": 0, "max": 1}},
                                    {"name": "opt", "values": [{"value": "adam"}, {"value": "sgd"}], "when": "lr < 0.5"}]},
                "submit": {"job": {"name": "scan", "command": ["echo", "loss: {lr}", "{opt}"], "cwd": "/", "request": {"gpu": "8G"},
                                   "detached": {"umask": 18}}, "environment": ["PATH=/usr/bin:/bin"]}}
        scan = {"sweep": "scan"}
        self.assertEqual(self.call("POST", "/v1/sweeps", body)[1]["sweeps"][0]["name"], "scan")
        self.call("POST", "/v1/sweeps", body, wants=[400])
        wait_until(lambda: self.call("GET", "/v1/sweeps/{sweep}", **scan)[1]["state"] == "done", "its trials are over")
        self.assertEqual([trial["state"] for trial in self.call("GET", "/v1/sweeps/{sweep}", **scan)[1]["trials"]], ["ok"] * 3)
        self.call("POST", "/v1/sweeps/{sweep}/extend", {"trials": 2}, **scan)
        for verb in ("pause", "resume", "stop"):
            self.call("POST", f"/v1/sweeps/{{sweep}}/{verb}", wants=range(200, 500), **scan)
        self.call("GET", "/v1/sweeps", query="?all=1")
        self.call("GET", "/v1/sweeps/{sweep}", query="?brief=1", **scan)
        self.call("GET", "/v1/sweeps/{sweep}", wants=[404], sweep="none")
        self.look()  # with events of a sweep
        wait_until(lambda: self.call("DELETE", "/v1/sweeps/{sweep}", wants=range(200, 500), **scan)[0] == 200, "it is removed")

    def administer(self):
        self.call("POST", "/v1/cards/{card}/drain", card=1)
        self.call("POST", "/v1/cards/{card}/undrain", card=1)
        self.call("POST", "/v1/cards/{card}/drain", card="GPU-none", wants=[400, 404])
        self.call("POST", "/v1/quotas", {"user": "", "cards": 2})
        self.call("POST", "/v1/quotas", {"user": "no such user", "cards": 2}, wants=[404])
        kept = self.call("POST", "/v1/reservations", {"user": "root", "gpu": "8G", "from": "2099-01-01T00:00:00.000Z",
                                                      "until": "2099-01-02T00:00:00.000Z"})[1]
        self.call("DELETE", "/v1/reservations/{reservation}", reservation=kept["reservations"][0]["id"])

    def test_every_path_is_served_and_every_answer_is_valid(self):
        self.run_job()
        self.submitted_job()
        self.sweep()
        self.administer()
        for method, path in sorted(operations(self.spec)):  # and so is every refusal
            if "{id}" in path and "/v1/jobs" in path:
                body = {} if "requestBody" in self.spec["paths"][path][method.lower()] else None
                connection = self.connect()
                connection.request(method, path.format(id=99999), None if body is None else json.dumps(body))
                reply = connection.getresponse()
                self.assertIn(reply.status, (400, 404), path)
                self.valid.answer(method, path, reply.status, "application/json", reply.read().decode())
        for query in ("?every=0.1", "?every=x", "?every=", "?every=1e9", "?every=nan", "?every=-1"):
            self.call("GET", "/v1/snapshot", query=query, wants=[400])
        self.call("POST", "/v1/daemon/reload")
        self.call("POST", "/v1/daemon/backup", {"path": str(self.folder / "copy.db")})
        self.call("POST", "/v1/daemon/stop")
        self.assertEqual(operations(self.spec) - self.called, set(), "in the file, and never asked for")


if __name__ == "__main__":
    unittest.main()
