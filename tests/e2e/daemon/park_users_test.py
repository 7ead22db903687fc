#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Root's movers keep the memory of several users' jobs: parked for one another and back, and no user reaches another user's memory."""
import os
import pathlib

import queue_users_test
from park_movers_test import MESSAGE
from park_test import PROGRAM
from users_test import ALICE, BOB
from world import BOUND_S, MIB, wait_until
from support import main

HELLO, ALLOW, FORBID, ARENA, STATUS, REFUSED = 1, 16, 17, 18, 19, 33
NO_MOVER = 8
TOKEN_AT = 288  # in a grant file: docs/formats/park.md

# As another user: sends the messages in the arguments to the mover, prints kind and reason of each answer.
STRANGER = """
import socket, struct, sys
for word in sys.argv[2:]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as mover:
        mover.settimeout(60)
        mover.connect(sys.argv[1])
        mover.send(bytes.fromhex(word))
        answer = mover.recv(72)
        print(*struct.unpack_from("<H", answer, 6), *struct.unpack_from("<I", answer, 40))
"""


class Parked(queue_users_test.Queue):
    sim = "1xT4"

    def start_daemon(self):
        """Every user may use the cards, as with a real driver."""
        cards = self.folder / "sim"
        cards.mkdir(mode=0o777, exist_ok=True)
        cards.chmod(0o777)
        config = self.folder / "config.toml"
        config.write_text("[park]\nmin_run_s = 0\narena = \"256M\"\n")
        self.env["METE_CONFIG"] = str(config)
        self.env["METE_SIM_SHARED"] = "1"
        super().start_daemon()
        self.addCleanup(self.end_movers)

    def end_movers(self):
        self.daemon.kill()
        for pid in self.processes("mete-mover") + self.processes("mete-keeper"):
            os.kill(pid, 9)

    def env_of(self, uid):
        return {**super().env_of(uid), "METE_SIM_DIR": str(self.folder / "sim")}

    def worker(self, uid, *words):
        """A job with a pattern in its memory, the file that ends it, and its grant file."""
        go, grant = self.home[uid] / "go", self.home[uid] / "grant"
        job = self.submit(uid, "--gpu", "10G", *words, "--", "sh", "-c",
                          f"echo $METE_GRANT > {grant}; exec {PROGRAM} many 3 {40 * MIB} {go}")
        wait_until(lambda: b"up" in self.log_of(job), "it has its memory")
        return job, go, pathlib.Path(grant.read_text().strip())

    def log_of(self, job):
        path = self.api(f"/v1/jobs/{job}/show")[1]["job"].get("log", "")
        return pathlib.Path(path).read_bytes() if os.path.isfile(path) else b""

    def mover(self):
        pid, = self.processes("mete-mover")
        path, = (path for path in self.folder.glob("**/movers/GPU-*") if not path.name.endswith(".lock"))
        return pid, path

    def say_to_mover(self, uid, path, *messages):
        process = self.as_user(uid, "/usr/bin/python3", "-c", STRANGER, path, *(one.hex() for one in messages))
        out, err = process.communicate(timeout=BOUND_S)
        self.assertEqual(process.returncode, 0, err)
        return [tuple(map(int, line.split())) for line in out.splitlines()]

    @staticmethod
    def message(kind, token=b"\0" * 16, uid=0, size=0):
        return MESSAGE.pack(0x4d455445, 1, kind, 0, size, 0, 0, 0, 0, uid, 0, token)

    def ends_well(self, uid, job, go):
        go.touch()
        os.chown(go, uid, uid)
        shown = self.ended(uid, job)
        self.assertEqual(shown["outcome"], "ok", self.log_of(job))

    def test_one_users_job_is_parked_for_anothers_and_nobody_reaches_it(self):
        low, go, grant = self.worker(ALICE, "--preemptible", "--priority", "-5")
        token = grant.read_bytes()[TOKEN_AT:TOKEN_AT + 16]
        self.assertNotEqual(token, b"\0" * 16)
        high, high_go, _ = self.worker(BOB)  # it runs: the other job has made room
        self.assertEqual((self.job(low)["state"], self.job(low)["park"]["moved_bytes"]), ("parked", 120 * MIB))
        pid, path = self.mover()
        self.assertEqual(os.stat(f"/proc/{pid}").st_uid, 0)

        # Not with her token, nor as a daemon; her bytes are in no file that he could open, and he cannot even list the
        # socket's name.
        self.assertEqual(self.say_to_mover(BOB, path, self.message(HELLO, token, size=MIB)), [(REFUSED, NO_MOVER)])
        words = [self.message(ALLOW, token, BOB, MIB), self.message(FORBID, token), self.message(ARENA), self.message(STATUS, token)]
        self.assertEqual(self.say_to_mover(BOB, path, *words), [(REFUSED, NO_MOVER)] * 4)
        secret, = self.folder.glob("**/park-secret")
        for file in (grant, secret, f"/proc/{pid}/mem", f"/proc/{pid}/maps", f"/proc/{pid}/environ"):
            self.assertNotEqual(self.as_user(BOB, "head", "-c1", file).wait(BOUND_S), 0, file)
        self.assertNotEqual(self.as_user(BOB, "ls", path.parent).wait(BOUND_S), 0)
        for verb in ("show", "ps", "events"):
            result = self.do(BOB, verb, *([low] if verb == "show" else []), "-o", "json")
            self.assertNotIn(token.hex(), result.stdout + result.stderr)

        self.ends_well(BOB, high, high_go)
        self.wait_state(low, "running")
        self.ends_well(ALICE, low, go)
        self.assertEqual(self.card()["granted_bytes"], 0)

    def test_only_its_owner_and_root_may_park_it(self):
        job, go, _ = self.worker(ALICE, "--preemptible")
        for verb in ("park", "unpark"):
            result = self.do(BOB, verb, job)
            self.assertEqual(result.returncode, 77, result.stderr)
            self.assertIn(f"job {job} is {ALICE}'s", result.stderr)
            self.assertEqual(self.speak(BOB, "POST", f"/v1/jobs/{job}/{verb}")[0], 403)
        # Nor may he report its state.
        said = {"parked": True, "held_bytes": [0], "moved_bytes": 0}
        self.assertIn(self.speak(BOB, "POST", f"/v1/jobs/{job}/parked", said)[0], (403, 404))
        self.assertEqual(self.job(job)["state"], "running")
        self.assertEqual(self.mete("park", job).returncode, 0)  # root
        self.assertEqual(self.job(job)["state"], "parked")
        self.assertEqual(self.do(BOB, "unpark", job).returncode, 77)
        self.assertEqual(self.job(job)["state"], "parked")
        self.assertEqual(self.do(ALICE, "unpark", job).returncode, 0)
        self.assertEqual(self.do(ALICE, "park", job).returncode, 0)
        self.assertEqual(self.mete("unpark", job).returncode, 0)
        self.ends_well(ALICE, job, go)


if __name__ == "__main__":
    main()
