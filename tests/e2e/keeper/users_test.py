#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Root's daemon keeps the jobs of two real users: each has its own rights, and nothing of the other's."""
import os
import pwd
import pathlib
import signal
import subprocess
import unittest

from world import KeeperTest, alive, read, wait_until

NAMES = ("mete-test-alice", "mete-test-bob")


def make_user(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", "--user-group", name], check=True)
        return pwd.getpwnam(name)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be two other users")
class Users(KeeperTest):
    @classmethod
    def setUpClass(cls):
        cls.alice, cls.bob = (make_user(name) for name in NAMES)

    @classmethod
    def tearDownClass(cls):
        for name in NAMES:
            subprocess.run(["userdel", name], check=False, stderr=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        os.chmod(self.state, 0o711)
        self.home = {}
        for user in (self.alice, self.bob):
            self.home[user.pw_uid] = home = self.folder / user.pw_name
            home.mkdir(mode=0o700)
            os.chown(home, user.pw_uid, user.pw_gid)
            self.addCleanup(self.end_all_of, user.pw_uid)

    @staticmethod
    def end_all_of(uid):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if entry.stat().st_uid == uid:
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass

    def sh_as(self, user, job, text, **more):
        more.setdefault("folder", str(self.home[user.pw_uid]))
        more.setdefault("groups", [user.pw_gid])
        self.sh(job, text, uid=user.pw_uid, gid=user.pw_gid, as_owner=True, state=str(self.state / "users" / str(user.pw_uid)), **more)

    def as_user(self, user, *words):
        return subprocess.run([str(word) for word in words], user=user.pw_uid, group=user.pw_gid, extra_groups=[], capture_output=True,
                              text=True, cwd="/")

    def log_of(self, user, job):
        return self.state / "users" / str(user.pw_uid) / "logs" / f"{job}.log"

    def refused(self, job):
        exit = self.ended(job)
        self.assertTrue(exit.get("not_started"), exit)
        return exit["note"]

    def test_a_job_is_its_users_in_every_way(self):
        extra = 61234
        # Above root's own if root may raise them (CAP_SYS_RESOURCE).
        may_raise = int(next(line for line in read("/proc/self/status").decode().splitlines() if "CapEff" in line).split()[1], 16) >> 24 & 1
        soft, hard = (300_000, 400_000) if may_raise else (1000, 2000)
        self.sh_as(self.alice, 1, "id -u; id -g; id -G; umask; ulimit -n; ulimit -Hn; grep -E 'Cap(Inh|Prm|Eff)' /proc/self/status; pwd;"
                   "sleep 1000", umask=0o027, groups=[self.alice.pw_gid, extra], limits=[[7, soft, hard]])
        keeper, program = self.started(1)
        log = self.log_of(self.alice, 1)
        wait_until(lambda: log.read_text().count("\n") >= 10, "it has said all")
        lines = log.read_text().split("\n")
        uid, gid = self.alice.pw_uid, self.alice.pw_gid
        self.assertEqual(lines[:2], [str(uid), str(gid)])
        self.assertEqual(set(lines[2].split()), {str(gid), str(extra)})
        self.assertEqual(lines[3:6], ["0027", str(soft), str(hard)])
        self.assertEqual(set(line.split()[1] for line in lines[6:9]), {"0000000000000000"})
        self.assertEqual(lines[9], str(self.home[uid]))
        for pid in (keeper, program):
            status = read(f"/proc/{pid}/status").decode()
            for line in ("Uid", "Gid"):
                number = uid if line == "Uid" else gid
                self.assertIn(f"\n{line}:\t{number}\t{number}\t{number}\t{number}\n", status)
        self.assertEqual((os.stat(log).st_uid, os.stat(log).st_mode & 0o777), (uid, 0o600))
        self.stop(1)
        self.assertEqual(self.ended(1)["signal"], signal.SIGTERM)
        self.assert_nothing_left()

    def test_nobody_reads_or_ends_anothers(self):
        self.sh_as(self.alice, 1, "echo secret; sleep 1000", environment=["PASSWORD=secret"])
        keeper, program = self.started(1)
        log = self.log_of(self.alice, 1)
        wait_until(lambda: "secret" in log.read_text(), "it writes")
        places = [log, log.parent, self.state / "users" / str(self.alice.pw_uid), self.state / "keep" / "1.1", self.state / "keep",
                  f"/proc/{program}/environ", f"/proc/{keeper}/environ", f"/proc/{keeper}/fd", self.state / "users", self.state]
        for place in places:
            tried = self.as_user(self.bob, "ls" if os.path.isdir(place) else "cat", place)
            self.assertNotEqual(tried.returncode, 0, place)
            self.assertNotIn("secret", tried.stdout)
        for pid in (keeper, program):
            self.assertNotEqual(self.as_user(self.bob, "/bin/kill", "-9", pid).returncode, 0)
            self.assertTrue(alive(pid))
        # Her own: log and program, but not the record, which belongs to the daemon, nor the keeper's memory.
        self.assertEqual(self.as_user(self.alice, "cat", log).returncode, 0)
        for place in (self.state / "keep" / "1.1", f"/proc/{keeper}/environ", f"/proc/{keeper}/fd/0"):
            self.assertNotEqual(self.as_user(self.alice, "cat", place).returncode, 0, place)
        self.stop(1)
        self.ended(1)

    def test_a_log_that_is_a_link_to_anothers_file(self):
        precious = self.home[self.bob.pw_uid] / "precious"
        precious.write_text("bob's\n")
        os.chown(precious, self.bob.pw_uid, self.bob.pw_gid)
        roots = self.folder / "roots"
        roots.write_text("root's\n")
        os.chmod(roots, 0o600)
        for job, target in ((1, precious), (2, roots), (3, "/etc/passwd"), (4, self.state / "keep" / "4.1")):
            link = self.home[self.alice.pw_uid] / f"log-{job}"
            link.symlink_to(target)
            before = read(target)
            self.sh_as(self.alice, job, "echo mine", log=str(link))
            self.assertIn("Permission denied", self.refused(job))
            if job < 4:
                self.assertEqual(read(target), before)

    def test_a_log_in_anothers_folder(self):
        self.sh_as(self.alice, 1, "echo mine", log=str(self.home[self.bob.pw_uid] / "log"))
        self.assertIn("Permission denied", self.refused(1))
        self.assertEqual(os.listdir(self.home[self.bob.pw_uid]), [])

    def test_a_log_that_is_a_fifo_or_a_folder(self):
        home = self.home[self.alice.pw_uid]
        os.mkfifo(home / "fifo")
        os.chown(home / "fifo", self.alice.pw_uid, self.alice.pw_gid)
        self.sh_as(self.alice, 1, "echo mine", log=str(home / "fifo"))
        self.assertIn("is a FIFO", self.refused(1))
        self.sh_as(self.alice, 2, "echo mine", log=str(home))
        self.assertIn("is a folder", self.refused(2))

    def test_a_log_of_her_own_has_her_name_and_mode(self):
        log = self.home[self.alice.pw_uid] / "log"
        self.sh_as(self.alice, 1, "echo mine", log=str(log), umask=0o022)
        self.ended(1)
        self.assertEqual((log.read_text(), log.stat().st_uid, log.stat().st_gid, log.stat().st_mode & 0o777),
                         ("mine\n", self.alice.pw_uid, self.alice.pw_gid, 0o644))

    def test_a_folder_that_she_may_not_enter(self):
        self.sh_as(self.alice, 1, "echo mine", folder=str(self.home[self.bob.pw_uid]))
        self.assertIn("Permission denied", self.refused(1))
        link = self.home[self.alice.pw_uid] / "link"
        link.symlink_to(self.home[self.bob.pw_uid])
        self.sh_as(self.alice, 2, "echo mine", folder=str(link))
        self.assertIn("Permission denied", self.refused(2))
        self.sh_as(self.alice, 3, "echo mine", folder="/root")
        self.assertIn("Permission denied", self.refused(3))

    def test_a_script_is_her_own(self):
        self.start(1, "x", script="#!/bin/sh\nstat -c '%U %a' $0\n", uid=self.alice.pw_uid, gid=self.alice.pw_gid, as_owner=True,
                   state=str(self.state / "users" / str(self.alice.pw_uid)))
        self.assertEqual(self.ended(1)["exit_code"], 0)
        self.assertEqual(self.log_of(self.alice, 1).read_text(), f"{NAMES[0]} 700\n")

    def test_a_state_folder_that_is_anothers_is_not_used(self):
        self.sh_as(self.alice, 1, "true")
        self.ended(1)
        mine = self.state / "users" / str(self.alice.pw_uid)
        os.rename(mine, self.folder / "away")
        mine.mkdir()
        os.chown(mine, self.bob.pw_uid, self.bob.pw_gid)
        self.sh_as(self.alice, 2, "echo ran")
        self.assertIn("is not a folder of the job's user", self.refused(2))

    def test_what_is_left_of_a_killed_keeper_is_ended(self):
        self.sh_as(self.alice, 1, f"cd /; {self.hider_of(self.alice)} & sleep 1000")
        keeper, program = self.started(1)
        hidden = self.hidden()
        self.assertEqual(self.as_user(self.alice, "/bin/kill", "-9", keeper).returncode, 0)
        self.assertEqual(self.final(1)["event"], "runner_gone")
        self.stop(1)
        self.driver.wait(1, "job_gone")
        self.assertFalse(alive(program) or alive(hidden))
        self.assert_nothing_left()

    def hider_of(self, user):
        words = self.hider().split()
        home = self.home[user.pw_uid]
        (home / "hidden").touch()
        os.chown(home / "hidden", user.pw_uid, user.pw_gid)
        (self.folder / "hidden").symlink_to(home / "hidden")
        return " ".join(words)


if __name__ == "__main__":
    unittest.main()
