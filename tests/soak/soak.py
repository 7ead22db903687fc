#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hours of a machine in minutes: two users submit, run, cancel, park and list, programs, keepers, helpers and the daemon are
killed, the disk is full, the socket is flooded; memory, descriptors and disk of the daemon, its helper, keepers and movers stay as
they are.

Users, faults and the verdict on each job are those of the attack (tests/e2e/daemon/attack.py). The daemon and its helper are killed
in the first twelfth of the time, the daemon also at the end: in between one daemon has to do with all the rest, since a restart would
hide its leaks.

METE_SOAK_SECONDS (600), METE_ATTACK_SEED (random, printed). Prints a line each minute and a table at the end."""
import os
import pathlib
import random
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "daemon"))
SECONDS = float(os.environ.get("METE_SOAK_SECONDS", "600"))
os.environ["METE_ATTACK_S"] = str(SECONDS)
import attack  # noqa: E402
from attack import ALICE, METE, SEED, read, wait_until  # noqa: E402
from park_test import PROGRAM  # noqa: E402
from watch import KIB, MIB, Quantity, Watch, database_bytes, size_of, status_of  # noqa: E402

attack.MOST_UNJUDGED = 20  # a short queue: parks and runs have their turn soon
DATABASE = ("meted.db", "meted.db-wal", "meted.mark", "ballast", "filler")
KEPT_EVENTS = 100_000  # more are never kept (docs/formats/store.md)
# The log of events grows until KEPT_EVENTS are kept, in a short run until its end: what one event takes is judged, and here the sum.
DATABASE_FLOOR = KEPT_EVENTS * KIB


class Soak(attack.Attack):
    disk_mb = 512  # more than 100,000 events take

    def setUp(self):
        self.steady = threading.Event()  # the daemon is not ended any more
        super().setUp()

    def start_daemon(self):
        # Movers are root's: every user may use the cards, as with a real driver.
        cards = self.folder / "sim"
        cards.mkdir(exist_ok=True)
        cards.chmod(0o777)
        self.env["METE_SIM_SHARED"] = "1"
        super().start_daemon()
        config = self.folder / "config.toml"
        # Few ended jobs are remembered, so that what is bound to grow has grown soon.
        config.write_text("[queue]\ngrace_s = 2\nuser_bytes = \"8M\"\nretry_pause_s = 1\n[history]\njobs = 150\n"
                          "[park]\narena = \"2G\"\nmin_run_s = 0\n")
        self.assertEqual(self.mete("daemon", "reload").returncode, 0)

    def env_of(self, uid):
        return {**super().env_of(uid), "METE_SIM_DIR": str(self.folder / "sim")}

    # ---- use ----

    def submitted(self, *words):
        done = self.alice("submit", *words)
        self.counts["submits of all kinds"] += 1
        return done.stdout.strip() if done.returncode == 0 else None

    def array(self, dice):
        if job := self.submitted("--gpu", "0", "--array", f"0-{dice.randrange(1, 8)}%3", "--", "sleep", "0.1"):
            if dice.random() < 0.3:
                self.alice("cancel", job)

    def park(self, dice):
        """Memory on a card, moved away and back some times."""
        go = self.home[ALICE] / f"go-{dice.randrange(1 << 40)}"
        job = self.submitted("--gpu", "4G", "--preemptible", "--", PROGRAM, "many", "4", str(16 * MIB), str(go))
        if job is None:
            return
        for _ in range(100):
            if self.over.wait(0.1) or '"state":"running"' in self.alice("show", job, "-o", "json").stdout:
                break
        for verb in ("park", "unpark") * dice.randrange(1, 3):
            time.sleep(dice.random())
            done = self.alice(verb, job)
            self.counts[verb + "s"] += done.returncode == 0 and "is not parked" not in done.stderr
        if dice.random() < 0.5:
            go.touch()
            time.sleep(0.5)
        self.alice("cancel", job)
        go.unlink(missing_ok=True)

    def urgent(self, _dice):
        self.alice("run", "-q", "--gpu", "30%", "--time", "5", "--", "true")

    def hold(self, _dice):
        if job := self.submitted("--hold", "--gpu", "1G", "--retries", "1", "--", "sh", "-c", "exit 5"):
            self.alice("release", job)

    def look(self, dice):
        words = dice.choice([("ps", "-a"), ("cards",), ("top", "--once"), ("stats",), ("events", "--from", "1"), ("explain", "@"),
                             ("show", "@"), ("logs", "@"), ("daemon", "status"), ("run", "--dry-run", "--gpu", "1", "--", "true")])
        if words[0] == "daemon" and not self.steady.is_set():
            return  # it exits with 1 while no daemon runs
        self.alice(*words)

    def root(self, dice):
        """What an administrator does. Not while the daemon is started again: root's verb would start another one at its socket."""
        if not self.steady.is_set():
            return
        words = dice.choice([("daemon", "reload"), ("drain", "1"), ("quota", "set", "--user", str(attack.BOB), "--jobs", "500"),
                             ("daemon", "backup", str(self.folder / "backup.db")), ("report", "--list")])
        try:
            self.mete(*words, timeout=240)
        except subprocess.TimeoutExpired:
            self.daemon_faults.append(f"mete {' '.join(words)} never ended")
        if words[0] == "drain":
            self.mete("undrain", "1", timeout=240)

    def use(self, seed):
        dice = random.Random(seed)
        kinds = [self.array, self.park, self.urgent, self.hold, self.look, self.look, self.root]
        while not self.over.is_set():
            dice.choice(kinds)(dice)
            time.sleep(dice.random() * 0.3)

    # ---- faults ----

    def kill_mover(self):
        """Its jobs are lost with what it keeps; that is no job of those that are judged."""
        if movers := self.processes("mete-mover"):
            self.kill_process(self.dice.choice(movers))

    # ---- watching ----

    def helper(self):
        return next((pid for pid in self.processes("meted") if pid != self.daemon.pid), None)

    def watch_all(self, watch):
        """Once a second. Of several processes of a kind the largest counts."""
        while not self.over.is_set():
            values = {}
            daemon = status_of(self.daemon.pid)
            values["daemon RSS"], values["daemon fds"] = daemon or (None, None)
            helper = status_of(self.helper() or 0, "VmData:")
            values["helper data"], values["helper fds"] = helper or (None, None)
            for kind, name in (("keeper", "mete-keeper"), ("mover", "mete-mover")):
                found = [status for pid in self.processes(name) if (status := status_of(pid))]
                values[f"{kind} RSS"] = max((status[0] for status in found), default=None)
                values[f"{kind} fds"] = max((status[1] for status in found), default=None)
            if not self.full.is_set():
                values["state files"] = sum(size_of(folder, DATABASE) for folder in (self.state, *(home / "state" for home in self.home.values())))
                values["bytes per event"] = self.bytes_per_event()
                values["database"] = size_of(self.state) - size_of(self.state, ("meted.db", "meted.db-wal", "meted.mark", "ballast"))
            watch.sample(values)
            self.over.wait(1)

    def bytes_per_event(self):
        try:
            events = self.api("/v1/events?last=1")[1]["events"]
            kept = min(KEPT_EVENTS, int(events[-1]["seq"]))
        except (OSError, ValueError, KeyError, IndexError):
            return None
        held = database_bytes(self.state / "meted.db")
        return held / max(kept, 1) if held else None

    # ---- the whole ----

    def judge_all(self):
        """Jobs are forgotten soon: each is judged before that."""
        while not self.over.wait(2):
            try:
                self.judge_if_answered()
            except AssertionError as wrong:
                self.daemon_faults.append(str(wrong))

    def warm_up(self):
        """The last daemon: each kind of flood once, since the largest decides how much memory the daemon keeps."""
        wait_until(self.answers, "the daemon answers")
        self.steady.set()
        for kind in attack.attackers.KINDS:
            self.flood(kind)

    def fill_history(self):
        """As many ended jobs as are remembered, of both users."""
        for uid in (ALICE, attack.BOB):
            process = self.as_user(uid, METE, "submit", "--hold", "--gpu", "0", "--array", "0-299", "--", "true")
            job, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(self.mete("cancel", job.strip()).returncode, 0)

    def test_nothing_grows(self):
        print(f"METE_SOAK_SECONDS={SECONDS:.0f} METE_ATTACK_SEED={SEED}", flush=True)
        watch = Watch(SECONDS, [
            # Floors: a few connections of users come and go; the allocator keeps some pages; a mover keeps what is parked at that moment,
            # which is a job of 64 MiB more or less; events of some kinds are larger than others, and their mix varies.
            Quantity("daemon RSS", "bytes", MIB // 2, always=True), Quantity("daemon fds", "number", 4, always=True),
            Quantity("helper data", "bytes", MIB // 2, always=True), Quantity("helper fds", "number", 2, always=True),
            Quantity("keeper RSS", "bytes", MIB // 2, always=True), Quantity("keeper fds", "number", 2, always=True),
            Quantity("mover RSS", "bytes", 64 * MIB), Quantity("mover fds", "number", 4),
            Quantity("state files", "bytes", 2 * MIB, always=True), Quantity("bytes per event", "number", 48, always=True),
            Quantity("database", "bytes", DATABASE_FLOOR, always=True)])
        self.fill_history()
        threads = [threading.Thread(target=self.watch_all, args=(watch,), daemon=True), threading.Thread(target=self.judge_all, daemon=True)]
        threads += [threading.Thread(target=self.work, args=(SEED,), daemon=True)]
        threads += [threading.Thread(target=self.use, args=(SEED + n,), daemon=True) for n in (1, 2)]
        for thread in threads:
            thread.start()
        always = [self.kill_keeper, self.kill_program, self.kill_mover, self.no_descriptors, self.fill_disk, self.flood, self.freeze]
        restarts = [self.kill, self.stop, self.kill_helper]
        while watch.elapsed() < SECONDS and not self.daemon_faults:
            if watch.elapsed() > SECONDS / 12 and not self.steady.is_set():
                self.warm_up()
            deed = self.dice.choice(always if self.steady.is_set() else always + restarts)
            self.counts[deed.__name__] += 1
            deed()
            self.check_cards()
            time.sleep(self.dice.random() * 2)
        self.over.set()
        for thread in threads:
            thread.join(300)
            self.assertFalse(thread.is_alive(), "a verb never ended")
        print(dict(sorted(self.counts.items())), flush=True)
        grown = watch.close()
        self.assertEqual(self.daemon_faults, [], "\n".join(self.daemon_faults))
        self.assertGreater(min(self.counts["parks"], self.counts["unparks"]), 0, "nothing was ever parked and brought back")
        self.kill()
        wait_until(self.answers, "the next daemon answers")
        if left := self.alice("ps", "-q").stdout.split():
            for first in range(0, len(left), 50):
                self.alice("cancel", *[job for job in left[first:first + 50] if job not in self.jobs_of_alice])
        self.settle()
        self.assertEqual(grown, [], "it has grown: " + "; ".join(grown))

    def flood(self, kind=None):
        """As in the attack, but the daemon is not killed meanwhile, and nothing of it is left: that would be growth."""
        kill, self.kill = self.kill, lambda: None
        try:
            super().flood(kind)
        finally:
            self.kill = kill
        # Also jobs of which Bob was not told: he had hung up.
        while not self.over.is_set():
            try:
                left = {job["id"].split("_")[0] for job in self.api(f"/v1/jobs?user={attack.BOB}")[1]["jobs"]
                        if job["state"] != "stopping"}
                if not left:
                    break
                for number in left:
                    self.api(f"/v1/jobs/{number}", "DELETE")
            except (OSError, ValueError, KeyError):
                pass
            time.sleep(0.2)
        self.of_bob.clear()


def load_tests(_loader, _tests, _pattern):
    return unittest.TestSuite([Soak("test_nothing_grows")])


if __name__ == "__main__":
    unittest.main()
