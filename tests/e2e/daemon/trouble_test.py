#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input and broken machines: one clear error, the documented exit code, nothing changed, nothing waits for ever."""
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import unittest

from world import BOUND_S, BUILD, DaemonTest, METE, SANITIZED, wait_until

ROOT = os.geteuid() == 0


class FakeDaemon:
    """Whatever listens at a path: `answer` gets the connection and does as it likes."""

    def __init__(self, path, answer):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(16)
        self.answer = answer
        self.connections = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def close(self):
        self.socket.close()
        for connection in self.connections:
            connection.close()


def says(status, body):
    def answer(connection):
        text = body.encode()
        while connection.recv(1 << 20):
            connection.sendall(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(text)) + text)
    return answer


class Places(DaemonTest):
    """Sockets and folders that are not what they should be."""

    def fake(self, answer):
        daemon = FakeDaemon(self.env["METE_SOCKET"], answer)
        self.addCleanup(daemon.close)
        return daemon

    def refused(self, exit_code, *texts, words=("--gpu", "8G", "--", "true"), env=None, **options):
        result = self.run_(*words, env=env, **options)
        self.assert_refused(result, exit_code, *texts)
        wait_until(lambda: self.daemon_pid() is None, "no daemon stays")
        return result

    def test_a_daemon_of_another_version(self):
        error = {"error": {"code": "unsupported", "message": "this daemon speaks version 2", "hint": "mete daemon stop", "exit": 64}}
        self.fake(says(501, json.dumps(error)))
        self.refused(64, "this daemon speaks version 2", "mete daemon stop")

    def test_answers_that_mean_nothing(self):
        for body in ("{}", '{"job":7}', "[1,2]", "nonsense", "", '{"job":{"id":"1","state":"dancing"}}'):
            with self.subTest(body=body):
                daemon = self.fake(says(201, body))
                try:
                    self.refused(125, "daemon")
                finally:
                    daemon.close()
                    os.unlink(self.env["METE_SOCKET"])
        self.fake(says(500, "<html>"))
        self.refused(125)

    def test_another_programs_socket(self):
        def garbage(connection):
            connection.recv(100)
            connection.sendall(b"220 mail.example.org ESMTP\r\n" * 100)
        self.fake(garbage)
        self.refused(125, self.env["METE_SOCKET"])

    def test_a_socket_that_never_answers(self):
        self.fake(lambda connection: None)
        self.refused(125, self.env["METE_SOCKET"], f"process {os.getpid()}")

    def test_a_socket_that_closes_at_once(self):
        self.fake(lambda connection: connection.close())
        self.refused(125)

    def test_a_plain_file_a_folder_a_link_in_place_of_the_socket(self):
        path = pathlib.Path(self.env["METE_SOCKET"])
        path.write_text("keep me")
        self.refused(64, "not a socket", str(path))
        self.assertEqual(path.read_text(), "keep me")
        path.unlink()
        path.mkdir()
        self.refused(64, "not a socket", str(path))
        path.rmdir()
        path.symlink_to("/nowhere/at/all")
        self.refused(64, "not a socket", str(path))
        self.assertTrue(path.is_symlink())

    def test_paths_that_cannot_be(self):
        self.refused(64, "too long", env={"METE_SOCKET": "/tmp/" + "x" * 200})
        self.refused(64, "absolute", env={"METE_SOCKET": "run/meted.sock"})
        self.refused(64, "METE_STATE_DIR", env={"METE_STATE_DIR": "state"})

    def test_a_socket_folder_that_others_may_write(self):
        folder = self.folder / "open"
        folder.mkdir()
        os.chmod(folder, 0o777)
        self.refused(77, "others may write", env={"METE_SOCKET": str(folder / "s")})

    def test_a_state_folder_that_is_a_file(self):
        (self.folder / "sim").write_text("")
        self.refused(125, str(self.folder / "sim"))

    def test_a_state_folder_that_others_may_write(self):
        (self.folder / "sim").mkdir()
        os.chmod(self.folder / "sim", 0o777)
        self.refused(77, "writable by others")

    @unittest.skipUnless(ROOT, "root owns nothing that it could not write otherwise")
    def test_a_state_folder_of_somebody_else(self):
        (self.folder / "sim").mkdir()
        os.chown(self.folder / "sim", 61001, 61001)
        self.refused(77, "another user")

    def test_no_home_and_no_runtime_folder(self):
        env = {name: value for name, value in self.env.items()
               if name not in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "METE_SOCKET")}
        result = subprocess.run([METE, "run", "-q", "--gpu", "8G", "--", "echo", "fine"], env=env, capture_output=True, text=True,
                                timeout=BOUND_S, stdin=subprocess.DEVNULL)
        self.assertEqual((result.returncode, result.stdout), (0, "fine\n"), result.stderr)

    def test_a_database_that_is_damaged(self):
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)
        self.kill_daemon(signal.SIGTERM)
        path = self.folder / "sim" / "meted.db"
        good = path.read_bytes()
        path.write_bytes(b"not a database at all" * 1000)
        self.refused(125, "meted.db")
        path.write_bytes(good)
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 99")
        database.close()
        newer = path.read_bytes()
        self.refused(64, "newer mete", "99")
        self.assertEqual(path.read_bytes(), newer, "left as it was")
        path.write_bytes(good)
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)

    def test_a_configuration_that_is_wrong(self):
        config = self.folder / "config.toml"
        config.write_text("[daemon\nidle = ")
        self.refused(65, str(config), env={"METE_CONFIG": str(config)})


