#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every bug of plants.py is found by the simulator within 400,000 steps, and README.md speaks of it."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

import plants

HERE = pathlib.Path(__file__).parent
PROGRAM = pathlib.Path(os.environ["METE_BUILD_DIR"]) / "tests/mete-sim-planted"
SEEDS, STEPS = 20, 20_000


def find(name):
    """None, or where it was found: seed after seed, 400,000 steps in all."""
    for seed in range(1, SEEDS + 1):
        run = subprocess.run([PROGRAM, "--plant", name, "--seed", str(seed), "--steps", str(STEPS)],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if run.returncode == 0:
            return run.stdout.strip()
    return None


def main():
    failed = []
    names = sys.argv[1:] or plants.NAMES
    readme = (HERE / "README.md").read_text()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, found in zip(names, pool.map(find, names)):
            print(found or f"{name}: NOT FOUND", flush=True)
            if not found:
                failed.append(name)
            if f"`{name}`" not in readme:
                print(f"README.md does not speak of {name}")
                failed.append(name)
    # A simulator that always fails would find every bug.
    sound = subprocess.run([PROGRAM, "--seed", "1", "--steps", str(STEPS)], stdout=subprocess.DEVNULL)
    if sound.returncode != 0:
        failed.append("(without a bug it fails, too)")
    print(f"{len(names)} planted, {len(failed)} not found" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
