#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What two users of root's daemon see of each other's jobs, for each value of [sight] others."""
import json
import re
import subprocess
import unittest

import openapi_test
import queue_users_test
from users_test import ALICE, BOB
from world import BOUND_S, SOURCE, wait_until

SECRET = "xyzzy"  # in everything that is Alice's own

# Sends GET requests as another user, all at once, and prints what was answered to each: streams do not end by themselves.
LISTENER = """
import json, selectors, socket, sys, time
answers, open_ = {}, selectors.DefaultSelector()
for target, accept in json.load(sys.stdin):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(f"GET {target} HTTP/1.1\\r\\nHost: mete\\r\\nAccept: {accept}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    answers[target + " " + accept] = b""
    open_.register(s, selectors.EVENT_READ, target + " " + accept)
while open_.get_map() and (ready := open_.select(2)):  # until nothing more comes
    for key, _ in ready:
        data = key.fileobj.recv(65536)
        answers[key.data] += data
        if not data or answers[key.data].count(b"event: snapshot") > 1:
            open_.unregister(key.fileobj)
            key.fileobj.close()
json.dump({key: value.decode() for key, value in answers.items()}, sys.stdout)
"""


class Others(queue_users_test.Queue):
    others = "rows"

    def start_daemon(self):
        config = self.folder / "sight.toml"
        config.write_text(f'[sight]\nothers = "{self.others}"\n')
        self.env["METE_CONFIG"] = str(config)
        super().start_daemon()

    def secretive(self, *words):
        """A job of Alice's with the secret in its name, command, folder, log, label, environment and output."""
        folder = self.home[ALICE] / f"{SECRET}-folder"
        if not folder.exists():
            subprocess.run(["mkdir", folder], user=ALICE, group=ALICE, check=True)
        return self.submit(ALICE, "--name", f"{SECRET}-name", "--label", f"{SECRET}-label={SECRET}-value", "--chdir", folder,
                           "--log", folder / f"{SECRET}-log", "--notify", f"cmd:true {SECRET}-notify", *words, "--",
                           "sh", "-c", f": {SECRET}-command; echo {SECRET}-output; exec sleep 1000", env={"TOKEN": f"{SECRET}-token"})

    def jobs_of(self, uid, *words):
        result = self.do(uid, "ps", *words, "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["jobs"]

    def snapshot(self, uid, query="?others=1"):
        status, document = self.speak(uid, "GET", "/v1/snapshot" + query)
        self.assertEqual(status, 200, document)
        return document

    def listen(self, uid, *requests):
        """What a user is answered to each of (target, accept), by "target accept"."""
        result = subprocess.run(["/usr/bin/python3", "-c", LISTENER, self.socket], user=uid, group=uid, extra_groups=[], env=self.env_of(uid),
                                cwd=self.home[uid], input=json.dumps(requests), capture_output=True, timeout=BOUND_S, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def assert_no_secret(self):
        """Bob asks every route that is read, in every form, for each of Alice's jobs; then the same with the verbs."""
        jobs = {"running": self.secretive("--gpu", "30%"), "held": self.secretive("--gpu", "30%", "--hold"),
                "array": self.secretive("--gpu", "1", "--array", "0-2"), "ended": self.secretive("--cpu-only")}
        for state in ("running", "ended"):
            wait_until(lambda: self.job(jobs[state])["state"] == "running", "it runs")
        self.assertEqual(self.do(ALICE, "cancel", jobs["ended"]).returncode, 0)
        self.ended(ALICE, jobs["ended"])
        own = self.submit(BOB, "--gpu", "1", "--", "true")  # waits for hers
        paths = set(re.findall(r'\{"GET", "([^"]+)"', (SOURCE / "src/serve/routes.cc").read_text()))
        self.assertGreater(len(paths), 10)
        requests = []
        for path in sorted(paths):
            for number in [*jobs.values(), own] if "{id}" in path else [""]:
                for query in ("", "?others=1&all=1&from=1", *(f"?others=1&all=1&id={each}" for each in jobs.values() if path == "/v1/jobs")):
                    for accept in ("*/*", "text/event-stream", "text/tab-separated-values"):
                        requests.append((path.replace("{id}", number) + query, accept))
        self.assertGreater(len(requests), 150)
        for start in range(0, len(requests), 20):  # a user has a limited number of connections
            for request, told in self.listen(BOB, *requests[start:start + 20]).items():
                self.assertTrue(told.startswith("HTTP/1.1 ") or "/wait" in request, request)
                self.assertNotIn(SECRET, told, request)
        verbs = [["ps"], ["ps", "-a"], ["ps", *jobs.values()], ["ps", "-q"], ["ps", "-q", "-u", ALICE], ["ps", "--name", f"{SECRET}*"],
                 ["cards"], ["top", "--once"], ["top", "--once", "--plain"], ["events"], ["stats"], ["quota"], ["reserve"], ["explain", own],
                 ["run", "--dry-run", "--gpu", "1", "--", "true"], ["submit", "--cpu-only", "--after", jobs["running"], "--", "true"]]
        verbs += [[verb, *jobs.values()] for verb in ("show", "logs", "explain", "wait", "cancel", "hold", "release", "requeue", "park", "unpark")]
        verbs += [["attach", "--read-only", jobs["running"]], ["priority", *jobs.values(), "-5"]]
        for words in verbs:
            for form in ([], ["-o", "json"]):
                result = self.do(BOB, *words[:1], *form, *words[1:])
                said = result.stdout + result.stderr
                self.assertNotIn(SECRET, said.replace(f"{SECRET}*", ""), words)  # his own pattern
        self.assertIn(SECRET, self.do(ALICE, "ps", "-o", "json").stdout, "the test can fail")
        for request, told in self.listen(ALICE, ("/v1/events?from=1", "text/event-stream"), ("/v1/snapshot", "text/event-stream")).items():
            self.assertIn(SECRET, told, request)
        self.assertEqual(self.job(jobs["running"])["state"], "running")

    def assert_refused(self, job, code, message):
        """Everything that needs the job to be one's own."""
        for words in (["show", job], ["logs", job], ["wait", job], ["cancel", job], ["hold", job], ["release", job], ["requeue", job],
                      ["park", job], ["unpark", job], ["priority", job, "-5"], ["attach", "--read-only", job]):
            result = self.do(BOB, *words)
            self.assertEqual(result.returncode, code, (words, result.stderr))
            self.assertIn(message, result.stderr, words)
        result = self.do(BOB, "submit", "--cpu-only", "--after", job, "--", "true")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(self.job(job)["state"], "running")
        return result


for name in [name for name in dir(Others) if name.startswith("test_")]:
    setattr(Others, name, None)


class Rows(Others):
    def test_a_row_has_user_share_cards_time_and_state(self):
        job, _ = self.holds(ALICE, "--name", "alices-secret")
        own = self.submit(BOB, "--cpu-only", "--hold", "--", "true")
        rows = {row["id"]: row for row in self.jobs_of(BOB)}
        self.assertEqual(set(rows), {job, own})
        row = rows[job]
        self.assertEqual((row["user"], row["uid"], row["state"], row["request"]), (str(ALICE), ALICE, "running", "30%"))
        self.assertEqual(row["grant"][0]["index"], 0)
        self.assertLessEqual(set(row), {"id", "user", "uid", "state", "request", "priority", "submitted_at", "started_at", "grant", "idle_since"})
        self.assertEqual([row["id"] for row in self.jobs_of(BOB, "--mine")], [own])
        self.assertEqual([row["id"] for row in self.jobs_of(BOB, "-u", ALICE)], [job])
        self.assertEqual(self.do(BOB, "ps", "-q").stdout.split(), [own])
        self.assertEqual(self.do(BOB, "ps", "-q", "-u", ALICE).stdout.split(), [job])
        self.assertEqual([row["id"] for row in self.jobs_of(BOB, job)], [job])
        table = self.do(BOB, "ps").stdout
        self.assertRegex(table, rf"(?m)^ *{job} .*{ALICE}.* running .*30%")
        self.assertEqual(self.do(BOB, "ps", "--mine", "-u", ALICE).returncode, 64)
        explained = self.do(BOB, "explain", job)
        self.assertIn(f"job {job} of {ALICE} (30% →", explained.stdout, explained.stderr)
        self.assertIn(str(ALICE), self.do(BOB, "top", "--once").stdout)
        valid = openapi_test.Valid(openapi_test.load())
        for path, target in (("/v1/jobs", "/v1/jobs?others=1"), ("/v1/snapshot", "/v1/snapshot?others=1"),
                             ("/v1/jobs/{id}/explain", f"/v1/jobs/{job}/explain"), ("/v1/jobs/{id}/explain", f"/v1/jobs/{own}/explain")):
            for uid in (ALICE, BOB):  # own jobs and rows
                status, document = self.speak(uid, "GET", target)
                valid.answer("GET", path, status, "application/json", json.dumps(document))
        for _ in range(2):  # the second time from the cache of the first
            self.assertEqual([each["id"] for each in self.snapshot(ALICE)["jobs"]], [job, own])
            for_bob = self.snapshot(BOB)
            self.assertEqual([each["id"] for each in for_bob["jobs"]], [job, own])
            self.assertEqual((for_bob["jobs"][0]["processes"], for_bob["history"]["jobs"]), ([], []))
            self.assertEqual([each["id"] for each in self.snapshot(BOB, "")["jobs"]], [own], "as older clients ask")
            self.assertEqual([each["name"] for each in self.api("/v1/snapshot")[1]["jobs"]][0], "alices-secret")

    def test_a_job_of_another_user_is_said_to_be_theirs(self):
        job, _ = self.holds(ALICE)
        result = self.assert_refused(job, 77, f"job {job} is {ALICE}'s")
        self.assertEqual(result.returncode, 77)
        self.assertIn(f"--after {job}: job {job} is {ALICE}'s", result.stderr)
        result = self.do(BOB, "cancel", job)
        self.assertIn(f"you are {BOB}", result.stderr)
        self.assertIn(f"ask {ALICE} or an administrator", result.stderr)
        self.assertNotEqual(self.do(BOB, "cancel", "77").returncode, 77)
        self.assertEqual(self.do(ALICE, "cancel", job).returncode, 0)
        self.ended(ALICE, job)
        self.assertEqual(self.jobs_of(BOB, "-a"), [])
        self.assertEqual([(row["state"], row.get("outcome")) for row in self.jobs_of(BOB, job)], [("ended", None)])

    def test_no_byte_of_a_secret_reaches_another_user(self):
        self.assert_no_secret()


class All(Others):
    others = "all"

    def test_name_and_command_are_shown_and_nothing_else(self):
        job = self.secretive("--gpu", "30%")
        wait_until(lambda: self.job(job)["state"] == "running", "it runs")
        row, = self.jobs_of(BOB)
        self.assertEqual((row["name"], row["command"][0]), (f"{SECRET}-name", "sh"))
        said = json.dumps([self.snapshot(BOB), row, self.listen(BOB, ("/v1/events?from=1", "*/*"), ("/v1/snapshot", "text/event-stream"))])
        for word in ("folder", "log", "label", "value", "token", "notify"):
            self.assertNotIn(f"{SECRET}-{word}", said)
        self.assertIn(f"{SECRET}-name", self.do(BOB, "ps").stdout)
        self.assertEqual(self.do(BOB, "ps", "-q", "-u", ALICE, "--name", f"{SECRET}*").stdout.split(), [job])
        self.assert_refused(job, 77, f"job {job} is {ALICE}'s")


class Totals(Others):
    others = "totals"

    def test_a_job_of_another_user_does_not_exist(self):
        job, _ = self.holds(ALICE, "--name", "alices-secret")
        code = self.do(BOB, "cancel", "77").returncode
        self.assertNotEqual(code, 77)
        self.assert_refused(job, code, f"there is no job {job}")
        for words in (["-a"], ["-u", ALICE]):
            self.assertEqual(self.jobs_of(BOB, *words), [])
        self.assertEqual(self.do(BOB, "explain", job).returncode, code)
        # The same message as for a number that no job has.
        for method, path in (("DELETE", ""), ("GET", ""), ("GET", "/show"), ("POST", "/hold")):
            answers = [self.speak(BOB, method, f"/v1/jobs/{number}{path}") for number in (job, "77")]
            self.assertEqual(*(json.dumps(answer).replace(f"job {number}", "job N") for answer, number in zip(answers, (job, "77"))))
        for _ in range(2):
            for_bob = self.snapshot(BOB)
            self.assertEqual((for_bob["jobs"], for_bob["queue"]["order"], for_bob["history"]["jobs"]), ([], [], []))
            self.assertEqual([share["id"] for card in for_bob["cards"] for share in card["jobs"]], [job])
            self.assertNotIn("secret", json.dumps(for_bob))

    def test_no_byte_of_a_secret_reaches_another_user(self):
        self.assert_no_secret()


if __name__ == "__main__":
    unittest.main()
