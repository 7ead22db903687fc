# SPDX-License-Identifier: Apache-2.0
"""Programs that the driver's own checkpoint takes off the card, with the meter before it or alone."""
import json
import os
import signal
import subprocess
import time
import unittest

from support import BUILD, CONTEXT, MIB, PARKED, RUNNING, ParkTest, wait_until

LEFT = 4 * MIB  # what a checkpointed process leaves on the card
NO_METER = ("--no-meter",)


class DeepTest(ParkTest):
    def start_mover(self, **options):
        super().start_mover(**options)
        self.others = self.on_card()  # the mover has a context

    def checkpoint(self, *words, fault=""):
        done = subprocess.run([BUILD / "bin/mete-checkpoint", "--cuda", BUILD / "simgpu/libcuda.so.1", *map(str, words)],
                              env={**self.env, "METE_SIM_FAULT": fault}, capture_output=True, text=True, timeout=60)
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def states(self):
        """Of the programs, as the driver counts: running, locked, checkpointed, failed."""
        said = subprocess.run([BUILD / "simgpu/mete-simgpu", "--ctl", "dump"], env=self.env, check=True, capture_output=True, text=True).stdout
        clients = {client["pid"]: client["checkpoint"] for client in json.loads(said)["clients"] if client["kind"] == "cuda"}
        return [clients.get(pid) for pid in self.pids]


class Deep(DeepTest):
    def test_the_meter_first_and_the_context_too(self):
        self.start_mover()
        self.run_("hold", self.go, 300 * MIB)
        before = self.status()["held"]
        for _ in range(3):
            end = self.deep()
            self.assert_parked(end)
            self.assertEqual((end["moved"], end["held"]), (300 * MIB, LEFT))
            self.assertEqual(self.on_card(), self.others + LEFT)
            end = self.undeep()
            self.assertEqual((end["ok"], end["state"], end["why"], end["held"]), (True, RUNNING, "", before))
        self.go.touch()
        self.assert_ends()

    def test_the_driver_alone_moves_everything(self):
        self.run_("hold", self.go, 300 * MIB, options=NO_METER)
        self.assertIn("not started to be parkable", self.status()["obstacle"])
        self.assertGreaterEqual(self.on_card(), CONTEXT + 300 * MIB)
        end = self.deep()
        self.assert_parked(end)
        self.assertEqual((end["moved"], end["held"], self.on_card()), (0, LEFT, LEFT))
        self.assertTrue(self.undeep()["ok"])
        self.go.touch()
        self.assert_ends()

    def test_programs_at_work(self):
        self.start_mover()
        self.run_("work", 3000, 4, 4, procs=2)
        for _ in range(3):
            self.assert_parked(self.deep())
            self.assertEqual(self.on_card(), self.others + 2 * LEFT)
            self.assertTrue(self.undeep()["ok"])
        self.assert_ends()
        self.assert_ends()

    def test_a_process_dies_while_it_is_away(self):
        self.run_("hold", self.go, 64 * MIB, procs=2, options=NO_METER)
        self.assert_parked(self.deep())
        self.tell("kill 0")
        self.assert_ends(137)
        self.assertTrue(self.undeep()["ok"])
        self.go.touch()
        self.assert_ends()

    def test_a_mete_checkpoint_that_is_killed_is_started_again(self):
        """After its first lock and its first restore, each time: the next one goes on from there."""
        self.start_mover()
        self.env["METE_SIM_FAULT"] = "cuCheckpointProcessLock:1:after-kill,cuCheckpointProcessRestore:1:after-kill"
        self.run_("hold", self.go, 64 * MIB, procs=2)
        self.assert_parked(self.deep())
        self.assertEqual(self.states(), [2, 2])
        self.assertTrue(self.undeep()["ok"])
        self.assertEqual(self.states(), [0, 0])
        self.go.touch()
        self.assert_ends()
        self.assert_ends()

    def test_nothing_is_begun_without_the_bytes(self):
        self.run_("hold", self.go, 300 * MIB, options=NO_METER, limit=2048 * MIB)
        self.assert_parked(self.deep())
        self.tell(f"limit {800 * MIB}")
        end = self.undeep()
        self.assertEqual((end["ok"], end["state"], end["no_room"]), (False, PARKED, True), end)
        self.assertEqual(self.states(), [2])
        self.tell(f"limit {2048 * MIB}")
        self.assertTrue(self.undeep()["ok"])
        self.go.touch()
        self.assert_ends()


