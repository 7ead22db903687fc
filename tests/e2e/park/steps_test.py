# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the mover, and of one process of two, at every step of a park and of the way back."""
import os
import subprocess
import sys
import unittest

from die_at import DieAt, every_step
from support import MIB, PARKED, RUNNING, ParkTest, wait_until


# The thread that was started last never rests; all others sleep.
BUSY = """
import os, threading, time
for _ in range(30):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
null = os.open("/dev/null", os.O_WRONLY)
def write():
    while True:
        os.write(null, b"x")
threading.Thread(target=write, daemon=True).start()
print("up", flush=True)
time.sleep(60)
"""


class Death(unittest.TestCase):
    def test_a_step_while_the_threads_are_stopped(self):
        """A busy thread made its step before the other threads had stopped: it died before it was said to be followed, and its last words were lost."""
        for _ in range(8):
            with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as busy:
                try:
                    self.assertEqual(busy.stdout.readline(), "up\n")
                    death = DieAt(self, busy.pid, 1)
                    busy.wait()
                    self.assertEqual(death.close(), "died 1 write")
                finally:
                    busy.kill()


class Steps(ParkTest):
    def settled(self):
        wait_until(lambda: self.status()["state"] in (RUNNING, PARKED), "nothing is under way")
        return self.status()["state"]

    def out_and_back(self):
        self.assert_parked(self.park())
        self.assertTrue(self.unpark()["ok"])
        wait_until(lambda: self.arena_used() == 0, "the mover has forgotten it")

    def test_the_mover(self):
        """Its job still has its memory and runs on, and is parked by the next mover; or the loss of its memory is reported. Never other bytes."""
        def once(step):
            self.go.unlink(missing_ok=True)
            self.start_mover(arena=256 * MIB)
            self.run_("many", 3, 2 * MIB, self.go)  # two chunks: the simulated driver takes a step for each MiB
            death = DieAt(self, self.mover.pid, step)
            end = self.park()
            if end["ok"]:
                end = self.unpark()
            said = death.close()
            if end["state"] == RUNNING:
                if said.startswith("died"):
                    self.mover.wait()
                    self.control.close()
                    self.start_mover(arena=256 * MIB)
                self.out_and_back()
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
            self.mover.kill()
            self.mover.wait()
            return said
        every_step(self, once)

    def test_a_process_of_two(self):
        """The other one goes on, byte for byte, and can be parked again; nothing of the dead one is kept."""
        self.start_mover(arena=256 * MIB)
        alone = self.on_card()

        def once(step):
            self.go.unlink(missing_ok=True)
            self.run_("many", 3, 40 * MIB, self.go, procs=2)
            death = DieAt(self, self.pids[0], step)
            self.park()
            if self.settled() == PARKED:
                self.assertTrue(self.unpark()["ok"])
            said = death.close()
            if said.startswith("died"):
                wait_until(lambda: not os.path.exists(f"/proc/{self.pids[0]}"), "it is dead")
            self.assertEqual(self.settled(), RUNNING)
            self.out_and_back()
            self.go.touch()
            for _ in range(1 if said.startswith("died") else 2):
                self.assert_ends()
            self.end_driver()
            wait_until(lambda: (self.arena_used(), self.on_card()) == (0, alone), "nothing of them is left")
            return said
        every_step(self, once)


if __name__ == "__main__":
    unittest.main(verbosity=2)
