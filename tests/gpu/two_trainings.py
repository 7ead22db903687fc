#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two training loops at 40 % of one card beside one another, each watched by NVML from outside: both finish, both
compute what one computes alone, neither leaves its share.   two_trainings.py PATH-TO-mete [STEPS]"""
import pathlib
import subprocess
import sys

from rows import check, end, info, mib
from watch import Watch

HERE = pathlib.Path(__file__).resolve().parent
mete, steps = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "400"
train = ["python3", str(HERE / "train.py"), steps]


def facts(text):
    return dict(line.split(" ", 1) for line in text.splitlines() if line.startswith(("loss ", "step_ms ")))


alone = facts(subprocess.run(train, capture_output=True, text=True, timeout=200).stdout)
with Watch() as watch:
    share = int(watch.nvml.memory().total * 0.4)
    pair = [subprocess.Popen([mete, "cap", "--gpu", "40%", "--", *train], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)]
    results = [p.communicate(timeout=250) for p in pair]
for i, (process, (out, err)) in enumerate(zip(pair, results), 1):
    seen = facts(out)
    good = process.returncode == 0 and seen.get("loss") == alone.get("loss")
    check(good, f"two trainings: loop {i} at 40 %", f"status {process.returncode}, loss {seen.get('loss')} (alone {alone.get('loss')}) {err.strip()[-120:]}")
    if "step_ms" in seen and "step_ms" in alone:
        info(f"two trainings: step of loop {i}", f"{float(seen['step_ms']):.2f} ms, alone {float(alone['step_ms']):.2f} ms")
good, words = watch.within(2 * share)
check(good, "two trainings: both within their shares as seen from outside", words)
info("two trainings: one share", mib(share))
end()