class Parts(DaemonTest):
    """An installation with something missing."""

    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        for name in ("bin", "lib", "simgpu"):
            shutil.copytree(BUILD / name, self.prefix / name, symlinks=True)
        self.program = str(self.prefix / "bin" / "mete")

    def test_without_meted(self):
        (self.prefix / "bin" / "meted").unlink()
        self.assert_refused(self.mete("run", "--gpu", "8G", "--", "true", program=self.program), 125, "meted")

    def test_with_a_meted_that_is_no_program(self):
        (self.prefix / "bin" / "meted").write_text("#!/no/such/interpreter\n")
        self.assert_refused(self.mete("run", "--gpu", "8G", "--", "true", program=self.program), 125, "meted")

    def test_without_the_meter(self):
        for path in (self.prefix / "lib").glob("libmete.so*"):
            path.unlink()
        self.assert_refused(self.mete("run", "--gpu", "8G", "--", "true", program=self.program), 125, "libmete.so")


class Programs(DaemonTest):
    """Programs and words that are unusual; everything comes through as it was typed."""

    def test_bytes_that_are_no_text(self):
        odd = b"a\nb\x01\xff\xfe\x1b[2J"
        result = subprocess.run([METE.encode(), b"run", b"-q", b"--gpu", b"8G", b"--name", odd, b"--env", b"ODD=" + odd, b"--",
                                 b"sh", b"-c", b'printf %s "$1$ODD"', b"sh", odd],
                                env={**{k.encode(): v.encode() for k, v in self.env.items()}, b"BAD\xff": b"\xff\n"},
                                capture_output=True, timeout=BOUND_S)
        self.assertEqual((result.returncode, result.stdout), (0, odd + odd), result.stderr)
        job = self.job(1)
        self.assertEqual(job["outcome"], "ok")
        listed = self.mete("ps", "-a")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertNotRegex(listed.stdout, "[\x00-\x08\x0b-\x1f]")
        self.assertEqual(len(listed.stdout.splitlines()), 2)
        self.kill_daemon()
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0, "the log can be read again")

    def test_a_very_long_command_line(self):
        long = "x" * 120_000
        result = self.run_("-q", "--gpu", "8G", "--", "sh", "-c", "echo ${#1}", "sh", long)
        self.assertEqual((result.returncode, result.stdout), (0, "120000\n"), result.stderr)
        words = [long] * 12  # more than a request may have
        result = self.run_("-q", "--gpu", "8G", "--", "sh", "-c", 'shift 11; echo ${#1}', "sh", *words)
        self.assertEqual((result.returncode, result.stdout), (0, "120000\n"), result.stderr)
        self.assert_nothing_left()

    def test_a_folder_that_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        process = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" run -q --gpu 8G -- echo fine', "sh", str(gone), METE],
                                 env=self.env, capture_output=True, text=True, timeout=BOUND_S)
        self.assertEqual((process.returncode, process.stdout), (0, "fine\n"), process.stderr)

    def test_closed_descriptors(self):
        result = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", METE, "run", "--gpu", "8G", "--", "sh", "-c",
                                 'ls /proc/self/fd > "$OUT"; exit 5'], env={**self.env, "OUT": str(self.folder / "out")}, timeout=BOUND_S)
        self.assertEqual(result.returncode, 5)
        # As without us: `ls` opens the folder with its first free descriptor.
        self.assertIn((self.folder / "out").read_text().split(), (["0", "1", "2"], ["1", "3"], ["0", "1"]))
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)
        self.assert_nothing_left()

    def test_in_a_pipeline(self):
        result = subprocess.run(["bash", "-c", 'set -o pipefail; seq 100000 | "$0" run -q --gpu 8G -- cat | "$0" run -q --gpu 8G -- head -1',
                                 METE], env=self.env, capture_output=True, text=True, timeout=BOUND_S)
        self.assertEqual(result.stdout, "1\n")
        self.assertEqual(result.returncode, 141, "cat's SIGPIPE, as without us")
        self.assert_nothing_left()

    def test_under_nohup(self):
        process = self.start_run("-q", "--gpu", "8G", "--", "sh", "-c", "echo up; read x; exit 4", stdin=subprocess.PIPE,
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGHUP)
        self.release(process, 4)

    def test_nohup_while_waiting(self):
        holder = self.holder("1")
        waiting = self.start_run("--gpu", "8G", "--", "echo", "here",
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertIn("waiting", waiting.stderr.readline())
        waiting.send_signal(signal.SIGHUP)
        self.release(holder)
        self.assertEqual(waiting.communicate(timeout=BOUND_S)[0], "here\n")
        self.assertEqual(waiting.returncode, 0)

    def test_a_program_that_ignores_term(self):
        result = self.run_("-q", "--gpu", "8G", "--time", "1s", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
        self.assertEqual(result.returncode, 124, result.stderr)
        self.assertEqual((self.job(1)["outcome"], self.job(1)["signal"]), ("timeout", 9))
        self.assert_nothing_left()

    def test_output_that_nobody_reads(self):
        """A wait line into a closed pipe is no reason to die."""
        holder = self.holder("1")
        reader, writer = os.pipe()
        waiting = self.start_run("--gpu", "8G", "--", "true", stderr=writer)
        os.close(writer)
        self.wait_state(2, "pending")
        os.close(reader)
        self.kill_daemon()
        wait_until(lambda: self.daemon_pid() is not None, "a client starts it again")
        self.release(holder)
        self.assertEqual(waiting.wait(BOUND_S), 0)


class Daemon(DaemonTest):
    def test_the_state_folder_is_removed_under_it(self):
        holder = self.holder("60%")
        others = [self.start_run("--gpu", "60%", "--", "sh", "-c", f"exit {code}") for code in (4, 5)]
        self.wait_state(3, "pending")
        daemon = self.daemon_pid()
        shutil.rmtree(self.folder / "sim")
        # It ends rather than accept jobs that it could not store; waiting clients start the next one and submit again.
        wait_until(lambda: not self.alive(daemon), "the daemon ends")
        self.assertEqual([other.wait(BOUND_S) for other in others], [4, 5])
        self.release(holder, 3)
        self.assertEqual(sorted(job["exit_code"] for job in self.jobs()), [4, 5])

    def test_many_connections(self):
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)
        sockets = []
        try:
            for _ in range(1100):
                one = socket.socket(socket.AF_UNIX)
                one.settimeout(BOUND_S)
                one.connect(self.env["METE_SOCKET"])
                sockets.append(one)
            self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)
            for one in sockets[::100]:
                one.sendall(b"GET /v1/version HTTP/1.1\r\nhost: mete\r\n\r\n")
                self.assertIn(b"200", one.recv(4096))
        finally:
            for one in sockets:
                one.close()
        self.assert_nothing_left()

    def test_nonsense_to_the_door(self):
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)
        for method, path, body, status in (("POST", "/v1/jobs", "{", 400), ("POST", "/v1/jobs", "{}", 400), ("GET", "/v2/jobs", None, 501),
                                           ("GET", "/v1/jobs/x", None, 400), ("DELETE", "/v1/jobs/99", None, 404),
                                           ("POST", "/v1/jobs", "[" * 100_000, 400)):
            got, answer = self.api(path, method, body)
            self.assertEqual(got, status, (method, path, answer))
            self.assertIn("message", answer["error"])
        self.assertEqual(len(self.jobs()), 1)


