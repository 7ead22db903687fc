#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVML says of a process that works, works a little, only copies, or does nothing; and whom `mete ps` then calls idle.
A job that works is never called idle; one that does nothing is, if the driver tells at all.   idle.py PATH-TO-mete [--quick]"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from rows import GIB, MIB, Nvml, check, end, info, no_escapes, skip

LIMIT_S = 60
NOT_FOUND, NOT_SUPPORTED, INSUFFICIENT = 6, 3, 7


# ---- the job ----

def child():
    """Does what each line of its standard input says until the next line: rest, work, little, copy."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, block = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result != 0:
            sys.exit(f"{name}: {result}")

    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(GIB))
    host = ctypes.create_string_buffer(64 * MIB)
    order = ["rest"]

    def listen():
        for line in sys.stdin:
            order[0] = line.strip()
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    print(os.getpid(), flush=True)
    while True:
        now = order[0]
        if now == "work":
            for _ in range(16):
                call("cuMemsetD8_v2", block, ctypes.c_ubyte(1), ctypes.c_size_t(GIB))
            call("cuCtxSynchronize")
        elif now == "little":
            call("cuMemsetD8_v2", block, ctypes.c_ubyte(1), ctypes.c_size_t(MIB))
            call("cuCtxSynchronize")
            time.sleep(0.1)
        elif now == "copy":
            call("cuMemcpyHtoD_v2", block, host, ctypes.c_size_t(len(host)))
        else:
            time.sleep(0.01)


# ---- NVML's own words ----

class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("at", ctypes.c_ulonglong), ("sm", ctypes.c_uint), ("mem", ctypes.c_uint),
                ("enc", ctypes.c_uint), ("dec", ctypes.c_uint)]


def samples(nvml, since):
    """(code, what was sampled since)."""
    count = ctypes.c_uint(1024)
    array = (Sample * 1024)()
    code = nvml.lib.nvmlDeviceGetProcessUtilization(nvml.card, array, ctypes.byref(count), ctypes.c_ulonglong(since))
    return code, list(array[:count.value]) if code == 0 else []


def watch(nvml, pid, seconds):
    """Codes that came, the highest load of the process, how many samples it had, and pids that are on no list."""
    codes, most, own, strange = set(), 0, 0, set()
    code, before = samples(nvml, 0)
    since = max((s.at for s in before), default=0)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.25)
        code, found = samples(nvml, since)
        codes.add(code)
        since = max([since, *(s.at for s in found)])
        for sample in found:
            if sample.pid == pid:
                own += 1
                most = max(most, sample.sm, sample.mem)
            elif sample.at and sample.pid not in nvml.processes():
                strange.add(sample.pid)
    return codes, most, own, strange


# ---- the test ----

class Job:
    def __init__(self, mete, env):
        self.mete, self.env = mete, env
        self.process = subprocess.Popen([mete, "run", "-q", "--gpu", "4G", "--", sys.executable, os.path.abspath(__file__), "child"],
                                        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline() or 0)

    def tell(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def idle_since(self):
        done = subprocess.run([self.mete, "ps", "-o", "json"], env=self.env, capture_output=True, text=True, timeout=LIMIT_S)
        return next((job.get("idle_since") for job in json.loads(done.stdout)["jobs"]), None)

    def becomes_idle(self, seconds):
        """The seconds until it was called idle, or None."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            if self.idle_since():
                return time.monotonic() - begin
            time.sleep(0.1)
        return None

    def finish(self):
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)


def look(job, nvml, quick):
    seconds = 4 if quick else 12
    listed = job.pid in nvml.processes()
    told = samples(nvml, 0)[0] != NOT_SUPPORTED
    info("idle: NVML", f"lists the process: {listed}, tells what processes do: {told}")
    # The first order is given at rest: whatever comes later begins with a job that is known to be idle, or is not told of.
    seen = {}
    for order in ("work", "little", "copy", "rest"):
        job.tell(order)
        called = threading.Event()
        stop = threading.Event()
        begin = time.monotonic()
        # Work shows in NVML after its next sample: what is said before that is of the time before.
        asker = threading.Thread(target=lambda: [called.set() for _ in iter(stop.is_set, True)
                                                 if time.monotonic() > begin + 2.5 and job.idle_since()])
        asker.start()
        codes, most, own, strange = watch(nvml, job.pid, seconds)
        stop.set()
        asker.join()
        seen[order] = (most, own, called.is_set())
        info(f"idle: a process that is told to {order}", f"up to {most} % in {own} samples of {seconds} s, codes {sorted(codes)}, "
             f"pids on no list {sorted(strange)}, called idle: {called.is_set()}")
    check(not seen["work"][2], "idle: a job that works is never called idle", f"up to {seen['work'][0]} %")
    if not (listed and told):
        check(not any(called for _, _, called in seen.values()), "idle: what the driver does not tell is not idle")
        return
    check(seen["work"][0] > 0, "idle: NVML sees work", f"up to {seen['work'][0]} % in {seen['work'][1]} samples")
    # A load near nothing is rounded to nothing by NVML (the most that is seen of it is the end of what came before): a fact, no check.
    for order in ("copy",):
        if seen[order][0] > 0 and seen[order][1] >= seconds // 2:
            check(not seen[order][2], f"idle: a job that is told to {order}, and is seen to, is not called idle", f"up to {seen[order][0]} %")
    took = job.becomes_idle(LIMIT_S)
    check(took is not None, "idle: a job that does nothing is called idle", f"by {job.idle_since()}")
    job.tell("work")
    begin = time.monotonic()
    while job.idle_since() and time.monotonic() < begin + LIMIT_S:
        time.sleep(0.05)
    check(not job.idle_since(), "idle: and is not, once it works again", f"after {time.monotonic() - begin:.2f} s")


def main():
    mete = sys.argv[1]
    if not (pathlib.Path(mete).parent / "meted").exists():
        skip("idle", "meted is not built")
    nvml = Nvml()
    with tempfile.TemporaryDirectory(prefix="mete-gpu-idle-") as folder:
        env = {**os.environ, "METE_STATE_DIR": folder + "/state", "METE_SOCKET": folder + "/s", "METE_CLAIMS_DIR": folder + "/claims"}
        try:
            job = Job(mete, env)
            if check(job.pid > 0, "idle: the job starts"):
                look(job, nvml, "--quick" in sys.argv)
            check(job.finish() == 0, "idle: the job ends well")
        finally:
            no_escapes(mete, env, "idle")
            subprocess.run([mete, "daemon", "stop"], env=env, capture_output=True, timeout=LIMIT_S)
    end()


if sys.argv[1:] == ["child"]:
    child()
else:
    main()
