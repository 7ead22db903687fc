# SPDX-License-Identifier: Apache-2.0
"""A process that dies at its Nth step from now on (die_at.c), for every N there is."""
import os
import pathlib
import subprocess

PROGRAM = pathlib.Path(os.environ["METE_BUILD_DIR"]) / "tests" / "die_at"
CANNOT = 77  # the machine does not allow tracing


class DieAt:
    def __init__(self, test, pid, step):
        self.process = subprocess.Popen([PROGRAM, str(pid), str(step)], stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.close)
        first = self.process.stdout.readline().strip()
        if first != "ready":
            if self.process.wait() == CANNOT:
                test.skipTest("processes cannot be followed here")
            raise AssertionError(f"process {pid} could not be followed: {first!r}")

    def close(self):
        """What became of it: "died 7 sendmsg", "alive 12", "ended" (by itself)."""
        if not self.process.stdout.closed:
            self.process.terminate()
            self.said = self.process.stdout.readline().strip()
            self.process.stdout.close()
            self.process.wait()
        return self.said


def every_step(test, once, apart=1, most=1000):
    """once(step) makes a process die at that step and checks what is left; it returns close()'s words. `apart`: the distance between tested steps."""
    seen = []
    for step in range(1, most, apart):
        try:
            seen.append(once(step))
            test.assertRegex(seen[-1], "^(died|alive) ", "it neither died at a step nor lives")
        except AssertionError as failed:
            raise AssertionError(f"killed at step {step}: {failed}") from failed
        if not seen[-1].startswith("died"):
            break
    test.assertRegex(seen[-1], "^alive", f"{most} steps were not enough")
    print(f"{len(seen) - 1} steps: {' '.join(one.split()[-1] for one in seen[:-1])}", flush=True)
    test.assertGreater(len(seen), 3, "it takes more than a few steps")