class FileSizes(DaemonTest):
    """ulimit -f: what cannot be written is told, and nothing of ours dies of it."""

    def limited(self, blocks, *words):
        """With files of at most BLOCKS times 512 bytes."""
        return subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *map(str, words)], env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=BOUND_S)

    def test_a_run(self):
        self.mete("cards")
        result = self.limited(8, METE, "run", "-q", "--gpu", "8G", "--", "true")
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("File too large", result.stderr)
        # The program has the signal as without us.
        writes = ["sh", "-c", f"head -c 65536 /dev/zero > {self.folder}/out; echo $?"]
        alone = self.limited(8, *writes)
        self.assertEqual(alone.stdout, f"{128 + signal.SIGXFSZ}\n")
        self.assertEqual(self.limited(8, METE, "run", "-q", "--cpu-only", "--", *writes).stdout, alone.stdout)

    def test_a_daemon(self):
        """It does not start where its state could not grow. One that runs already takes jobs from there."""
        submit = (METE, "submit", "--cpu-only", "--", "true")
        self.assert_refused(self.limited(512, *submit), 75, "ulimit -H -f: 256 KiB")
        wait_until(lambda: self.daemon_pid() is None, "the daemon has ended")
        self.mete("cards")
        result = self.limited(1 if SANITIZED else 0, *submit)  # the thread sanitizer writes a file of its own at the start
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.mete("wait", result.stdout.strip()).returncode, 0)

    def test_a_limit_of_the_shell_that_can_be_raised_is_not_the_daemons(self):
        self.assertEqual(subprocess.run(["sh", "-c", f"ulimit -S -f 8; exec {METE} cards"], env=self.env, capture_output=True).returncode, 0)
        self.assertIn("unlimited", next(line for line in pathlib.Path(f"/proc/{self.daemon_pid()}/limits").read_text().splitlines()
                                        if line.startswith("Max file size")).split()[3])


