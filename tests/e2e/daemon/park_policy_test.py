#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parking that the daemon decides on by itself: for a job with a higher priority, for a job that does nothing, and shares that grow."""
from park_test import ParkTest
from world import ACTOR, GIB, wait_until
from support import main

OOM = "2"


class Preempt(ParkTest):
    sim = "1xT4"

    def test_a_higher_priority_has_a_lower_one_parked_and_it_returns(self):
        low = self.worker("--gpu", "10G", "--preemptible", "--priority", "-5")
        high = self.run_("-q", "--gpu", "10G", "--", "sh", "-c", "echo $METE_JOB_ID")
        self.assertEqual((high.returncode, high.stdout), (0, "2\n"), high.stderr)
        self.wait_state(low, "running")
        self.ends_well(low)
        states = self.events_of(low)
        self.assertEqual(states[0], ("job.parked", "parking"))
        self.assertEqual(states[-1], ("job.unparked", "running"))

    def test_whoever_would_rather_wait_waits(self):
        low = self.worker("--gpu", "10G", "--preemptible", "--priority", "-5")
        patient = self.submit("--gpu", "10G", "--no-preempt", "--", "true")
        self.assertEqual((self.job(low)["state"], self.job(patient)["state"]), ("running", "pending"))
        # Another job, ahead of it in the queue, shows that the low one could have been parked all along.
        impatient = self.run_("-q", "--gpu", "10G", "--priority", "1", "--", "sh", "-c", "echo $METE_JOB_ID")
        self.assertEqual((impatient.returncode, impatient.stdout), (0, "3\n"), impatient.stderr)
        parked = [event["data"] for event in self.api("/v1/events?from=1")[1]["events"]
                  if event["type"] == "job.parked" and event["job"] == low and event["data"]["state"] == "parking"]
        self.assertEqual({data["for"] for data in parked}, {"3"}, parked)
        self.ends_well(low)
        self.good("wait", patient)

    def test_a_whole_card_beside_what_stays(self):
        low = self.worker("--gpu", "50%", "--preemptible", "--priority", "-5")
        whole = self.run_("-q", "--gpu", "1", "--", "true")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.wait_state(low, "running")
        self.ends_well(low)

    def test_nobody_is_asked_who_does_not_help(self):
        large = self.worker("--gpu", "9G", "--preemptible", "--priority", "-5", go=self.go)
        small = self.worker("--gpu", "2G", "--preemptible", "--priority", "-9", go=self.go)
        high = self.run_("-q", "--gpu", "6G", "--", "true")
        self.assertEqual(high.returncode, 0, high.stderr)
        self.wait_state(large, "running")
        self.assertEqual(self.events_of(small), [])
        self.ends_well(large)
        self.ends_well(small)

    def test_explain_says_who_would_be_parked(self):
        low = self.worker("--gpu", "10G", "--preemptible")
        equal = self.submit("--gpu", "10G", "--", "true")

        def says_so():
            text = self.good("explain", equal).stdout
            return "--priority 1" in text and f"job {low} would be parked" in text
        wait_until(says_so, "explain says so, once the other has run for long enough")
        self.ends_well(low)
        self.good("wait", equal)


class Idle(ParkTest):
    config = "[park]\nidle_s = 1\narena = \"4G\"\n"

    def test_who_does_nothing_is_parked_and_comes_back_when_it_wants(self):
        job = self.worker("--gpu", "10G", "--preemptible")
        self.wait_state(job, "parked")
        self.assertEqual(self.job(job)["park"]["cause"], "idle")
        for words in (("ps", "--wide"), ("show", job)):
            self.assertRegex(self.good(*words).stdout, r"idle, back within \d+\.\d s of its first call")
        self.ends_well(job)

    def test_who_did_not_ask_for_it_is_left_alone(self):
        job = self.worker("--gpu", "10G")
        wait_until(lambda: "idle_since" in self.job(job), "it is idle")
        # A job with --preemptible becomes idle later, and is parked: by then this one would have been, too.
        later = self.worker("--gpu", "10G", "--preemptible")
        self.wait_state(later, "parked")
        self.assertEqual(self.job(job)["state"], "running")
        self.ends_well(later)
        self.ends_well(job)


