# SPDX-License-Identifier: Apache-2.0
"""A private daemon is found by its state folder: from cron, after a logout, when its socket or all of its state was removed."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from world import BOUND_S, METE, VerbTest, read, wait_until  # noqa: E402


class Runtime(VerbTest):
    """With a runtime folder, as at a login, and without one, as from cron. Simulated cards have no socket there."""

    sim = None

    def setUp(self):
        super().setUp()
        self.assertFalse(os.path.exists("/run/mete/meted.sock"), "a daemon of this machine would answer here")
        self.runtime = self.folder / "user"
        self.runtime.mkdir(mode=0o700)
        self.env["METE_CLAIMS_DIR"] = str(self.folder / "claims")
        del self.env["METE_SOCKET"]
        self.env.pop("XDG_RUNTIME_DIR", None)
        self.login = {"XDG_RUNTIME_DIR": str(self.runtime)}

    def environments(self):
        other = self.folder / "another"
        other.mkdir(mode=0o700, exist_ok=True)
        return {"login": self.login, "cron": {}, "gone": {"XDG_RUNTIME_DIR": str(self.folder / "none")},
                "another login": {"XDG_RUNTIME_DIR": str(other)}}

    def submit_in(self, env, *words):
        result = self.mete("submit", "--cpu-only", *words, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def every_verb_finds(self, pid, job):
        for name, env in self.environments().items():
            with self.subTest(name):
                status = self.mete("daemon", "status", env=env)
                self.assertEqual(status.returncode, 0, status.stderr)
                self.assertIn(f"pid {pid} ", status.stdout)
                self.assertIn(f"pid {pid} ", self.mete("doctor", env=env).stdout)
                for words in (("ps", "-a"), ("show", job), ("top", "--once"), ("events",)):
                    result = self.mete(*words, env=env)
                    self.assertEqual(result.returncode, 0, (words, result.stderr))
                self.assertIn(job, self.mete("ps", "-a", env=env).stdout.split())
                self.assertEqual(self.mete("wait", "@", env=env).returncode, 0)
                self.submit_in(env, "--", "true")
                result = self.mete("run", "-q", "--cpu-only", "--", "echo", "fine", env=env)
                self.assertEqual((result.returncode, result.stdout), (0, "fine\n"), result.stderr)
                self.assertEqual(self.daemon_pid(), pid)

    def test_a_daemon_of_a_login_is_found_from_everywhere(self):
        job = self.submit_in(self.login, "--", "true")
        pid = self.daemon_pid()
        self.assertTrue((self.runtime / "mete" / "meted.sock").is_socket())
        self.every_verb_finds(pid, job)
        result = self.mete("daemon", "stop")
        self.assertIn(f"(pid {pid}) has ended", result.stderr)
        self.assertIsNone(self.daemon_pid())

    def test_after_a_logout_it_listens_again(self):
        job = self.submit_in(self.login, "--", "true")
        pid = self.daemon_pid()
        # Input of the run must arrive as well.
        run = self.start_run("-q", "--cpu-only", "--", "sh", "-c", "read line", env=self.login, stdin=subprocess.PIPE)
        wait_until(lambda: "sh" in self.mete("ps", env=self.login).stdout, "it runs")
        shutil.rmtree(self.runtime)
        self.every_verb_finds(pid, job)
        self.assertIn(str(self.state / "run" / "meted.sock"), self.mete("daemon", "status").stdout)
        run.stdin.write("\n")
        run.stdin.close()
        run.stdin = None
        self.assertEqual(run.wait(BOUND_S), 0)
        wait_until(lambda: "sh" not in self.mete("ps").stdout, "the daemon hears of its end")
        # The next login: the folder is there again, and the daemon stays where it is.
        self.runtime.mkdir(mode=0o700)
        self.every_verb_finds(pid, job)
        self.assertEqual(self.mete("daemon", "stop", env=self.login).returncode, 0)
        self.assertIsNone(self.daemon_pid())
        self.submit_in(self.login, "--", "true")
        self.assertTrue((self.runtime / "mete" / "meted.sock").is_socket())

    def test_a_run_of_a_login_finds_the_daemon_that_cron_started(self):
        self.submit_in(self.login, "--", "true")
        run = self.start_run("-q", "--cpu-only", "--", "sh", "-c", "read line", env=self.login, stdin=subprocess.PIPE)
        wait_until(lambda: "sh" in self.mete("ps", env=self.login).stdout, "it runs")
        self.kill_daemon()
        shutil.rmtree(self.runtime)
        self.assertIn("sh", self.mete("ps").stdout)
        run.stdin.close()
        run.stdin = None
        self.assertNotEqual(run.wait(BOUND_S), 125)
        wait_until(lambda: "sh" not in self.mete("ps").stdout, "the daemon hears of its end")

    def test_a_state_folder_with_a_long_path(self):
        self.state = self.folder / ("long" * 30) / "state"
        self.env["METE_STATE_DIR"] = str(self.state)
        job = self.submit_in(self.login, "--", "true")
        pid = self.daemon_pid()
        shutil.rmtree(self.runtime)
        self.every_verb_finds(pid, job)
        where = pathlib.Path(read(self.state / "meted.address").split(b"\n")[0].decode())
        self.assertEqual(where.parent.parent, pathlib.Path("/tmp"))
        self.assertEqual(self.mete("daemon", "stop").returncode, 0)
        self.assertFalse(where.parent.exists(), "nothing is left")

    def test_clients_of_two_environments_start_one_daemon(self):
        clients = [subprocess.Popen([METE, "submit", "--cpu-only", "--", "true"], env={**self.env, **env}, text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for env in list(self.environments().values()) * 2]
        for client in clients:
            output, errors = client.communicate(timeout=BOUND_S)
            self.assertEqual(client.returncode, 0, errors)
        self.assertEqual(len(self.mete("ps", "-a", "-q").stdout.split()), len(clients), "one daemon has them all")

    def test_a_socket_that_is_named_is_not_left_for_another(self):
        self.submit_in(self.login, "--", "true")
        named = {"METE_SOCKET": str(self.folder / "named")}
        self.assertEqual(self.mete("daemon", "status", env=named).returncode, 1)
        self.assertEqual(self.mete("daemon", "stop", env=named).returncode, 0)
        self.assertIsNotNone(self.daemon_pid())
        result = self.mete("submit", "--cpu-only", "--", "true", env=named)
        self.assert_refused(result, 75, "another daemon uses the state folder", "unset METE_SOCKET")


class Removed(VerbTest):
    def test_the_socket_alone(self):
        first = self.submit("--cpu-only", "--", "true")
        pid = self.daemon_pid()
        for _ in range(3):
            os.unlink(self.env["METE_SOCKET"])
            self.assertIn(first, self.mete("ps", "-a").stdout.split())
            self.assertEqual(self.daemon_pid(), pid)

    def test_keepers_are_told_by_a_daemon_that_has_moved(self):
        folder = self.folder / "gone"
        folder.mkdir(mode=0o700)
        self.env["METE_SOCKET"] = str(folder / "s")
        job = self.submit("--gpu", "8G", "--preemptible", "--", "sleep", "1000")
        wait_until(lambda: self.mete("show", job).stdout.count("running"), "it runs")
        shutil.rmtree(folder)
        folder.write_text("in the way")
        result = self.mete("park", job)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("parked", self.mete("ps").stdout)
        self.assertEqual(self.mete("cancel", job).returncode, 0)

    def test_a_submit_right_after_the_state_was_removed_is_kept(self):
        inside = {"METE_SOCKET": str(self.folder / "sim" / "run" / "meted.sock")}
        for name, env in (("socket in the state", inside), ("socket elsewhere", {})):
            self.end_daemon()
            for _ in range(2):
                with self.subTest(name):
                    self.assertEqual(self.mete("submit", "--cpu-only", "--", "true", env=env).returncode, 0)
                    old = self.daemon_pid()
                    self.addCleanup(lambda old=old: self.alive(old) and os.kill(old, signal.SIGKILL))
                    os.kill(old, signal.SIGSTOP)  # it notices nothing until the next one serves
                    gone = self.folder / f"gone-{old}"  # at once: its helper goes on writing there
                    os.rename(self.folder / "sim", gone)
                    shutil.rmtree(gone, ignore_errors=True)
                    if env:
                        job = self.mete("submit", "--cpu-only", "--", "true", env=env)
                        os.kill(old, signal.SIGCONT)
                    else:
                        os.kill(old, signal.SIGCONT)
                        job = self.mete("submit", "--cpu-only", "--", "true", env=env)
                    wait_until(lambda: not self.alive(old), "the old one ends")
                    if job.returncode != 0:  # it was not accepted, and that is reported
                        self.assertIn("error: ", job.stderr)
                        job = self.mete("submit", "--cpu-only", "--", "true", env=env)
                    self.assertEqual(job.returncode, 0, job.stderr)
                    listed = self.mete("ps", "-a", env=env)
                    self.assertIn(job.stdout.strip(), listed.stdout.split(), listed.stderr)
                    pid_file = read(self.folder / "sim" / "meted.pid")
                    self.assertEqual(int(pid_file), self.daemon_pid(), "the old one has not removed it")


if __name__ == "__main__":
    unittest.main()
