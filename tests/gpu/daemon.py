#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete run` and its daemon on a real card: two programs at 40 % side by side, a third that waits and is started when one ends,
chosen cards, several processes in one job, and what a start costs.   daemon.py PATH-TO-mete [--quick]"""
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from rows import GIB, MIB, Nvml, check, end, info, mib, no_escapes, skip

HERE = pathlib.Path(__file__).resolve().parent
METE = sys.argv[1]
LIMIT_S = 120


class Job:
    """One `mete run` of tenant.py."""

    def __init__(self, env, *options, role="hold"):
        self.process = subprocess.Popen([METE, "run", *options, "--", "python3", str(HERE / "tenant.py"), role], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def seen(self):
        """What it said when it had started; {} if it did not."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def finish(self, order=""):
        """Ends it (with an order: after it has filled its share). Returns its status, its last words and its stderr."""
        out, err = self.process.communicate(order, timeout=LIMIT_S)
        return self.process.returncode, [json.loads(line) for line in out.splitlines() if line.startswith("{")], err.strip()


def ask(env, *words):
    return json.loads(subprocess.run([METE, *words, "-o", "json"], env=env, capture_output=True, text=True, timeout=LIMIT_S).stdout)


def until(condition):
    """Waits for it; False if it never comes true."""
    end_at = time.monotonic() + LIMIT_S
    while time.monotonic() < end_at:
        if condition():
            return True
        time.sleep(0.05)
    return False


def states(env):
    return {job["id"]: job["state"] for job in ask(env, "ps", "-a")["jobs"]}


def outside_sizes():
    if not shutil.which("nvidia-smi"):
        return None
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return [int(line) for line in done.stdout.split() if line.isdigit()]


def sharing(env, nvml):
    jobs = [Job(env, "--gpu", "0.4") for _ in range(2)]
    seen = [job.seen() for job in jobs]
    card = ask(env, "cards")["cards"][0]
    share = card["granted_bytes"] // 2
    for number, facts in enumerate(seen, 1):
        agree = facts.get("total") == facts.get("nvml") == share and facts.get("smi") in (None, [share // MIB])
        check(agree, f"daemon: program {number} at 0.4 sees its share",
              f"{mib(facts.get('total', 0))}, NVML {mib(facts.get('nvml', 0))}, nvidia-smi {facts.get('smi')} MiB")
    total = nvml.memory().total
    check(outside_sizes() in (None, [total // MIB]) and 0.39 * total < share <= 0.4 * total,
          "daemon: outside the card is whole", f"{mib(total)}, share {mib(share)}")
    listed = [used for pid, used in nvml.processes().items() if pid in [facts.get("pid") for facts in seen]]
    check(len(card["jobs"]) == 2 and not card["foreign"], "daemon: mete cards shows both and no other",
          f"granted {mib(card['granted_bytes'])}, used {mib(card.get('used_bytes', 0))}, grantable {mib(card['grantable_bytes'])}, {card['foreign']}")
    if listed:
        check(all(2 * GIB <= used <= share for used in listed) and len(listed) == 2, "daemon: NVML outside counts both within their shares",
              ", ".join(mib(used) for used in listed))

    third = Job(env, "--gpu", "0.4")
    check(until(lambda: states(env).get("3") == "pending"), "daemon: a third waits", str(states(env)))
    time.sleep(1)
    check(states(env).get("3") == "pending", "daemon: and goes on waiting", str(states(env)))
    status, words, err = jobs[0].finish("fill\n")
    got = words[-1]["got"] if words else 0
    check(status == 0 and share - 2 * GIB <= got <= share, "daemon: the first fills its share and not more",
          f"{mib(got)} of {mib(share)}, status {status} {err[-150:] if status else ''}")
    facts = third.seen()
    check(facts.get("total") == share, "daemon: the third starts when one has ended", mib(facts.get("total", 0)))
    for name, job in (("second", jobs[1]), ("third", third)):
        status, _, err = job.finish()
        check(status == 0, f"daemon: the {name} ends well", f"status {status} {err[-200:]}")
    check(until(lambda: not ask(env, "cards")["cards"][0]["granted_bytes"]), "daemon: nothing stays granted")


def devices(env, nvml):
    uuid = ask(env, "cards")["cards"][0]["uuid"]
    for words, chosen in (("number", "0"), ("UUID", uuid)):
        job = Job(env, "--devices", chosen, "--gpu", "8G")
        facts = job.seen()
        status, _, err = job.finish()
        check(facts.get("total") == 8 * GIB and facts.get("devices") == uuid and status == 0, f"daemon: --devices by {words}",
              f"{mib(facts.get('total', 0))} on {facts.get('devices')} {err[-100:] if status else ''}")


def ranks(env):
    job = Job(env, "--gpu", "0.4", "--procs", "4", role="rank")
    status, words, err = job.finish()
    part = words[0]["total"] if words else 0
    good = status == 0 and sorted(w["rank"] for w in words) == [0, 1, 2, 3] and all(w["world"] == 4 and w["sum"] == 10.0 for w in words)
    check(good, "daemon: --procs 4, torch.distributed sums over all", f"status {status}, {len(words)} ranks {err[-300:] if not good else ''}")
    check(good and all(w["total"] == part and part - 2 * GIB <= w["got"] <= part for w in words), "daemon: each rank fills its part and not more",
          f"{[round(w['got'] / GIB, 2) for w in words]} of {part / GIB:.2f} GiB")


def start_cost(env, rounds):
    def once(*command):
        begin = time.perf_counter()
        subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
        return (time.perf_counter() - begin) * 1e3
    commands = {"true": ("true",), "mete cap": (METE, "cap", "--gpu", "1G", "--", "true"), "mete run": (METE, "run", "--gpu", "1G", "--", "true")}
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(once(*command))
    words = ", ".join(f"{name} {statistics.median(t):.1f}" for name, t in times.items())
    info("daemon: start and end of a program, warm, median", f"{words} ms of {rounds}")


def main():
    if not (pathlib.Path(METE).parent / "meted").exists():
        skip("daemon", "meted is not built")
    nvml = Nvml()
    with tempfile.TemporaryDirectory(prefix="mete-gpu-daemon-") as folder:
        env = {**os.environ, "METE_STATE_DIR": folder + "/state", "METE_SOCKET": folder + "/s", "METE_CLAIMS_DIR": folder + "/claims"}
        try:
            sharing(env, nvml)
            devices(env, nvml)
            if importlib.util.find_spec("torch"):
                ranks(env)
            start_cost(env, 5 if "--quick" in sys.argv else 20)
        finally:
            no_escapes(METE, env, "daemon")
            stopped = subprocess.run([METE, "daemon", "stop"], env=env, capture_output=True, text=True, timeout=LIMIT_S)
        check(stopped.returncode == 0, "daemon: stops", stopped.stderr.strip()[-200:])
    end()


main()
