#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several users on one machine: no user sees, ends or speaks for another; shares are kept between them."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

from world import BOUND_S, BUILD, DaemonTest, METE, read, wait_until

# Unused numbers: no account is made. Their leftovers are ended, so two runs at a time need two pairs.
ALICE, BOB = (int(uid) for uid in os.environ.get("METE_TEST_UIDS", "61001,61002").split(","))
METED = str(BUILD / "bin" / "meted")

# Sends a request as another user: METHOD PATH [BODY], prints status and body.
SPEAKER = """
import http.client, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
c = Connection("mete", timeout=60)
c.request(sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
r = c.getresponse()
print(r.status)
print(r.read().decode())
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be two other users")
class UsersTest(DaemonTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.home = {}
        for uid in (ALICE, BOB):
            self.home[uid] = self.folder / str(uid)
            self.home[uid].mkdir(mode=0o700)
            os.chown(self.home[uid], uid, uid)

    def env_of(self, uid):
        env = {name: value for name, value in self.env.items() if not name.startswith(("XDG_", "METE_"))}
        env.update(HOME=str(self.home[uid]), USER=str(uid), METE_SIM=self.sim,
                   METE_STATE_DIR=str(self.home[uid] / "state"), METE_SIM_DIR=str(self.home[uid] / "sim"))
        return env

    def as_user(self, uid, *words, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        env = {**self.env_of(uid), **options.pop("env", {})}
        process = subprocess.Popen([str(word) for word in words], user=uid, group=uid, extra_groups=[], env=env, text=True,
                                   cwd=str(self.home[uid]), **options)
        self.addCleanup(self.finish, process)
        return process

    def run_as(self, uid, *words, **options):
        process = self.as_user(uid, METE, "run", *words, **options)
        out, err = process.communicate(timeout=BOUND_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def holder_of(self, uid, share="100%", **options):
        process = self.as_user(uid, METE, "run", "-q", "--gpu", share, "--", "sh", "-c", "echo up; read x; exit ${x:-0}",
                               stdin=subprocess.PIPE, **options)
        self.assertEqual(process.stdout.readline(), "up\n", process.stderr.read() if process.poll() else "")
        return process

    def end_all_of(self, uid):
        """The leftovers of a user in a test: no other user has these numbers."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if entry.stat().st_uid == uid:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, ValueError):
                pass