class OwnIdle(ParkTest):
    """--idle, without a word of the configuration."""

    def test_a_job_is_parked_by_its_own_time_and_not_for_others(self):
        job = self.worker("--gpu", "60%", "--idle", "1s", "--priority", "-5")
        other = self.submit("--gpu", "60%", "--priority", "5", "--", "true")
        self.assertEqual(self.mete("wait", other).returncode, 0)
        parked = [event["data"] for event in self.api("/v1/events?from=1")[1]["events"] if event["type"] == "job.parked" and event["job"] == job]
        self.assertEqual({data["cause"] for data in parked if data["state"] == "parking"}, {"idle"})
        self.ends_well(job)

    def test_never_is_kept_by_the_daemon(self):
        job = self.submit("--gpu", "1G", "--idle", "never", "--", "sleep", "1000")
        self.assertIn("idle: never", self.mete("submit", "--print", "--gpu", "1G", "--idle", "never", "true").stdout)
        submitted = [event["data"]["spec"] for event in self.api("/v1/events?from=1")[1]["events"] if event["type"] == "job.submitted"]
        self.assertEqual(submitted[0]["idle_s"], 0)
        self.good("cancel", job)


class Growth(ParkTest):
    def take(self, process, gib):
        return self.say(process, f"take alloc {gib}G")

    def test_a_share_grows_while_there_is_room_and_gives_back(self):
        growing = self.start_actor("--gpu", "8G..20G")
        self.assertEqual(self.granted(), 8 * GIB)
        first = self.take(growing, 6)
        second = self.take(growing, 10)
        self.assertEqual((first[0], second[0]), ("0", "0"))
        self.assertGreater(self.granted(), 16 * GIB)
        self.assertEqual(self.take(growing, 4)[0], OOM, "the ceiling")
        self.assertEqual(self.say(growing, f"drop {second[1]}")[0], "0")
        wait_until(lambda: self.granted() < 12 * GIB, "what it freed is others'")
        self.end_actor(growing)

    def test_a_failure_says_how_far_it_could_have_grown(self):
        holder = self.holder("110G")
        result = self.run_("-q", "--gpu", "8G..100G", "--", "sh", "-c", f"printf 'init\nretain 0\ntake alloc 40G\n' | {ACTOR}; exit 3")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, r"cap on card 0 is \d+ GiB of the 100 GiB to which it may grow while there is room, its peak was")
        self.release(holder)

    def test_no_room_is_an_ordinary_error(self):
        growing = self.start_actor("--gpu", "8G..100G")
        holder = self.holder("110G")
        self.assertEqual(self.take(growing, 40)[0], OOM)
        self.assertEqual(self.take(growing, 6)[0], "0")
        self.release(holder)
        wait_until(lambda: self.take(growing, 40)[0] == "0", "there is room now")
        self.end_actor(growing)

    def test_what_is_not_used_is_given_back_for_a_guaranteed_request(self):
        growing = self.start_actor("--gpu", "8G..130G")
        piece = self.take(growing, 100)
        self.assertEqual(piece[0], "0")
        self.assertEqual(self.say(growing, f"drop {piece[1]}")[0], "0")
        other = self.run_("-q", "--gpu", "120G", "--", "true")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(self.job(1)["state"], "running")
        self.end_actor(growing)

    def test_what_is_used_is_taken_back_by_parking(self):
        growing = self.start_actor("--gpu", "1G..130G")
        self.assertEqual(self.say(growing, "take alloc 512M")[0], "0")
        other = self.run_("-q", "--gpu", "141568M", "--", "true")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.wait_state(1, "running")
        self.assertIn(("job.parked", "parked"), self.events_of("1"))
        self.assertEqual(self.take(growing, 1)[0], "0")
        self.end_actor(growing)

    def test_who_sheds_is_not_parked(self):
        growing = self.start_actor("--gpu", "1G..130G", "--shed")
        piece = self.take(growing, 2)
        other = self.submit("--gpu", "137G", "--", "true")
        wait_until(lambda: self.granted() < 4 * GIB, "it has given back what it does not use")
        self.assertEqual((self.job(1)["state"], self.job(other)["state"]), ("running", "pending"))
        self.assertEqual(self.take(growing, 4)[0], OOM, "no further growth")
        self.assertEqual(self.say(growing, f"drop {piece[1]}")[0], "0")
        self.good("wait", other)
        self.end_actor(growing)

    def test_two_that_grow(self):
        one, two = self.start_actor("--gpu", "8G..130G"), self.start_actor("--gpu", "8G..130G")
        taken = {one: 0, two: 0}
        for _ in range(12):
            for process in (one, two):
                if self.take(process, 10)[0] == "0":
                    taken[process] += 10
            self.assertLessEqual(self.granted(), 140 * GIB)
        self.assertGreaterEqual(sum(taken.values()), 100)
        self.end_actor(one)
        self.end_actor(two)


if __name__ == "__main__":
    main()
