#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory outside of a meter is seen and reported once, and ends the job if that is the policy. Ordinary memory is not: every test
of this folder checks that when it ends (world.py)."""
import json
import os
import signal
import subprocess
import unittest

from world import ACTOR, BOUND_S, BUILD, GIB, DaemonTest, wait_until

SIMGPU = BUILD / "simgpu"
OUTSIDE = "init,retain 0,take alloc 3G,pause"


class EscapeTest(DaemonTest):
    escapes = True
    config = ""

    def setUp(self):
        super().setUp()
        if self.config:
            path = self.folder / "config.toml"
            path.write_text(self.config)
            self.env["METE_CONFIG"] = str(path)

    def start_actor(self, *words):
        """Without a context: these tests decide which process has one, and by which driver."""
        process = self.start_run("-q", *(words or ("--gpu", "4G")), "--", ACTOR, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def hear(self, process):
        said = process.stdout.readline().split()
        self.assertEqual(said[:1], ["0"], said)
        return said

    def outside(self, process, words, answers):
        """A child of the job; its answers come on the stream of its parent."""
        process.stdin.write(words + "\n")
        process.stdin.flush()
        said = [self.hear(process) for _ in range(answers + 1)]
        pid = int(next(words[2] for words in said if words[1:2] == ["child"]))
        self.addCleanup(self.kill_quietly, pid)
        return pid

    @staticmethod
    def kill_quietly(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def wait_seen(self, count=1):
        wait_until(lambda: len(self.escapes_seen()) >= count, "the escape is seen")
        return self.escapes_seen()

    def readings(self, count):
        for _ in range(count):
            before = self.card()["reading_age_s"]
            wait_until(lambda: self.card()["reading_age_s"] < before, "another look")
            wait_until(lambda: self.card()["reading_age_s"] > 0.05, "time passes")

    def end(self, process):
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(BOUND_S), 0)


class Warn(EscapeTest):
    def test_a_process_without_the_preload(self):
        process = self.start_actor()
        for words in ("init", "retain 0", "take alloc 1G"):
            self.tell(process, words)
        pid = self.outside(process, f"bare {OUTSIDE}", 3)
        event = self.wait_seen()[0]
        self.assertEqual(event["job"], "1")
        self.assertEqual(event["data"]["pid"], pid)
        self.assertEqual(event["data"]["index"], 0)
        self.assertEqual(event["data"]["card"], self.card()["uuid"])
        self.assertEqual(event["data"]["charged_bytes"], 0)
        self.assertEqual(event["data"]["command"], "meter_actor")
        self.assertGreaterEqual(event["data"]["bytes"], 3 * GIB)
        self.readings(6)
        self.assertEqual(len(self.escapes_seen()), 1, "told once")
        self.assertEqual(self.job(1)["state"], "running")
        # Every command reports it.
        for words, text in ((["ps"], f"escape: process {pid}"), (["show", "1"], f"process {pid} (meter_actor) holds"),
                            (["explain", "1"], f"process {pid} (meter_actor) holds"), (["cards"], "outside its meter"),
                            (["events"], f"process {pid} (meter_actor) holds"),
                            (["doctor"], "memory outside of meters is reported"), (["daemon", "status"], "are reported")):
            result = self.mete(*words)
            self.assertIn(text, result.stdout, words)
        shown = json.loads(self.mete("show", "1", "-o", "json").stdout)["job"]
        self.assertEqual([escape["pid"] for escape in shown["escapes"]], [pid])
        self.assertGreater(self.card()["jobs"][0]["outside_bytes"], 3 * GIB)
        # Another daemon knows what was reported.
        self.kill_daemon()
        self.mete("ps")
        wait_until(lambda: "reading_age_s" in self.card(), "the cards are read")
        self.readings(6)
        self.assertEqual(len(self.escapes_seen()), 1, "told once")
        self.assertIn(f"escape: process {pid}", self.mete("ps").stdout)

    def test_the_run_itself_says_so_once(self):
        for quiet in ([], ["-q"]):
            process = self.start_run(*quiet, "--gpu", "20G", "--", "env", "-u", "LD_PRELOAD", ACTOR, stdin=subprocess.PIPE)
            self.addCleanup(process.kill)
            for words in ("init", "retain 0", "take alloc 2G"):
                self.tell(process, words)
            first = 2 if quiet else 0
            self.wait_seen(first + 1)
            self.tell(process, "take alloc 6G")
            self.wait_seen(first + 2)
            self.readings(2)
            self.end(process)
            lines = [line for line in process.stderr.read().splitlines() if line.startswith("mete: warning: job") and "outside its meter" in line]
            self.assertEqual(len(lines), 0 if quiet else 1, lines)

    def test_it_is_told_again_when_it_has_grown_much(self):
        process = self.start_run("-q", "--gpu", "20G", "--", "env", "-u", "LD_PRELOAD", ACTOR, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        for words in ("init", "retain 0", "take alloc 2G"):
            self.tell(process, words)
        first = self.wait_seen()[0]["data"]
        self.tell(process, "take alloc 128M")
        self.readings(4)
        self.assertEqual(len(self.escapes_seen()), 1)
        self.tell(process, "take alloc 6G")
        again = self.wait_seen(2)[1]["data"]
        self.assertEqual(first["pid"], again["pid"])
        self.assertGreaterEqual(again["bytes"], 8 * GIB)
        self.end(process)

    def test_the_driver_by_an_absolute_path(self):
        process = self.start_actor()
        self.tell(process, f"open {SIMGPU}/libcuda.so.1")
        for words in ("init", "retain 0", "take alloc 3G"):
            self.tell(process, words)
        event = self.wait_seen()[0]
        self.assertGreaterEqual(event["data"]["bytes"], 3 * GIB)
        self.end(process)

    def test_beside_a_meter(self):
        process = self.start_actor()
        for words in ("init", "retain 0", "take alloc 1G", f"open {SIMGPU}/libcuda.so.1", "take alloc 6G"):
            self.tell(process, words)
        data = self.wait_seen()[0]["data"]
        self.assertGreaterEqual(data["bytes"], 5 * GIB)
        self.assertGreaterEqual(data["charged_bytes"], GIB)
        self.end(process)

    def test_with_an_empty_environment(self):
        process = self.start_actor()
        kept = f"METE_SIM={self.sim} METE_SIM_DIR={self.env['METE_SIM_DIR']} LD_LIBRARY_PATH={SIMGPU}"
        self.outside(process, f"shell exec env -i {kept} {ACTOR} {OUTSIDE}", 3)
        self.wait_seen()

    def test_a_stranger_is_nobodys_escape(self):
        process = self.start_actor()
        self.tell(process, "init")
        env = {**self.env, "METE_SIM": self.sim, "LD_LIBRARY_PATH": str(SIMGPU)}
        stranger = subprocess.Popen([ACTOR, *OUTSIDE.split(" ")], env=env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        for _ in range(3):
            self.assertEqual(stranger.stdout.readline().split()[0], "0")
        self.addCleanup(stranger.stdout.close)
        wait_until(lambda: self.card().get("foreign_bytes", 0) > 3 * GIB, "it is seen")
        self.readings(4)
        self.assertEqual(self.escapes_seen(), [])
        # A request that finds no room is told about it.
        tried = self.run_("--dry-run", "--gpu", "138G", "--", "true")
        self.assertIn(f"process {stranger.pid} of ", tried.stdout)
        ident = self.mete("submit", "--gpu", "138G", "--", "true").stdout.strip()
        explained = json.loads(self.mete("explain", ident, "-o", "json").stdout)
        self.assertGreater(explained["cards"][0]["outside"][0]["bytes"], 3 * GIB)
        self.assertIn(f"process {stranger.pid} of ", self.mete("explain", ident).stdout)
        self.mete("cancel", ident)
        self.end(process)


class Beyond(EscapeTest):
    """What a job holds beyond its grant is not granted to another, and a job that fails for it learns which job holds it."""

    def start_culprit(self, *words):
        process = self.start_run("-q", *words, "--gpu", "2G", "--", "env", "-u", "LD_PRELOAD", ACTOR, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        for line in ("init", "retain 0", "take alloc 50G"):
            self.tell(process, line)
        wait_until(lambda: self.card().get("over_bytes", 0) > 48 * GIB, "it is seen")
        return process

    def test_it_is_not_granted_again(self):
        culprit = self.start_culprit()
        card = self.card()
        self.assertLess(card["granted_bytes"], 3 * GIB)
        self.assertLess(card["grantable_bytes"], card["capacity_bytes"] - 50 * GIB)
        self.assertEqual(card["foreign_bytes"], 0)
        self.assertEqual([(job["id"], job["over_bytes"]) for job in card["jobs"]], [("1", card["over_bytes"])])
        self.assertIn("beyond its grant", self.mete("cards").stdout)
        snapshot = self.api("/v1/snapshot")[1]
        self.assertGreater(snapshot["cards"][0]["over_bytes"], 48 * GIB)
        self.assert_refused(self.run_("--gpu", "120G", "--no-wait", "--", "true"), 75, "job 1 of ", "beyond its grant")
        self.assertEqual(self.run_("-q", "--gpu", "60G", "--no-wait", "--", "true").returncode, 0, "the rest is there to be had")
        ident = self.mete("submit", "--gpu", "120G", "--", "true").stdout.strip()
        explained = json.loads(self.mete("explain", ident, "-o", "json").stdout)
        self.assertEqual(explained["cards"][0]["outside"][0]["job"], "1")
        self.assertIn("job-ends", [change["kind"] for change in explained["changes"]])
        self.end(culprit)
        self.assertEqual(self.mete("wait", ident).returncode, 0)
        wait_until(lambda: "over_bytes" not in self.card(), "nothing is held any more")

    def test_the_innocent_hears_who_it_was(self):
        innocent = self.start_run("-q", "--gpu", "100G", "--", "sh", "-c", f"{ACTOR}; exit 3", stdin=subprocess.PIPE)
        self.addCleanup(innocent.kill)
        for line in ("init", "retain 0"):
            self.tell(innocent, line)
        go = self.folder / "go"
        script = f"while [ ! -e {go} ]; do sleep 0.05; done; {ACTOR} 'init,retain 0,take alloc 15G'; exit 3"
        submitted = self.mete("submit", "--gpu", "20G", "--", "sh", "-c", script).stdout.strip()
        self.wait_state(submitted, "running")
        culprit = self.start_culprit()
        self.assertNotEqual(self.say(innocent, "take alloc 95G")[:1], ["0"], "the card is full, within its cap")
        self.tell(innocent, "take alloc 75G")
        go.touch()
        self.wait_state(submitted, "ended")
        innocent.stdin.close()
        innocent.stdin = None
        self.assertEqual(innocent.wait(BOUND_S), 3)
        said = innocent.stderr.read()
        self.assertIn("hint: the driver had no GPU memory for the program", said)
        self.assertIn("job 3 of ", said)
        self.assertIn("beyond its grant on card 0", said)
        for ident in ("1", submitted):
            shown = self.mete("show", ident).stdout
            self.assertIn("job 3 of ", shown, ident)
            self.assertIn("beyond its grant", shown, ident)
            self.assertNotEqual(self.job(ident)["outcome"], "gpu-oom", "its own cap had room")
        self.end(culprit)


class BeyondItsCards(EscapeTest):
    sim = "2xH200"

    def test_memory_of_a_card_that_it_was_not_granted(self):
        process = self.start_run("-q", "--gpu", "2G", "--devices", "0", "--", "env", "-u", "LD_PRELOAD", "-u", "CUDA_VISIBLE_DEVICES",
                                 ACTOR, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        for line in ("init", "retain 1", "take alloc 50G"):
            self.tell(process, line)
        wait_until(lambda: self.card(1).get("over_bytes", 0) > 50 * GIB, "it is seen")
        self.assertEqual([(job["id"], job["bytes"]) for job in self.card(1)["jobs"]], [("1", 0)])
        self.assertLess(self.card(1)["grantable_bytes"], 95 * GIB)
        self.assert_refused(self.run_("--gpu", "120G", "--devices", "1", "--no-wait", "--", "true"), 75, "beyond its grant")
        self.end(process)


class Forged(EscapeTest):
    """The job can write its grant file. Whatever is in it: what the driver counts beyond the grant is reported."""
    ACCOUNT = 4096  # docs/formats/grant.md: the limit, then the total, of the first card
    RAISE = f"books[{ACCOUNT}:{ACCOUNT + 8}] = (64 << 30).to_bytes(8, 'little')"

    def forge(self, process, deed):
        """A process of the job writes into the file that the others have mapped."""
        done = self.folder / f"forged-{len(list(self.folder.glob('forged-*')))}"
        script = self.folder / "forge.py"
        script.write_text("import mmap, os\nfile = os.open(os.environ['METE_GRANT'], os.O_RDWR)\n"
                          f"books = mmap.mmap(file, os.fstat(file).st_size)\n{deed}\nopen({str(done)!r}, 'w').close()\n")
        process.stdin.write(f"shell exec python3 {script}\n")
        process.stdin.flush()
        self.hear(process)
        wait_until(done.exists, "it has written")

    def start_full(self):
        process = self.start_actor("--gpu", "4G")
        for words in ("init", "retain 0", "take alloc 3G"):
            self.tell(process, words)
        self.readings(4)
        self.assertEqual(self.escapes_seen(), [], "it is within its grant")
        self.assertNotEqual(self.say(process, "take alloc 3G")[:1], ["0"], "and gets no more")
        return process

    def assert_told(self, pid=None):
        data = self.wait_seen()[0]["data"]
        self.assertGreaterEqual(data["bytes"], GIB)
        self.assertLessEqual(data["charged_bytes"], 4 * GIB, "nothing is believed beyond the grant")
        self.assertIn("outside its meter", self.mete("ps", "--wide").stdout)

    def test_a_limit_that_the_job_has_raised(self):
        process = self.start_full()
        self.forge(process, self.RAISE)
        self.tell(process, "take alloc 3G")
        self.assert_told()
        self.assertLessEqual(self.api("/v1/snapshot")[1]["jobs"][0]["peak_bytes"][0], self.card()["total_bytes"])
        self.end(process)

    def test_a_charge_that_the_job_has_made_smaller(self):
        process = self.start_full()
        self.forge(process, f"books[{self.ACCOUNT + 8}:{self.ACCOUNT + 16}] = bytes(8)")
        self.tell(process, "take alloc 3G")
        self.assert_told()

    def test_a_file_full_of_nonsense(self):
        process = self.start_full()
        self.forge(process, self.RAISE)
        self.tell(process, "take alloc 3G")
        self.forge(process, "books[:] = os.urandom(len(books))")
        self.assert_told()
        self.assertEqual(self.mete("top", "--once").returncode, 0)
        process.kill()
        self.wait_state(1, "ended")


class Container(EscapeTest):
    def setUp(self):
        super().setUp()
        try:
            tried = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True, timeout=BOUND_S)
        except FileNotFoundError:
            self.skipTest("there is no unshare")
        if tried.returncode != 0:
            self.skipTest(f"new pid namespaces are not permitted here: {tried.stderr.strip()}")

    INSIDE = "exec unshare -pf --kill-child --mount-proc"

    def test_with_a_meter(self):
        process = self.start_actor()
        self.tell(process, "init")
        self.outside(process, f"shell {self.INSIDE} {ACTOR} {OUTSIDE}", 3)
        wait_until(lambda: self.job(1)["grant"][0].get("used_bytes", 0) > 3 * GIB, "it is the job's")
        self.readings(6)
        self.assertEqual(self.escapes_seen(), [])

    def test_without_one(self):
        process = self.start_actor()
        self.tell(process, "init")
        self.outside(process, f"shell {self.INSIDE} env -u LD_PRELOAD {ACTOR} {OUTSIDE}", 3)
        self.assertGreaterEqual(self.wait_seen()[0]["data"]["bytes"], 3 * GIB)


class Stop(EscapeTest):
    config = '[escape]\npolicy = "stop"\n[queue]\ngrace_s = 1\n'

    def test_a_submitted_job_is_ended(self):
        script = f"env -u LD_PRELOAD {ACTOR} '{OUTSIDE}'"
        ident = self.mete("submit", "--gpu", "4G", "--requeue", "--retries", "3", "--", "sh", "-c", script).stdout.strip()
        self.wait_state(ident, "ended")
        job = self.job(ident)
        self.assertEqual(job["outcome"], "escaped")
        self.assertEqual(job["attempt"], 1)
        self.assertIn("outside its meter", job["remark"])
        self.assertIn("escaped", self.mete("ps", "-a").stdout)
        self.assertIn("outside its meter", self.mete("show", ident).stdout)
        self.assertIn("is ended (escape.policy = stop)", self.mete("doctor").stdout)
        wait_until(lambda: self.card()["used_bytes"] < GIB, "its memory is free")

    def test_a_run_is_ended_and_says_why(self):
        result = self.run_("--gpu", "4G", "--", "sh", "-c", f"env -u LD_PRELOAD {ACTOR} '{OUTSIDE}'")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("outside its meter", result.stderr)
        self.wait_state(1, "ended")
        self.assertEqual(self.job(1)["outcome"], "escaped")

    def test_what_is_within_its_grant_beside_a_meter_is_left_alone(self):
        """The job's sampler has charged it: the job may allocate that much less."""
        process = self.start_actor("--gpu", "12G")
        for words in ("init", "retain 0", "take alloc 1G", f"open {SIMGPU}/libcuda.so.1", "take alloc 3G"):
            self.tell(process, words)
        self.readings(8)
        self.assertEqual((self.job(1)["state"], self.escapes_seen()), ("running", []))
        self.end(process)

    def test_an_ordinary_job_is_not(self):
        process = self.start_actor("--gpu", "12G")
        for words in ("init", "retain 0", "take alloc 10G"):
            self.tell(process, words)
        self.readings(6)
        self.assertEqual((self.job(1)["state"], self.escapes_seen()), ("running", []))
        self.end(process)


if __name__ == "__main__":
    unittest.main()
