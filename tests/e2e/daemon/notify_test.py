#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Users are notified of their jobs, whatever happens to the delivery: once, with the rights of the user, and without delaying
others."""
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import jsonschema

from world import BOUND_S, DaemonTest, read, wait_until

SCHEMA = pathlib.Path(__file__).resolve().parents[3] / "docs" / "formats" / "notification.schema.json"


class Hook:
    """A web server that answers as a test says, and keeps what it got."""

    def __init__(self, answers):
        self.got = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.got.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(answers.pop(0) if answers else 200)
                self.end_headers()

            def log_message(self, *words):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Notify(DaemonTest):
    def configure(self, text):
        path = self.folder / "config.toml"
        path.write_text(text)
        self.env["METE_CONFIG"] = str(path)

    def hook(self, *answers):
        hook = Hook(list(answers))
        self.addCleanup(hook.close)
        return hook

    def counts(self):
        return self.api("/v1/daemon")[1]["notify"]

    def submit(self, *words):
        result = self.mete("submit", "-q", "--cpu-only", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def line(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def need_curl(self):
        if shutil.which("curl") is None:
            self.skipTest("there is no curl")

    def test_a_command(self):
        out = self.folder / "told"
        ident = self.submit("--notify", f"cmd:cat > {out}.part; env > {out}.env; id -u > {out}.uid; mv {out}.part {out}",
                            "--", "sh", "-c", "exit 3")
        wait_until(lambda: self.line("told"), "the command has run")
        told = json.loads(self.line("told"))
        jsonschema.validate(told, json.loads(SCHEMA.read_text()))
        self.assertEqual((told["job"], told["on"], told["outcome"], told["exit_code"]), (ident, "fail", "failed", 3))
        environment = dict(line.split("=", 1) for line in self.line("told.env").splitlines())
        self.assertEqual(environment["METE_NOTIFY_JOB"], ident)
        self.assertFalse([name for name in environment if name.startswith("METE_") and not name.startswith("METE_NOTIFY_")])
        self.assertEqual(self.line("told.uid").strip(), str(os.getuid()))
        wait_until(lambda: self.counts()["sent"] == 1, "it is counted")

    def test_a_command_begins_as_after_a_login(self):
        """Whatever the daemon was started with."""
        out = self.folder / "told"
        before = os.umask(0o077)
        try:
            self.submit("--notify", f"cmd:umask > {out}.part; cat /proc/self/status >> {out}.part; mv {out}.part {out}", "--", "true")
        finally:
            os.umask(before)
        wait_until(lambda: self.line("told"), "the command has run")
        self.assertEqual(self.line("told").split()[0], "0022")
        ignored = next(line.split()[1] for line in self.line("told").splitlines() if line.startswith("SigIgn:"))
        self.assertEqual(int(ignored, 16) & 0x7fffffff, 0, "none of the signals 1 to 31 is ignored")

    def test_only_what_was_asked_for(self):
        out = self.folder / "told"
        self.submit("--notify", f"cmd:echo $METE_NOTIFY_ON >> {out}", "--notify-on", "start,end", "--", "true")
        wait_until(lambda: self.line("told").split() == ["start", "end"], "both")
        self.submit("--notify", f"cmd:echo no >> {out}", "--notify-on", "park", "--", "true")
        self.submit("--notify", f"cmd:echo last >> {out}", "--", "true")
        wait_until(lambda: "last" in self.line("told"), "the last one")
        self.assertEqual(self.line("told").split(), ["start", "end", "last"])

    def test_a_run_and_the_defaults_of_the_configuration(self):
        out = self.folder / "told"
        self.configure(f'[notify]\nto = ["cmd:echo $METE_NOTIFY_TEXT >> {out}"]\non = ["start"]\n')
        self.assertEqual(self.run_("--cpu-only", "--notify", "none", "--", "true").returncode, 0)
        self.assertEqual(self.run_("--cpu-only", "--name", "second", "--", "true").returncode, 0)
        wait_until(lambda: self.line("told"), "it was told of")
        self.assertIn("job 2 (second)", self.line("told"))
        self.assertNotIn("job 1 ", self.line("told"))

    def test_a_web_server_that_answers_500_and_then_200(self):
        self.need_curl()
        hook = self.hook(500, 200)
        ident = self.submit("--notify", f"webhook:{hook.url}/T0/secret?token=abc", "--", "true")
        wait_until(lambda: self.counts()["sent"] == 1, "it arrived")
        self.assertEqual(len(hook.got), 2)
        (path, kind, told), again = hook.got[0], hook.got[1][2]
        self.assertEqual((path, kind), ("/T0/secret?token=abc", "application/json"))
        jsonschema.validate(told, json.loads(SCHEMA.read_text()))
        self.assertEqual(told["id"], again["id"])
        self.assertEqual(told["job"], ident)
        # The secret is never shown.
        for words in (["show", ident], ["show", ident, "-o", "json"], ["ps", "-a"], ["ps", "-a", "-o", "json"], ["events"],
                      ["events", "-o", "json"], ["explain", ident], ["daemon", "status"]):
            shown = self.mete(*words)
            self.assertNotIn("secret", shown.stdout + shown.stderr, words)
        self.assertIn(f"webhook:{hook.url}/…", self.mete("show", ident).stdout)

    def test_a_web_server_that_never_answers(self):
        self.need_curl()
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/secret"
        self.submit("--notify", f"webhook:{url}", "--", "true")
        peer, _ = silent.accept()
        self.addCleanup(peer.close)
        # All users can see its arguments.
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes()
            except OSError:
                continue
            if b"curl" in words or b"mete-notify" in words:
                self.assertNotIn(b"secret", words)
        # Other jobs are notified, and clients answered, meanwhile.
        out = self.folder / "told"
        self.submit("--notify", f"cmd:echo yes > {out}", "--", "true")
        wait_until(lambda: self.line("told"), "the other one is told")
        wait_until(lambda: self.counts()["waiting"] == 1, "only the silent one is waited for")

    def test_a_command_that_fails_is_tried_again(self):
        out = self.folder / "tries"
        self.submit("--notify", f"cmd:echo x >> {out}; test $(wc -l < {out}) -gt 1", "--", "true")
        wait_until(lambda: self.counts()["sent"] == 1, "the second try")
        self.assertEqual(self.line("tries"), "x\nx\n")

    def test_mail(self):
        mailer = self.folder / "sendmail"
        mailer.write_text(f'#!/bin/sh\necho "$@" > {self.folder}/words\ncat > {self.folder}/mail.part\nmv {self.folder}/mail.part {self.folder}/mail\n')
        mailer.chmod(0o755)
        self.configure(f'[notify]\nsendmail = "{mailer}"\n')
        ident = self.submit("--name", "odd\nBcc: x", "--notify", "mail:a@b.example", "--", "true")
        wait_until(lambda: self.line("mail"), "the mail is sent")
        self.assertEqual(self.line("words").strip(), "-i -- a@b.example")
        headers = self.line("mail").split("\n\n")[0].splitlines()
        self.assertIn("To: a@b.example", headers)
        self.assertFalse([line for line in headers if line.startswith("Bcc")])
        self.assertIn(f"mete show {ident}", self.line("mail"))

    def test_a_daemon_that_is_killed_before_it_could_deliver(self):
        """The event is on disk, and its notification is not under way: the next daemon makes it of the log."""
        out, gate = self.folder / "told", self.folder / "gate"
        self.submit("--notify", f"cmd:test -e {gate} && cat >> {out}", "--", "true")
        wait_until(lambda: self.counts()["waiting"] == 1, "it is waiting")
        self.kill_daemon()
        # Neither its process (which has the daemon's name until it is executed, and then an environment of its own) nor the shell that
        # this started is under way: it would tell as well.
        wait_until(lambda: not self.processes("meted") and not any(
            name in read(path) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") for name in (b"mete-notify", str(gate).encode())),
            "none is under way")
        gate.touch()
        self.mete("ps")
        wait_until(lambda: self.line("told"), "the next daemon tells")
        wait_until(lambda: self.counts()["waiting"] == 0, "nothing is left")
        # And the daemon after that one does not.
        self.kill_daemon()
        self.mete("ps")
        self.submit("--notify", f"cmd:echo last >> {out}", "--", "true")
        wait_until(lambda: "last" in self.line("told"), "another one")
        self.assertEqual(len(self.line("told").splitlines()), 2)

    def test_too_many_are_dropped_and_counted(self):
        gate = self.folder / "gate"
        os.mkfifo(gate)
        self.submit("--array", "0-99", "--notify", f"cmd:cat {gate}", "--", "true")
        wait_until(lambda: all(job["state"] == "ended" for job in self.jobs()), "all have ended")
        wait_until(lambda: self.counts()["dropped"] >= 100 - 64 - 2, "some are dropped")
        self.assertLessEqual(self.counts()["waiting"], 64)
        self.assertIn("dropped", self.mete("daemon", "status").stdout)
        self.assertEqual(self.mete("ps").returncode, 0)

    def test_what_is_no_target_is_refused(self):
        for words, text in ((["--notify", "fax:12"], "there is no such way"), (["--notify", "webhook:ftp://h/"], "http:// or https://"),
                            (["--notify", "mail:-x"], "no address"), (["--notify", "cmd:"], "no command"),
                            (["--notify", "none", "--notify", "mail"], "contradict"),
                            (["--notify", "mail", "--notify-on", "boredom"], "boredom")):
            for verb in ("run", "submit"):
                self.assert_refused(self.mete(verb, "--cpu-only", *words, "--", "true"), 64, text)
        plan = self.mete("submit", "--cpu-only", "--notify", "mail", "--notify-on", "end,park", "--print", "--", "true").stdout
        self.assertIn("notify:", plan)
        self.assertIn("notify-on:", plan)


if __name__ == "__main__":
    unittest.main()
