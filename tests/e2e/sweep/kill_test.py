#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of daemon, keepers and trials at a random moment of a sweep: one result for each set of parameters, and a trial whose end
was on disk never runs again. METE_ROUNDS: how often; METE_SEED: the first seed."""
import csv
import os
import random
import signal
import time
import unittest

from sweeps import SweepTest, wait_until

ROUNDS = int(os.environ.get("METE_ROUNDS", 5 if "METE_FULL" in os.environ else 2))
SEED = int(os.environ.get("METE_SEED", time.time_ns() % 1_000_000))


class Kill(SweepTest):
    def processes_of_the_sweep(self):
        return self.processes("meted") + self.processes("mete-keeper") + self.processes("sh") + self.processes("sleep")

    def kill_everything(self):
        for pid in (pids := self.processes_of_the_sweep()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_until(lambda: not any(self.alive(pid) for pid in pids), "they have ended")

    def on_disk(self, name):
        """Trials whose end the daemon has shown, and so has on disk, with the jobs that ended them."""
        return {trial["n"]: trial["job"] for trial in self.scan(name)["trials"] if trial["state"] == "ok"}

    def copied(self, name):
        """The numbers of the trials in the copy that the daemon writes."""
        path = self.folder_of(name) / "results.csv"
        return sorted(int(row["n"]) for row in csv.DictReader(path.read_text().splitlines())) if path.exists() else []

    def one_round(self, seed):
        dice, name = random.Random(seed), f"round-{seed}"
        self.runs.unlink(missing_ok=True)
        self.env["WORK"] = "0.05"
        self.ok("sweep", "--gpu", "0.25", "--name", name, "--grid", "a=1,2,3,4,5,6", "--grid", "b=1,2,3,4", "--minimize", "loss",
                "--metric", "loss=loss: ([0-9.]+)", "--detach", "--", "sh", str(self.program), "{a}", "{b}")
        for count in sorted(dice.sample(range(1, 24), dice.choice((1, 2)))):
            self.ok("sweep", "ls")  # a private daemon starts on demand
            wait_until(lambda: len(self.begun()) >= count, f"{count} trials have begun")
            time.sleep(dice.random() * 0.05)
            before, begun = self.on_disk(name), self.begun()
            self.kill_everything()
        result = self.sweep("follow", name)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = self.scan(name)
        self.assertEqual(document["state"], "done")
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok"] * 24)
        self.assertEqual(len(set(self.points(document))), 24)
        for trial in document["trials"]:
            self.assertEqual(trial["metrics"], {"loss": float(f"{trial['params']['a']}.{trial['params']['b']}")})
        jobs = {trial["n"]: trial["job"] for trial in document["trials"]}
        for n, job in before.items():
            self.assertEqual(jobs[n], job, f"trial {n} had ended")
            self.assertEqual([line[0] for line in self.begun()].count(str(n)), [line[0] for line in begun].count(str(n)), f"trial {n} ran again")
        wait_until(lambda: self.copied(name) == list(range(1, 25)), "the daemon writes its copy")
        return len(before)

    def test_each_point_has_one_result(self):
        ended = []
        for seed in range(SEED, SEED + ROUNDS):
            with self.subTest(seed=seed):
                ended.append(self.one_round(seed))
        print(f"{ROUNDS} rounds from seed {SEED}: 24 results each; {ended} trials had ended before the last kill", flush=True)


if __name__ == "__main__":
    unittest.main()
