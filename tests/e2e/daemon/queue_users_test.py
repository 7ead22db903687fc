#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The queue of root's daemon: only its user controls a job, whatever another user tries, and administrators are a group."""
import json
import os
import pathlib
import shlex
import subprocess
import unittest

import users_test
from users_test import ALICE, BOB
from world import BOUND_S, METE, wait_until

ADMINS = 61003


class Queue(users_test.SystemDaemon):
    def do(self, uid, *words, groups=(), **options):
        env = {**self.env_of(uid), **options.pop("env", {})}
        return subprocess.run([METE, *map(str, words)], user=uid, group=uid, extra_groups=list(groups), env=env, text=True,
                              cwd=str(self.home[uid]), stdin=subprocess.DEVNULL, capture_output=True, timeout=BOUND_S, **options)

    def submit(self, uid, *words, **options):
        result = self.do(uid, "submit", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def ended(self, uid, job):
        self.do(uid, "wait", job)
        shown = json.loads(self.do(uid, "show", job, "-o", "json").stdout)["job"]
        self.assertEqual(shown["state"], "ended")
        return shown

    def holds(self, uid, *words):
        """A job that runs until it is cancelled, and its facts."""
        flag = self.home[uid] / "flag"
        job = self.submit(uid, "--gpu", "30%", *words, "--", "sh", "-c", f"echo $METE_GRANT > {flag}; echo secret; exec sleep 1000",
                          env={"TOKEN": "hunter2"})
        wait_until(lambda: flag.exists() and flag.read_text(), "it runs")
        return job, flag.read_text().strip()


# users_test.py tests what the machine itself does.
for name in [name for name in dir(Queue) if name.startswith("test_")]:
    setattr(Queue, name, None)


class OfTheirUsers(Queue):
    def test_user_groups_limits_umask_and_folder_are_the_owners(self):
        script = "id -u; id -g; id -G; umask; ulimit -n; pwd; echo $HOME; stat -c '%u %a' $METE_GRANT"
        command = f"umask 037; ulimit -n 222; exec {shlex.join([str(METE), 'submit', '--gpu', '10%', '--', 'sh', '-c', script])}"
        result = subprocess.run(["bash", "-c", command], user=ALICE, group=ALICE, extra_groups=[ADMINS], env=self.env_of(ALICE),
                                cwd=self.home[ALICE], text=True, capture_output=True, timeout=BOUND_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        shown = self.ended(ALICE, result.stdout.strip())
        self.assertEqual(shown["outcome"], "ok", shown)
        log = pathlib.Path(shown["log"])
        self.assertEqual(log.read_text().splitlines(),
                         [str(ALICE), str(ALICE), f"{ALICE} {ADMINS}", "0037", "222", str(self.home[ALICE]), str(self.home[ALICE]),
                          f"{ALICE} 600"])
        self.assertEqual(log.stat().st_uid, ALICE)

    def test_nobody_reads_what_is_anothers(self):
        job, grant = self.holds(ALICE)
        log = json.loads(self.do(ALICE, "show", job, "-o", "json").stdout)["job"]["log"]
        for path in (log, grant):
            self.assertEqual(self.as_user(ALICE, "head", "-c1", path).wait(BOUND_S), 0, path)
            self.assertNotEqual(self.as_user(BOB, "head", "-c1", path).wait(BOUND_S), 0, path)
        self.assertNotIn('"job"', self.do(BOB, "events", "-o", "json").stdout)
        # Not even its owner gets the values of its environment from us.
        for verb in ("show", "ps", "events"):
            words = [verb, job] if verb == "show" else [verb]
            self.assertNotIn("hunter2", self.do(ALICE, *words, "-o", "json").stdout, verb)
        self.assertEqual(self.do(ALICE, "cancel", job).returncode, 0)
        self.assertEqual(self.ended(ALICE, job)["outcome"], "cancelled")

    def test_logs_and_folders_are_tried_with_their_users_rights(self):
        theirs = self.home[BOB] / "precious"
        theirs.write_text("bob's\n")
        os.chown(theirs, BOB, BOB)
        os.chmod(theirs, 0o600)
        root_file = self.folder / "root-file"
        root_file.write_text("root's\n")
        os.chmod(root_file, 0o644)
        for target in (theirs, root_file):
            link = self.home[ALICE] / f"link-{target.name}"
            link.symlink_to(target)
            shown = self.ended(ALICE, self.submit(ALICE, "--cpu-only", "--log", link, "--", "echo", "mine"))
            self.assertEqual(shown["outcome"], "launch-failed", shown)
            self.assertIn("'s\n", target.read_text())
            self.assertNotIn("mine", target.read_text())
        fifo = self.home[ALICE] / "fifo"
        os.mkfifo(fifo, 0o666)
        os.chown(fifo, ALICE, ALICE)
        result = self.do(ALICE, "submit", "--cpu-only", "--log", fifo, "--", "echo", "mine")
        if result.returncode == 0:  # refused at submission, or when it would start
            shown = self.ended(ALICE, result.stdout.strip())
            self.assertEqual(shown["outcome"], "launch-failed", shown)
        locked = self.home[BOB]
        result = self.do(ALICE, "submit", "--cpu-only", "--chdir", locked, "--", "pwd")
        if result.returncode == 0:
            self.assertEqual(self.ended(ALICE, result.stdout.strip())["outcome"], "launch-failed")
        door = self.home[ALICE] / "door"
        door.symlink_to(locked)
        result = self.do(ALICE, "submit", "--cpu-only", "--chdir", door, "--", "pwd")
        if result.returncode == 0:
            self.assertEqual(self.ended(ALICE, result.stdout.strip())["outcome"], "launch-failed")

    def test_root_reads_a_log_with_its_users_rights(self):
        """A user who puts another folder or file in the place of the logs does not make root print it."""
        secret = self.folder / "secret"
        secret.mkdir(mode=0o700)
        shown = self.ended(ALICE, self.submit(ALICE, "--cpu-only", "--", "echo", "mine"))
        log = pathlib.Path(shown["log"])
        (secret / log.name).write_text("root's\n")
        os.chmod(secret / log.name, 0o600)
        self.assertEqual(self.mete("logs", shown["id"]).stdout, "mine\n")
        swaps = (f"mv {log.parent} {log.parent}.old && ln -s {secret} {log.parent}",
                 f"rm {log.parent} && mkdir {log.parent} && ln -s {secret / log.name} {log}")
        for swap in swaps:
            self.assertEqual(self.as_user(ALICE, "sh", "-c", swap).wait(BOUND_S), 0, swap)
            for words in (("logs",), ("logs", "-f"), ("logs", "--since", "1h")):
                result = self.mete(*words, shown["id"])
                self.assertNotEqual(result.returncode, 0, (swap, words))
                self.assertNotIn("root's", result.stdout + result.stderr)
                self.assertIn("Permission denied", result.stderr)
            self.assertNotIn("size_bytes", self.mete("logs", shown["id"], "-o", "json").stdout)

    def with_terminal(self):
        """A job of Alice's with a terminal, which asks for a word; and the socket to it."""
        job = self.submit(ALICE, "--cpu-only", "--tty", "--", "sh", "-c", "echo here; read x; echo got $x; exit 5")
        door = self.state / "users" / str(ALICE) / "terminals" / f"{job}.1"
        wait_until(door.exists, "its terminal is there")
        self.wait_state(job, "running")
        return job, door

    def looks(self, uid, job):
        """A client that looks at a terminal, once it has its content."""
        if uid == 0:
            process = self.start("attach", "-r", job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        else:
            process = self.as_user(uid, METE, "attach", "-r", job)
        self.assertEqual(process.stdout.readline().strip(), "here")
        return process

    def test_a_terminal_is_its_owners_and_roots(self):
        job, door = self.with_terminal()
        self.assertEqual((door.stat().st_uid, door.stat().st_mode & 0o777), (ALICE, 0o600))
        stranger = self.do(BOB, "attach", "-r", job)
        self.assertNotEqual(stranger.returncode, 0)
        self.assertIn(f"is {ALICE}'s", stranger.stderr)
        connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        self.assertNotEqual(self.as_user(BOB, "/usr/bin/python3", "-c", connect, door).wait(BOUND_S), 0)
        lookers = [self.looks(0, job), self.looks(ALICE, job)]
        mine, hers = os.openpty()
        self.addCleanup(os.close, mine)
        owner = self.as_user(ALICE, METE, "attach", job, stdin=hers, stdout=hers, start_new_session=True, env={"TERM": "xterm"})
        os.close(hers)
        os.write(mine, b"yes\n")
        self.assertEqual(owner.wait(BOUND_S), 5, "the job's own")
        for looker in lookers:
            self.assertIn("got yes", looker.stdout.read())
            self.assertEqual(looker.wait(BOUND_S), 5)
        self.assertEqual(self.ended(ALICE, job)["exit_code"], 5)

    def test_root_follows_no_door_that_leads_elsewhere(self):
        job, door = self.with_terminal()
        os.rename(door, self.home[ALICE] / "moved")
        for target in (self.socket, self.home[ALICE] / "moved"):
            door.symlink_to(target)
            result = self.mete("attach", "-r", job)
            self.assertEqual((result.returncode, result.stdout), (77, ""), result.stderr)
            self.assertIn("is not a socket", result.stderr)
            door.unlink()
        # A real socket of root's: she may change her own folder.
        os.rename(self.socket, door)
        try:
            result = self.mete("attach", "-r", job, env={"METE_SOCKET": str(door)})
            self.assertEqual(result.returncode, 77, result.stderr)
            self.assertIn("another user than the job", result.stderr)
        finally:
            os.rename(door, self.socket)
        self.assertEqual(self.do(ALICE, "cancel", job).returncode, 0)

    def test_root_waits_for_no_pipe_in_place_of_a_file(self):
        job = self.submit(ALICE, "--cpu-only", "--", "echo", "words")
        log = pathlib.Path(self.ended(ALICE, job)["log"])
        times = log.parent / f".{log.name}.times"
        times.unlink()
        os.mkfifo(times, 0o666)
        result = self.mete("logs", "--since", "5m", job)
        self.assertEqual((result.returncode, result.stdout), (125, ""), result.stderr)
        self.assertIn("is not a regular file", result.stderr)

    def test_what_needs_an_administrator(self):
        for words in (("drain", "0"), ("quota", "set", "--user", str(ALICE), "--running", "9"),
                      ("reserve", "--gpu", "1", "--from", "now+1h", "--for", "1h", "--user", str(ALICE))):
            result = self.do(ALICE, *words)
            self.assertEqual(result.returncode, 77, (words, result.stderr))
        job = self.submit(ALICE, "--cpu-only", "--hold", "--", "true")
        self.assertEqual(self.do(ALICE, "priority", job, "5").returncode, 77)
        self.assertEqual(self.do(ALICE, "submit", "--cpu-only", "--priority", "5", "--", "true").returncode, 77)
        self.assertEqual(self.do(ALICE, "priority", job, "-5").returncode, 0)
        self.assertEqual(self.mete("cancel", job).returncode, 0)  # root may


class Administrators(Queue):
    def setUp(self):
        subprocess.run(["groupadd", "-g", str(ADMINS), "mete-test-admins"], check=False, capture_output=True)
        self.addCleanup(lambda: subprocess.run(["groupdel", "mete-test-admins"], check=False, capture_output=True))
        self.configure('[daemon]\nadmin_group = "mete-test-admins"\n')
        super().setUp()

    def configure(self, text):
        import tempfile
        file = tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False)
        self.addCleanup(os.unlink, file.name)
        file.write(text)
        file.close()
        os.chmod(file.name, 0o644)
        self.config = file.name

    def start_daemon(self):
        self.env["METE_CONFIG"] = self.config
        super().start_daemon()

    def test_a_member_of_the_group_may(self):
        job = self.submit(ALICE, "--cpu-only", "--hold", "--", "true")
        result = self.do(BOB, "cancel", job, groups=[ADMINS])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.ended(ALICE, job)["outcome"], "cancelled")

    def test_quotas_hold_for_those_they_are_set_for(self):
        env = {"METE_SIM": self.sim}
        result = self.do(BOB, "quota", "set", "--user", str(ALICE), "--jobs", "2", groups=[ADMINS], env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        for _ in range(2):
            self.submit(ALICE, "--cpu-only", "--hold", "--", "true")
        result = self.do(ALICE, "submit", "--cpu-only", "--hold", "--", "true")
        self.assertEqual(result.returncode, 75, result.stderr)
        self.assertIn("2 unfinished jobs", result.stderr)
        self.submit(BOB, "--cpu-only", "--hold", "--", "true")


if __name__ == "__main__":
    unittest.main()
