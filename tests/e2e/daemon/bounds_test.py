#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one request, one reader, one user and one mistake may cost: bounded, and reported clearly."""
import socket
import subprocess
import unittest

from world import BOUND_S, METE, DaemonTest


class BoundsTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.env["METE_CONFIG"] = str(self.config("[history]\njobs = 100\n[queue]\ncpus = 16\n"))

    def config(self, text):
        path = self.folder / "config.toml"
        path.write_text(text)
        return path

    def submit(self, *words):
        result = self.mete("submit", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def ask(self, path, *headers):
        """A request by hand; the socket, from which the answer can be read or not."""
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(BOUND_S)
        connection.connect(self.env["METE_SOCKET"])
        lines = [f"GET {path} HTTP/1.1", "Host: mete", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode())
        return connection


class Arrays(BoundsTest):
    def test_a_failure_that_is_long_over_is_still_told(self):
        array = self.submit("--cpu-only", "--array", "0-249", "--", "sh", "-c", "[ $METE_ARRAY_INDEX != 0 ] || exit 7")
        result = self.mete("wait", array)
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertLess(len(self.jobs()), 250, "most of them are forgotten")
        self.assertEqual(self.mete("wait", array).returncode, 7)

    def test_many_wait_for_one_array(self):
        array = self.submit("--cpu-only", "--hold", "--array", "0-4999", "--", "true")
        waiting = [self.ask(f"/v1/jobs/{array}/wait") for _ in range(50)]
        one = self.ask(f"/v1/jobs/{array}/wait?any=1")
        self.assertEqual(self.api(f"/v1/jobs/{array}_7", "DELETE")[0], 200)
        self.assertIn(b"cancelled", one.recv(65536))
        self.assertEqual(self.api(f"/v1/jobs/{array}", "DELETE")[0], 200)
        for connection in waiting:
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 200"))
            connection.close()

    def test_a_long_command_is_cut_in_lists(self):
        word = "x" * 120_000
        array = self.submit("--cpu-only", "--hold", "--array", "0-1999", "--", "echo", word)
        listed = self.jobs()
        self.assertEqual(len(listed), 2000)
        self.assertTrue(all(len(job["command"][1]) < 300 and job["command"][1].endswith("x…") for job in listed))
        self.assertEqual(self.mete("ps").returncode, 0)
        self.assertEqual(self.api(f"/v1/jobs/{array}_5/show")[1]["job"]["command"][1], word)
        self.assertEqual(self.api(f"/v1/jobs/{array}", "DELETE")[0], 200)
        self.assertEqual(self.mete("wait", array).returncode, 143)
        ended = self.api(f"/v1/jobs/{array}/wait")[1]["jobs"]
        self.assertEqual({len(job["command"]) for job in ended}, {0})


class Events(BoundsTest):
    def test_a_late_reader_gets_all_of_them(self):
        array = self.submit("--cpu-only", "--hold", "--array", "0-4999", "--", "true")
        for _ in range(3):
            self.assertEqual(self.api(f"/v1/jobs/{array}/release", "POST", "{}")[0], 200)
            self.assertEqual(self.api(f"/v1/jobs/{array}/hold", "POST", "{}")[0], 200)
        last = self.api("/v1/events?last=1")[1]["events"][0]["seq"]
        self.assertGreater(last, 20_000)
        late = self.ask("/v1/events?from=1", "Accept: text/event-stream")
        # Meanwhile other clients are served, and more happens than a socket holds.
        self.assertEqual(self.api(f"/v1/jobs/{array}", "DELETE")[0], 200)
        last = self.api("/v1/events?last=1")[1]["events"][0]["seq"]
        heard, end = b"", f"\nid: {last}\n".encode()
        while end not in heard[-70_000:]:
            some = late.recv(65536)
            self.assertTrue(some, "it was cut off")
            heard += some
        seen = [int(line[4:]) for line in heard.split(b"\n") if line.startswith(b"id: ")]
        self.assertEqual(seen, list(range(1, last + 1)))


class Mistakes(BoundsTest):
    def test_a_name_that_nobody_has_is_told(self):
        self.submit("--cpu-only", "--", "true")
        for words in (("quota", "set", "--user", "nosuchuser", "--running", "1"),
                      ("reserve", "--gpu", "1", "--for", "1h", "--user", "nosuchuser")):
            self.assert_refused(self.mete(*words), 66, "nosuchuser")
        self.assertEqual(self.mete("quota", "rm", "--user", "nosuchuser").returncode, 0)

    def test_a_state_folder_of_another_daemon_is_told_to_everybody_who_comes(self):
        self.submit("--cpu-only", "--", "true")
        other = dict(self.env, METE_SOCKET=str(self.folder / "other"))
        clients = [subprocess.Popen([METE, "submit", "--cpu-only", "--", "true"], env=other, text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(8)]
        for client in clients:
            output, errors = client.communicate(timeout=BOUND_S)
            self.assertEqual((client.returncode != 0, output), (True, ""))
            self.assertNotIn("went away", errors)


if __name__ == "__main__":
    unittest.main()