class Refusals(DeepTest):
    def test_work_that_does_not_end(self):
        """One of two cannot be locked in time: both run on, and the meter has brought back what it moved."""
        self.start_mover()
        self.run_("callback", self.go, options=NO_METER)
        self.assert_refused(self.deep(500), "did not end in time")
        self.assertEqual(self.states(), [0])
        self.go.touch()
        self.assert_ends()

    def test_managed_memory_is_known_beforehand(self):
        self.run_("managed", self.go, options=NO_METER)
        self.assertIn("managed memory", self.status()["deep_obstacle"])
        self.assert_refused(self.deep(), "managed memory")
        self.go.touch()
        self.assert_ends()

    def test_what_the_driver_refuses_is_brought_back(self):
        """The second of two cannot be checkpointed: the first comes back, the meter's memory too."""
        self.start_mover()
        self.env["METE_SIM_FAULT"] = "cuCheckpointProcessCheckpoint:2:fail=801"
        self.run_("hold", self.go, 64 * MIB, procs=2)
        before = self.status()["held"]
        self.assert_refused(self.deep(), "refused to checkpoint it: CUDA_ERROR_NOT_SUPPORTED")
        self.assertEqual(self.states(), [0, 0])
        status = self.status()
        self.assertEqual((status["held"], status["state"]), (before, RUNNING))
        self.go.touch()
        self.assert_ends()
        self.assert_ends()

    def test_a_driver_that_cannot(self):
        self.env["METE_SIM_FAULT"] = "cuCheckpointProcessGetState:*:fail=801"
        self.run_("hold", self.go, 64 * MIB)
        wait_until(lambda: "cannot checkpoint" in self.status()["deep_obstacle"], "the driver was asked")


class Program(DeepTest):
    """mete-checkpoint by itself."""

    def hold(self, procs=1):
        self.run_("hold", self.go, 64 * MIB, procs=procs, options=NO_METER)

    def test_it_can(self):
        self.assertEqual(self.checkpoint("can")[0], 0)
        code, said = self.checkpoint("can", fault="cuCheckpointProcessGetState:1:fail=801")
        self.assertEqual((code, said["end"]), (69, "unsupported"))
        self.assertEqual(self.checkpoint("out")[0], 64)
        self.assertEqual(self.checkpoint("out", "none")[0], 64)

    def test_twice_is_once(self):
        self.hold()
        for _ in range(2):
            self.assertEqual(self.checkpoint("out", *self.pids)[0], 0)
            self.assertEqual(self.states(), [2])
        for _ in range(2):
            self.assertEqual(self.checkpoint("in", *self.pids)[0], 0)
            self.assertEqual(self.states(), [0])
        self.go.touch()
        self.assert_ends()

    def test_a_kill_at_any_step_is_mended_by_the_same_again(self):
        self.hold(procs=2)
        steps = {"out": ("Lock", "Checkpoint"), "in": ("Restore", "Unlock")}
        for verb, end in (("out", [2, 2]), ("in", [0, 0])):
            for step in steps[verb]:
                for when in (1, 2):
                    for action in ("kill", "after-kill"):
                        self.checkpoint(*(("in", *self.pids) if verb == "out" else ("out", *self.pids)))
                        code, _ = self.checkpoint(verb, *self.pids, fault=f"cuCheckpointProcess{step}:{when}:{action}")
                        self.assertEqual(code, -signal.SIGKILL)
                        code, said = self.checkpoint(verb, *self.pids)
                        self.assertEqual((code, self.states()), (0, end), (verb, step, when, action, said))
        self.go.touch()
        self.assert_ends()
        self.assert_ends()

    def test_all_or_nobody(self):
        self.hold(procs=2)
        for step in ("Lock", "Checkpoint"):
            code, said = self.checkpoint("out", *self.pids, fault=f"cuCheckpointProcess{step}:2:fail=801")
            self.assertEqual((code, said["end"], said["pid"], self.states()), (69, "unsupported", self.pids[1], [0, 0]), step)
        code, said = self.checkpoint("out", *self.pids, fault="cuCheckpointProcessLock:2:fail=600")
        self.assertEqual((code, said["end"], self.states()), (75, "busy", [0, 0]))
        self.assertEqual(self.checkpoint("out", *self.pids)[0], 0)
        code, said = self.checkpoint("in", *self.pids, fault="cuCheckpointProcessRestore:2:fail=2")
        self.assertEqual((code, said["end"], self.states()), (75, "busy", [2, 2]), "the first is away again")
        self.assertEqual(self.checkpoint("in", *self.pids)[0], 0)
        self.go.touch()
        self.assert_ends()
        self.assert_ends()

    def test_without_room_it_is_lost(self):
        """The simulated card, as the real one, gives a restore one chance."""
        self.hold()
        self.assertEqual(self.checkpoint("out", *self.pids)[0], 0)
        bare = {**self.env, "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
        with subprocess.Popen([BUILD / "tests/park_program", "hold", self.go, str(139 << 30)], env=bare, stderr=subprocess.PIPE, text=True) as other:
            self.assertTrue(any(line == "up\n" for line in other.stderr))
            code, said = self.checkpoint("in", *self.pids)
            self.assertEqual((code, said["end"], self.states()), (76, "lost", [3]))
            other.kill()

    def test_the_dead_are_not_missed(self):
        self.hold(procs=2)
        os.kill(self.pids[0], signal.SIGKILL)
        self.assert_ends(137)
        self.assertEqual(self.checkpoint("out", *self.pids)[0], 0)
        self.assertEqual(self.checkpoint("in", *self.pids)[0], 0)
        self.go.touch()
        self.assert_ends()


if __name__ == "__main__":
    unittest.main()
