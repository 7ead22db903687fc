#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sweep does from its start to its end: trials at once, metrics on every way, stopping early, pause and stop, more trials,
memory that is measured, another user's view."""
import csv
import io
import json
import os
import signal
import subprocess
import unittest

from sweeps import BOUND_S, BUILD, GIB, Screen, SweepTest, wait_until

LOSS = ("--minimize", "loss", "--metric", "loss=loss: ([0-9.]+)")
# Waits for its flag at each step, and reports through METE_METRICS.
STEPS = """for step in 1 3 9; do
  while [ ! -e "$RUNS.$step" ]; do sleep 0.01; done
  echo "{\\"step\\": $step, \\"loss\\": $1}" >>"$METE_METRICS"
  [ $step = 9 ] || while [ ! -e "$RUNS.$step.heard" ]; do sleep 0.01; done
done
"""
EATER = str(__import__("pathlib").Path(__file__).resolve().parents[1] / "guides" / "programs" / "train.py")


class Life(SweepTest):
    def start_sweep(self, *words, name="scan"):
        self.ok("sweep", "--detach", "--name", name, *words)

    def run_sweep(self, *words, name="scan", code=0):
        result = self.sweep("--name", name, *words)
        self.assertEqual(result.returncode, code, result.stderr)
        return self.scan(name)

    def hold(self):
        """Trials that run until the file is there."""
        return ["sh", "-c", f"echo begin $METE_TRIAL {{a}} - >>$RUNS; while [ ! -e {self.folder}/go ]; do sleep 0.01; done"]

    def test_as_many_trials_run_as_fit(self):
        self.start_sweep("--gpu", "0.25", "--grid", "a=1,2,3,4,5,6", "--", *self.hold())
        self.wait_trials(4, "running")
        self.assertEqual(len(self.begun()), 4)
        self.assertEqual([trial["state"] for trial in self.scan()["trials"]].count("running"), 4)
        (self.folder / "go").touch()
        self.wait_sweep("done")
        self.assertEqual(sorted(line[0] for line in self.begun()), list("123456"))
        self.assert_nothing_left()

    def test_parameters_reach_the_program_on_four_ways(self):
        script = 'echo "$1 $2|$METE_PARAM_LR $METE_PARAM_BATCH_SIZE|$SM_HP_LR $SM_HP_BATCH_SIZE|$METE_SWEEP $METE_TRIAL|$(cat $METE_PARAMS)"'
        self.run_sweep("--cpu-only", "--grid", "lr=1e-3", "--grid", 'batch-size=16,"a b"', "--as-flags", "--", "sh", "-c", script, "x", "{lr}", "{batch-size}")
        self.assertEqual(self.ok("sweep", "logs", "scan", "2").stdout.strip(),
                         '1e-3 a b|1e-3 a b|1e-3 a b|scan 2|{"lr":1e-3,"batch-size":"a b"}')
        show = json.loads(self.ok("show", self.scan()["trials"][1]["job"], "-o", "json").stdout)["job"]
        self.assertEqual(show["command"][-4:], ["--lr", "1e-3", "--batch-size", "a b"])

    def test_metrics_of_every_way_and_the_best_command(self):
        script = 'echo "loss: 9"; echo "loss: 0.$1"; echo "{\\"step\\": 4, \\"acc\\": 0.$1}" >>$METE_METRICS; echo "{\\"acc\\": NaN}" >>$METE_METRICS; echo 7'
        document = self.run_sweep("--cpu-only", *LOSS, "--metric", "last=last", "--grid", "a=3,1,2", "--", "sh", "-c", script, "trial", "{a}")
        trial = document["trials"][1]
        self.assertEqual({key: trial["metrics"][key] for key in ("loss", "last")}, {"loss": 0.1, "last": 7})
        self.assertEqual(trial["step"], 4)
        self.assertNotIn("acc", {key for key, value in trial["metrics"].items() if isinstance(value, float) and value != value})
        self.assertEqual(document["best"], {"n": 2, "metric": "loss", "value": 0.1})
        best = self.ok("sweep", "best", "scan").stdout
        self.assertIn("loss: 0.1", subprocess.run(["sh", "-c", f"METE_METRICS=/dev/null; {best}"], capture_output=True, text=True, check=True).stdout)
        rows = list(csv.DictReader(io.StringIO(self.ok("sweep", "report", "scan", "-o", "csv").stdout)))
        self.assertEqual([row["loss"] for row in rows], ["0.3", "0.1", "0.2"])
        # Scripts read the daemon's copy when the sweep is over.
        self.assertEqual((self.folder_of() / "results.csv").read_text().count("\n"), 4)

    def test_a_trial_that_fails_does_not_stop_the_others(self):
        document = self.run_sweep("--cpu-only", "--grid", "a=0,3,0x", "--", "sh", "-c", "exit {a}", code=1)
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok", "failed", "failed"])
        self.assertEqual(document["trials"][1]["why"], "exit code 3")
        document = self.run_sweep("--cpu-only", "--fail-fast", "--max-parallel", "1", "--grid", "a=0,3,4,5", "--", "sh", "-c", "exit {a}", name="fast", code=1)
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok", "failed"])

    def test_preemptible_trials_make_room_for_an_urgent_job_and_continue(self):
        config = self.folder / "config.toml"
        config.write_text('[park]\nmin_run_s = 0\narena = "4G"\n')
        self.env["METE_CONFIG"] = str(config)
        go, urgent = self.folder / "go", self.folder / "urgent"
        # Each keeps blocks of its own bytes, and fails if they are not as they were.
        program = [str(BUILD / "tests/park_program"), "many", "3", str(2 << 20), str(go)]
        self.start_sweep("--gpu", "30G", "--preemptible", "--grid", "a=1,2,3,4", "--", "sh", "-c", f"exec {' '.join(program)} # {{a}}")
        self.wait_trials(4, "running")
        for n in range(1, 5):
            wait_until(lambda trial=str(n): "up" in self.sweep("logs", "scan", trial).stdout, f"trial {n} has its memory")
        run = self.start_run("-q", "--gpu", "60G", "--priority", "5", "--", "sh", "-c", f"touch {urgent}; while [ ! -e {go} ]; do sleep 0.01; done")
        wait_until(urgent.exists, "the urgent job runs")
        states = [job["state"] for job in self.document("ps", "ps")["jobs"]]
        self.assertEqual(sorted(states).count("parked"), 2, states)
        self.assertEqual([trial["state"] for trial in self.scan()["trials"]], ["running"] * 4)
        go.touch()
        self.assertEqual(run.wait(BOUND_S), 0)
        document = self.wait_sweep("done")
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok"] * 4)
        self.assertEqual(sorted(int(trial["job"]) for trial in document["trials"]), [1, 2, 3, 4], "no trial ran twice")

    def test_retries_are_of_the_trial(self):
        script = 'echo x >>$RUNS.$METE_TRIAL; [ $(wc -l <$RUNS.$METE_TRIAL) = 2 ]'
        document = self.run_sweep("--cpu-only", "--retries", "1", "--grid", "a=1,2", "--", "sh", "-c", script)
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok", "ok"])

    def test_a_target_ends_the_sweep(self):
        document = self.run_sweep("--cpu-only", *LOSS, "--target", "loss < 2", "--max-parallel", "1", "--grid", "a=3,2,1,0", "--",
                               "sh", "-c", "echo loss: {a}")
        self.assertEqual([trial["n"] for trial in document["trials"]], [1, 2, 3])
        self.assertIn("trial 3 reached the target", document["why"])

    def test_asha_stops_weak_trials_and_says_why(self):
        self.program.write_text(STEPS)
        self.start_sweep("--gpu", "1G", "--minimize", "loss", "--asha", "min=1,max=9,eta=3", "--max-parallel", "3", "--grid", "a=0.1,0.5,0.9", "--",
                         "sh", str(self.program), "{a}")
        self.wait_trials(3, "running")
        (self.folder / "runs.1").touch()
        wait_until(lambda: all("loss" in trial.get("metrics", {}) or trial["state"] == "stopped" for trial in self.scan()["trials"]), "all are at the first rung")
        (self.folder / "runs.1.heard").touch()
        for step in ("3", "3.heard", "9"):
            (self.folder / f"runs.{step}").touch()
        document = self.wait_sweep("done")
        # The first one at a rung is always the best so far; of three, one goes on.
        states = [trial["state"] for trial in document["trials"]]
        self.assertEqual(states[0], "ok", document["trials"])
        stopped = [trial for trial in document["trials"] if trial["state"] == "stopped"]
        self.assertGreaterEqual(len(stopped), 1, document["trials"])
        for trial in stopped:
            self.assertRegex(trial["why"], r"weak at step \d+: place \d of \d")
            self.assertEqual(self.job(trial["job"])["outcome"], "cancelled")
        self.assertEqual(self.sweep("follow", "scan").returncode, 0)

    def test_pause_stop_and_resume(self):
        self.start_sweep("--gpu", "0.25", "--max-parallel", "2", "--grid", "a=1,2,3,4", "--", *self.hold())
        self.wait_trials(2, "running")
        self.ok("sweep", "pause", "scan")
        self.assertEqual(self.scan()["state"], "paused")
        self.ok("sweep", "stop", "scan")
        wait_until(lambda: all(trial["state"] == "pending" for trial in self.scan()["trials"]), "the running ones have ended")
        self.assertEqual(self.sweep("follow", "scan").returncode, 143)
        self.ok("sweep", "resume", "scan")
        (self.folder / "go").touch()
        document = self.wait_sweep("done")
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok"] * 4)
        self.ok("sweep", "resume", "scan")  # harmless
        self.assertEqual(self.scan()["state"], "done")

    def test_more_trials_and_a_larger_space(self):
        self.run_sweep("--cpu-only", "--seed", "7", "--trials", "2", "--grid", "a=1,2,3,4,5,6", "--", "true", "{a}")
        self.ok("sweep", "extend", "scan", "--trials", "2")
        document = self.wait_sweep("done")
        self.assertEqual(len(set(self.points(document))), 4)
        self.run_sweep("--cpu-only", "--grid", "a=1,2", "--", "true", "{a}", name="grid")
        self.ok("sweep", "extend", "grid", "--grid", "a=1,2,3")
        document = self.wait_sweep("done", "grid")
        self.assertEqual([trial["params"]["a"] for trial in document["trials"]], [1, 2, 3])
        refused = self.sweep("extend", "grid", "--grid", "b=1")
        self.assert_refused(refused, 64, "the new space has other parameters")
        self.assertEqual(len(self.scan("grid")["trials"]), 3)

    def test_equal_seeds_draw_equal_trials(self):
        points = []
        for name, sampler in (("one", "random"), ("two", "random"), ("three", "tpe")):
            points.append(self.points(self.run_sweep("--cpu-only", "--seed", "11", "--sampler", sampler, "--trials", "6", "--minimize", "loss", "--metric",
                                                  "loss=loss: ([0-9.]+)", "--space", self.space(), "--", "sh", "-c", "echo loss: {x}", name=name)))
        self.assertEqual(points[0], points[1])
        self.assertEqual(len(set(points[2])), 6)

    def space(self):
        path = self.folder / "space.yaml"
        path.write_text("params:\n  x: {min: 0.001, max: 1, log: true}\n  k: [1, 2, 3]\n")
        return str(path)

    def test_memory_is_measured(self):
        """Six trials with room, then shares by size: more run at once, and none is lost to memory."""
        document = self.run_sweep("--gpu", "auto", "--sampler", "grid", "--grid", "seed=1,2,3,4", "--grid", "gib=0.5,1,2", "--",
                               "python3", EATER, "--gib", "{gib}", "--seed", "{seed}")
        self.assertEqual([trial["state"] for trial in document["trials"]], ["ok"] * 12, document["trials"])
        first = document["trials"][0]["granted_bytes"]
        self.assertGreater(first, 30 * GIB)
        for trial in document["trials"]:
            self.assertGreaterEqual(trial["peak_bytes"], trial["params"]["gib"] * GIB)
            self.assertLessEqual(trial["peak_bytes"], trial["granted_bytes"])
        self.assertLess(document["trials"][-1]["granted_bytes"], 8 * GIB)

    def test_ctrl_c_ends_the_following_only(self):
        follower = self.start("sweep", "--cpu-only", "--name", "scan", "--grid", "a=1,2", "--", *self.hold(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: len(self.begun()) == 2, "they run")
        follower.send_signal(signal.SIGINT)
        self.assertEqual(follower.wait(BOUND_S), 128 + signal.SIGINT)
        self.assertIn("mete sweep follow scan comes back to it", follower.stderr.read())
        (self.folder / "go").touch()
        self.assertEqual(self.sweep("follow", "scan").returncode, 0)

    def test_a_terminal_shows_one_line(self):
        screen = Screen(self, "sweep", "--gpu", "1G", "--name", "scan", "--grid", "a=1,2,3", "--", *self.hold())
        screen.until(b"scan [................] 0/3, 3 run")
        (self.folder / "go").touch()
        screen.until(b"all 3 trials are over; 3 ok")
        self.assertEqual(screen.exit_code(), 0)

    def test_a_restart_of_the_daemon_changes_nothing(self):
        self.start_sweep("--gpu", "0.25", "--grid", "a=1,2,3,4,5", "--", *self.hold())
        self.wait_trials(4, "running")
        jobs = [trial["job"] for trial in self.scan()["trials"][:4]]
        self.ok("daemon", "restart")
        self.assertTrue(self.kill_daemon())
        (self.folder / "go").touch()
        document = self.wait_sweep("done")
        self.assertEqual([trial["job"] for trial in document["trials"][:4]], jobs)
        self.assertEqual(len(self.begun()), 5)

    def test_a_finished_sweep_is_removed_with_its_files(self):
        self.run_sweep("--cpu-only", "--grid", "a=1", "--", "true", "{a}")
        folder = self.folder_of()
        self.assertTrue((folder / "results.csv").exists())
        self.ok("sweep", "rm", "scan")
        self.assertEqual(list(folder.parent.iterdir()), [])
        self.assertEqual(self.document("sweeps", "sweep", "ls")["sweeps"], [])

    def test_a_report_is_one_file(self):
        self.run_sweep("--cpu-only", *LOSS, "--grid", "a=1,2,3", "--grid", "b=1,2", "--", "sh", "-c", "echo loss: {a}.{b}")
        page = self.folder / "report.html"
        self.ok("sweep", "report", "scan", "--html", str(page))
        text = page.read_text()
        for word in ("<svg", "prefers-color-scheme", "scan"):
            self.assertIn(word, text)
        self.assertNotRegex(text, r'(?:src|href)="(?:https?:)?//')
        self.assertEqual(self.document("sweep", "sweep", "report", "scan")["best"]["n"], 1)


if __name__ == "__main__":
    unittest.main()
