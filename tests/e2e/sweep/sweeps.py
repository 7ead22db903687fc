# SPDX-License-Identifier: Apache-2.0
"""A daemon with one simulated card, and a program for its sweeps that writes down when it begins and ends."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "daemon"))
from world import BOUND_S, BUILD, GIB, METE, DaemonTest, Screen, read, wait_until  # noqa: E402, F401

# Begins, works, says its loss and ends; `runs` has a line for each.
PROGRAM = """echo "begin $METE_TRIAL $1 $2" >>"$RUNS"
sleep "${WORK:-0.01}"
echo "loss: $1.$2"
echo "end $METE_TRIAL $1 $2" >>"$RUNS"
"""


class SweepTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.runs = self.folder / "runs"
        self.env["RUNS"] = str(self.runs)
        self.program = self.folder / "trial.sh"
        self.program.write_text(PROGRAM)
        self.addCleanup(self.end_sweeps)

    def end_sweeps(self):
        """Trials outlive their daemon."""
        if names := self.mete("sweep", "ls", "-q").stdout.split():
            self.mete("sweep", "stop", *names)
        if jobs := self.mete("ps", "-q").stdout.split():
            self.mete("cancel", *jobs)
            self.mete("wait", *jobs)

    def sweep(self, *words, **options):
        return self.mete("sweep", *words, **options)

    def begun(self):
        return [line.split()[1:] for line in read(self.runs).decode().splitlines() if line.startswith("begin")]

    def scan(self, name="scan", verb="show"):
        return self.document("sweep", "sweep", verb, name)

    def wait_sweep(self, state, name="scan"):
        wait_until(lambda: self.scan(name)["state"] == state, f"sweep {name} is {state}")
        return self.scan(name)

    def wait_trials(self, count, state, name="scan"):
        def reached():
            return sum(trial["state"] == state for trial in self.scan(name)["trials"]) >= count
        wait_until(reached, f"{count} trials are {state}")

    def folder_of(self, name="scan"):
        """Where the daemon keeps the files of a sweep."""
        return pathlib.Path(self.scan(name)["results"]).parent

    @staticmethod
    def points(document):
        return [json.dumps(trial["params"], sort_keys=True) for trial in document["trials"]]
