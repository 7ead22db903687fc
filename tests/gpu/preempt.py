#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parking as people use it, on a real card: the daemon, its mover, `mete park`, a job that makes room for one of a higher priority and comes
back, a share that grows, a job that sleeps and wakes. From "submitted" to "its first kernel" is measured with a card full of another job.
preempt.py PATH-TO-mete [--quick]"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from rows import GIB, check, end, info, no_escapes, skip

METE = str(pathlib.Path(sys.argv[1]).resolve())
QUICK = "--quick" in sys.argv
LIMIT_S = 120
HELD = 10 if QUICK else 60
GROWN = 8 if QUICK else 20  # fits into the arena, which is a little larger than HELD
SHARE = "130G"  # nearly all of the card: another such job does not fit beside it

# Fills most of a card with numbers that depend on each other, trains a little on them until it is told to end, and says what came of it.
LOW = r"""
import sys, time, os, torch
torch.manual_seed(1)
parts = [torch.randint(0, 1 << 60, (1 << 27,), device="cuda") for _ in range(int(sys.argv[1]))]
x = torch.randn(2048, 2048, device="cuda")
def sums(): return [(p.sum().item(), (p ^ (p >> 7)).sum().item()) for p in parts]
before, addresses = sums(), [p.data_ptr() for p in parts]
print("up", flush=True)
while not os.path.exists(sys.argv[2]):
    if sys.argv[3] == "work": x = torch.tanh(x @ x); torch.cuda.synchronize()
    else: time.sleep(0.02)
print("same" if sums() == before and addresses == [p.data_ptr() for p in parts] and bool(torch.isfinite(x).all()) else "changed", flush=True)
"""


def first_kernel():
    """The moment at which the first kernel of this process has run, by a clock that all processes share."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    ptx = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry nothing() { ret; }\n\0"

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result != 0:
            sys.exit(f"{name}: {result}")
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), ptx)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"nothing")
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    call("cuCtxSynchronize")
    print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)


# Takes memory in steps and says how each ended.
GROW = r"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
print("up", flush=True)
for line in sys.stdin:
    verb, amount = line.split()
    if verb == "take":
        block = ctypes.c_uint64()
        print(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(amount) << 30)), block.value, flush=True)
    else:
        print(cuda.cuMemFree_v2(ctypes.c_uint64(int(amount))), flush=True)
"""


class World:
    def __init__(self, folder):
        self.folder = folder
        self.go = folder / "go"
        config = folder / "config.toml"
        config.write_text(f'[park]\nmin_run_s = 0\narena = "{HELD + 4}G"\n')
        self.env = {**os.environ, "METE_STATE_DIR": str(folder / "state"), "METE_SOCKET": str(folder / "s"), "METE_CONFIG": str(config)}

    def mete(self, *words, limit=LIMIT_S):
        return subprocess.run([METE, *map(str, words)], env=self.env, capture_output=True, text=True, timeout=limit)

    def job(self, ident):
        for job in json.loads(self.mete("ps", "-a", "-o", "json").stdout)["jobs"]:
            if job["id"] == str(ident):
                return job
        return {}

    def wait(self, what, condition):
        until = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > until:
                check(False, what, "not within %d s; " % LIMIT_S + self.mete("ps", "-a").stdout.replace("\n", " / ") + self.mete("events").stdout[-800:].replace("\n", " / "))
                end()
            time.sleep(0.02)

    def low(self, kind, *words):
        self.go.unlink(missing_ok=True)
        result = self.mete("submit", *words, "--preemptible", "--priority", "-5", "--", sys.executable, "-c", LOW, HELD, self.go, kind)
        ident = result.stdout.strip()
        check(result.returncode == 0, f"submit a {HELD} GiB job that may be parked", result.stderr.strip().replace("\n", " / ") or ident)
        self.wait(f"the {HELD} GiB job holds its memory", lambda: "up" in self.mete("logs", ident).stdout)
        return ident

    def ends_well(self, ident, what):
        self.go.touch()
        code = self.mete("wait", ident).returncode
        said = self.mete("logs", ident).stdout.split()
        check(code == 0 and "same" in said, what, f"exit {code}, {' '.join(said[-3:])}")


def verbs(world):
    ident = world.low("work", "--gpu", SHARE)
    time.sleep(3 if QUICK else 40)  # the mover pins its arena
    for turn in range(3):
        out = world.mete("park", ident)
        info(f"mete park, {HELD} GiB, turn {turn + 1}", out.stderr.strip().replace("\n", " / "))
        check(out.returncode == 0, f"mete park of a training program, turn {turn + 1}", out.stderr.strip().replace("\n", " / "))
        if turn == 0:
            apps = subprocess.run(["nvidia-smi", "--query-compute-apps=process_name,used_memory", "--format=csv,noheader"], capture_output=True, text=True)
            info("on the card while it is parked", apps.stdout.strip().replace("\n", " / "))
        stays = sum(world.job(ident).get("park", {}).get("held_bytes", [0]))
        check(0 < stays < 2 * GIB, "what stays on the card", f"{stays / GIB:.2f} GiB")
        back = world.mete("unpark", ident)
        info(f"mete unpark, {HELD} GiB, turn {turn + 1}", back.stderr.strip().replace("\n", " / "))
        check(back.returncode == 0, f"mete unpark, turn {turn + 1}", back.stderr.strip().replace("\n", " / "))
    out = world.mete("park", "--deep", ident)
    if out.returncode == 0:
        info(f"mete park --deep, {HELD} GiB", out.stderr.strip().replace("\n", " / "))
        back = world.mete("unpark", ident)
        info("mete unpark after it", back.stderr.strip().replace("\n", " / "))
        check(back.returncode == 0, "back from the driver's checkpoint", back.stderr.strip().replace("\n", " / "))
    else:
        info("mete park --deep", out.stderr.strip().replace("\n", " / "))
    world.ends_well(ident, "the same bytes at the same addresses after all of it")


