#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete submit` on a real card: jobs side by side within their shares, one that runs out of its share and is tried again with more,
what a job really needed, an array, a job that outlives its daemon, and a cancel that gives the memory back.
detached.py PATH-TO-mete"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from rows import GIB, MIB, Nvml, check, end, info, mib, no_escapes

METE = sys.argv[1]
LIMIT_S = 120

# Takes so many GiB by the driver's own calls, says so, and ends or waits.
TAKE = r"""
import ctypes, sys, time
cuda, ptr, ctx = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) or cuda.cuCtxSetCurrent(ctx): sys.exit(9)
code = cuda.cuMemAlloc_v2(ctypes.byref(ptr), ctypes.c_size_t(int(sys.argv[1]) << 20))
print("took", sys.argv[1], "MiB:", code, flush=True)
if code: sys.exit(1)
time.sleep(float(sys.argv[2]))
"""


class Queue:
    def __init__(self, folder):
        self.script = folder / "take.py"
        self.script.write_text(TAKE)
        self.env = dict(os.environ, METE_STATE_DIR=str(folder / "state"), METE_SOCKET=str(folder / "socket"),
                        METE_CLAIMS_DIR=str(folder / "claims"))

    def mete(self, *words):
        return subprocess.run([METE, *map(str, words)], env=self.env, capture_output=True, text=True, timeout=LIMIT_S)

    def ask(self, *words):
        done = self.mete(*words, "-o", "json")
        return json.loads(done.stdout) if done.stdout else {}

    def submit(self, *options, take, seconds=0):
        done = self.mete("submit", *options, "--", sys.executable, self.script, take, seconds)
        return done.stdout.strip() or done.stderr.strip()

    def show(self, job):
        return self.ask("show", job)["job"]

    def until(self, job, *states):
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            shown = self.show(job)
            if shown["state"] in states:
                return shown
            time.sleep(0.05)
        return self.show(job)

    def log(self, job):
        return self.mete("logs", job).stdout

    def daemon_pid(self):
        return self.ask("daemon", "status")["pid"]


def side_by_side(queue, nvml):
    jobs = [queue.submit("--gpu", "8G", take=6000, seconds=3) for _ in range(3)]
    for job in jobs:
        queue.until(job, "running")
    until_logged = time.monotonic() + 30
    while time.monotonic() < until_logged and not all("took" in queue.log(job) for job in jobs):
        time.sleep(0.1)
    used = nvml.memory().used
    check(all("6000 MiB: 0" in queue.log(job) for job in jobs), "queue: three jobs of 8G run side by side", mib(used) + " used on the card")
    ends = [queue.until(job, "ended") for job in jobs]
    peaks = [shown["grant"][0].get("peak_bytes", 0) for shown in ends]
    check(all(shown["outcome"] == "ok" and 6000 * MIB <= peak <= 8 * GIB for shown, peak in zip(ends, peaks)),
          "queue: their peaks are known", ", ".join(map(mib, peaks)))
    advice = ends[0].get("advice", {})
    info("queue: advice after a peak of " + mib(peaks[0]), f"{advice.get('gpu', 'none')}: {advice.get('why', '')}")


def out_of_memory(queue):
    job = queue.submit("--gpu", "4G", take=5000)
    shown = queue.until(job, "ended")
    check(shown["outcome"] == "gpu-oom" and shown["exit_code"] == 1, "queue: running out of the share is known as gpu-oom",
          f"{shown['outcome']}; {' '.join(shown.get('notes', []))}; advice {shown.get('advice', {}).get('gpu')}")
    job = queue.submit("--gpu", "4G", "--retries", "1", "--retry-gpu", "x1.5", take=5000)
    shown = queue.until(job, "ended")
    check(shown["outcome"] == "ok" and shown["attempt"] == 2 and shown["grant"][0]["bytes"] == 6 * GIB,
          "queue: --retry-gpu x1.5 gives it 6 GiB, and that is enough", f"attempt {shown['attempt']}, {mib(shown['grant'][0]['bytes'])}")


def array(queue):
    began = time.monotonic()
    job = queue.submit("--gpu", "10%", "--array", "0-19%5", take=1000)
    done = queue.mete("wait", job)
    outcomes = [each["outcome"] for each in queue.ask("ps", "-a")["jobs"] if each["id"].startswith(job + "_")]
    check(done.returncode == 0 and outcomes == ["ok"] * 20, "queue: an array of 20, five at a time", f"{time.monotonic() - began:.1f} s")


def outlives_its_daemon(queue):
    job = queue.submit("--gpu", "8G", take=4000, seconds=4)
    queue.until(job, "running")
    os.kill(queue.daemon_pid(), signal.SIGKILL)
    time.sleep(0.2)
    queue.mete("cards")
    granted = queue.ask("cards")["cards"][0]["granted_bytes"]
    check(queue.show(job)["state"] == "running" and granted == 8 * GIB, "queue: a job outlives its daemon, and keeps its grant", mib(granted))
    check(queue.until(job, "ended")["outcome"] == "ok", "queue: and its end is known")


def cancelled(queue, nvml):
    before = nvml.memory().used
    job = queue.submit("--gpu", "40G", take=30000, seconds=600)
    deadline = time.monotonic() + LIMIT_S
    while "took" not in queue.log(job) and time.monotonic() < deadline:
        time.sleep(0.1)
    held = nvml.memory().used
    began = time.monotonic()
    queue.mete("cancel", job)
    shown = queue.until(job, "ended")
    took = time.monotonic() - began
    after = nvml.memory().used
    check(shown["outcome"] == "cancelled" and held - before >= 30000 * MIB and after - before < 64 * MIB,
          "queue: cancel gives the memory back", f"{mib(held)} -> {mib(after)} in {took:.2f} s")


def main():
    nvml = Nvml()
    with tempfile.TemporaryDirectory(prefix="mete-queue-") as folder:
        queue = Queue(pathlib.Path(folder))
        try:
            side_by_side(queue, nvml)
            out_of_memory(queue)
            array(queue)
            outlives_its_daemon(queue)
            cancelled(queue, nvml)
        finally:
            no_escapes(METE, queue.env, "queue")
            queue.mete("cancel", "--all")
            queue.mete("daemon", "stop")
    end()


main()
