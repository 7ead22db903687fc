# SPDX-License-Identifier: Apache-2.0
"""Programs that are parked and brought back, on simulated cards: they notice nothing, or are refused and notice nothing."""
import os
import queue
import random
import signal
import socket
import struct
import subprocess
import time
import unittest

from support import BUILD, CONTEXT, MESSAGE, MIB, PARKED, RUNNING, ParkTest, wait_until


class Parking(ParkTest):
    def test_a_sleeping_program_comes_back_byte_for_byte(self):
        self.start_mover()
        self.run_("hold", self.go, 300 * MIB)
        before = self.status()["held"]
        for _ in range(3):
            end = self.park()
            self.assert_parked(end)
            self.assertEqual(end["moved"], 300 * MIB)
            self.assertEqual(end["held"], before - 300 * MIB)
            self.assertEqual(self.arena_used(), 300 * MIB)
            end = self.unpark()
            self.assertEqual((end["ok"], end["state"], end["moved"], end["held"]), (True, RUNNING, 0, before))
            wait_until(lambda: self.arena_used() == 0, "the mover has forgotten it")
        self.go.touch()
        self.assert_ends()

    def test_programs_at_work(self):
        """Eight threads that allocate, write, read and free, five times."""
        self.start_mover()
        self.run_("work", 4000, 8, 4)
        for _ in range(5):
            self.assert_parked(self.park())
            self.assertTrue(self.unpark()["ok"])
        self.assert_ends()

    def test_launches_go_through_the_gate_as_they_are(self):
        """Their arguments lie on the stack, and unwinding the stack meanwhile finds the caller."""
        self.start_mover()
        self.run_("launch", 2500, 4)
        for _ in range(3):
            self.assert_parked(self.park())
            self.assertTrue(self.unpark()["ok"])
        self.assert_ends()

    def test_whoever_is_inside_a_call_is_waited_for(self):
        self.start_mover()
        self.env["METE_SIM_FAULT"] = "cuMemsetD32_v2:*:block=30"
        self.run_("work", 4000, 4, 2)
        for _ in range(3):
            self.assert_parked(self.park())
            self.assertTrue(self.unpark()["ok"])
        self.assert_ends()

    def test_two_processes_of_one_job(self):
        self.start_mover()
        self.run_("work", 3000, 2, 8, procs=2)
        for _ in range(3):
            self.assert_parked(self.park())
            self.assertTrue(self.unpark()["ok"])
        self.assert_ends()
        self.assert_ends()

    def test_many_small_blocks_are_few_chunks(self):
        self.start_mover()
        self.run_("many", 100000, 512, self.go)
        self.assertLess(self.park()["moved"], 100000 * 512 + 34 * MIB)
        self.assertTrue(self.unpark()["ok"])
        self.go.touch()
        self.assert_ends()

    def test_many_granules_are_few_chunks(self):
        self.start_mover()
        self.run_("many", 200, 2 * MIB, self.go)
        self.assertLess(self.park()["moved"], 432 * MIB + 1)
        self.assertTrue(self.unpark()["ok"])
        self.go.touch()
        self.assert_ends()

    def test_virtual_memory_of_the_program_itself(self):
        """Mapped twice, not at all, in a row, released while mapped: moved and back. Exported memory stays."""
        self.start_mover()
        self.run_("vmm", self.go)
        before = self.status()["held"]
        for _ in range(2):
            end = self.park()
            self.assert_parked(end)
            self.assertEqual((end["moved"], end["held"]), (104 * MIB, before - 104 * MIB))
            end = self.unpark()
            self.assertEqual((end["ok"], end["held"]), (True, before))
        self.go.touch()
        self.assert_ends()

    def test_programs_at_work_on_their_own_virtual_memory(self):
        self.start_mover()
        self.run_("vmmwork", 3000, 4)
        for _ in range(5):
            self.assert_parked(self.park())
            self.assertTrue(self.unpark()["ok"])
        self.assert_ends()

    def test_who_comes_to_a_parked_job_waits(self):
        self.start_mover()
        self.run_("late", self.go, up=False)
        self.assert_parked(self.park())
        self.go.touch()
        with self.assertRaises(queue.Empty):
            self.said.lines.get(timeout=0.7)
        self.assertTrue(self.unpark()["ok"])
        self.up()
        self.assert_ends()

    def test_a_process_dies_while_parked(self):
        self.start_mover()
        self.run_("hold", self.go, 64 * MIB, procs=2)
        self.assertEqual(self.park()["moved"], 128 * MIB)
        self.tell("kill 0")
        self.assert_ends(137)
        wait_until(lambda: self.arena_used() == 64 * MIB, "the mover has forgotten the dead one")
        self.assertTrue(self.unpark()["ok"])
        self.go.touch()
        self.assert_ends()


