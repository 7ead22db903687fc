# SPDX-License-Identifier: Apache-2.0
"""Result rows of the Python programs here, in the form of gpu.h: `ok|FAIL|info|skip <tab> what <tab> value`, and the
little they share: the cap they run under, and NVML by ctypes."""
import ctypes
import json
import os
import subprocess
import sys

MIB, GIB = 1 << 20, 1 << 30
failures = 0


def check(good, what, value=""):
    global failures
    failures += 0 if good else 1
    print(f"{'ok' if good else 'FAIL'}\t{what}\t{value}", flush=True)
    return good


def info(what, value):
    print(f"info\t{what}\t{value}", flush=True)


def skip(what, why):
    """Ends the program: something it needs is not installed. Shown as skipped, never as passed."""
    print(f"skip\t{what}\t{why}", flush=True)
    sys.exit(0)


def end():
    sys.exit(1 if failures else 0)


def events(mete, env, kind):
    """Those of one type that a daemon has recorded."""
    said = subprocess.run([mete, "events", "-o", "json", "--from", "1"], env=env, capture_output=True, text=True, timeout=60)
    found = []
    for line in said.stdout.splitlines():
        document = json.loads(line)
        found += [event for event in document.get("events", [document]) if event.get("type") == kind]
    return found


def no_escapes(mete, env, what):
    """Before its daemon ends: none of these ordinary programs was called one that holds memory outside its meter."""
    seen = events(mete, env, "escape.seen")
    check(not seen, f"{what}: no process was reported to hold memory outside its meter", "; ".join(json.dumps(event.get("data")) for event in seen)[:300])


def grant():
    value = os.environ.get("METE_GPU_MEM_BYTES")
    return int(value) if value else None


def mib(n):
    return f"{n / MIB:.1f} MiB"


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


class Nvml:
    """The first card as NVML sees it (with one visible card; `index` for others)."""

    def __init__(self, index=0):
        self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        self.call("nvmlInit_v2")
        self.card = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self.card))

    def call(self, name, *args):
        result = getattr(self.lib, name)(*args)
        if result != 0:
            raise RuntimeError(f"{name}: NVML error {result}")

    def count(self):
        n = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(n))
        return n.value

    def text(self, name, *before):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, *before, buffer, ctypes.c_uint(96))
        return buffer.value.decode()

    def uuid(self):
        return self.text("nvmlDeviceGetUUID", self.card)

    def name(self):
        return self.text("nvmlDeviceGetName", self.card)

    def driver(self):
        return self.text("nvmlSystemGetDriverVersion")

    def memory(self):
        m = Memory()
        self.call("nvmlDeviceGetMemoryInfo", self.card, ctypes.byref(m))
        return m

    def memory2(self):
        m = Memory2()
        m.version = ctypes.sizeof(Memory2) | (2 << 24)
        self.call("nvmlDeviceGetMemoryInfo_v2", self.card, ctypes.byref(m))
        return m

    def utilisation(self):
        """Percent of the last moments in which a kernel ran; None: no reading."""
        rates = (ctypes.c_uint * 2)()
        return rates[0] if self.lib.nvmlDeviceGetUtilizationRates(self.card, rates) == 0 else None

    def processes(self):
        count = ctypes.c_uint(512)
        array = (Process * 512)()
        self.call("nvmlDeviceGetComputeRunningProcesses_v3", self.card, ctypes.byref(count), array)
        unknown = (1 << 64) - 1
        return {array[i].pid: (0 if array[i].used == unknown else array[i].used) for i in range(count.value)}
