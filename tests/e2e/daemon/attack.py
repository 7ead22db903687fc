#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random attack on the machine's daemon while an honest user works: nothing acknowledged is lost or runs twice.

Alice submits jobs that each write one line when they run. Meanwhile, chosen by a seed: the daemon is killed, stopped or
frozen, keepers and helpers are killed, the disk is full, descriptors run out, and Bob floods the socket (attackers.py).
The daemon is started again whenever it ends, as a service manager does. Every job that Alice was told of gets an end that
fits what was done to it and runs at most once: ended jobs are judged all the time, the rest at the end, when nothing may be left.

METE_ATTACK_S (15) seconds, METE_ATTACK_SEED (random, printed). One of the long tests; docs/measurements has what it found."""
import collections
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import threading
import time
import unittest

import attackers
from users_test import ALICE, BOB, SystemDaemon, METED
from world import BOUND_S, METE, read, wait_until

SECONDS = float(os.environ.get("METE_ATTACK_S", "15"))
SEED = int(os.environ.get("METE_ATTACK_SEED", random.SystemRandom().randrange(1 << 32)))
GENERATORS = pathlib.Path(attackers.__file__).read_text()
# Exit codes of a verb that did nothing: the job has ended, is unknown, finds no room, no daemon is at the socket.
HONEST_CODES = (64, 66, 69, 75, 77, 125)
JUDGE_EVERY_S = 10
MOST_UNJUDGED = 150  # Alice waits above this, so that the queue is empty soon after the attack


class Attack(SystemDaemon):
    sim = "2xH200"
    disk_mb = 64

    def setUp(self):
        self.dice, self.counts, self.lock = random.Random(SEED), collections.Counter(), threading.Lock()
        self.jobs_of_alice = {}  # id -> what was done to it: "cancelled", "keeper"; jobs that were not judged yet
        self.outcomes = collections.Counter()
        self.killing, self.last_kill = set(), {"keeper": 0.0, "program": 0.0}  # what is being killed, and when it was last
        self.of_bob, self.daemon_faults, self.over = [], [], threading.Event()
        self.ending, self.full, self.starved = threading.Event(), threading.Event(), threading.Event()
        super().setUp()
        self.ran = self.home[ALICE] / "ran"
        self.ran.mkdir()
        os.chown(self.ran, ALICE, ALICE)

    def start_daemon(self):
        """On a small disk of its own, and again whenever it has ended."""
        self.state.mkdir(mode=0o700)
        self.small = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.disk_mb}m,mode=700", "mete-attack", self.state],
                                    capture_output=True).returncode == 0
        if self.small:
            self.addCleanup(subprocess.run, ["umount", "-l", str(self.state)], capture_output=True)
        config = self.folder / "config.toml"
        # A user's limit is less than the disk: Bob fills it for moments, and never for good.
        config.write_text("[queue]\ngrace_s = 2\nuser_bytes = \"8M\"\n")
        self.env["METE_CONFIG"] = str(config)
        self.killed = threading.Event()
        self.keep_up()
        self.manager = threading.Thread(target=self.manage, daemon=True)
        self.manager.start()
        self.addCleanup(self.end_manager)
        wait_until(self.answers, "the daemon answers")

    def keep_up(self):
        self.daemon = subprocess.Popen([METED, "--system", "--state-dir", str(self.state)], env=self.env, stderr=self.log,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096)))

    def manage(self):
        while not self.ending.is_set():
            code = self.daemon.wait()
            if self.ending.is_set():
                return
            self.counts["daemon starts"] += 1
            # By our signals; or it could not begin at all, without room or descriptors.
            starved = code == 125 and (self.full.is_set() or self.starved.is_set())
            if code not in (-signal.SIGKILL, 0, -signal.SIGTERM) and not starved:
                said = read(self.folder / "log")[-1500:].decode(errors="replace")
                self.daemon_faults.append(f"the daemon ended by itself: {code}, and said last: {said}")
            time.sleep(0.05)
            self.keep_up()

    def end_manager(self):
        self.ending.set()
        self.daemon.kill()
        self.manager.join(BOUND_S)
        self.daemon.wait()

    def answers(self):
        try:
            return self.api("/v1/version")[0] == 200
        except (OSError, ValueError):
            return False

    # ---- Alice ----

    def alice(self, *words):
        try:
            process = subprocess.run([METE, *words], user=ALICE, group=ALICE, extra_groups=[], env=self.env_of(ALICE), text=True,
                                     cwd=str(self.home[ALICE]), capture_output=True, stdin=subprocess.DEVNULL, timeout=BOUND_S * 4)
        except subprocess.TimeoutExpired:
            self.daemon_faults.append(f"mete {words[0]} never ended")
            raise
        if process.returncode not in (0, *HONEST_CODES):
            self.daemon_faults.append(f"mete {words[0]}: {process.returncode}: {process.stderr}")
        return process

    def work(self, seed):
        """Submits and cancels until the attack is over. A failed verb with an unknown result is not counted."""
        dice = random.Random(seed)
        while not self.over.is_set():
            code = dice.choice([0, 0, 0, 3])
            script = f"echo $METE_ATTEMPT >> {self.ran}/$METE_JOB_ID; sleep {dice.choice(['0', '0.05', '0.3', '2'])}; exit {code}"
            if dice.random() < 0.2:  # as a daemon does it: the started process ends first
                script = f"(setsid sh -c 'sleep 0.2; {script}' &) ; exit 0"
            share = dice.choice(["0", "10%", "40%", "8G", "1"])
            began = time.monotonic()
            done = self.alice("submit", "--gpu", share, "--", "sh", "-c", script)
            with self.lock:
                self.counts["submits"] += 1
                if done.returncode == 0:
                    self.jobs_of_alice[done.stdout.strip()] = {kind for kind, last in self.last_kill.items()
                                                               if kind in self.killing or last >= began}
                    self.counts["acknowledged"] += 1
                known = list(self.jobs_of_alice)
            if known and dice.random() < 0.1:
                job = dice.choice(known[-20:])
                with self.lock:
                    self.jobs_of_alice.get(job, set()).add("cancelled")
                self.alice("cancel", job)
            if dice.random() < 0.1:
                self.counts["runs"] += 1
                self.alice("run", "-q", "--gpu", "1G", "--", "true")
            while len(self.jobs_of_alice) > MOST_UNJUDGED and not self.over.is_set():
                time.sleep(0.2)

    # ---- what is done to the machine ----

    def signal_daemon(self, number):
        try:
            os.kill(self.daemon.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        self.signal_daemon(signal.SIGKILL)

    def stop(self):
        self.signal_daemon(signal.SIGTERM)

    def freeze(self):
        self.signal_daemon(signal.SIGSTOP)
        time.sleep(self.dice.random() * 2)
        self.signal_daemon(signal.SIGCONT)

    def kill_keeper(self):
        keepers = self.processes("mete-keeper")
        if keepers:
            self.kill_of_a_job("keeper", self.dice.choice(keepers))

    def kill_of_a_job(self, kind, pid):
        """It is unknown which job it is of: any job that has not ended, or is being submitted, may be."""
        self.killing.add(kind)
        with self.lock:
            for done in self.jobs_of_alice.values():
                done.add(kind)
        self.kill_process(pid)
        self.last_kill[kind] = time.monotonic()
        self.killing.discard(kind)

    def kill_program(self):
        """A process of a job of Alice, and not its keeper."""
        processes = [int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*") if self.owned_by_alice(entry)
                     and os.path.basename(read(entry / "cmdline").split(b"\0")[0]) in (b"sh", b"sleep")]
        if processes:
            self.kill_of_a_job("program", self.dice.choice(processes))

    @staticmethod
    def kill_process(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill_helper(self):
        for pid in self.processes("meted"):
            if pid != self.daemon.pid:
                self.kill_process(pid)

    def no_descriptors(self):
        pid = self.daemon.pid
        self.starved.set()
        try:
            used = len(os.listdir(f"/proc/{pid}/fd"))
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + self.dice.randrange(6), before[1]))
            time.sleep(self.dice.random() * 3)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        except (OSError, ProcessLookupError):
            pass
        wait_until(self.answers, "the daemon answers once there are descriptors")
        self.starved.clear()

    def fill_disk(self):
        if not self.small:
            return
        self.full.set()
        filler = self.state / "filler"
        try:
            with open(filler, "wb", buffering=0) as file:
                while not self.over.is_set():
                    file.write(bytes(1 << 20))
        except OSError:
            pass
        time.sleep(self.dice.random() * 3)
        filler.unlink(missing_ok=True)
        wait_until(self.answers, "the daemon answers once there is room")
        self.full.clear()

    def flood(self, kind=None):
        kind = kind or self.dice.choice(attackers.KINDS)
        seconds = min(SECONDS / 4, 1 + self.dice.random() * 6)
        process = subprocess.Popen(["/usr/bin/python3", "-c", GENERATORS, self.socket, kind, str(self.dice.randrange(1 << 30)),
                                    str(seconds)], user=BOB, group=BOB, extra_groups=[], env=self.env_of(BOB), text=True,
                                   cwd=str(self.home[BOB]), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.finish, process)
        if self.dice.random() < 0.5:  # and something else meanwhile
            time.sleep(seconds / 2)
            self.dice.choice([self.kill, self.freeze, self.no_descriptors])()
        out, err = process.communicate(timeout=BOUND_S * 4)
        if process.returncode != 0:
            self.daemon_faults.append(f"attacker {kind}: {err}")
            return
        said = json.loads(out)
        for status, number in said["statuses"].items():
            self.counts[f"{kind}: {status}"] += number
        self.of_bob += said["acknowledged"]
        self.daemon_faults += [f"{kind}: {fault}" for fault in said["faults"]]

    def check_cards(self):
        try:
            cards = self.api("/v1/cards")[1]["cards"]
        except (OSError, KeyError, ValueError):
            return
        for card in cards:
            if card["granted_bytes"] > card["capacity_bytes"]:
                self.daemon_faults.append(f"card {card['index']} is granted twice: {card}")

    # ---- the whole ----

    def test_nothing_acknowledged_is_lost(self):
        print(f"METE_ATTACK_SEED={SEED} METE_ATTACK_S={SECONDS:.0f}", flush=True)
        workers = [threading.Thread(target=self.work, args=(SEED + n,), daemon=True) for n in range(2)]
        for worker in workers:
            worker.start()
        deeds = [self.kill, self.stop, self.freeze, self.kill_keeper, self.kill_helper, self.no_descriptors, self.fill_disk,
                 self.flood, self.flood, self.flood]
        end = time.monotonic() + SECONDS
        judged = time.monotonic()
        while time.monotonic() < end and not self.daemon_faults:
            deed = self.dice.choice(deeds)
            self.counts[deed.__name__] += 1
            deed()
            self.check_cards()
            if time.monotonic() > judged + JUDGE_EVERY_S:
                self.judge_if_answered()
                judged = time.monotonic()
            time.sleep(self.dice.random() * 0.5)
        self.over.set()
        for worker in workers:
            worker.join(BOUND_S * 5)
            self.assertFalse(worker.is_alive(), "a verb of Alice never ended")
        print(json.dumps(self.counts, sort_keys=True), flush=True)
        self.assertEqual(self.daemon_faults, [], "\n".join(self.daemon_faults))
        self.settle()

    def judge(self):
        """Each job that has ended: its outcome, and how often it ran."""
        with self.lock:
            told = list(self.jobs_of_alice)
        found = {job["id"]: job for job in self.api(f"/v1/jobs?all=1&user={ALICE}")[1]["jobs"]}
        for ident in told:
            self.assertIn(ident, found, "an acknowledged job is not known")
            job = found[ident]
            if job["state"] != "ended":
                continue
            with self.lock:
                done = self.jobs_of_alice.pop(ident)
            self.outcomes[job["outcome"]] += 1
            allowed = {"ok", "failed"} | ({"cancelled"} if "cancelled" in done else set()) | ({"lost"} if "keeper" in done else set())
            allowed |= {"signal"} if "program" in done else set()
            if job["outcome"] not in allowed:
                said = [line for line in read(self.folder / "log").decode(errors="replace").splitlines() if f"job {ident}" in line]
                self.fail(f"an outcome that nothing explains: {job}, {done}, {said}")
            # A process that the job has left behind can be killed before it writes its line.
            if job["outcome"] in ("ok", "failed") and "program" not in done:
                self.assertEqual(len(read(self.ran / ident).split()), 1, f"job {ident} is said to have ended well: {job}")

    def judge_if_answered(self):
        try:
            self.judge()
        except (OSError, KeyError, ValueError):
            pass  # the daemon is dead, full or starved at the moment

    def settle(self):
        wait_until(self.answers, "the daemon answers")
        for first in range(0, len(self.of_bob), 50):
            self.mete("cancel", *self.of_bob[first:first + 50], timeout=BOUND_S * 4)
        deadline = time.monotonic() + BOUND_S * 5
        while self.jobs_of_alice and time.monotonic() < deadline:
            self.judge()
            time.sleep(0.5)
        self.assertEqual(self.jobs_of_alice, {}, "these jobs never ended")
        for file in self.ran.iterdir():
            self.assertEqual(len(read(file).split()), 1, f"job {file.name} ran more than once")
        print(json.dumps(self.outcomes), flush=True)
        for card in self.api("/v1/cards")[1]["cards"]:
            self.assertEqual([job for job in card["jobs"] if job.get("user") == str(ALICE)], [])
        left = [entry for entry in pathlib.Path("/proc").glob("[0-9]*")
                if read(entry / "cmdline") and read(entry / "environ") and self.owned_by_alice(entry)]
        self.assertEqual([read(entry / "cmdline") for entry in left], [], "a process of an ended job lives")

    @staticmethod
    def owned_by_alice(entry):
        try:
            return entry.stat().st_uid == ALICE
        except OSError:
            return False


# Only the attack: the tests of the imported module run there.
def load_tests(_loader, _tests, _pattern):
    return unittest.TestSuite([Attack("test_nothing_acknowledged_is_lost")])


if __name__ == "__main__":
    unittest.main()
