#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that give their GPU memory back and have it again, by hand: real programs, real movers. park_policy_test.py has the rest."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import jsonschema

from world import ACTOR, BOUND_S, BUILD, GIB, MIB, SANITIZED, DaemonTest, Forgetful, read, wait_until
from support import SOURCE, main

PROGRAM = str(BUILD / "tests" / "park_program")


class ParkTest(DaemonTest):
    sim = "1xH200"
    config = "[park]\nmin_run_s = 0\narena = \"4G\"\n"

    def setUp(self):
        super().setUp()
        path = self.folder / "config.toml"
        path.write_text(self.config)
        self.env["METE_CONFIG"] = str(path)
        self.go = self.folder / "go"
        self.addCleanup(self.end_movers)

    def end_movers(self):
        self.end_daemon()
        for name in ("mete-keeper", "park_program", "meter_actor", "mete-mover"):
            for pid in self.processes(name):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def submit(self, *words):
        result = self.mete("submit", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def worker(self, *words, blocks=20, size=8 * MIB, go=None):
        """A job that holds memory with a pattern in it until `go` is there, then looks at each byte; returns when it holds it."""
        job = self.submit(*words, "--", PROGRAM, "many", str(blocks), str(size), str(go or self.go))
        self.wait_state(job, "running")
        wait_until(lambda: b"up" in self.log_of(job), "it has its memory")
        return job

    def log_of(self, job):
        return read(self.api(f"/v1/jobs/{job}/show")[1]["job"]["log"])  # empty, before it has one

    def good(self, *words, **options):
        result = self.mete(*words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def ends_well(self, job):
        self.go.touch()
        result = self.mete("wait", job)
        self.assertEqual(result.returncode, 0, result.stderr + self.log_of(job).decode())

    def granted(self):
        return self.card()["granted_bytes"]

    def new_reading(self):
        """Returns once the cards were read anew: what the daemon says from now on is not from before."""
        last = self.card()["reading_age_s"]

        def younger():
            nonlocal last
            before, last = last, self.card()["reading_age_s"]
            return last < before
        wait_until(younger, "the cards are read again")

    def events_of(self, job):
        result = self.good("events", "-o", "json")
        events = [json.loads(line) for line in result.stdout.splitlines()]
        schema = json.loads((SOURCE / "docs/formats/event.schema.json").read_text())
        for event in events:
            jsonschema.validate(event, schema)
        if len(events) == 1 and "events" in events[0]:
            events = events[0]["events"]
        return [(event["type"], event["data"].get("state")) for event in events
                if event.get("job") == job and event["type"] in ("job.parked", "job.unparked")]


class Verbs(ParkTest):
    def test_out_and_back_byte_for_byte(self):
        job = self.worker("--gpu", "40G", "--preemptible")
        said = self.good("park", job).stderr
        self.assertIn(f"job {job} is parked: 160 MiB in host memory", said)
        self.assertIn("still on card 0", said)
        self.assertEqual(self.job(job)["state"], "parked")
        self.assertEqual(self.job(job)["park"]["moved_bytes"], 160 * MIB)
        for words in (("ps", "--wide"), ("show", job)):
            self.assertIn("160 MiB in host memory", self.good(*words).stdout)
        self.assertIn("until unparked", self.good("ps").stdout)
        self.assertLess(self.granted(), GIB)
        self.assertIn(f"job {job} is back", self.good("unpark", job).stderr)
        self.assertEqual(self.granted(), 40 * GIB)
        self.ends_well(job)
        self.assertEqual(self.events_of(job), [("job.parked", "parking"), ("job.parked", "parked"), ("job.unparked", "parked"),
                                               ("job.unparked", "unparking"), ("job.unparked", "running")])

    def test_the_document(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        schema = json.loads((SOURCE / "docs/formats/park.schema.json").read_text())
        for verb, state in (("park", "parked"), ("unpark", "running")):
            document = json.loads(self.good(verb, job, "-o", "json").stdout)
            jsonschema.validate(document, schema)
            self.assertEqual([job["state"] for job in document["jobs"]], [state])
        self.ends_well(job)

    def test_both_may_be_said_twice(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.assertIn("is not parked", self.good("unpark", job).stderr)
        self.good("park", job)
        self.assertIn("is parked already", self.good("park", job).stderr)
        self.good("unpark", job)
        self.assertEqual(self.job(job)["state"], "running")
        self.ends_well(job)

    def test_an_answer_that_is_lost_is_asked_for_again(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        for verb, says in (("park", f"job {job} is parked: 160 MiB"), ("unpark", f"job {job} is back")):
            before = Forgetful(self, f"POST /v1/jobs/{job}/{verb} ".encode(), times=2, name=verb)
            said = self.good(verb, job, env={"METE_SOCKET": before.path}).stderr
            self.assertIn("asking again", said)
            self.assertIn(says, said)
            self.assertEqual(before.seen, 3)
        self.ends_well(job)
        self.assertEqual(self.events_of(job), [("job.parked", "parking"), ("job.parked", "parked"), ("job.unparked", "parked"),
                                               ("job.unparked", "unparking"), ("job.unparked", "running")])

    def test_a_run_in_a_terminal_is_parked_too(self):
        run = self.start_run("-q", "--gpu", "10G", "--preemptible", "--", PROGRAM, "many", "10", str(8 * MIB), str(self.go))
        self.wait_state(1, "running")
        self.assertIn("up", run.stderr.readline() + run.stderr.readline())
        self.good("park", "1")
        self.good("unpark", "1")
        self.go.touch()
        self.assertEqual(run.wait(BOUND_S), 0)

    def test_what_cannot_be_parked_is_said(self):
        plain = self.worker("--gpu", "10G")
        self.assert_refused(self.mete("park", plain), 64, "cannot be parked", "it was not started to be parkable", "--deep")
        waits = self.submit("--gpu", "100%", "--", "true")
        self.assert_refused(self.mete("park", waits), 64, "has not started")
        self.assert_refused(self.mete("unpark", waits), 64, "has not started")
        self.ends_well(plain)
        self.mete("wait", waits)
        self.assert_refused(self.mete("park", plain), 64, "has ended")
        self.assert_refused(self.mete("unpark", plain), 64, "has ended")
        self.assert_refused(self.mete("park", "99"), 66, "there is no job 99")
        self.assert_refused(self.mete("park"), 64)

    def test_an_obstacle_is_known_beforehand(self):
        job = self.submit("--gpu", "10G", "--preemptible", "--", PROGRAM, "managed", str(self.go))
        wait_until(lambda: "unparkable" in self.job(job), "its runner has told")
        self.assertTrue(self.job(job)["unparkable"]["standing"])
        self.assert_refused(self.mete("park", job), 75, "managed memory")
        self.ends_well(job)

    def test_one_that_does_not_come_to_rest_runs_on(self):
        job = self.submit("--gpu", "10G", "--preemptible", "--", PROGRAM, "capture", str(self.go))
        self.wait_state(job, "running")
        wait_until(lambda: b"up" in self.log_of(job), "it captures")
        self.assert_refused(self.mete("park", job), 75, "was not parked, and runs on", "a stream is being captured")
        self.assertEqual(self.job(job)["state"], "running")
        self.ends_well(job)

    def test_without_room_it_waits_and_says_for_what(self):
        job = self.worker("--gpu", "100G", "--preemptible")
        self.good("park", job)
        holder = self.holder("80G")
        self.assertIn("may come back", self.good("unpark", job, "--no-wait").stderr)
        wait_until(lambda: "wait" in self.job(job), "it is told for what it waits")
        self.assertIn("room to come back", self.job(job)["wait"]["for"])
        waiting = self.start("unpark", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(self.job(job)["state"], "parked")
        self.release(holder)
        self.assertEqual(waiting.wait(BOUND_S), 0)
        self.ends_well(job)

    def test_a_parked_job_is_cancelled(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        self.good("cancel", job)
        self.mete("wait", job)
        self.assertEqual(self.job(job)["outcome"], "cancelled")
        self.assertEqual(self.granted(), 0)

    def test_one_that_is_being_cancelled_is_not_parked(self):
        """It does not end on request, and has its grace period: one answer, and it ends as it would have."""
        job = self.submit("--gpu", "10G", "--preemptible", "--", "sh", "-c", f"trap '' TERM; exec {PROGRAM} many 3 {2 * MIB} {self.go}")
        wait_until(lambda: b"up" in self.log_of(job), "it has its memory")
        self.good("cancel", job)
        self.wait_state(job, "stopping")
        for verb in ("park", "unpark"):
            self.assert_refused(self.mete(verb, job), 75, "now", "it is stopping")
        self.go.touch()
        self.mete("wait", job)
        self.assertEqual(self.job(job)["outcome"], "cancelled")
        self.assertEqual(self.granted(), 0)

    def test_one_asleep_in_a_read_is_parked_and_wakes_there(self):
        actor = self.start_actor("--preemptible")
        number = self.tell(actor, "take alloc 64M")[1]
        self.wait_state(1, "running")
        self.good("park", "1")  # it waits for its next line meanwhile
        self.assertEqual(self.job(1)["park"]["moved_bytes"], 64 * MIB)
        self.good("unpark", "1")
        self.tell(actor, f"drop {number}")
        self.end_actor(actor)

    def test_a_parked_job_runs_again_when_it_is_requeued(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        self.good("requeue", job)
        wait_until(lambda: self.job(job)["attempt"] == 2 and self.job(job)["state"] == "running", "its second attempt runs")
        self.assertNotIn("park", self.job(job))
        self.ends_well(job)

    def test_its_time_stands_still(self):
        limit = 20 if SANITIZED else 4  # more than all the rest takes
        job = self.worker("--gpu", "10G", "--preemptible", "--time", f"{limit}s")
        self.good("park", job)
        time.sleep(limit + 1)
        self.assertEqual(self.job(job)["state"], "parked")
        self.good("unpark", job)
        self.ends_well(job)

    def test_by_the_driver_with_its_context(self):
        job = self.worker("--gpu", "10G")
        self.assertIn("4 MiB still on card 0", self.good("park", "--deep", job).stderr)
        self.assertEqual(self.granted(), 4 * MIB)
        self.good("unpark", job)
        self.ends_well(job)

    def test_by_both(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.assertIn("4 MiB still on card 0", self.good("park", "--deep", job).stderr)
        self.good("unpark", job)
        self.ends_well(job)


class Elsewhere(ParkTest):
    """The simulated cards' server is found by XDG_RUNTIME_DIR alone, also by the mover."""

    def setUp(self):
        super().setUp()
        for name in ("METE_STATE_DIR", "METE_SIM_DIR"):
            del self.env[name]
        self.env["XDG_STATE_HOME"] = str(self.folder / "home")
        self.env["XDG_RUNTIME_DIR"] = str(self.folder / "sim")
        os.makedirs(self.folder / "sim", 0o700)
        self.addCleanup(self.end_server)

    def end_server(self):
        folder = f"{self.folder}/sim/mete-sim-{os.geteuid()}".encode()
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            if folder in read(entry / "cmdline").split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)

    def processes(self, name):
        mark = f"XDG_STATE_HOME={self.folder}/home".encode()
        return sorted(int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*")
                      if os.path.basename(read(entry / "cmdline").split(b"\0")[0]).decode(errors="replace") == name
                      and mark in read(entry / "environ").split(b"\0"))

    def test_out_and_back(self):
        job = self.worker("--gpu", "40G", "--preemptible")
        self.assertIn(f"job {job} is parked: 160 MiB in host memory", self.good("park", job).stderr)
        self.assertIn(f"job {job} is back", self.good("unpark", job).stderr)
        self.ends_well(job)


class Arena(ParkTest):
    config = "[park]\nmin_run_s = 0\narena = \"64M\"\n"

    def test_a_job_that_is_too_large_for_it(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.assert_refused(self.mete("park", job), 75, "was not parked, and runs on", "there is no room for it", "64 MiB", "park.arena")
        self.ends_well(job)

    def test_one_that_is_far_too_large_is_known_beforehand(self):
        job = self.worker("--gpu", "10G", "--preemptible", blocks=12, size=128 * MIB)
        wait_until(lambda: "than is kept of one: 64 MiB" in self.good("show", job).stdout, "it is known")
        refused = self.mete("park", job)
        self.assert_refused(refused, 75, "cannot be parked, and runs on", "park.arena", "mete park --deep")
        self.assertNotIn("cancel", refused.stderr)
        self.assertEqual(self.job(job)["state"], "running")
        self.ends_well(job)


class Spill(ParkTest):
    def setUp(self):
        self.config = "[park]\nmin_run_s = 0\narena = \"64M\"\n"
        super().setUp()
        folder = self.folder / "spill"
        folder.mkdir(mode=0o700)
        pathlib.Path(self.env["METE_CONFIG"]).write_text(self.config + f'spill = "{folder}"\nspill_max = "1G"\n')

    def test_the_rest_goes_to_the_disk_and_is_said_to_be_there(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        where = "64 MiB in host memory, 96 MiB on disk"
        self.assertIn(f"job {job} is parked: {where}", self.good("park", job).stderr)
        for words in (("ps", "--wide"), ("show", job), ("events",), ("top", "--once")):
            self.assertIn(where, self.good(*words).stdout, words)
        self.assertEqual([self.job(job)["park"][name] for name in ("moved_bytes", "disk_bytes")], [160 * MIB, 96 * MIB])
        self.kill_daemon()
        self.assertIn(where, self.good("ps", "--wide").stdout)
        self.good("unpark", job)
        self.assertNotIn("park", self.job(job))
        self.ends_well(job)

    def test_without_its_folder_the_log_says_why_there_is_no_mover(self):
        shutil.rmtree(self.folder / "spill")
        job = self.worker("--gpu", "10G", "--preemptible")
        log = self.folder / "sim/meted.log"
        wait_until(lambda: "has ended" in log.read_text() and "spill" in log.read_text().split("has ended", 1)[1], "it is said")
        self.ends_well(job)


class Liar(ParkTest):
    def post(self, path, body):
        return self.api(path, "POST", json.dumps(body))

    def test_what_was_not_given_back_is_nobody_elses(self):
        """A runner of its own: this process. It reports that its job has given everything back, which the driver contradicts."""
        self.good("cards")  # there is a daemon
        ticks = int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        status, reply = self.post("/v1/jobs", {"runner_start_ticks": ticks, "job": {
            "name": "liar", "command": ["liar"], "cwd": "/", "preemptible": True, "request": {"gpu": "100G"}}})
        self.assertEqual((status, reply["job"]["state"]), (201, "starting"), reply)
        bare = {**self.env, "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
        program = subprocess.Popen([ACTOR], env=bare, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.finish, program)
        for line in ("init", "retain 0", "take alloc 90G"):
            program.stdin.write(line + "\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline().split()[0], "0", line)
        started = int(pathlib.Path(f"/proc/{program.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
        self.assertEqual(self.post("/v1/jobs/1/started", {"pid": program.pid, "start_ticks": started, "ago_ms": 0})[0], 200)
        wait_until(lambda: self.job(1)["grant"][0].get("used_bytes", 0) > 90 * GIB, "the driver's figure is there")
        self.good("park", "1", "--no-wait")
        self.assertEqual(self.post("/v1/jobs/1/parked", {"parked": True, "held_bytes": [0], "moved_bytes": 0})[0], 200)
        self.assertEqual(self.job(1)["state"], "parked")
        for _ in range(3):
            self.assert_refused(self.run_("--gpu", "80G", "--no-wait", "--", "true"), 75, "beyond its grant")
            self.new_reading()
        program.stdin.close()
        program.wait(BOUND_S)
        program.stdin = None
        wait_until(lambda: self.run_("-q", "--gpu", "80G", "--no-wait", "--", "true").returncode == 0, "its memory is free now")

    def test_what_was_said_before_is_not_done_later(self):
        """A report whose answer took too long, overtaken by the next on another connection."""
        self.good("cards")
        ticks = int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        status, reply = self.post("/v1/jobs", {"runner_start_ticks": ticks, "job": {
            "name": "grows", "command": ["grows"], "cwd": "/", "request": {"gpu": "1G..20G"}}})
        self.assertEqual((status, reply["job"]["state"]), (201, "starting"), reply)

        def granted(order, gib):
            status, reply = self.post(f"/v1/jobs/1/grow?order={order}", {"bytes": [gib * GIB]})
            self.assertEqual(status, 200, reply)
            return reply["job"]["grant"][0]["bytes"], reply["seq"]
        more, first = granted(7, 10)
        self.assertGreaterEqual(more, 10 * GIB)
        self.assertEqual(granted(5, 2), (more, first), "said before the last, and so too late")
        less, second = granted(9, 2)
        self.assertEqual(less, 2 * GIB)
        self.assertGreater(second, first, "of two answers the newer is known by its number")

    def test_a_mover_is_no_stranger(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        self.assertEqual((self.card()["foreign_bytes"], self.card()["foreign"]), (0, []))
        self.good("unpark", job)
        self.ends_well(job)


class Deaths(ParkTest):
    def test_the_daemon_dies_while_a_job_is_parked(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        self.kill_daemon()
        self.good("unpark", job)
        self.ends_well(job)

    def test_the_daemon_dies_at_any_moment(self):
        job = self.worker("--gpu", "10G", "--preemptible", blocks=40)
        dice = random.Random(5)
        for _ in range(12):
            for verb, state in (("park", "parked"), ("unpark", "running")):
                process = self.start(verb, job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(dice.random() * 0.2)
                self.kill_daemon()
                process.wait(BOUND_S)
                # Whatever was received: a repeated request is done.
                self.good(verb, job)
                self.assertEqual(self.job(job)["state"], state)
        self.ends_well(job)

    def test_the_mover_dies_with_what_it_kept(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        for pid in self.processes("mete-mover"):
            os.kill(pid, signal.SIGKILL)
        # Reported at once, by every command, and not retried.
        self.assert_refused(self.mete("unpark", job), 125, "cannot come back", "the mover that held its memory is gone", "mete requeue")
        self.assertTrue(self.job(job)["park"]["lost"])
        self.assertIn("cannot come back", self.good("ps").stdout)
        self.assertIn("cannot come back", self.good("explain", job).stdout)
        self.assert_refused(self.mete("unpark", job), 64, "cannot come back", "mete cancel")
        self.good("cancel", job)
        self.mete("wait", job)
        self.assertEqual(self.granted(), 0)

    def test_the_mover_dies_before_it_is_needed(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        wait_until(lambda: self.processes("mete-mover"), "there is a mover")
        (before,) = self.processes("mete-mover")
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.processes("mete-mover") not in ([], [before]), "there is another")

        def parks():
            return self.mete("park", job).returncode == 0
        wait_until(parks, "it is parked by the next one")
        self.good("unpark", job)
        self.ends_well(job)

    def test_the_keeper_dies_while_its_job_is_parked(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        for pid in self.processes("mete-keeper"):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.job(job)["state"] == "ended", "it is ended")
        self.assertEqual(self.job(job)["outcome"], "lost")
        wait_until(lambda: not self.processes("park_program"), "nothing of it is left")

    def test_a_process_dies_while_it_is_parked(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.good("park", job)
        for pid in self.processes("park_program"):
            os.kill(pid, signal.SIGKILL)
        self.mete("wait", job)
        self.assertEqual(self.job(job)["outcome"], "signal")
        self.assertEqual(self.granted(), 0)

    def test_movers_end_with_their_last_job(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.ends_well(job)
        self.assertEqual(self.granted(), 0)
        self.assertLess(self.card()["foreign_bytes"], GIB)


if __name__ == "__main__":
    main()