class Sharing(ParkTest):
    def test_blocks_that_another_process_opens(self):
        """cuIpcGetMemHandle works on memory in chunks; while a process has it open neither of them can be parked."""
        self.start_mover()
        self.run_("ipc", self.folder, procs=2)
        before = self.status()
        self.assertIn("shares memory", before["obstacle"])
        self.assertIn("shares memory", before["deep_obstacle"])
        self.assert_refused(self.park(), "shares memory")
        (self.folder / "close").touch()
        self.up()
        wait_until(lambda: self.status()["obstacle"] == "", "no process has anything open")
        self.assertEqual(self.status()["held"], before["held"], "what is shared is charged once")
        self.assert_parked(self.park())
        self.assertTrue(self.unpark()["ok"])
        self.go.touch()
        self.assert_ends()
        self.assert_ends()

    def test_handles_of_the_driver_are_opened_as_ever(self):
        """Of a process outside the job: its memory stays where it is, and only the driver's checkpoint is out of the question."""
        self.start_mover()
        bare = {**self.env, "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
        with subprocess.Popen([BUILD / "tests/park_program", "ipc", self.folder], env=bare, stderr=subprocess.PIPE, text=True) as owner:
            self.assertEqual(owner.stderr.readline(), "up\n")
            self.run_("ipc", self.folder)
            status = self.status()
            self.assertEqual(status["obstacle"], "")
            self.assertIn("shares memory", status["deep_obstacle"])
            self.assert_parked(self.park())
            self.assertTrue(self.unpark()["ok"])
            (self.folder / "close").touch()
            self.up()
            self.assertEqual(self.status()["deep_obstacle"], "")
            self.go.touch()
            self.assert_ends()
            self.assertEqual(owner.wait(60), 0)

    def test_who_has_it_open_outlives_its_owner(self):
        self.run_("ipc", self.folder, procs=2)
        with open("/proc/net/unix") as sockets:
            said = sockets.read()
        owner, = (pid for pid in self.pids if f"@mete-ipc-{pid:08x}-" in said)
        os.kill(owner, signal.SIGKILL)
        self.assert_ends(137)
        wait_until(lambda: self.on_card() < 600 * MIB, "the owner is gone")
        self.assertGreater(self.on_card(), CONTEXT, "what the other one has open is still there")
        self.assertIn("shares memory", self.status()["obstacle"])
        (self.folder / "close").touch()
        self.up()
        wait_until(lambda: self.status()["obstacle"] == "", "it has let go")
        self.assertEqual(self.on_card(), CONTEXT)


class Kills(ParkTest):
    def test_a_process_is_killed_at_any_moment(self):
        """On the way out, parked, or on the way back: the other one goes on, the mover keeps nothing of the dead one."""
        self.start_mover()
        dice = random.Random(3)
        for _ in range(12):
            self.go.unlink(missing_ok=True)
            self.run_("many", 40, 3 * MIB, self.go, procs=2)
            self.tell("park 30000")
            if dice.random() < 0.5:
                self.event("park")
                self.tell("unpark")
            time.sleep(dice.random() * 0.08)
            self.tell("kill 0")
            self.assert_ends(137)
            # However far it has come, the other process is brought back.
            wait_until(lambda: self.status()["state"] in (RUNNING, PARKED), "nothing is under way")
            if self.status()["state"] == PARKED:
                self.assertTrue(self.unpark()["ok"])
            self.go.touch()
            self.assert_ends()
            wait_until(lambda: self.arena_used() == 0, "the mover has forgotten both")
            self.end_driver()

    def test_the_mover_is_killed_at_any_moment(self):
        """A process either still has its memory, or its loss is reported: never other bytes."""
        dice = random.Random(4)
        for _ in range(8):
            self.go.unlink(missing_ok=True)
            self.start_mover()
            self.run_("many", 60, 3 * MIB, self.go)
            self.tell("park 30000")
            time.sleep(dice.random() * 0.06)
            self.mover.kill()
            self.mover.wait()
            end = self.event("park")
            if end["state"] == RUNNING:
                self.assertFalse(end["ok"])
                self.go.touch()
                self.assert_ends()
            else:
                end = self.unpark()
                self.assertEqual((end["ok"], end["state"]), (False, PARKED))
                self.assertIn("the mover that held its memory is gone", end["why"])
                self.tell("kill 0")
                self.assert_ends(137)
            self.end_driver()
            self.control.close()


class Refusals(ParkTest):
    def test_no_mover(self):
        self.run_("hold", self.go, 64 * MIB)
        self.assert_refused(self.park(), "no mover answers")
        self.go.touch()
        self.assert_ends()

    def test_an_arena_that_is_too_small(self):
        self.start_mover(arena=128 * MIB)
        self.run_("hold", self.go, 200 * MIB)
        self.assert_refused(self.park(), "there is no room for it")
        self.go.touch()
        self.assert_ends()

    def test_a_mover_of_another_version(self):
        """Whatever it answers, in whatever size: the program goes on without it."""
        path = str(self.folder / "m" / self.card)
        hello = struct.Struct("<IHH64x")
        for answer in (hello.pack(0x4d455445, 2, 33), hello.pack(0x4d455445, 0, 32), b"HELLO" * 100, b""):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
                door.bind(path)
                door.listen()
                self.go.unlink(missing_ok=True)
                self.run_("hold", self.go, 64 * MIB)
                self.tell("park 30000")
                caller, _ = door.accept()
                self.assertEqual(len(caller.recv(1000)), 72)
                if answer:
                    caller.send(answer)
                caller.close()
                self.assert_refused(self.event("park"), "no mover answers")
                self.go.touch()
                self.assert_ends()
                self.end_driver()
            os.unlink(path)

    def test_the_driver_refuses_a_step(self):
        """On the way out all are where they were; on the way back nothing is lost, and the next try succeeds."""
        self.start_mover()
        # How often the program calls these itself before it is parked: 44 mappings, 5 times access, 43 handles, 1 unmapping.
        for out, fault in ((True, "cuMemUnmap:2:fail=999"), (True, "cuMemUnmap:20:fail=999"), (True, "cuMemRelease:30:fail=999"),
                           (True, "cuMemExportToShareableHandle:9:fail=999"), (False, "cuMemMap:45:fail=999"), (False, "cuMemMap:46:fail=999"),
                           (False, "cuMemMap:80:fail=999"), (False, "cuMemSetAccess:6:fail=999"), (False, "cuMemSetAccess:7:fail=999"),
                           (False, "cuMemCreate:60:fail=999")):
            with self.subTest(fault):
                self.go.unlink(missing_ok=True)
                self.env["METE_SIM_FAULT"] = fault
                self.run_("vmm", self.go)
                end = self.park()
                if out:
                    self.assert_refused(end, "the driver refused (error 999)")
                else:
                    self.assert_parked(end)
                    end = self.unpark()
                    self.assertEqual((end["ok"], end["state"]), (False, PARKED), end)
                    self.assertTrue(self.unpark()["ok"])
                self.go.touch()
                self.assert_ends()
                self.end_driver()

    def test_a_stream_in_capture(self):
        self.start_mover()
        self.run_("capture", self.go)
        self.assert_refused(self.park(300), "a stream is being captured")
        self.tell("park 60000")
        self.go.touch()  # it ends its capture, and can be parked
        self.assert_parked(self.event("park"))
        self.assertTrue(self.unpark()["ok"])
        self.assert_ends()

    def test_managed_memory_is_known_beforehand(self):
        self.start_mover()
        self.run_("managed", self.go)
        self.assertIn("managed memory", self.status()["obstacle"])
        self.assert_refused(self.park(), "managed memory")
        self.go.touch()
        self.assert_ends()

    def test_a_callback_that_waits_for_a_call(self):
        """The card cannot come to rest before a call that waits at the gate: the runner gives up, and it goes on."""
        self.start_mover()
        self.run_("callback", self.go)
        self.tell("park 1000")
        time.sleep(0.2)
        self.go.touch()
        self.assert_refused(self.event("park"), "did not finish its work")
        self.assert_ends()

    def test_the_mover_dies_with_the_bytes(self):
        self.start_mover()
        self.run_("hold", self.go, 64 * MIB)
        self.assert_parked(self.park())
        self.mover.kill()
        end = self.unpark()
        self.assertEqual((end["ok"], end["state"]), (False, PARKED))
        self.assertIn("the mover that held its memory is gone", end["why"])

    def test_an_answer_that_is_not_to_what_was_asked(self):
        """Memory is not released for an answer that was meant for another piece."""
        path = str(self.folder / "m" / self.card)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind(path)
            door.listen()
            self.run_("many", 3, 64 * MIB, self.go)
            self.tell("park 30000")
            caller, _ = door.accept()
            for shift in (0, 1):  # hello, and an answer to what came before
                asked = MESSAGE.unpack(caller.recv(1000))
                caller.send(MESSAGE.pack(0x4d455445, 1, 32, asked[3], 0, 0, 0, 0, 0, 0, asked[10] - shift, bytes(16)))
            caller.close()
            self.assert_refused(self.event("park"), "no mover answers")
        self.go.touch()
        self.assert_ends()

    def test_a_mover_that_does_not_answer(self):
        """Not waited for in vain, and not tried again and again with the gate closed."""
        self.start_mover()
        self.run_("hold", self.go, 64 * MIB)
        self.mover.send_signal(signal.SIGSTOP)
        self.assert_refused(self.park(), "the mover does not answer")
        self.mover.send_signal(signal.SIGCONT)
        self.go.touch()
        self.assert_ends()

    def test_a_program_without_a_standard_input(self):
        """Its lowest free descriptor is 0."""
        self.start_mover()
        self.run_("many", 6, 64 * MIB, self.go, before=("sh", "-c", 'exec "$0" "$@" <&-'))
        self.assert_parked(self.park())
        self.assertTrue(self.unpark()["ok"])
        self.go.touch()
        self.assert_ends()

    def test_a_capture_that_would_begin_while_it_is_parked(self):
        """It begins when the job is back, and so is in the way of nothing that is still to be done."""
        self.start_mover()
        self.env["METE_SIM_FAULT"] = "cuMemMap:4:fail=999"
        self.run_("capturelater", self.go)
        self.assert_parked(self.park())
        self.go.touch()
        time.sleep(0.3)
        end = self.unpark()
        self.assertEqual((end["ok"], end["state"]), (False, PARKED), "the driver refuses once")
        self.assertTrue(self.unpark()["ok"])
        self.assert_ends()


class NeverParked(ParkTest):
    def test_the_cap_is_exact_to_the_granule(self):
        """The last granule is available, even if a larger chunk does not fit any more."""
        context = 518 * MIB + 60 * MIB + 2 * MIB
        self.run_("many", 100, 2 * MIB, self.go, limit=context + 200 * MIB)
        self.go.touch()
        self.assert_ends()


if __name__ == "__main__":
    unittest.main()
