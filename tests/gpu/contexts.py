#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the processes of a job lose of its grant for their contexts: each is charged what NVML says it holds and 8 MiB.
    mete cap --gpu 8G -- python3 tests/gpu/contexts.py 8
N processes make a context, take 64 MiB, load and run a kernel. When the books have come to rest one fills the grant. Then
another one's driver takes 40 MiB unasked, which must be charged; at last all are killed. Figures come from the job's grant
file, where the sampler of `mete cap` writes what NVML says; the card's own from NVML without the meter.
"""
import collections
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e/meter"))
from books import Books  # noqa: E402
from rows import MIB, check, end, grant, info, mib  # noqa: E402

HEADROOM = 8 * MIB
BLOCK = 64 * MIB
CHUNK = 2 * MIB
GROWTH = 40 * MIB
OOM = 2
PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
"""
TABLE = PTX + b".visible .global .align 8 .b8 table[%d];\n" % GROWTH


# ---- one of the processes: orders by lines on its input, an answer to each ----
class Child:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.blocks = []

    def start(self):
        context = ctypes.c_void_p()
        for code in (self.cuda.cuInit(0), self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), self.cuda.cuCtxSetCurrent(context),
                     self.take(BLOCK)):
            if code != 0:
                return code
        return self.run(PTX)

    def take(self, size):
        pointer = ctypes.c_uint64()
        code = self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
        if code == 0:
            self.blocks.append(pointer)
        return code

    def run(self, image):
        """Loads it and runs its kernel: what the driver needs for that it takes now."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = self.cuda.cuModuleLoadData(ctypes.byref(module), image)
        code = code or self.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"nothing")
        code = code or self.cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        return code or self.cuda.cuCtxSynchronize()

    def fill(self):
        got, code = 0, 0
        while code == 0 and got < (grant() or 0):
            code = self.take(CHUNK)
            got += CHUNK if code == 0 else 0
        return got, code

    def serve(self):
        orders = {"start": lambda: (self.start(),), "fill": self.fill, "grow": lambda: (self.run(TABLE),)}
        for line in sys.stdin:
            print(*orders[line.strip()](), flush=True)


# ---- the job ----
class Job:
    def __init__(self, count):
        self.books = Books(os.environ["METE_GRANT"])
        self.limit = grant()
        self.card_before = card_used()
        self.children = [subprocess.Popen([sys.executable, __file__, "--child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                         for _ in range(count)]
        self.pids = [child.pid for child in self.children]

    def order(self, words, children):
        """To all of them at once; their answers."""
        for child in children:
            child.stdin.write(words + "\n")
            child.stdin.flush()
        return [[int(word) for word in child.stdout.readline().split()] for child in children]

    def charged(self):
        return self.books.total() + self.books.excess()

    def wait(self, condition, seconds):
        """How long it took; None: it did not happen."""
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > seconds:
                return None
            time.sleep(0.02)
        return time.monotonic() - begin

    def wait_for_readings(self, count=3):
        """Until NVML was read that often for each of them since now."""
        seen = {pid: {self.books.read_at(pid)} for pid in self.pids}

        def enough():
            for pid in self.pids:
                seen[pid].add(self.books.read_at(pid))
            return all(len(times) > count for times in seen.values())
        return self.wait(enough, 20)

    def table(self, what):
        """Per process: charged, seen beyond the charge, held as NVML says, lost; how many are like that."""
        rows = [(self.books.of(pid), self.books.excess_of(pid), self.books.nvml(pid)) for pid in self.pids]
        words = [f"{n} x charged {charge / MIB:.1f} + {excess / MIB:.1f}, NVML {held / MIB:.1f}, lost {(charge + excess - held) / MIB:.1f}"
                 for (charge, excess, held), n in collections.Counter(rows).most_common()]
        info(f"{what}, MiB for each process", "; ".join(words))
        return max(charge + excess - held for charge, excess, held in rows), min(held for _, _, held in rows)

    def held(self):
        return sum(self.books.nvml(pid) for pid in self.pids)


def card_used():
    """What the whole card has in use, by NVML without the meter."""
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); from rows import Nvml; print(Nvml().memory().used)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    return int(done.stdout) if done.returncode == 0 else 0


def rest(job, count, name):
    """The charge comes down to what is held."""
    job.table(f"{name}: just started")
    begin = time.monotonic()

    def is_low():
        return all(0 < job.books.of(p) + job.books.excess_of(p) <= job.books.nvml(p) + HEADROOM for p in job.pids)
    took = job.wait(is_low, 15)
    worst, least = job.table(f"{name}: at rest after {time.monotonic() - begin:.1f} s")
    if least == 0:
        check(False, f"{name}: NVML tells what each process holds", "it does not here: nothing can be given back")
        return
    check(took is not None and worst <= HEADROOM, f"{name}: at most 8 MiB lost for each", f"{mib(worst)} at worst")
    card = card_used() - job.card_before
    info(f"{name}: the card itself", f"{mib(card)} more than before, of which NVML counts {mib(job.held())} to the processes: "
         f"{mib((card - job.held()) / count)} beside each; all are charged {mib(job.charged())}")


def fill(job, count, name):
    """All of the grant can be had but for that."""
    free = job.limit - job.charged()
    [got, code] = job.order("fill", job.children[:1])[0]
    job.wait_for_readings()
    lost = job.limit - job.held()
    check(code == OOM and got == free // CHUNK * CHUNK, f"{name}: all that is free can be had", f"{mib(got)} of {mib(free)}, code {code}")
    check(0 <= lost <= count * HEADROOM, f"{name}: of the grant that no process can have", f"{mib(lost)}, {mib(lost / count)} for each process; "
          f"NVML counts {mib(job.held())} of {mib(job.limit)}")
    others = job.order("fill", job.children[1:])
    check(all(answer == [0, OOM] for answer in others), f"{name}: no process gets more", f"{sum(answer[0] for answer in others)} bytes")


def grow(job, name):
    """What a driver takes later is charged."""
    before = job.charged()
    child = job.pids[1]
    held = job.books.nvml(child)
    [code] = job.order("grow", job.children[1:2])[0]
    took = job.wait(lambda: job.books.nvml(child) >= held + GROWTH and
                    job.books.of(child) + job.books.excess_of(child) >= job.books.nvml(child) + HEADROOM, 5)
    check(code == 0 and took is not None and took <= 1.5, f"{name}: {GROWTH // MIB} MiB that a driver takes unasked are charged",
          f"after {took if took is None else round(took, 2)} s, {mib(job.charged() - before)} more, code {code}")
    job.table(f"{name}: one has grown")
    refused = job.order("fill", job.children)
    check(all(answer == [0, OOM] for answer in refused), f"{name}: and no process gets more", f"{sum(answer[0] for answer in refused)} bytes")


def main(count):
    name = f"{count} processes"
    job = Job(count)
    begin = time.monotonic()
    started = job.order("start", job.children)
    check(all(answer == [0] for answer in started), f"{name}: all start",
          f"{time.monotonic() - begin:.1f} s, codes {sorted({answer[0] for answer in started})}")
    job.wait_for_readings(1)
    rest(job, count, name)
    fill(job, count, name)
    grow(job, name)
    for child in job.children:
        child.send_signal(signal.SIGKILL)
    for child in job.children:
        child.wait()
    took = job.wait(lambda: job.charged() == 0, 5)
    check(took is not None, f"{name}: all killed, nothing is charged",
          f"{mib(job.charged())} after {took if took is None else round(took, 2)} s")
    end()


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        Child().serve()
    else:
        main(int(sys.argv[1]))
