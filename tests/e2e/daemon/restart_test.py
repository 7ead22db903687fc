#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon that is killed at any moment: no grant is lost or doubled, every run returns its program's code."""
import json
import os
import random
import signal
import threading
import time
import unittest

from world import BOUND_S, SANITIZED, DaemonTest, wait_until

RUNS = int(os.environ.get("METE_KILL_RUNS", "200"))


class Killed(DaemonTest):
    sim = "2xH200"

    def test_kills_at_random_moments_of_many_runs(self):
        """Each run asks for more than a third of a card, so that two share one, and writes down when it had it."""
        dice = random.Random(7)
        log = self.folder / "log"
        program = 'b=$(date +%s%N); sleep 0.0$(($RANDOM%9)); e=$(date +%s%N); echo "$CUDA_VISIBLE_DEVICES $b $e" >> "$LOG"; exit $1'
        lock = threading.Lock()
        numbers = iter(range(RUNS))
        failures = []

        def worker():
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                code = number % 7
                result = self.run_("-q", "--gpu", "40%", "--", "bash", "-c", program, "x", code, env={"LOG": str(log)})
                if result.returncode != code:
                    failures.append((number, code, result.returncode, result.stderr))

        workers = [threading.Thread(target=worker) for _ in range(8)]
        for thread in workers:
            thread.start()
        kills = 0
        while any(thread.is_alive() for thread in workers):
            kills += self.kill_daemon()
            time.sleep(dice.random() * (3 if SANITIZED else 0.5))  # a daemon that never gets to work helps no run
        for thread in workers:
            thread.join()
        self.assertEqual(failures, [], "\n".join(map(str, failures[:5])))
        self.assertGreater(kills, RUNS // 20, "the daemon was killed often")
        self.assertEqual(self.mete("cards").returncode, 0)  # the last kill may have left no run to start a daemon
        wait_until(lambda: all(job["state"] == "ended" for job in self.jobs()), "all jobs have ended")
        jobs = self.jobs()
        # Every run had one job, and none had two: a repeated request got the first job.
        self.assertEqual(len(jobs), RUNS)
        self.assertEqual(sorted(job["exit_code"] for job in jobs), sorted(n % 7 for n in range(RUNS)))
        self.assert_never_over(log)
        self.assert_nothing_left()

    def assert_never_over(self, log):
        """At no moment were more than two programs on a card."""
        moments = []
        for line in log.read_text().splitlines():
            card, began, ended = line.split()
            moments += [(int(began), 1, card), (int(ended), -1, card)]
        self.assertEqual(len(moments), 2 * RUNS)
        running = {}
        for _, step, card in sorted(moments):
            running[card] = running.get(card, 0) + step
            self.assertLessEqual(running[card], 2)

    def test_a_waiting_run_keeps_its_place(self):
        holders = [self.holder("100%"), self.holder("100%")]
        waiting = []
        for number in range(3):
            waiting.append(self.start_run("-q", "--gpu", "100%", "--", "sh", "-c", f"echo {number}"))
            self.wait_state(3 + number, "pending")
        for _ in range(3):
            self.kill_daemon()
            wait_until(lambda: self.daemon_pid() is not None, "a client starts it again")
        for number in range(3):
            self.wait_state(3 + number, "pending")
        self.release(holders[0])
        for number, process in enumerate(waiting):
            self.assertEqual(process.wait(BOUND_S), 0)
        starts = [job["started_at"] for job in self.jobs()[2:]]
        self.assertEqual(starts, sorted(starts), "in the order in which they came")
        self.release(holders[1])
        self.assert_nothing_left()

    def test_a_daemon_that_is_asked_to_stop_leaves_jobs_alone(self):
        holder = self.holder("60%")
        self.kill_daemon(signal.SIGTERM)
        self.assertIsNone(holder.poll())
        self.release(holder, 6)
        self.assertEqual(self.job(1)["exit_code"], 6)
        self.assert_nothing_left()

    def test_a_runner_that_died_while_the_daemon_was_away(self):
        run = self.start_run("-q", "--gpu", "60%", "--", "sh", "-c", "echo $$; sleep 1000")
        program = int(run.stdout.readline())
        self.wait_state(1, "running")
        self.kill_daemon()
        run.kill()
        run.wait()
        self.assertTrue(self.alive(program))
        # The next daemon finds the leftover processes, ends them, and only then grants their share.
        result = self.run_("-q", "--gpu", "2", "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(self.alive(program))
        self.assertEqual(self.job(1)["outcome"], "lost")

    def test_a_helper_that_dies_is_replaced(self):
        holder = self.holder("60%")
        for pid in self.processes("meted"):
            if pid != self.daemon_pid():
                os.kill(pid, signal.SIGKILL)
        self.release(holder)
        self.assertEqual(self.run_("-q", "--gpu", "60%", "--", "true").returncode, 0)


if __name__ == "__main__":
    unittest.main()
