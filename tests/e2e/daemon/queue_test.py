#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs about jobs, on jobs that really wait, run and end: what they say, what they change, what they return. What jobs
write is in output_test.py."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import jsonschema

from world import BOUND_S, METE, Screen, VerbTest, wait_until
from support import SOURCE


class Wait(VerbTest):
    def test_returns_the_code_of_the_job(self):
        for script, code in (("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)):
            job = self.submit("--cpu-only", "--", "sh", "-c", script)
            result = self.mete("wait", job)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertEqual(result.stderr == "", code == 0, result.stderr)
        job = self.submit("--cpu-only", "--time", "1", "--", "sleep", "100")
        self.assertEqual(self.mete("wait", job).returncode, 124)
        job = self.submit("--cpu-only", "--", "/no/such/program")
        self.assertEqual(self.mete("wait", job).returncode, 127)
        job = self.submit("--cpu-only", "--hold", "--", "true")
        self.ok("cancel", job)
        self.assertEqual(self.mete("wait", job).returncode, 143)

    def test_of_several_the_first_that_failed_counts_and_each_bad_word_has_one_error(self):
        good = self.submit("--cpu-only", "--", "true")
        bad = self.submit("--cpu-only", "--", "sh", "-c", "exit 4")
        worse = self.submit("--cpu-only", "--", "sh", "-c", "exit 5")
        result = self.mete("wait", good, bad, worse)
        self.assertEqual(result.returncode, 4)
        self.assertIn(f"job {bad} has ended: failed 4", result.stderr)
        result = self.mete("wait", "77", worse, "what?")
        self.assertEqual(result.returncode, 64, result.stderr)  # arguments are checked first
        self.assertEqual(result.stderr.count("error: "), 2, result.stderr)
        self.assertIn("there is no job 77", result.stderr)
        self.assertEqual(self.mete("wait", "77", worse).returncode, 66)

    def test_an_array_is_waited_for_as_a_whole_and_any_is_the_first(self):
        job = self.submit("--cpu-only", "--array", "0-3", "--", "sh", "-c",
                          f"[ $METE_ARRAY_INDEX = 0 ] && exit 7; while [ ! -e {self.flag()} ]; do sleep 0.02; done")
        self.assertEqual(self.mete("wait", "--any", job).returncode, 7)
        self.assertEqual(self.mete("wait", f"{job}_0").returncode, 7)
        waiting = self.start("wait", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.let_end()
        self.assertEqual(waiting.wait(BOUND_S), 7)
        document = json.loads(self.mete("wait", job, "-o", "json").stdout)
        self.assertEqual([view["id"] for view in document["jobs"]], [f"{job}_{i}" for i in range(4)])

    def test_survives_the_daemon_and_is_ended_without_the_job(self):
        job = self.submit("--cpu-only", "--", *self.until())
        waiting = self.start("wait", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        other = self.start("wait", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_state(job, "running")
        for _ in range(2):
            self.assertTrue(self.kill_daemon())
            self.ok("show", job)
        other.send_signal(signal.SIGINT)
        self.assertEqual(other.wait(BOUND_S), -signal.SIGINT)
        self.assertEqual(self.job(job)["state"], "running")
        self.let_end(code=6)
        self.assertEqual(waiting.wait(BOUND_S), 6)

    def test_a_job_is_found_again_when_its_daemon_has_ended(self):
        job = self.submit("--cpu-only", "--", "sh", "-c", "exit 9")
        self.assertEqual(self.mete("wait", job).returncode, 9)
        self.ok("daemon", "stop")
        self.assertEqual(self.mete("wait", job).returncode, 9)

    def test_shows_on_a_terminal_how_far_it_is(self):
        job = self.submit("--cpu-only", "--array", "0-1", "--", "sh", "-c",
                          f"[ $METE_ARRAY_INDEX = 0 ] || while [ ! -e {self.flag()} ]; do sleep 0.02; done")
        self.assertEqual(self.mete("wait", f"{job}_0").returncode, 0)
        shown = Screen(self, "wait", job)
        shown.until(b"1 of 2 jobs have ended")
        self.let_end()
        self.assertEqual(shown.exit_code(), 0)


class Changes(VerbTest):
    def test_cancel(self):
        running = self.submit("--cpu-only", "--", *self.until())
        held = self.submit("--cpu-only", "--hold", "--", "true")
        done = self.submit("--cpu-only", "--", "true")
        self.ok("wait", done)
        self.wait_state(running, "running")
        result = self.mete("cancel", running, "999", held, done)
        self.assertEqual(result.returncode, 66, result.stderr)
        self.assertEqual(result.stderr.count("error: "), 2, result.stderr)
        self.assertIn("there is no job 999", result.stderr)
        self.assertIn(f"job {done} has ended", result.stderr)
        self.assertIn(f"job {held} is cancelled", result.stderr)
        self.assertEqual(self.mete("wait", running).returncode, 143)
        # Cancelling twice is no error; cancelling a job that ended otherwise is.
        again = self.ok("cancel", held)
        self.assertIn("was cancelled before", again.stderr)
        self.assert_refused(self.mete("kill", done), 64, f"job {done} has ended", "requeue")

    def test_cancel_of_an_array_and_of_one_of_it(self):
        job = self.submit("--cpu-only", "--hold", "--array", "1-5", "--", "true")
        document = self.document("jobs", "cancel", f"{job}_[2-3]")
        self.assertEqual(document["changed"], [f"{job}_2", f"{job}_3"])
        self.assertIn(f"3 jobs of {job} are cancelled", self.ok("stop", job).stderr)
        self.assertEqual(self.mete("ps", "-q").stdout, "")

    def test_hold_release_requeue_and_priority(self):
        job = self.submit("--cpu-only", "--hold", "--", "sh", "-c", "exit 2")
        self.assertIn("held", self.ok("ps").stdout)
        self.ok("hold", job)
        self.ok("priority", job, "-5")
        self.assertEqual(self.job(job)["priority"], -5)
        self.assertEqual(self.document("jobs", "priority", job, "0")["changed"], [job])
        self.assert_refused(self.mete("priority", job, "5000"), 64, "5000")
        self.assert_refused(self.mete("priority", job), 64, "priority")
        self.ok("release", job)
        self.assertEqual(self.mete("wait", job).returncode, 2)
        self.assert_refused(self.mete("hold", job), 64, "has ended")
        self.ok("requeue", job)
        self.assertEqual(self.mete("wait", job).returncode, 2)
        self.assertEqual(self.job(job)["attempt"], 2)
        shown = self.ok("show", job).stdout
        self.assertIn("attempt 2", shown)
        self.assertIn("attempt 1   failed 2", shown)

    def test_the_last_job_has_a_name(self):
        first = self.submit("--cpu-only", "--hold", "--", "true")
        second = self.submit("--cpu-only", "--hold", "--", "true")
        self.assertIn(f"job {second} is cancelled", self.ok("cancel", "@").stderr)
        self.assertIn(f"job {first} is cancelled", self.ok("cancel", "@~1").stderr)


class Looking(VerbTest):
    def test_ps_filters_and_prints_ids(self):
        one = self.submit("--cpu-only", "--hold", "--name", "alpha", "--", "true")
        two = self.submit("--cpu-only", "--hold", "--name", "beta-2", "--", "true")
        self.assertEqual(self.ok("ps", "-q").stdout.split(), [one, two])
        self.assertEqual(self.ok("ls", "-q", "--name", "beta*").stdout.split(), [two])
        self.assertEqual(self.ok("ps", "-q", "--state", "running").stdout, "")
        self.assertEqual(self.ok("ps", "-q", "--state", "pending,running").stdout.split(), [one, two])
        self.assertEqual(self.ok("ps", "-q", "--user", "nobody-at-all").stdout, "")
        self.assertEqual(self.ok("ps", "-q", two).stdout.split(), [two])
        self.assert_refused(self.mete("ps", "--state", "asleep"), 64, "asleep", "pending")
        for words in (["ps", "12345"], ["ps", "-q", "12345"]):
            self.assert_refused(self.mete(*words), 66, "there is no job 12345")
        result = self.mete("ps", "-q", "12345", two)
        self.assertEqual((result.returncode, result.stdout.split()), (66, [two]))
        result = self.mete("ps", "12345", "-o", "json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["jobs"]), (66, []))
        self.assertIn("there is no job 12345", self.error_object(result)["message"])
        self.assert_refused(self.mete("cancel", "0" + two), 64, f"'0{two}' names no job")
        document = self.document("ps", "ps", "--name", "alpha")
        self.assertEqual([job["id"] for job in document["jobs"]], [one])
        self.assertEqual(len(self.document("ps", "ps")["jobs"]), 2)
        table = self.ok("ps").stdout
        self.assertIn("alpha", table)
        self.assertRegex(table.splitlines()[0], r"^ID +NAME +STATE .* NOTE +COMMAND$")
        self.assertRegex(self.ok("ps", "--wide").stdout.splitlines()[0], r"^ID +USER +NAME +STATE .* COMMAND .*REASON$")

    def test_without_a_daemon_there_is_no_job(self):
        for verb in ("show", "explain", "logs", "wait", "cancel", "hold", "release", "requeue", "attach"):
            words = [verb, "12"] + (["-r"] if verb == "attach" else [])
            self.assert_refused(self.mete(*words), 66, "no daemon runs", "12")
        self.assert_refused(self.mete("cancel"), 64, "which job is not said")
        self.assertEqual(self.mete("reserve").returncode, 0)
        self.assertIsNone(self.daemon_pid())

    def test_ps_finds_the_jobs_of_a_daemon_that_was_killed(self):
        runs = self.submit("--cpu-only", "--", *self.until())
        self.wait_state(runs, "running")
        waits = self.submit("--cpu-only", "--hold", "--", "true")
        for words in (["ps", "-q"], ["ps", "-q", "-a"], ["ps", "-q", runs, waits]):
            self.assertTrue(self.kill_daemon())
            self.assertEqual(self.ok(*words).stdout.split(), [runs, waits])
        self.assertTrue(self.kill_daemon())
        self.assertEqual([job["id"] for job in self.document("ps", "ps")["jobs"]], [runs, waits])

    def test_ps_prints_no_empty_list_when_the_jobs_cannot_be_known(self):
        self.submit("--cpu-only", "--hold", "--", "true")
        self.ok("daemon", "stop")
        program = self.folder / "bin" / "mete"  # without a meted beside it
        program.parent.mkdir()
        shutil.copy2(METE, program)
        for words in (["ps"], ["ps", "-o", "json"], ["reserve", "-o", "json"]):
            result = self.mete(*words, program=str(program))
            self.assertEqual((result.returncode, result.stdout), (125, ""), result.stderr)
            self.assertIn("meted", result.stderr)

    def test_words_of_others_do_not_reach_the_terminal_as_they_are(self):
        evil = "a\u009b31m\u202eb\u2066c\udcffd\udc9be"  # as UTF-8, and two bytes that are none
        job = self.submit("--cpu-only", "--hold", "--name", evil, "-l", f"x={evil}", "--", "true", evil)
        failed = self.submit("--cpu-only", "--name", evil, "--", f"/no/such/{evil}")
        self.mete("wait", failed)
        for words in (["ps", "-a"], ["show", job], ["show", failed], ["explain", job], ["events"], ["wait", failed], ["logs", failed],
                      ["release", evil]):
            result = subprocess.run([METE, *words], env=self.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=BOUND_S)
            said = (result.stdout + result.stderr).decode()  # all of it is text
            for bad in "\u009b\u202e\u2066":
                self.assertNotIn(bad, said, words)
            if words[0] in ("ps", "show", "events"):
                self.assertIn(r"a\xc2\x9b31m\xe2", said, words)

    def test_documents_for_programs_do_not_reach_it_either_and_mean_the_same(self):
        evil = "a\u009b31m\u202eb\u2066c\x7f\x1bd é"
        options = ["--cpu-only", "--hold", "--name", evil, "-l", f"x={evil}", "--", "true", evil]
        job = self.submit(*options)
        for words in (["ps", "-o", "json"], ["show", job, "-o", "json"], ["events", "-o", "json"], ["explain", job, "-o", "json"],
                      ["top", "--once", "-o", "json"], ["submit", "--print", *options], ["submit", "--print", "-o", "json", *options],
                      ["run", "--dry-run", "--cpu-only", "--name", evil, "--", "true", evil],
                      ["run", "--dry-run", "-o", "json", "--cpu-only", "--name", evil, "--", "true", evil],
                      ["show", evil, "-o", "json"], ["submit", "-o", "json", "--gpu", evil, "--", "true"]):
            result = subprocess.run([METE, *words], env=self.env, capture_output=True, stdin=subprocess.DEVNULL, timeout=BOUND_S)
            said = (result.stdout + result.stderr).decode()
            self.assertNotRegex(said, "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]", words)
            if words[0] in ("ps", "show", "submit") and result.returncode == 0:
                self.assertIn(r"a\u009b31m\u202eb\u2066c\u007f\u001bd é", said, words)
        shown = json.loads(self.ok("show", job, "-o", "json").stdout)["job"]
        self.assertEqual((shown["name"], shown["command"]), (evil, ["true", evil]))
        plan = self.folder / "plan.yaml"
        plan.write_text(self.ok("submit", "--print", *options).stdout)
        again = self.submit("-f", plan)
        self.assertEqual(json.loads(self.ok("show", again, "-o", "json").stdout)["job"]["name"], evil)

    def test_completion_knows_the_jobs(self):
        held = self.submit("--cpu-only", "--hold", "--", "true")
        ended = self.submit("--cpu-only", "--", "true")
        self.ok("wait", ended)
        script = self.ok("completion", "bash").stdout + """
          complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mete; echo "${COMPREPLY[*]}"; }
          complete_words mete cancel ""
          complete_words mete logs ""
        """
        env = {**self.env, "PATH": f"{pathlib.Path(METE).parent}:{os.environ['PATH']}"}
        result = subprocess.run(["bash", "-uc", script], env=env, capture_output=True, text=True, timeout=BOUND_S)
        self.assertEqual(result.stdout, f"{held}\n{held} {ended}\n", result.stderr)
        for shell in ("zsh", "fish"):
            self.assertIn("(mete ps -q 2>/dev/null)", self.ok("completion", shell).stdout)

    def test_show_and_explain_of_a_job_that_waits(self):
        holder = self.submit("--gpu", "2", "--time", "1h", "--name", "big", "--", *self.until())
        self.wait_state(holder, "running")
        job = self.submit("--gpu", "8G", "--name", "small", "--", "true")
        shown = self.ok("show", job).stdout
        self.assertIn(f"job {job} (small)", shown)
        self.assertIn("waits for", shown)
        self.assertNotIn("METE_STATE_DIR=", shown)
        document = self.document("show", "show", job)
        self.assertEqual(document["job"]["reason"], "resources")
        wait = document["job"]["wait"]
        self.assertEqual((wait["kind"], wait["place"], wait["needs"]), ("resources", 1, {"cards": 1, "bytes": 8 << 30, "share": "8G"}))
        self.assertEqual([(card["index"], card["why"], card["holders"][0]["job"]) for card in wait["cards"]], [(0, "whole", holder), (1, "whole", holder)])
        self.assertNotIn("big", json.dumps(wait), "the names of jobs are for their users")
        self.assertIn("ends_at", wait["cards"][0]["holders"][0])
        why = self.ok("explain", job).stdout
        self.assertIn("in the queue", why)
        self.assertIn(f"job {holder}", why)
        document = self.document("explain", "explain", job)
        self.assertEqual(document["id"], job)
        self.let_end()
        self.ok("wait", holder, job)
        self.assertIn("is ended", self.ok("explain", job).stdout)

    def test_every_job_that_waits_has_a_forecast_without_being_asked(self):
        holder = self.submit("--gpu", "2", "--time", "1h", "--", *self.until())
        self.wait_state(holder, "running")
        waiting = [self.submit("--gpu", "2", "--time", "10m", "--", "true") for _ in range(3)]

        def forecasts():
            document = json.loads(self.ok("ps", "-o", "json").stdout)
            found = {job["id"]: job["start_forecast"] for job in document["jobs"] if "start_forecast" in job}
            for forecast in found.values():
                self.assertGreaterEqual(forecast["at"], document["at"], "never in the past")
            return found if set(found) == set(waiting) else None

        wait_until(forecasts, "each has one")
        found = forecasts() or {}
        self.assertEqual(sorted(found, key=lambda job: found[job]["at"]), waiting)
        wait_until(lambda: self.ok("ps").stdout.count("~") == 3, "lists show them")
        wait_until(lambda: sum("start_forecast" in job for job in self.api("/v1/snapshot")[1]["jobs"]) == 3, "and so does mete top")
        before = found[waiting[2]]["at"]
        self.ok("cancel", waiting.pop(0))
        wait_until(lambda: (forecasts() or {waiting[1]: {"at": before}})[waiting[1]]["at"] < before, "the last one moves up")
        self.let_end()
        self.ok("wait", holder, *waiting)

    def test_events_have_numbers_without_gaps(self):
        job = self.submit("--cpu-only", "--", "sh", "-c", "exit 3")
        self.assertEqual(self.mete("wait", job).returncode, 3)
        lines = self.ok("events", "-o", "json").stdout.splitlines()
        events = [json.loads(line) for line in lines]
        schema = json.loads((SOURCE / "docs" / "formats" / "event.schema.json").read_text())
        for event in events:
            jsonschema.validate(event, schema, jsonschema.Draft202012Validator)
        self.assertEqual([event["seq"] for event in events], list(range(1, len(events) + 1)))
        kinds = [event["type"] for event in events if event.get("job") == job]
        self.assertEqual([kinds[0], kinds[-1]], ["job.submitted", "job.ended"])
        last = self.ok("events", "--from", str(events[-1]["seq"])).stdout
        self.assertEqual(len(last.splitlines()), 1)
        self.assertIn("failed 3", last)
        self.assert_refused(self.mete("events", "--from", "x"), 64, "--from")

    def test_events_are_watched_over_a_restart(self):
        first = self.submit("--cpu-only", "--", "true")
        self.ok("wait", first)
        watcher = self.start("events", "-w", "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = []

        def read_until(kind, job):
            while not (seen and seen[-1]["type"] == kind and seen[-1].get("job") == job):
                seen.append(json.loads(watcher.stdout.readline()))
        read_until("job.ended", first)
        self.kill_daemon()
        second = self.submit("--cpu-only", "--", "true")
        read_until("job.ended", second)
        numbers = [event["seq"] for event in seen]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))

    def test_stats(self):
        self.ok("wait", self.submit("--cpu-only", "--", "true"))
        self.assertIn("1 ended", self.ok("stats").stdout)
        self.assertIn("no job has started", self.ok("stats", "eta").stdout)
        self.document("stats", "stats")
        self.assert_refused(self.mete("stats", "ate"), 64, "eta")


class Output(VerbTest):
    """Output that cannot be written is a failure; a reader that closes early is not."""

    def to(self, path, *words):
        with open(path, "w") as out:
            return subprocess.run([METE, *words], env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                  text=True, timeout=BOUND_S)

    def test_a_full_disk_is_a_failure(self):
        job = self.submit("--cpu-only", "--", "echo", "some words")
        self.ok("wait", job)
        waits = self.submit("--cpu-only", "--hold", "--", "true")
        for words in (["ps"], ["ps", "-q"], ["ps", "-o", "json"], ["events"], ["logs", job], ["logs", "-f", job], ["show", job],
                      ["show", job, "-o", "json"], ["explain", waits], ["stats"], ["cards"], ["--help"], ["ps", "--help"],
                      ["version"], ["cancel", waits, "-o", "json"]):
            result = self.to("/dev/full", *words)
            self.assertEqual(result.returncode, 125, words)
            self.assertIn("the output could not be written", result.stderr)
            self.assertIn("No space left", result.stderr)
            self.assertEqual(self.to("/dev/null", *words[:1], "--help").returncode, 0)

    def test_an_id_that_cannot_be_printed_is_not_lost(self):
        for redirection in (">&-", ">/dev/full"):
            result = subprocess.run(["sh", "-c", f'exec "$0" submit --cpu-only -- true {redirection}', METE], env=self.env,
                                    stderr=subprocess.PIPE, text=True, timeout=BOUND_S)
            self.assertEqual(result.returncode, 125, result.stderr)
            job = self.jobs()[-1]["id"]
            self.assertIn(f"submitted, but not printed: {job}\n", result.stderr)

    def test_a_reader_who_has_enough(self):
        job = self.submit("--cpu-only", "--", "sh", "-c", f"echo one; while [ ! -e {self.flag()} ]; do sleep 0.02; done")
        self.wait_state(job, "running")
        for words in (["events", "-w"], ["logs", "-f", job]):
            process = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            self.assertNotEqual(process.stdout.readline(), "")
            process.stdout.close()
            self.assertIn(process.wait(BOUND_S), (0, -signal.SIGPIPE))
            self.assertEqual(process.stderr.read(), "")


class Administration(VerbTest):
    def test_a_drained_card_gets_no_new_jobs(self):
        self.assertIn("card 1 is drained", self.ok("drain", "1").stderr)
        self.document("cards", "drain", "0")
        job = self.submit("--gpu", "8G", "--", "true")
        self.wait_state(job, "pending")
        self.assertEqual(self.job(job)["reason"], "drained")
        self.kill_daemon()
        self.assertIn("drained", self.ok("cards").stdout)
        self.assert_refused(self.mete("drain", "9"), 66, "9")
        self.assertIn("takes jobs again", self.ok("undrain", "0").stderr)
        self.ok("wait", job)

    def test_quotas_hold_and_are_changed_one_by_one(self):
        me = self.ok("quota", "set", "--default", "--running", "1").stdout
        self.assertIn("at most 1", me)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.ok("quota", "set", "--user", user, "--gpu-bytes", "80G", "--jobs", "2")
        document = self.document("quota", "quota", "set", "--user", user, "--jobs", "3")
        own = next(each for each in document["users"] if each["user"] == user)
        self.assertEqual(own["own"], {"bytes": 80 << 30, "jobs": 3})
        first = self.submit("--gpu", "8G", "--", *self.until())
        second = self.submit("--gpu", "8G", "--", "true")
        self.wait_state(first, "running")
        self.wait_state(second, "pending")
        self.assertEqual(self.job(second)["reason"], "quota")
        self.submit("--gpu", "8G", "--hold", "--", "true")
        refused = self.mete("submit", "--gpu", "8G", "--", "true")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(user, refused.stderr)
        self.ok("quota", "set", "--default", "--running", "none")
        self.ok("wait", second)
        self.let_end()
        self.ok("quota", "rm", "--user", user)
        self.assertEqual(self.document("quota", "quota")["default"], {})
        for words in (["quota", "set", "--user", "x"], ["quota", "set", "--cards", "1"], ["quota", "set", "--user", "x",
                      "--cards", "few"], ["quota", "--cards", "1"], ["quota", "sett"]):
            self.assert_refused(self.mete(*words), 64)

    def test_reservations_are_made_listed_and_taken_back(self):
        self.assertIn("nothing is reserved", self.ok("reserve").stderr)
        made = self.document("reservations", "reserve", "--gpu", "1", "--from", "now+1h", "--for", "4h", "--user", "nobody")
        self.assertEqual(len(made["reservations"]), 1)
        ident = made["reservations"][0]["id"]
        self.assertIn("nobody", self.ok("reserve").stdout)
        self.assertIn(f"reservation {ident} is taken back", self.ok("reserve", "rm", ident).stderr)
        self.assert_refused(self.mete("reserve", "rm", ident), 66, ident)
        for words in (["--gpu", "1", "--for", "4h"], ["--gpu", "1", "--user", "carol"], ["--user", "c", "--for", "1h"],
                      ["--gpu", "1", "--user", "c", "--for", "1h", "--until", "18:00"], ["--gpu", "1", "--user", "c",
                      "--for", "1h", "--from", "teatime"], ["rn", "3"]):
            self.assert_refused(self.mete("reserve", *words), 64)


if __name__ == "__main__":
    unittest.main(verbosity=2)
