#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory outside of a meter, on a real card: a program whose LD_PRELOAD is dropped and one that loads the driver by its path are
reported soon, and ended where that is the policy; programs that do much within their meter are not.
escape.py PATH-TO-mete [--quick]"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from rows import GIB, check, end, events, info, no_escapes, skip

METE = str(pathlib.Path(sys.argv[1]).resolve())
LIMIT_S = 120

# Takes memory with the driver that it is told to load, says when, and stays.
HOLD = r"""
import ctypes, sys, time
cuda = ctypes.CDLL(sys.argv[1])
device, context, block = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(sys.argv[2]) << 30)) == 0
print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)
sys.stdin.read()
"""
# Ordinary, and hard to tell apart: libraries that load late, pools that grow and shrink, a child that dies with memory, graphs.
ORDINARY = r"""
import os, sys, time, torch
if sys.argv[1] == "child":
    x = torch.zeros(1 << 28, device="cuda"); torch.cuda.synchronize(); os._exit(9)
x = torch.randn(4096, 4096, device="cuda")
s = torch.cuda.Stream()
with torch.cuda.stream(s): z = x @ x
torch.cuda.synchronize()
for turn in range(int(sys.argv[1])):
    y = torch.linalg.svd(x[:512, :512])[1]; torch.fft.fft2(x); torch.nn.functional.conv2d(x[None, None], x[None, None, :3, :3])
    parts = [torch.empty(1 << 28, device="cuda") for _ in range(8)]
    del parts
    torch.cuda.empty_cache()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g): z = x @ x
    g.replay(); torch.cuda.synchronize()
    if turn % 4 == 0: os.system(f"{sys.executable} {sys.argv[0]} child")
print("done")
"""


def driver():
    """Where the driver's library is, as the loader finds it."""
    ctypes.CDLL("libcuda.so.1")
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "libcuda.so" in line:
            return line.split()[-1]
    return None


class World:
    def __init__(self, folder, policy):
        self.env = {**os.environ, "METE_STATE_DIR": f"{folder}/state", "METE_SOCKET": f"{folder}/s", "METE_CLAIMS_DIR": f"{folder}/claims",
                    "METE_CONFIG": f"{folder}/config.toml"}
        pathlib.Path(folder, "config.toml").write_text(f'[escape]\npolicy = "{policy}"\n')

    def start(self, *words):
        return subprocess.Popen([METE, "run", "-q", "--gpu", "8G", "--", *map(str, words)], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def seen(self, count):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if len(found := events(METE, self.env, "escape.seen")) >= count:
                return found
            time.sleep(0.05)
        return events(METE, self.env, "escape.seen")

    def stop(self):
        subprocess.run([METE, "daemon", "stop"], env=self.env, capture_output=True, timeout=LIMIT_S)


def reported(world, what, count, *words):
    process = world.start(*words)
    said = process.stdout.readline()
    if not check(bool(said), f"escape: {what} holds 3 GiB", process.stderr.read()[-300:] if not said else ""):
        return
    found = world.seen(count)
    after = time.clock_gettime(time.CLOCK_MONOTONIC) - float(said)
    data = found[-1].get("data", {}) if len(found) >= count else {}
    check(len(found) == count and data.get("bytes", 0) >= 3 * GIB, f"escape: {what} is reported", f"after {after:.2f} s: {json.dumps(data)}")
    info(f"escape: {what}: from holding it to being reported", f"{after:.2f} s")
    process.stdin.close()
    check(process.wait(LIMIT_S) == 0, f"escape: {what} runs on with the policy warn", "")


def beyond(world, python):
    """What a job holds beyond its grant is not promised to another one, and it is named to whom it is in the way."""
    process = world.start("env", "-u", "LD_PRELOAD", python, "-c", HOLD, "libcuda.so.1", 50)
    if not check(bool(process.stdout.readline()), "escape: a job of 8 GiB holds 50 GiB", ""):
        return
    card, until = {}, time.monotonic() + 30
    while time.monotonic() < until and card.get("over_bytes", 0) < 40 * GIB:
        said = subprocess.run([METE, "cards", "-o", "json"], env=world.env, capture_output=True, text=True, timeout=LIMIT_S).stdout
        card = json.loads(said)["cards"][0]
        time.sleep(0.1)
    over, grantable = card.get("over_bytes", 0), card["grantable_bytes"]
    check(over >= 42 * GIB and grantable <= card["capacity_bytes"] - 50 * GIB, "escape: what it holds beyond its grant is not granted",
          f"{over / GIB:.1f} GiB beyond, {grantable / GIB:.1f} GiB grantable of {card['capacity_bytes'] / GIB:.1f}")
    late = subprocess.run([METE, "run", "--gpu", "120G", "--no-wait", "--", "true"], env=world.env, capture_output=True, text=True, timeout=LIMIT_S)
    check(late.returncode == 75 and "beyond" in late.stderr, "escape: a job that would need it is told which job has it", late.stderr.strip()[-300:])
    process.stdin.close()
    process.wait(LIMIT_S)
    until = time.monotonic() + 30
    while (late := subprocess.run([METE, "run", "-q", "--gpu", "120G", "--no-wait", "--", "true"], env=world.env, capture_output=True, text=True)).returncode != 0:
        if time.monotonic() > until:
            break
        time.sleep(0.2)
    check(late.returncode == 0, "escape: and it can be granted again once that job has ended", late.stderr.strip()[-200:])


def main():
    if not (pathlib.Path(METE).parent / "meted").exists():
        skip("escape", "meted is not built")
    path = driver()
    python = sys.executable
    with tempfile.TemporaryDirectory(prefix="mete-gpu-escape-") as folder:
        world = World(folder, "warn")
        try:
            metered = world.start(python, "-c", HOLD, "libcuda.so.1", 3)
            metered.stdout.readline()
            time.sleep(3)
            no_escapes(METE, world.env, "escape: a program with a meter")
            metered.stdin.close()
            metered.wait(LIMIT_S)
            script = pathlib.Path(folder, "ordinary.py")
            script.write_text(ORDINARY)
            turns = 6 if "--quick" in sys.argv else 20
            done = subprocess.run([METE, "run", "-q", "--gpu", "16G", "--", python, str(script), str(turns)], env=world.env, capture_output=True, text=True, timeout=LIMIT_S * 2)
            check(done.returncode == 0, "escape: a program that loads libraries late, with children that die", done.stderr[-300:])
            no_escapes(METE, world.env, "escape: that program")
            reported(world, "a program without LD_PRELOAD", 1, "env", "-u", "LD_PRELOAD", python, "-c", HOLD, "libcuda.so.1", 3)
            if path:
                reported(world, "a program that loads the driver by its path, with an empty environment", 2, "env", "-i", python, "-c", HOLD, path, 3)
            beyond(world, python)
        finally:
            world.stop()
    with tempfile.TemporaryDirectory(prefix="mete-gpu-escape-") as folder:
        world = World(folder, "stop")
        try:
            process = world.start("env", "-u", "LD_PRELOAD", python, "-c", HOLD, "libcuda.so.1", 3)
            said = process.stdout.readline()
            began = time.monotonic()
            code = process.wait(LIMIT_S)
            jobs = json.loads(subprocess.run([METE, "ps", "-a", "-o", "json"], env=world.env, capture_output=True, text=True).stdout)["jobs"]
            check(bool(said) and code != 0 and jobs[0].get("outcome") == "escaped", "escape: with the policy stop its job is ended",
                  f"exit {code}, outcome {jobs[0].get('outcome')}, after {time.monotonic() - began:.2f} s")
        finally:
            world.stop()
    end()


main()