class SystemDaemon(UsersTest):
    """Root's daemon for all users."""

    def setUp(self):
        super().setUp()
        self.socket = str(self.folder / "run" / "s")
        self.env["METE_SOCKET"] = self.socket
        self.log = open(self.folder / "log", "w")
        self.addCleanup(self.log.close)
        self.start_daemon()
        for uid in (ALICE, BOB):
            self.addCleanup(self.end_all_of, uid)

    def start_daemon(self):
        self.daemon = subprocess.Popen([METED, "--system", "--state-dir", str(self.state)], env=self.env, stderr=self.log)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.kill)
        wait_until(lambda: os.path.exists(self.socket), "the daemon listens")

    def env_of(self, uid):
        return {**super().env_of(uid), "METE_SOCKET": self.socket}

    def speak(self, uid, method, path, body=None):
        words = [method, path] + ([] if body is None else [json.dumps(body)])
        process = self.as_user(uid, "/usr/bin/python3", "-c", SPEAKER, self.socket, *words)
        out, err = process.communicate(timeout=BOUND_S)
        self.assertEqual(process.returncode, 0, err)
        status, text = out.split("\n", 1)
        return int(status), json.loads(text)

    def test_people_are_told_with_their_own_rights(self):
        told = self.home[BOB] / "told"
        line = f"cmd:id -u > {told}.part; id -g >> {told}.part; mv {told}.part {told}; cat {self.home[ALICE]}/x >> {told}"
        self.assertEqual(self.run_as(BOB, "--cpu-only", "--notify", line, "--", "true").returncode, 0)
        wait_until(told.exists, "the command has run")
        uid, gid = told.read_text().split()
        self.assertEqual(uid, str(BOB))
        self.assertNotEqual(gid, "0")
        self.assertEqual(told.stat().st_uid, BOB)

    def test_the_door_is_open_to_all_and_nothing_else(self):
        self.assertEqual(os.stat(self.socket).st_mode & 0o777, 0o666)
        self.assertEqual(os.stat(self.folder / "run").st_mode & 0o777, 0o755)
        for path in self.state.rglob("*"):
            try:
                mode = path.stat().st_mode
            except FileNotFoundError:
                continue  # a file that was just renamed
            self.assertEqual(mode & 0o022, 0, path)
            if path.name.startswith("meted.db"):
                self.assertEqual(mode & 0o077, 0, path)

    def test_readings_are_for_everybody(self):
        readings = self.state / "readings"
        wait_until(readings.exists, "the cards are read")
        reader = self.as_user(ALICE, "head", "-c", "8", readings)
        self.assertEqual(len(reader.communicate(timeout=BOUND_S)[0]), 8)
        for name in ("meted.db", "meted.pid"):
            self.assertNotEqual(self.as_user(ALICE, "cat", self.state / name).wait(BOUND_S), 0, name)
        self.assertNotEqual(self.as_user(ALICE, "ls", self.state).wait(BOUND_S), 0)

    def test_jobs_run_as_whoever_typed_them(self):
        for uid in (ALICE, BOB):
            result = self.run_as(uid, "-q", "--gpu", "40%", "--", "sh", "-c", "id -u; stat -c %u $METE_GRANT; exit 7")
            self.assertEqual((result.returncode, result.stdout), (7, f"{uid}\n{uid}\n"), result.stderr)
        jobs = self.jobs()
        self.assertEqual([(job["uid"], job["exit_code"]) for job in jobs], [(ALICE, 7), (BOB, 7)])

    def test_nobody_ends_or_speaks_for_anothers_job(self):
        alice = self.holder_of(ALICE, "60%")
        self.assertEqual(self.speak(ALICE, "GET", "/v1/jobs")[1]["jobs"][0]["id"], "1")
        self.assertEqual(self.speak(BOB, "GET", "/v1/jobs?all=1")[1]["jobs"], [])
        process = {"pid": os.getpid(), "start_ticks": 1}
        for method, path, body in (("GET", "/v1/jobs/1", None), ("GET", "/v1/jobs/1?tag=x", None), ("DELETE", "/v1/jobs/1", None),
                                   ("POST", "/v1/jobs/1/started", process), ("POST", "/v1/jobs/1/ended", {"exit_code": 0})):
            status, answer = self.speak(BOB, method, path, body)
            theirs = method == "DELETE" or path == "/v1/jobs/1"  # the others are for runners, of which each has its own job
            self.assertEqual(status, 403 if theirs else 404, (method, path, answer))
            self.assertEqual(answer["error"]["message"], f"job 1 is {ALICE}'s" if theirs else "there is no job 1")
        self.assertEqual(self.speak(BOB, "DELETE", "/v1/jobs/77")[0], 404)
        self.assertEqual(self.job(1)["state"], "running")
        self.assertEqual(self.speak(BOB, "POST", "/v1/daemon/stop")[0], 403)
        # The daemon of the machine is restarted by the service manager, also for root.
        self.assert_refused(self.mete("daemon", "restart"), 64, "managed by systemd", "systemctl restart meted")
        self.assertIn("system mode) runs already", self.mete("daemon", "start").stderr)
        # Root may.
        self.assertEqual(self.api("/v1/jobs/1", "DELETE")[0], 200)
        alice.wait(BOUND_S)
        self.assertEqual(self.job(1)["outcome"], "cancelled")
        self.assert_all_ended()

    def assert_all_ended(self):
        wait_until(lambda: all(job["state"] == "ended" for job in self.jobs()), "all jobs have ended")
        self.assertEqual(self.card()["granted_bytes"], 0)

    def test_one_waits_for_the_other_and_is_told_who(self):
        alice = self.holder_of(ALICE, "60%")
        bob = self.as_user(BOB, METE, "run", "-q", "--gpu", "60%", "--", "echo", "bob")
        line = bob.stderr.readline()
        self.assertIn(f"{ALICE}'s job 1 holds", line)
        self.release(alice)
        self.assertEqual(bob.communicate(timeout=BOUND_S)[0], "bob\n")
        self.assert_all_ended()

    def test_a_killed_run_ends_its_own_processes_only(self):
        """Bob's program says that it is of Alice's job, in every word that counts."""
        run = self.as_user(ALICE, METE, "run", "-q", "--gpu", "60%", "--", "sh", "-c",
                           "echo $METE_JOB_ID $METE_JOB_TOKEN $METE_GRANT; echo $$; sleep 1000 & wait")
        ident, token, grant = run.stdout.readline().split()
        program = int(run.stdout.readline())
        bob = self.as_user(BOB, "sleep", "1000", env={"METE_JOB_ID": ident, "METE_JOB_TOKEN": token, "METE_GRANT": grant})
        self.wait_state(1, "running")
        run.kill()
        run.wait()
        wait_until(lambda: not self.alive(program), "her program ends")
        self.wait_state(1, "ended")
        self.assertIsNone(bob.poll(), "his does not")
        self.assert_all_ended()

    def test_a_liar_hurts_nobody_but_himself(self):
        """He says that another's process is his runner: the socket knows his pid, and his clock is then wrong."""
        victim = self.as_user(ALICE, "sleep", "1000")
        run = self.holder_of(ALICE, "40%")
        ticks = int(read(f"/proc/{victim.pid}/stat").rsplit(b")", 1)[1].split()[19])
        job = {"name": "x", "command": ["true"], "cwd": "/", "request": {"gpu": "40%"}}
        request = {"job": job, "runner_start_ticks": ticks}
        for lie in ({"job": {**job, "uid": ALICE}}, {"job": {**job, "user": "root"}}, {"pid": victim.pid},
                    {"runner": {"pid": victim.pid, "start_ticks": ticks}}):
            status, answer = self.speak(BOB, "POST", "/v1/jobs", {**request, **lie})
            self.assertEqual((status, answer["error"]["code"]), (400, "invalid"), lie)
        status, answer = self.speak(BOB, "POST", "/v1/jobs", request)
        self.assertEqual(status, 201, answer)
        self.assertEqual((self.job(2)["uid"], self.job(2)["user"]), (BOB, str(BOB)))
        self.wait_state(2, "ended")
        self.assertEqual(self.speak(ALICE, "GET", "/v1/jobs/2")[0], 403)
        self.assertIsNone(victim.poll())
        self.release(run)
        self.assert_all_ended()

    def test_only_the_runner_reports(self):
        run = self.holder_of(ALICE, "60%")
        self.wait_state(1, "running")
        for report, body in (("started", {"pid": 1, "start_ticks": 1}), ("ended", {"exit_code": 0})):
            status, answer = self.speak(ALICE, "POST", f"/v1/jobs/1/{report}", body)
            self.assertEqual(status, 403, answer)
        self.assertEqual(self.job(1)["state"], "running")
        self.assertGreater(self.card()["granted_bytes"], 0)
        self.release(run)
        self.assert_all_ended()

    def test_a_daemon_killed_and_started_again_keeps_users_apart(self):
        alice = self.holder_of(ALICE, "60%")
        bob = self.as_user(BOB, METE, "run", "-q", "--gpu", "60%", "--", "echo", "bob")
        self.assertIn("waiting", bob.stderr.readline())
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = subprocess.Popen([METED, "--system", "--state-dir", str(self.state)], env=self.env, stderr=self.log)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.kill)
        self.wait_state(1, "running")
        self.wait_state(2, "pending")
        self.assertEqual(len(self.speak(BOB, "GET", "/v1/jobs")[1]["jobs"]), 1)
        self.release(alice)
        self.assertEqual(bob.communicate(timeout=BOUND_S)[0], "bob\n")
        self.assert_all_ended()


