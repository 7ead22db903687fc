# SPDX-License-Identifier: Apache-2.0
"""Watches the card from outside a cap, 20 times a second: the most that new processes held together by NVML's count.

Needs a process without the meter. Where NVML names no processes (some containers), the growth of the card's used
memory stands in, which also contains what the driver keeps beside the processes.
"""
import threading
import time

from rows import MIB, Nvml

BESIDE = 700 * MIB  # what the driver was seen to keep on a card beside its processes' memory


class Watch:
    def __init__(self):
        self.nvml = Nvml()
        self.stop = threading.Event()
        self.before = self.nvml.processes()
        self.used_before = self.nvml.memory().used
        self.peak, self.card_peak, self.samples, self.named = 0, 0, 0, False
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def sample(self):
        new = {pid: used for pid, used in self.nvml.processes().items() if pid not in self.before}
        self.named = self.named or bool(new)
        self.peak = max(self.peak, sum(new.values()))
        self.card_peak = max(self.card_peak, self.nvml.memory().used - self.used_before)
        self.samples += 1

    def watch(self):
        while not self.stop.is_set():
            begin = time.monotonic()
            self.sample()
            self.stop.wait(max(0.0, 0.05 - (time.monotonic() - begin)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(10)

    def within(self, limit):
        """(holds, words) for the whole time watched; holds is None where it was over before anything was seen."""
        if not self.named and self.card_peak <= 0:
            return None, f"nothing to be seen in {self.samples} samples"
        if self.named:
            return self.peak <= limit, f"NVML peak {self.peak / MIB:.1f} of {limit / MIB:.1f} MiB in {self.samples} samples"
        return self.card_peak <= limit + BESIDE, \
            f"card's peak {self.card_peak / MIB:.1f} of {limit / MIB:.1f} MiB (NVML names no processes) in {self.samples} samples"
