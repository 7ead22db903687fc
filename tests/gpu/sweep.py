#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete sweep --gpu auto` with a PyTorch model whose memory depends on batch size and width: 24 trials against one after another without
mete, the same losses bit for bit, no trial lost to memory, and how full the card is kept beside an oracle that knows all peaks.
sweep.py PATH-TO-mete [--quick]"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from rows import GIB, Nvml, check, end, info, no_escapes, skip

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 900
LEARNED = 6  # trials after which shares are measured ones
GRID = {"batch": [64, 128, 256, 512], "width": [512, 1024, 2048], "lr": [0.1, 0.01]}


def program(steps):
    return [sys.executable, str(HERE / "sweep_model.py"), "--steps", str(steps)]


def points():
    return [{"batch": b, "width": w, "lr": lr} for b in GRID["batch"] for w in GRID["width"] for lr in GRID["lr"]]


def key(params):
    return tuple(float(params[name]) for name in GRID)


def alone(steps):
    """Every point, one after another and without mete: the seconds, the last losses, how busy the card was in percent."""
    nvml, losses, busy, over = Nvml(), {}, [], threading.Event()

    def look():
        while not over.wait(0.2):
            if (percent := nvml.utilisation()) is not None:
                busy.append(percent)

    watcher = threading.Thread(target=look)
    watcher.start()
    begin = time.monotonic()
    for point in points():
        words = [word for name, value in point.items() for word in (f"--{name}", str(value))]
        said = subprocess.run([*program(steps), *words], check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
        losses[key(point)] = float.fromhex(said.split("hex ")[1].split()[0])
    seconds = time.monotonic() - begin
    over.set()
    watcher.join()
    return seconds, losses, sum(busy) / len(busy) if busy else None


def oracle(jobs, room):
    """Jobs (peak, seconds) begun in their order as soon as the known peaks leave room: when the last one ends."""
    now, running = 0.0, []  # (end, bytes)
    for peak, seconds in jobs:
        while sum(size for _, size in running) + peak > room:
            running.sort()
            now = running.pop(0)[0]
        running.append((now + seconds, peak))
    return max(until for until, _ in running)


def moment(text):
    return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float(text[19:-1])


def main():
    mete, quick = sys.argv[1], "--quick" in sys.argv
    try:
        import torch  # noqa: F401
    except ImportError:
        skip("sweep", "no PyTorch")
    steps = 15 if quick else 40
    serial, losses, busy = alone(steps)
    info("24 trials one after another, without mete", f"{serial:.1f} s")
    check(busy is not None and busy <= 25, "a trial alone keeps the card at most 25 % busy", f"{busy:.1f} %" if busy is not None else "no reading")
    with tempfile.TemporaryDirectory(prefix="mete-sweep-") as folder:
        env = dict(os.environ, METE_STATE_DIR=folder, METE_SOCKET=folder + "/s", METE_CLAIMS_DIR="")
        grids = [word for name, values in GRID.items() for word in ("--grid", f"{name}={','.join(map(str, values))}")]
        begin = time.monotonic()
        done = subprocess.run([mete, "sweep", "--name", "scan", "--gpu", "auto", *grids, "--minimize", "loss", "--as-flags", "-o", "json", "--", *program(steps)],
                              env=env, capture_output=True, text=True, timeout=LIMIT_S)
        together = time.monotonic() - begin
        if not check(done.returncode == 0, "mete sweep --gpu auto, 24 trials", f"{together:.1f} s" if done.returncode == 0 else done.stderr[-300:]):
            end()
        trials = json.loads(done.stdout)["trials"]
        check(serial / together >= 3, "times shorter than one after another (goal 3)", f"{serial / together:.2f}")
        check([trial["state"] for trial in trials] == ["ok"] * 24, "no trial was lost to memory", str([t.get("why") for t in trials if t["state"] != "ok"]))
        info("jobs that the 24 trials took (more than 24: a share was too small)", str(max(int(trial["job"]) for trial in trials)))
        same = sum(trial["metrics"]["loss"] == losses[key(trial["params"])] for trial in trials)
        check(same == 24, "the same losses, bit for bit, as alone", f"{same} of 24")
        later = sorted((trial for trial in trials if trial["n"] > LEARNED), key=lambda trial: trial["n"])
        times = [(moment(trial["started_at"]), moment(trial["ended_at"])) for trial in later]
        work = sum(b - a for a, b in times)
        span = max(b for _, b in times) - min(a for a, _ in times)
        card = json.loads(subprocess.run([mete, "cards", "-o", "json"], env=env, capture_output=True, text=True, check=True).stdout)["cards"][0]
        best = oracle([(trial["peak_bytes"], b - a) for trial, (a, b) in zip(later, times)], card["capacity_bytes"])
        info("mean number at once after the first six; with known peaks", f"{work / span:.2f}; {work / best:.2f}")
        check(best / span >= 0.85, "part of what known peaks would reach (goal 0.85)", f"{best / span:.3f}")
        for trial in trials:
            point = trial["params"]
            info(f"batch {point['batch']}, width {point['width']}, lr {point['lr']}",
                 f"share {trial['granted_bytes'] / GIB:.2f} GiB, peak {trial['peak_bytes'] / GIB:.2f} GiB, {moment(trial['ended_at']) - moment(trial['started_at']):.1f} s")
        no_escapes(mete, env, "sweep")
        report = pathlib.Path(folder) / "report.html"
        subprocess.run([mete, "sweep", "report", "scan", "--html", str(report)], env=env, check=True, capture_output=True)
        check(report.stat().st_size > 20_000, "the report of the sweep", f"{report.stat().st_size} bytes")
        subprocess.run([mete, "daemon", "stop"], env=env, capture_output=True)
    end()


if __name__ == "__main__":
    main()