def preemption(world):
    ident = world.low("work", "--gpu", SHARE)
    time.sleep(4 if QUICK else 36)  # it has run for long enough, and the arena is pinned
    times = []
    for turn in range(2):
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        high = world.mete("run", "-q", "--gpu", SHARE, "--", sys.executable, __file__, METE, "--first-kernel")
        check(high.returncode == 0, f"a job of a higher priority runs on the full card, turn {turn + 1}", high.stderr.strip().replace("\n", " / "))
        if high.returncode == 0:
            times.append(float(high.stdout) - began)
        world.wait("the other is back", lambda: world.job(ident).get("state") == "running")
        time.sleep(2 if QUICK else 34)
    plain = []
    for _ in range(3):
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        alone = subprocess.run([sys.executable, __file__, METE, "--first-kernel"], capture_output=True, text=True)
        if alone.returncode == 0:
            plain.append(float(alone.stdout) - began)
    info(f"submitted to first kernel, card full of {HELD} GiB", ", ".join(f"{t:.2f} s" for t in times))
    info("the same program without mete, beside it", ", ".join(f"{t:.2f} s" for t in plain))
    # A job of 130 GiB runs for some 25 s before it is parked for another: --quick does not wait for that beforehand.
    if not QUICK:
        check(bool(times) and min(times) <= 2.5, "submitted to first kernel: 2.5 s", f"best {min(times, default=9):.2f} s, of {len(times)}")
    world.ends_well(ident, "the job that was parked for them computes on, the same to the last bit")


def whole(world):
    """A job that has all the memory of the card comes back beside the mover and the tables of its arena."""
    ident = world.low("work", "--gpu", "100%")
    time.sleep(2)
    out = world.mete("park", ident)
    check(out.returncode == 0, "park a job with --gpu 100%", out.stderr.strip().replace("\n", " / "))
    other = world.mete("run", "-q", "--gpu", "40%", "--", "true")
    check(other.returncode == 0, "another has its room meanwhile", other.stderr.strip().replace("\n", " / "))
    back = world.mete("unpark", ident)
    check(back.returncode == 0, "all of the card is its own again", back.stderr.strip().replace("\n", " / "))
    cards = json.loads(world.mete("cards", "-o", "json").stdout)["cards"][0]
    info("on the card then", ", ".join(f"{key[:-6]} {cards[key] / GIB:.2f} GiB" for key in ("capacity_bytes", "granted_bytes", "used_bytes", "foreign_bytes") if key in cards))
    world.ends_well(ident, "and it ends well")


def sleep(world):
    (world.folder / "config.toml").write_text(f'[park]\nmin_run_s = 0\nidle_s = 2\narena = "{HELD + 4}G"\n')
    world.mete("daemon", "stop")
    ident = world.low("rest", "--gpu", SHARE)
    world.wait("a job that does nothing is parked", lambda: world.job(ident).get("state") == "parked")
    check(world.job(ident)["park"]["cause"] == "idle", "because it is idle", world.job(ident)["park"]["cause"])
    world.ends_well(ident, "it woke at its first call, with all its bytes")


def growth(world):
    growing = subprocess.Popen([METE, "run", "-q", "--gpu", "4G..60G", "--", sys.executable, "-c", GROW], env=world.env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(text):
        growing.stdin.write(text + "\n")
        growing.stdin.flush()
        return growing.stdout.readline().split()
    check(growing.stdout.readline() == "up\n", "a job with --gpu 4G..60G", "")
    first = say(f"take {GROWN}")
    check(first[0] == "0", f"it grows to {GROWN} GiB", " ".join(first))
    check(say("take 55")[0] == "2", "and not beyond its ceiling", "")
    whole = subprocess.run([METE, "run", "-q", "--gpu", "130G", "--", "true"], env=world.env, capture_output=True, text=True, timeout=LIMIT_S)
    check(whole.returncode == 0, "a guaranteed request takes it back by parking", whole.stderr.strip().replace("\n", " / "))
    world.wait("it is back", lambda: any(j["state"] == "running" for j in json.loads(world.mete("ps", "-o", "json").stdout)["jobs"]))
    check(say(f"free {first[1]}")[0] == "0", "it frees what it had, at the same address", "")
    growing.stdin.close()
    check(growing.wait(LIMIT_S) == 0, "and ends well", "")


def main():
    if "--first-kernel" in sys.argv:
        return first_kernel()
    with tempfile.TemporaryDirectory(prefix="mete-p-") as folder:
        world = World(pathlib.Path(folder))
        (world.folder / "state").mkdir()
        try:
            for part in (verbs, preemption, whole, growth, sleep):
                part(world)
        finally:
            no_escapes(METE, world.env, "preempt")
            for job in json.loads(world.mete("ps", "-o", "json").stdout or '{"jobs":[]}').get("jobs", []):
                world.mete("cancel", job["id"])
            world.mete("daemon", "stop")
    end()


if __name__ == "__main__":
    main()
