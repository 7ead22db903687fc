#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots: what they show of cards, jobs and the queue, to whom, how streams of them behave, and what is absent."""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import time
import unittest

from world import ACTOR, BOUND_S, BUILD, GIB, DaemonTest, wait_until

FAKE = BUILD / "tests" / "fake_nvml"


class SightTest(DaemonTest):
    def snapshot(self, query=""):
        status, document = self.api("/v1/snapshot" + query)
        self.assertEqual(status, 200, document)
        return document

    def start_actor(self, *words):
        """A job that holds a context and 1 GiB."""
        process = self.start_run("-q", *words, "--", ACTOR, stdin=subprocess.PIPE)
        for line in ("init", "retain 0", "take alloc 1G"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline().split()[0], "0", line)
        return process

    def end(self, process):
        process.stdin.close()
        process.stdin = None
        process.wait(BOUND_S)

    def stream(self, query=""):
        """A stream of snapshots, whose head has been read. Closing it is hanging up."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(BOUND_S)
            client.connect(self.env["METE_SOCKET"])
            client.sendall(f"GET /v1/snapshot{query} HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n".encode())
            file = client.makefile("rb")
        self.addCleanup(file.close)
        self.assertIn(b" 200 ", file.readline())
        while file.readline() != b"\r\n":
            pass
        return file

    def event(self, file):
        """The next one."""
        fields = {}
        while (line := file.readline()) != b"\n":
            self.assertTrue(line, "the stream has ended")
            name, value = line.decode().rstrip("\n").split(": ", 1)
            fields[name] = value
        self.assertEqual(fields["event"], "snapshot")
        return json.loads(fields["data"])

    def metric(self, name):
        for line in self.text("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return None

    def text(self, path):
        connection = http.client.HTTPConnection("mete", timeout=BOUND_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.env["METE_SOCKET"])
        connection.request("GET", path)
        text = connection.getresponse().read().decode()
        connection.close()
        return text


class Snapshot(SightTest):
    sim = "2xH200"

    def test_a_job_its_processes_and_its_peak(self):
        process = self.start_actor("--gpu", "4G", "--name", "train")
        def job():
            return next(iter(self.snapshot()["jobs"]), {})
        wait_until(lambda: job().get("peak_bytes", [None])[0], "it was read")
        seen = job()
        self.assertEqual(seen["name"], "train")
        self.assertEqual(len(seen["processes"]), 1)
        one = seen["processes"][0]
        self.assertEqual(one["name"], "meter_actor")
        self.assertEqual(one["card"], seen["grant"][0]["index"])
        self.assertGreaterEqual(one["used_bytes"], GIB)
        self.assertGreater(one["start_ticks"], 0)
        self.assertGreaterEqual(seen["peak_bytes"][0], one["used_bytes"])
        # What it gives back is no longer used, and was its peak.
        process.stdin.write("drop-all\n")
        process.stdin.flush()
        process.stdout.readline()
        wait_until(lambda: job()["grant"][0].get("used_bytes", GIB) < GIB, "it has given it back")
        self.assertGreaterEqual(job()["peak_bytes"][0], GIB)
        # Memory that comes and goes between two readings is seen only by its meter: thirty times, so that no reading
        # has it by chance.
        for _ in range(30):
            for line in ("take alloc 3G", "drop-all"):
                self.tell(process, line)
        wait_until(lambda: job()["peak_bytes"][0] >= 3 * GIB, "its meter has seen it")
        self.end(process)
        # A process that has gone between two readings is gone, and so is its job.
        wait_until(lambda: self.snapshot()["jobs"] == [], "nothing of it is left")

    def test_the_queue_with_places_and_reasons(self):
        holder = self.holder("100%", "--devices", "0,1")
        waiting = [self.start_run("-q", "--gpu", "8G", "--", "true") for _ in range(3)]
        self.assertEqual(self.mete("submit", "--hold", "--gpu", "8G", "--", "true").returncode, 0)
        wait_until(lambda: sum(self.snapshot()["queue"]["depth"].values()) == 4, "all of them wait")
        snapshot = self.snapshot()
        held = next(job["id"] for job in snapshot["jobs"] if job.get("reason") == "held")
        self.assertEqual(snapshot["queue"]["depth"]["held"], 1)
        self.assertEqual(snapshot["queue"]["depth"]["resources"] + snapshot["queue"]["depth"].get("priority", 0), 3)
        self.assertEqual([entry.get("place") for entry in snapshot["queue"]["order"]], [1, 2, 3, None])
        self.assertEqual(snapshot["queue"]["order"][3]["id"], held)
        self.assertEqual(snapshot["queue"]["left_off"], 0)
        for job in snapshot["jobs"]:
            if job["state"] == "pending":
                self.assertTrue(job["wait"]["for"])
        self.release(holder)
        for process in waiting:
            self.assertEqual(process.wait(BOUND_S), 0)

    def test_a_long_queue_is_cut_and_counted(self):
        holder = self.holder("100%", "--devices", "0,1")
        self.assertEqual(self.mete("submit", "--array", "0-699", "--gpu", "8G", "--", "true").returncode, 0)
        snapshot = self.snapshot()
        self.assertEqual(len(snapshot["queue"]["order"]), 500)
        self.assertEqual(snapshot["queue"]["left_off"], 200)
        self.assertEqual(sum(snapshot["queue"]["depth"].values()), 700)
        self.assertEqual(self.mete("cancel", "2").returncode, 0)
        self.release(holder)

    def test_history_grows_in_steps(self):
        process = self.start_actor("--gpu", "4G")
        wait_until(lambda: self.snapshot()["history"]["jobs"] and self.snapshot()["history"]["jobs"][0]["used_mib"],
                   "a step has ended")
        history = self.snapshot()["history"]
        self.assertEqual(len(history["cards"]), 2)
        series = history["jobs"][0]["used_mib"][0]
        self.assertEqual(series["step_s"], 5)
        self.assertGreaterEqual(series["values"][-1], 1024)
        self.assertNotIn("history", self.snapshot("?history=0"))
        self.end(process)

    def test_a_stream_shows_what_changes_and_history_when_there_is_more(self):
        self.mete("cards")
        file = self.stream("?every=0.25")
        first = self.event(file)
        self.assertIn("history", first)
        self.assertEqual(first["jobs"], [])
        second = self.event(file)
        self.assertGreater(second["at"], first["at"])
        holder = self.holder("8G")
        while not (now := self.event(file))["jobs"]:
            pass
        self.assertGreater(now["seq"], first["seq"])
        while "history" not in self.event(file):
            pass
        self.assertNotIn("history", self.event(file))
        self.release(holder)

    def test_whoever_does_not_read_gets_the_newest_and_holds_up_nobody(self):
        self.mete("cards")
        slow = self.stream("?every=0.25")
        quick = self.stream("?every=0.25")
        for _ in range(12):  # the slow one takes none
            self.event(quick)
        holder = self.holder("8G")
        while not (last := self.event(quick))["jobs"]:
            pass
        old = 0
        while not (shown := self.event(slow))["jobs"]:
            old += 1
        self.assertLessEqual(old, 3, "what it did not read was kept for it")
        self.assertGreaterEqual(shown["seq"], last["seq"])
        self.release(holder)

    def test_readers_that_go_away_are_forgotten(self):
        self.mete("cards")
        streams = [self.stream("?every=0.25") for _ in range(20)]
        def viewers():
            return self.metric("mete_daemon_viewers")
        wait_until(lambda: viewers() == 20, "all are there")
        for file in streams:
            file.close()
        wait_until(lambda: viewers() == 0, "none is there")


class SomeOfItsCards(DaemonTest):
    sim = "2xH200"

    def test_a_card_that_a_job_does_not_use_is_known_to_be_unused(self):
        process = self.start_actor("--gpu", "2x4G")
        self.tell(process, "take alloc 1G")
        wait_until(lambda: self.job(1)["grant"][0].get("used_bytes", 0) > GIB, "its memory is seen")
        self.assertEqual(self.job(1)["grant"][1].get("used_bytes"), 0)
        self.assertRegex(self.mete("ps").stdout.splitlines()[1], r" 0,1 +[0-9.]+G ")
        self.end_actor(process)


class Cost(SightTest):
    sim = "8xH200"

    def test_a_hundred_jobs_are_looked_at_by_many(self):
        """The cost is printed, for the log of the test."""
        self.assertEqual(self.mete("submit", "--array", "0-99", "--gpu", "8G", "--", "sleep", "600").returncode, 0)
        wait_until(lambda: sum(job["state"] == "running" for job in self.snapshot("?history=0")["jobs"]) == 100, "all run")
        pid = self.daemon_pid()

        def cpu():
            return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9

        def over(seconds, reader=None):
            begun, before = time.monotonic(), cpu()
            while time.monotonic() < begun + seconds:
                if reader:
                    self.assertEqual(len(self.event(reader)["jobs"]), 100)
                else:
                    time.sleep(0.1)
            return 100 * (cpu() - before) / (time.monotonic() - begun)

        alone = over(4)
        looked_at = over(4, self.stream("?every=0.5"))
        print(f"daemon with 100 jobs on 8 cards: {alone:.2f} % of a core, looked at twice a second {looked_at:.2f} %")
        self.assertEqual(self.mete("cancel", "1").returncode, 0)


class Trouble(SightTest):
    """A driver that says little, or is not there."""
    sim = None

    def setUp(self):
        super().setUp()
        self.env["METE_CLAIMS_DIR"] = str(self.folder / "claims")

    def test_no_driver(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has a driver")
        self.assertEqual(self.mete("run", "-q", "--cpu-only", "--", "true").returncode, 0)
        snapshot = self.snapshot()
        self.assertEqual(snapshot["cards"], [])
        self.assertIn("libnvidia-ml.so.1", snapshot["trouble"])

    def fake(self, trouble):
        self.env["LD_LIBRARY_PATH"] = str(FAKE)
        self.env["METE_TEST_FAKE_NVML"] = trouble
        self.assertEqual(self.mete("run", "-q", "--cpu-only", "--", "true").returncode, 0)

    def test_readings_that_the_driver_does_not_give_are_absent(self):
        self.fake("half")
        card = self.snapshot()["cards"][0]
        for key in ("utilisation_pct", "power_w", "power_limit_w", "numa"):
            self.assertNotIn(key, card)
        self.assertEqual(card["temperature_c"], 61)
        self.assertIn("used_bytes", card)
        text = self.text("/metrics")
        self.assertIn("mete_card_temperature_celsius{", text)
        self.assertNotIn("mete_card_utilisation_ratio", text)
        self.assertNotIn("mete_card_power", text)
        wait_until(lambda: self.snapshot()["history"]["cards"][0]["utilisation_pct"], "a step has ended")
        past = self.snapshot()["history"]["cards"][0]
        self.assertEqual(set(past["utilisation_pct"][0]["values"]), {None})
        self.assertNotIn(None, past["used_mib"][0]["values"])


    def test_a_process_that_has_ended_when_it_is_looked_for(self):
        """Its memory counts as held for as long as the driver lists it, and it has no name."""
        self.fake("ghost")
        seen = set()

        def both():
            card = self.snapshot()["cards"][0]
            self.assertEqual(card["foreign"], [])
            seen.add(card["foreign_bytes"])
            return seen == {0, GIB}
        wait_until(both, "it was there and was not")
        self.assertEqual(self.mete("run", "-q", "--gpu", "8G", "--", "true").returncode, 0)

    def test_sixty_four_cards(self):
        self.fake("many")
        snapshot = self.snapshot()
        self.assertEqual([card["index"] for card in snapshot["cards"]], list(range(64)))
        self.assertEqual(len({card["uuid"] for card in snapshot["cards"]}), 64)


if __name__ == "__main__":
    unittest.main()
