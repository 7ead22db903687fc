# SPDX-License-Identifier: Apache-2.0
"""Watches processes and a folder: samples of memory, descriptors and disk, a line for each minute, a table at the end, and
whether anything has grown.

Growth is judged on medians: that of the second sixth of the time (the first is for warming up) against that of the last. A
quantity fails if it has grown by more than 5 % and by more than its floor, below which allocators and queues wander."""
import os
import pathlib
import statistics
import time

KIB, MIB = 1 << 10, 1 << 20
MOST_GROWTH = 1.05


class Quantity:
    def __init__(self, name, unit, floor, always=False):
        self.name, self.unit, self.floor = name, unit, floor
        self.always = always  # never to have been seen early or late is a fault of the test
        self.samples = []  # (seconds since the start, value)

    def add(self, at, value):
        if value is not None:
            self.samples.append((at, value))

    def median(self, begin, end):
        values = [value for at, value in self.samples if begin <= at < end]
        return statistics.median(values) if values else None

    def text(self, value):
        if value is None:
            return "-"
        return f"{value / MIB:.1f} MiB" if self.unit == "bytes" else f"{value:.0f}"

    def judge(self, seconds):
        """(early, late, what is wrong, or "")."""
        early, late = self.median(seconds / 6, seconds / 3), self.median(seconds * 5 / 6, seconds + 1)
        if early is None or late is None:
            return early, late, "NEVER SEEN" if self.always else ""
        return early, late, "GROWN" if late > early * MOST_GROWTH and late - early > self.floor else ""


def status_of(pid, memory="VmRSS:"):
    """(bytes of memory, descriptors) of a process; None where it is gone. A process that was forked without exec is measured
    by "VmData:", what it has allocated: its resident pages are its parent's, until one of the two writes to them."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        held = next(int(line.split()[1]) * KIB for line in lines if line.startswith(memory))
        return held, len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, StopIteration, ValueError):
        return None


def size_of(folder, leave_out=()):
    """Bytes that the files of a folder take of the disk."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            if name in leave_out:
                continue
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except OSError:
                pass
    return total


def database_bytes(path):
    """Bytes of a SQLite database as of its last commit. The file itself grows in steps of some megabytes, at checkpoints; until
    then new pages are in the log beside it. None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
            page = int.from_bytes(head[16:18], "big")
            page = 65536 if page == 1 else page
            pages = file.seek(0, os.SEEK_END) // page
        with open(f"{path}-wal", "rb") as log:
            salts = log.read(32)[16:24]
            at = 32
            # A frame: the number of its page, the pages of the database if it ends a commit, the salts, a checksum, the page.
            while len(frame := log.read(24)) == 24 and frame[8:16] == salts:
                pages = int.from_bytes(frame[4:8], "big") or pages
                at += 24 + page
                log.seek(at)
    except (OSError, ZeroDivisionError):
        return None
    return pages * page


class Watch:
    def __init__(self, seconds, quantities):
        self.seconds, self.began = seconds, time.monotonic()
        self.quantities = {quantity.name: quantity for quantity in quantities}
        self.minutes = 0

    def elapsed(self):
        return time.monotonic() - self.began

    def sample(self, values):
        at = self.elapsed()
        for name, value in values.items():
            self.quantities[name].add(at, value)
        if at >= (self.minutes + 1) * 60:
            self.minutes = int(at // 60)
            print(f"minute {self.minutes:3d}  " + "  ".join(
                f"{name} {quantity.text(quantity.median(at - 60, at + 1))}" for name, quantity in self.quantities.items()), flush=True)

    def close(self):
        """Prints the table; the quantities that are wrong."""
        wrong = []
        print(f"{'':24} {'early':>12} {'late':>12} {'change':>8}")
        for name, quantity in self.quantities.items():
            early, late, bad = quantity.judge(self.seconds)
            change = "-" if not early or late is None else f"{(late / early - 1) * 100:+.1f} %"
            print(f"{name:24} {quantity.text(early):>12} {quantity.text(late):>12} {change:>8}  {bad}".rstrip())
            if bad:
                wrong.append(f"{name}: {bad}, {quantity.text(early)} to {quantity.text(late)}")
        return wrong