class PrivateDaemons(UsersTest):
    """Each has a daemon of his own; they know of each other by their claims alone."""

    def setUp(self):
        super().setUp()
        self.claims = self.folder / "claims"
        self.claims.mkdir()
        os.chmod(self.claims, 0o1777)
        for uid in (ALICE, BOB):
            self.addCleanup(self.end_all_of, uid)

    def env_of(self, uid):
        return {**super().env_of(uid), "METE_CLAIMS_DIR": str(self.claims)}

    def test_both_want_60_percent_of_one_card(self):
        alice = self.holder_of(ALICE, "60%")
        bob = self.as_user(BOB, METE, "run", "-q", "--gpu", "60%", "--", "echo", "bob")
        line = bob.stderr.readline()
        self.assertIn(f"{ALICE}'s mete", line)
        result = self.run_as(BOB, "-q", "--no-wait", "--gpu", "60%", "--", "true")
        self.assertEqual(result.returncode, 75, result.stderr)
        self.assertEqual(self.run_as(BOB, "-q", "--cpu-only", "--", "id", "-u").stdout, f"{BOB}\n")
        self.release(alice)
        self.assertEqual(bob.communicate(timeout=BOUND_S)[0], "bob\n")

    def test_a_killed_daemons_running_job_still_counts(self):
        alice = self.holder_of(ALICE, "60%")
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            if os.path.basename(read(entry / "cmdline").split(b"\0")[0]) == b"meted" and entry.stat().st_uid == ALICE:
                os.kill(int(entry.name), signal.SIGKILL)
        result = self.run_as(BOB, "-q", "--no-wait", "--gpu", "60%", "--", "true")
        self.assertEqual(result.returncode, 75, result.stderr)
        self.release(alice)
        self.assertEqual(self.run_as(BOB, "-q", "--gpu", "60%", "--", "true").returncode, 0)

    def test_a_socket_of_somebody_else_is_not_used(self):
        alice = self.holder_of(ALICE, "40%")
        path = self.home[ALICE] / "sim" / "run" / "meted.sock"
        self.assertTrue(path.exists())
        result = self.run_as(BOB, "--gpu", "40%", "--", "true", env={"METE_SOCKET": str(path)})
        self.assertEqual(result.returncode, 77, result.stderr)
        # Even when he may connect: requests are commands that run as us.
        os.chmod(self.home[ALICE], 0o755)
        for folder in (self.home[ALICE] / "sim", path.parent):
            os.chmod(folder, 0o755)
        os.chmod(path, 0o666)
        result = self.run_as(BOB, "--gpu", "40%", "--", "true", env={"METE_SOCKET": str(path)})
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn("belongs to neither root nor you", result.stderr)
        self.release(alice)

    def test_a_state_folder_of_somebody_else_is_not_used(self):
        theirs = self.home[ALICE] / "theirs"
        theirs.mkdir()
        os.chown(theirs, ALICE, ALICE)
        os.chmod(theirs, 0o777)
        os.chmod(self.home[ALICE], 0o755)
        env = {"METE_STATE_DIR": str(theirs), "METE_SIM_DIR": str(theirs), "METE_SOCKET": str(self.home[BOB] / "s")}
        result = self.run_as(BOB, "--gpu", "40%", "--", "true", env=env)
        self.assertIn(result.returncode, (77, 125), result.stderr)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        self.assertIn("another user", result.stderr)


if __name__ == "__main__":
    unittest.main()