@unittest.skipUnless(ROOT, "needs root, to mount")
class Disks(DaemonTest):
    def mount(self, *words):
        mounted = subprocess.run(["mount", *words], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("mount: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", words[-1]], capture_output=True)

    def test_a_full_disk(self):
        """Nothing new is taken; what runs ends, and how it ended is known as soon as there is room."""
        disk = self.folder / "sim"
        disk.mkdir(mode=0o700)
        self.mount("-t", "tmpfs", "-o", "size=64m,mode=0700", "none", str(disk))
        self.addCleanup(self.end_daemon)
        self.addCleanup(self.stop_simulation)
        holders = [self.holder("30%") for _ in range(2)]
        stuffing = disk / "stuffing"
        file = os.open(stuffing, os.O_WRONLY | os.O_CREAT, 0o600)
        for size in (65536, 4096):
            try:
                while os.write(file, bytes(size)) == size:
                    pass
            except OSError:
                pass
        os.close(file)
        refused = False
        for _ in range(500):
            result = self.run_("-q", "--gpu", "10%", "--", "true")
            if result.returncode != 0:
                refused = True
                break
        self.assertTrue(refused, "the log has grown into the last page")
        self.assert_refused(result, 75, "disk", "full")
        self.release(holders[0], 5)
        stuffing.unlink()
        self.release(holders[1], 6)
        self.assertEqual(self.run_("-q", "--gpu", "10%", "--", "true").returncode, 0)
        self.kill_daemon()
        self.assertEqual(self.run_("-q", "--gpu", "10%", "--", "true").returncode, 0)
        self.assertEqual([self.job(1)["exit_code"], self.job(2)["exit_code"]], [5, 6])
        self.assert_nothing_left()

    def test_no_room_for_a_grant_file(self):
        """A submitted job waits until there is room: a full disk is no end of it."""
        self.assertEqual(self.mete("wait", *self.mete("submit", "--gpu", "8G", "--", "true").stdout.split()).returncode, 0)
        grants = self.folder / "sim" / "grants"
        self.mount("-t", "tmpfs", "-o", "size=4k,mode=0700", "none", str(grants))
        self.addCleanup(self.end_daemon)
        (grants / "stuffing").write_bytes(bytes(4096))
        ident = self.mete("submit", "--gpu", "8G", "--", "true").stdout.strip()
        wait_until(lambda: self.job(ident).get("reason") == "retry", "the job is put off")
        self.assertIn("No space left on device", self.mete("explain", ident).stdout)
        subprocess.run(["umount", str(grants)], check=True)
        self.assertEqual(self.mete("wait", ident).returncode, 0)

    def test_a_state_that_became_read_only(self):
        self.assertEqual(self.run_("-q", "--gpu", "8G", "--", "true").returncode, 0)
        self.kill_daemon(signal.SIGTERM)
        state = str(self.folder / "sim")
        self.mount("--bind", state, state)
        self.addCleanup(self.end_daemon)
        self.mount("-o", "remount,bind,ro", state)
        for words in (("ps",), ("submit", "--cpu-only", "--", "true"), ("run", "--cpu-only", "--", "true")):
            self.assert_refused(self.mete(*words), 125, state, "Read-only file system", "METE_STATE_DIR")
        daemon = subprocess.run([str(BUILD / "bin" / "meted"), "--state-dir", state], env=self.env, capture_output=True, text=True, timeout=BOUND_S)
        self.assertEqual(daemon.returncode, 125)
        self.assertIn(f"the state cannot be written: {state}: Read-only file system", daemon.stderr)

    def test_a_machines_daemon_that_is_down(self):
        """With what it has left in /var/lib/mete, in a mount namespace of its own."""
        script = "mount -t tmpfs none /var/lib && mkdir /var/lib/mete && touch /var/lib/mete/meted.db && exec \"$@\""
        env = {name: value for name, value in self.env.items() if name not in ("METE_SOCKET", "METE_SIM", "METE_SIM_DIR", "XDG_RUNTIME_DIR")}

        def there(*words):
            return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", METE, *words], env=env, capture_output=True, text=True, timeout=BOUND_S)

        probe = there("version")
        if probe.returncode != 0:
            self.skipTest("unshare: " + probe.stderr.strip())
        for words in (("ps",), ("ps", "-o", "json"), ("top", "--once"), ("wait", "1"), ("logs", "1"), ("events",), ("stats",)):
            with self.subTest(words):
                result = there(*words)
                self.assertEqual((result.returncode, result.stdout), (75, ""), result.stderr)
                self.assertIn("the daemon of this machine does not answer", result.stderr)
                self.assertIn("systemctl start meted", result.stderr)
        self.assertIn("systemctl start meted", there("daemon", "status").stderr)
        self.assertIn("systemctl start meted", there("doctor").stdout)
        self.assertIsNone(self.daemon_pid(), "none of them started one")

    def test_a_home_that_is_read_only(self):
        home = self.folder / "home"
        home.mkdir()
        self.mount("-t", "tmpfs", "-o", "ro,size=1m", "none", str(home))
        env = {name: value for name, value in self.env.items() if not name.startswith(("METE_S", "XDG_"))}
        env.update(HOME=str(home), METE_SIM=self.sim)
        result = subprocess.run([METE, "run", "--gpu", "8G", "--", "true"], env=env, capture_output=True, text=True, timeout=BOUND_S)
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        self.assertIn("Read-only", result.stderr)
        self.assertIn("METE_STATE_DIR", result.stderr)


class Silent(DaemonTest):
    """A daemon that is there and does not answer."""

    def test_every_verb_says_so_once_however_many_jobs_are_named(self):
        jobs = [self.mete("submit", "--cpu-only", "--hold", "--", "true").stdout.strip() for _ in range(3)]
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGSTOP)
        self.addCleanup(os.kill, daemon, signal.SIGCONT)
        verbs = [("cancel",), ("hold",), ("release",), ("requeue",), ("park",), ("unpark",), ("show",),
                 ("explain",), ("logs",), ("logs", "-f")]
        asked = {verb: self.start(*verb, *jobs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for verb in verbs}
        asked["ps"] = self.start("ps", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        asked["submit"] = self.start("submit", "--cpu-only", "--", "true", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for verb, process in asked.items():
            out, err = process.communicate(timeout=2 * BOUND_S)
            with self.subTest(verb=verb):
                self.assertEqual((process.returncode, out), (125, ""), err)
                self.assertEqual(err.count("error:"), 1, err)
                self.assertIn("the daemon does not answer", err)
                self.assertIn(f"process {daemon} ", err)
                self.assertIn(f"hint: kill -CONT {daemon}", err)


if __name__ == "__main__":
    unittest.main()
