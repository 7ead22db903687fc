#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every bug of plants.py is found by the simulator within 600,000 steps, with a seed on which the sound program does not fail."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import plants

HERE = pathlib.Path(__file__).parent
PROGRAM = pathlib.Path(os.environ["METE_BUILD_DIR"]) / "tests/mete-sim-planted"
SEEDS, STEPS = 30, 20_000


def find(name):
    """None, or where it was found: seed after seed, 600,000 steps in all."""
    for seed in range(1, SEEDS + 1):
        run = subprocess.run([PROGRAM, "--plant", name, "--seed", str(seed), "--steps", str(STEPS)],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if run.returncode == 0:
            return run.stdout.strip()
    return None


def run_sound(seed):
    return subprocess.run([PROGRAM, "--seed", seed, "--steps", str(STEPS)], stdout=subprocess.DEVNULL).returncode


def main():
    names = sys.argv[1:] or plants.NAMES
    failed = [f"{name} (its place in the sources is gone)" for name in plants.unplanted(HERE.parents[1]) if name in names]
    seeds = {"1"}
    readme = (HERE / "README.md").read_text()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, found in zip(names, pool.map(find, names)):
            print(found or f"{name}: NOT FOUND", flush=True)
            if found:
                seeds.add(re.search(r"of seed (\d+)", found)[1])
            else:
                failed.append(name)
            if f"`{name}`" not in readme:
                print(f"README.md does not speak of {name}")
                failed.append(name)
        # A simulator that fails without a bug would find everything.
        for seed, sound in zip(seeds, pool.map(run_sound, seeds)):
            if sound != 0:
                failed.append(f"(seed {seed} fails without a bug, too)")
    print(f"{len(names)} planted, {len(failed)} not found" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
