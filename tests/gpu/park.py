#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parking on a real card: programs that are parked and come back compute the same to the last bit, how long it takes both ways,
beside the driver's own checkpoint, and what being parkable costs a program that is never parked.
park.py BUILD [--quick]     (BUILD/tests/park_driver, BUILD/bin/mete-mover, BUILD/lib/libmete.so)"""
import ctypes
import json
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from rows import GIB, Nvml, check, end, info

BUILD = pathlib.Path(sys.argv[1])
QUICK = "--quick" in sys.argv
LIMIT_S = 240
TOKEN = b"\x2a" * 16
MESSAGE = struct.Struct("<IHHQQQQIIII16s")
ALLOW, STATUS = 16, 19

HOLD = r"""
import sys, torch
size, chunk = float(sys.argv[1]), float(sys.argv[2])
torch.manual_seed(1)
parts = [torch.randint(0, 1 << 60, (int(chunk * (1 << 27)),), device="cuda") for _ in range(int(size / chunk))]
def sums(): return [(p.sum().item(), (p ^ (p >> 7)).sum().item()) for p in parts]
before, addresses = sums(), [p.data_ptr() for p in parts]
torch.cuda.empty_cache()
print("up", flush=True)
sys.stdin.readline() if len(sys.argv) < 4 else [__import__("time").sleep(0.01) for _ in iter(lambda: __import__("os").path.exists(sys.argv[3]), True)]
print("same" if sums() == before and addresses == [p.data_ptr() for p in parts] else "changed", flush=True)
"""
# The allocator's own virtual memory: segments that grow by mapping more handles. Parked at any moment of its work.
EXPANDABLE = r"""
import os, sys
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
import torch
torch.manual_seed(1)
kept, total = [], 0.0
for i in range(int(sys.argv[1])):
    kept.append(torch.randn((1 + i % 40, 256, 1024), device="cuda"))
    if len(kept) > 60: kept.pop(i * 7 % 60)
    if i % 200 == 0:
        torch.cuda.empty_cache()
        total += sum(x.double().sum().item() for x in kept)
torch.cuda.synchronize()
kinds = {s["is_expandable"] for s in torch.cuda.memory_snapshot()}
print("segments", "expandable" if kinds == {True} else sorted(kinds))
print("result", total.hex())
"""
GRAPH = r"""
import sys, torch
torch.manual_seed(1)
x, w = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda") / 50
s = torch.cuda.Stream()
with torch.cuda.stream(s):
    for _ in range(3): y = torch.sin(x @ w + x)
torch.cuda.current_stream().wait_stream(s)
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    y = torch.sin(x @ w + x); x.copy_(y)
for i in range(int(sys.argv[1])):
    g.replay()
    if i % 50 == 0: torch.cuda.synchronize()
print("result", x.double().sum().item().hex())
"""
INFER = r"""
import sys, torch
torch.manual_seed(1)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU()) for _ in range(12)]).cuda().half().eval()
total = 0.0
with torch.no_grad():
    for i in range(int(sys.argv[1])):
        total += net(torch.full((8, 64, 128, 128), i % 7 / 7, device="cuda", dtype=torch.half)).float().sum().item()
print("result", total.hex())
"""
JAX = r"""
import os, sys
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.5"
import jax, jax.numpy as jnp
w = jax.random.normal(jax.random.PRNGKey(0), (2048, 2048)) / 50
x = jax.random.normal(jax.random.PRNGKey(1), (2048, 2048))
step = jax.jit(lambda x: jnp.tanh(x @ w))
for i in range(int(sys.argv[1])):
    x = step(x)
    if i % 20 == 0: x.block_until_ready()
print("result", float(x.sum()).hex())
"""
CUPY = r"""
import sys, cupy
cupy.random.seed(1)
w, x = cupy.random.standard_normal((2048, 2048)) / 50, cupy.random.standard_normal((2048, 2048))
for i in range(int(sys.argv[1])):
    x = cupy.tanh(x @ w)
    if i % 20 == 0: cupy.cuda.Device().synchronize()
print("result", float(x.sum()).hex())
"""

# Blocks by the hundred thousand: each has its own number in it, before and after.
MANY = r"""
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
def call(name, *args):
    if (result := getattr(cuda, name)(*args)) != 0: sys.exit(f"{name}: {result}")
call("cuInit", 0); call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device); call("cuCtxSetCurrent", context)
count, size = int(sys.argv[1]), int(sys.argv[2])
blocks = []
for i in range(count):
    block = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(size))
    call("cuMemsetD32Async", block, ctypes.c_uint(i), ctypes.c_size_t(size // 4), None)
    blocks.append(block)
call("cuCtxSynchronize")
print("up", flush=True)
while not os.path.exists(sys.argv[3]): time.sleep(0.01)
word, wrong = ctypes.c_uint(), 0
for i, block in enumerate(blocks):
    call("cuMemcpyDtoH_v2", ctypes.byref(word), ctypes.c_uint64(block.value + size - 4), ctypes.c_size_t(4))
    wrong += word.value != i
print("same" if wrong == 0 else f"changed: {wrong}", flush=True)
"""


class World:
    def __init__(self, folder):
        self.folder = folder
        (folder / "m").mkdir()
        nvml = Nvml()
        self.uuid, self.total = nvml.uuid(), nvml.memory().total
        self.mover = None

    def start_mover(self, arena):
        path = self.folder / "m" / self.uuid
        began = time.perf_counter()
        self.mover = subprocess.Popen([BUILD / "bin/mete-mover", "--card", self.uuid, "--socket", path, "--arena", str(arena)])
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        while True:
            try:
                self.control.connect(str(path))
                break
            except OSError:
                time.sleep(0.05)
        self.ask(ALLOW, 1 << 40, TOKEN)
        while self.ask(STATUS)[4] < arena:
            if time.perf_counter() - began > 120:
                check(False, "park: the arena grows", f"{self.ask(STATUS)[4] / GIB:.1f} GiB after 120 s")
                end()
            time.sleep(0.1)
        info(f"park: a mover with {arena / GIB:.0f} GiB of pinned memory", f"{time.perf_counter() - began:.1f} s")

    def ask(self, kind, size=0, token=bytes(16)):
        self.control.send(MESSAGE.pack(0x4d455445, 1, kind, 0, size, 0, 0, 0, 0, os.getuid(), 0, token))
        return MESSAGE.unpack(self.control.recv(MESSAGE.size))

    def command(self, limit, command, *options):
        return [str(BUILD / "tests/park_driver"), "--state", str(self.folder), "--movers", str(self.folder / "m"), "--token", TOKEN.hex(), "--preload",
                ":".join(str(BUILD / "lib" / name) for name in ("libmete.so", "libmete-cuda.so", "libmete-nvml.so", "libmete-nvml-1.so")),
                "--card", self.uuid, str(int(limit)), str(self.total), "--checkpoint", str(BUILD / "bin/mete-checkpoint"), *options, "--", *map(str, command)]

    def job(self, limit, command, *options):
        return Job(subprocess.Popen(self.command(limit, command, *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=open(self.folder / "said", "w"), text=True), self.folder / "said")


def used_on_card():
    """What the card has in use, once two readings in a row agree."""
    nvml, before = Nvml(), -1
    for _ in range(50):
        now = nvml.memory().used
        if now == before:
            return now
        before = now
        time.sleep(0.1)
    return now


class Job:
    def __init__(self, process, said):
        self.process, self.said_at = process, said

    def event(self, kind):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == kind:
                return event
            if event["event"] == "ended" and event["code"] != 0:
                break
        raise RuntimeError(f"no {kind}: {self.said()[-300:]}")

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def park(self):
        self.tell("park 20000")
        return self.event("park")

    def unpark(self):
        self.tell("unpark")
        return self.event("unpark")

    def deep(self):
        self.tell("deep 30000")
        return self.event("deep")

    def undeep(self):
        self.tell("undeep")
        return self.event("undeep")

    def said(self):
        return self.said_at.read_text()

    def wait_for(self, text):
        deadline = time.monotonic() + LIMIT_S
        while text not in self.said():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"never said {text}: {self.said()[-300:]}")
            time.sleep(0.02)

    def wait_held(self, size):
        """Until it holds more than so much."""
        while True:
            self.tell("status")
            if self.event("status")["held"] > size:
                return
            time.sleep(0.02)

    def finish(self):
        self.process.stdin.close()
        for _ in self.process.stdout:
            pass
        return self.process.wait(LIMIT_S)


def word(text, key):
    for line in text.splitlines():
        if line.startswith(key):
            return line.split()[1]
    return "?" + text.strip()[-200:]


def same_result(world, name, command, key, held, procs=1, parks=5):
    """Parked some times on its way, a program says what it says alone."""
    try:
        alone = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)
        if alone.returncode != 0:
            skipped = "No module named" in alone.stderr
            (info if skipped else lambda *row: check(False, *row))(f"park: {name}", (alone.stderr.strip().splitlines() or ["?"])[-1][:200])
            return
        job = world.job(40 * GIB, command, "--procs", str(procs))
        job.wait_held(held)
        time.sleep(0.5)
        done = []
        for _ in range(parks):
            out = job.park()
            if not out["ok"]:
                done.append(out["why"])
                continue
            back = job.unpark()
            done.append((out["ms"], back["ms"], out["moved"]) if back["ok"] else back["why"])
            time.sleep(0.3)
        code = job.finish()
        here = [line.split()[1] for line in job.said().splitlines() if line.startswith(key)]
        want = word(alone.stdout, key)
        good = code == 0 and here == [want] * procs and all(isinstance(one, tuple) for one in done)
        words = f"{want} alone, {' '.join(here) or job.said()[-200:]} with {len(done)} parks"
        if all(isinstance(one, tuple) for one in done):
            words += f" (out {statistics.median(d[0] for d in done):.0f} ms, in {statistics.median(d[1] for d in done):.0f} ms, {done[-1][2] / GIB:.2f} GiB)"
        else:
            words += f": {[d for d in done if isinstance(d, str)][:2]}"
        check(good, f"park: {name}: the same to the last bit", words)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        check(False, f"park: {name}", str(error)[:300])


def speed(world, gib, chunk, times):
    go = world.folder / f"go{gib}"
    script = world.folder / "hold.py"
    script.write_text(HOLD)
    job = world.job((gib + 4 + 3 * chunk) * GIB, [sys.executable, script, gib, chunk, go])
    try:
        job.wait_for("up")
        outs, ins = [], []
        for _ in range(times):
            out = job.park()
            back = job.unpark() if out["ok"] else out
            if not out["ok"] or not back["ok"]:
                check(False, f"park: {gib} GiB", out["why"] or back["why"])
                break
            outs.append((out["ms"] / 1e3, out["moved"]))
            ins.append(back["ms"] / 1e3)
        go.touch()
        code = job.finish()
        check(code == 0 and "same" in job.said(), f"park: {gib} GiB in blocks of {chunk} GiB: the same bytes at the same addresses", " ".join(job.said().split())[-80:] + f", code {code}")
        if not outs:
            return None
        moved = outs[0][1]
        o, i = min(s for s, _ in outs), min(ins)
        info(f"park: {gib} GiB in blocks of {chunk} GiB", f"out {o:.3f} s ({moved / o / 1e9:.1f} GB/s), in {i:.3f} s ({moved / i / 1e9:.1f} GB/s); all: "
             f"{[round(s, 3) for s, _ in outs]} {[round(s, 3) for s in ins]}")
        return o, i, moved
    except RuntimeError as error:
        check(False, f"park: {gib} GiB", str(error)[:300])
        return None


def many(world, count, size):
    """A job of very many blocks does not pay for each of them."""
    go, script = world.folder / f"go-many{size}", world.folder / "many.py"
    script.write_text(MANY)
    job = world.job(count * size * 1.3 + 4 * GIB, [sys.executable, script, count, size, go])
    name = f"park: {count:,} blocks of {size:,} bytes"
    try:
        job.wait_for("up")
        out = job.park()
        back = job.unpark() if out["ok"] else out
        go.touch()
        code = job.finish()
        check(out["ok"] and back["ok"] and code == 0 and "same" in job.said(), f"{name}: each has its number still", f"{out['why']}{back['why']} code {code} {job.said()[-80:].strip()}")
        info(name, f"out {out['ms'] / 1e3:.3f} s, in {back['ms'] / 1e3:.3f} s, {out['moved'] / GIB:.2f} GiB")
    except RuntimeError as error:
        check(False, name, str(error)[:300])


def checkpoint(world, gib):
    """The driver's own way with the same program, without us."""
    script = world.folder / "hold.py"
    script.write_text(HOLD)
    process = subprocess.Popen([sys.executable, script, str(gib), "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    cuda = ctypes.CDLL("libcuda.so.1")
    if cuda.cuInit(0) != 0 or not hasattr(cuda, "cuCheckpointProcessLock"):
        info("park: the driver's checkpoint", "not to be had")
        process.kill()
        return None
    args = (ctypes.c_uint64 * 16)()
    args[0] = 20000
    began = time.perf_counter()
    codes = [cuda.cuCheckpointProcessLock(process.pid, args), cuda.cuCheckpointProcessCheckpoint(process.pid, None)]
    out = time.perf_counter() - began
    began = time.perf_counter()
    codes += [cuda.cuCheckpointProcessRestore(process.pid, None), cuda.cuCheckpointProcessUnlock(process.pid, None)]
    back = time.perf_counter() - began
    said, _ = process.communicate("\n", timeout=LIMIT_S)
    info(f"park: the driver's checkpoint, {gib} GiB", f"out {out:.2f} s, in {back:.2f} s, codes {codes}, {said.strip()}")
    return (out, back) if not any(codes) else None


def can_checkpoint():
    said = subprocess.run([BUILD / "bin/mete-checkpoint", "can"], capture_output=True, text=True, timeout=60)
    words = f"code {said.returncode}: {(said.stdout + said.stderr).strip()}"
    if said.returncode == 69:
        info("park: mete-checkpoint can: this driver cannot", words)
    else:
        check(said.returncode == 0, "park: mete-checkpoint can", words)
    return said.returncode == 0


def deep(world, name, gib, *options):
    """Off the card, context and all, twice, and back with the same bytes; what is left, and how long it takes."""
    go, script = world.folder / f"go-deep-{name}", world.folder / "hold.py"
    script.write_text(HOLD)
    empty = used_on_card()
    job = world.job((gib + 5) * GIB, [sys.executable, script, gib, 0.5, go], *options)
    try:
        job.wait_for("up")
        full, rows = used_on_card(), []
        for _ in range(2):
            out = job.deep()
            left = used_on_card() - empty
            if not out["ok"]:
                rows.append(("out", out["why"], left))
                break
            back = job.undeep()
            if not back["ok"]:
                rows.append(("back", back["why"], left))
                break
            rows.append((out["ms"] / 1e3, back["ms"] / 1e3, left, out["held"]))
        go.touch()
        code = job.finish()
        good = len(rows) == 2 and all(len(row) == 4 and row[2] <= 64 << 20 and abs(row[2] - row[3]) <= 64 << 20 for row in rows)
        check(good and code == 0 and "same" in job.said(), f"park: deep, {name}, {gib} GiB: the context leaves too, and the bytes come back",
              f"card {empty >> 20} MiB empty, {(full - empty) >> 20} MiB with the job; (out s, in s, MiB left by NVML, by us): "
              f"{[(round(r[0], 2), round(r[1], 2), r[2] >> 20, r[3] >> 20) if len(r) == 4 else r for r in rows]}; code {code}, {' '.join(job.said().split())[-80:]}")
    except RuntimeError as error:
        check(False, f"park: deep, {name}", str(error)[:300])


TORCH_SHARE = r"""
import os, sys
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = ""
import torch, torch.multiprocessing as mp
def child(queue, back):
    x = queue.get()
    x += 1
    torch.cuda.synchronize()
    back.put(x.double().sum().item())
    del x
    back.put("closed")
    queue.get()
if __name__ == "__main__":
    mp.set_start_method("spawn")
    queue, back = mp.Queue(), mp.Queue()
    worker = mp.Process(target=child, args=(queue, back))
    worker.start()
    torch.manual_seed(1)
    x = torch.randn(1 << 22, device="cuda")
    want = (x + 1).double().sum().item()
    queue.put(x)
    seen = back.get(timeout=100)
    back.get(timeout=100)
    print("up", flush=True)
    while not os.path.exists(sys.argv[1]): __import__("time").sleep(0.02)
    good = seen == want and x.double().sum().item() == want
    queue.put(None)
    worker.join()
    print("result", "same" if good and worker.exitcode == 0 else f"changed: {seen} {want} {worker.exitcode}", flush=True)
"""


def shares(world):
    """torch.multiprocessing shares tensors by cuIpcGetMemHandle, which the driver does not offer for mapped memory."""
    script, go = world.folder / "use_share.py", world.folder / "go-share"
    script.write_text(TORCH_SHARE)
    job = world.job(16 * GIB, [sys.executable, script, go])
    try:
        job.wait_for("up")
        job.tell("status")
        status = job.event("status")
        out = job.park()
        words = f"obstacle '{status['obstacle']}', park {'done' if out['ok'] else out['why']}"
        if out["ok"]:
            back = job.unpark()
            words += f", unpark {'done' if back['ok'] else back['why']}"
        go.touch()
        code = job.finish()
        check(code == 0 and "result same" in job.said(), "park: torch.multiprocessing shares a CUDA tensor between parkable processes",
              f"{words}; code {code}, {' '.join(job.said().split())[-200:]}")
    except RuntimeError as error:
        check(False, "park: torch.multiprocessing", str(error)[-300:])


def paths(world):
    """Every allocation path of a parkable program fills its grant, to the last granule."""
    done = subprocess.run(world.command(16 * GIB, [BUILD / "gpu/paths"], "--plain"), capture_output=True, text=True, timeout=LIMIT_S)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    bad = [row for row in rows if row[0] == "FAIL"]
    check(done.returncode == 0 and not bad and len(rows) > 30, "park: parkable, every allocation path fills the grant exactly",
          f"{len(rows)} paths" if not bad else str(bad[0])[:200])


def gate(world):
    """What the gate costs a launch: in one process, by it and past it in turn, in several processes."""
    seen = {}
    for _ in range(2 if QUICK else 9):
        done = subprocess.run(world.command(16 * GIB, [BUILD / "gpu/cost", "gate"], "--plain"), capture_output=True, text=True, timeout=LIMIT_S)
        for line in done.stdout.splitlines():
            fields = line.split("\t")
            if fields[0] == "cost":
                seen.setdefault(fields[1], []).append(float(fields[2]))
        if done.returncode != 0 or not seen:
            check(False, "park: the gate", f"code {done.returncode}: {(done.stdout + done.stderr).strip()[-200:]}")
            return
    for name, values in seen.items():
        info(f"park: the gate: {name}", f"{statistics.median(values):.1f} ns; processes: {values}")
    cost = statistics.median(seen["refused launch, median"])
    check(cost <= 5, "park: the gate costs a launch at most 5 ns", f"{cost:.1f} ns (median), {statistics.median(seen['refused launch, best']):.1f} ns (best) of a launch that "
          f"takes {statistics.median(seen['refused launch, past the gate']):.0f} ns; within a real launch of {statistics.median(seen['launch, past the gate']):.0f} ns "
          f"{statistics.median(seen['launch, median']):+.1f} ns")


def never_parked(world):
    """In turn: a program under a cap that is parkable, and one without anything."""
    from turns import Turns
    here = pathlib.Path(__file__).parent
    seen = {}
    for _ in range(2 if QUICK else 8):
        with Turns([BUILD / "gpu/cost", "calls"], world.command(48 * GIB, [BUILD / "gpu/cost", "calls"], "--plain"), os.environ) as turns:
            turns.collect("calls", seen)
    for name in ("launch", "graph launch", "alloc pair", "async pair"):
        if name in seen:
            a, c = statistics.median(seen[name]["without"]), statistics.median(seen[name]["with"])
            past = seen.get(name + ", past the meter", {}).get("with")
            words = f"{a:.0f} -> {c:.0f} ns ({c - a:+.0f})"
            if past:
                words += f"; in one process, past the gate and by it {c - statistics.median(past):+.1f} ns"
            info(f"park: parkable, never parked: {name}", words)
    # Two processes that do the same differ by some percent for as long as they live: so in several processes, with a second
    # plain one beside each pair that says how much that is.
    train = [sys.executable, here / "train.py", "turns"]
    speeds, again, times, losses = [], [], [], set()
    for _ in range(2 if QUICK else 7):
        steps = {}
        with Turns(train, world.command(16 * GIB, train, "--plain"), os.environ, again=True) as turns:
            turns.collect("warm", {})
            for _ in range(6):
                turns.collect("go", steps)
            losses |= turns.last("loss")
        best = {label: min(values) for label, values in steps["step"].items()}
        times.append(best)
        speeds.append(best["without"] / best["with"])
        again.append(best["without"] / best["again"])
    speed = statistics.median(speeds)
    words = ", ".join(f"{t['without'] / 1e6:.2f} -> {t['with'] / 1e6:.2f}" for t in times)
    check(speed >= 0.99, "park: parkable, never parked: training step", f"speed {speed:.3f} (goal 0.99), median of {sorted(round(s, 3) for s in speeds)}; two plain ones: "
          f"{statistics.median(again):.3f}, median of {sorted(round(s, 3) for s in again)}; ms: {words}")
    check(len(losses) == 1, "park: parkable, never parked: the same loss", ", ".join(sorted(losses)))


def main():
    with tempfile.TemporaryDirectory(prefix="mp-") as name:
        world = World(pathlib.Path(name))
        if "--cost" in sys.argv:  # only what being parkable costs
            world.start_mover(4 * GIB)
            try:
                gate(world)
                never_parked(world)
            finally:
                world.mover.kill()
                world.mover.wait()
            end()
        world.start_mover((24 if QUICK else 62) * GIB)
        here = pathlib.Path(__file__).parent
        scripts = {}
        for key, text in (("expandable", EXPANDABLE), ("graph", GRAPH), ("infer", INFER), ("jax", JAX), ("cupy", CUPY)):
            scripts[key] = world.folder / f"use_{key}.py"  # not the name of a module
            scripts[key].write_text(text)
        python = sys.executable
        try:
            same_result(world, "PyTorch training, the losses of all steps", [python, here / "train.py", 1500], "curve", 650 << 20)
            same_result(world, "PyTorch training, two processes, the losses of all steps", [python, here / "train.py", 1200], "curve", 2 * GIB, procs=2, parks=3)
            same_result(world, "PyTorch inference", [python, scripts["infer"], 3000], "result", 650 << 20, parks=3)
            same_result(world, "PyTorch, expandable segments", [python, scripts["expandable"], 60000], "result", 1 * GIB, parks=5)
            same_result(world, "CUDA graph", [python, scripts["graph"], 60000], "result", 650 << 20, parks=3)
            same_result(world, "JAX", [python, scripts["jax"], 30000], "result", 4 * GIB, parks=3)
            same_result(world, "CuPy", [python, scripts["cupy"], 8000], "result", 650 << 20, parks=3)
            speeds = {}
            for gib, chunk in ((1, 0.5), (10, 1), (20, 1), (20, 0.03125)) + (() if QUICK else ((60, 2),)):
                speeds[gib, chunk] = speed(world, gib, chunk, 3)
            many(world, 100_000, 512)
            many(world, 10_000, 2 << 20)
            twenty = speeds.get((20, 1))
            if twenty:
                o, i, moved = twenty
                check(moved / o >= 45e9 and moved / i >= 45e9, "park: 45 GB/s each way", f"{moved / o / 1e9:.1f} and {moved / i / 1e9:.1f} GB/s")
                check(o <= 0.6 and i <= 0.6, "park: 20 GiB within 0.6 s", f"{o:.3f} and {i:.3f} s")
                theirs = checkpoint(world, 20)
                if theirs:
                    check(theirs[0] / o >= 8 and theirs[1] / i >= 5, "park: 8 times as fast out and 5 times in as the driver's checkpoint",
                          f"{theirs[0] / o:.1f} and {theirs[1] / i:.1f} times")
            if can_checkpoint():
                deep(world, "the meter first", 10)
                deep(world, "the driver alone", 4, "--no-meter")
            shares(world)
            gate(world)
            paths(world)
            never_parked(world)
        finally:
            world.mover.kill()
            world.mover.wait()
    end()


main()
