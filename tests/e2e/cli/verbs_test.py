#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ps, cards, daemon, config and doctor: with and without a daemon, as text and as documents."""
import json
import pathlib
import re
import shutil
import socket
import subprocess

import jsonschema

import support

FORMATS = support.SOURCE / "docs" / "formats"


class Verbs(support.MeteTest):
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.env.pop("XDG_RUNTIME_DIR", None)
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        self.addCleanup(self.mete, "daemon", "stop")

    def document(self, name, *words, exit_code=0, stream="stdout", **options):
        """A verb's document, checked by its schema."""
        result = self.mete(*words, "-o", "json", **options)
        self.assertEqual(result.returncode, exit_code, result.stderr)
        return self.validated(name, getattr(result, stream))

    def validated(self, name, text):
        document = json.loads(text)
        schema = json.loads((FORMATS / f"{name}.schema.json").read_text())
        jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
        return document

    def holder(self, *words):
        """A `mete run` whose program runs until its input ends."""
        process = self.start("run", "-q", *words, "--", "sh", "-c", "echo runs; read end; exit 3",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "runs\n")
        # The start of the program is reported a moment later.
        support.wait_until(lambda: "running" in self.mete("ps").stdout, "the daemon knows that it runs")
        return process

    def release(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(support.BOUND_S), 3)

    @staticmethod
    def lives(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def daemon_runs(self):
        return json.loads(self.mete("daemon", "status", "-o", "json").stdout)["running"]


class WithoutDaemon(Verbs):
    def test_nothing_that_only_looks_starts_one(self):
        self.assertEqual(self.document("ps", "ps")["jobs"], [])
        self.assertEqual(self.document("ps", "ps", "-a")["jobs"], [])
        result = self.mete("ps")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertIn("no daemon runs", result.stderr)
        self.assert_refused(self.mete("cards", "--no-start"), 125, "no daemon runs", "leave --no-start out")
        result = self.mete("daemon", "stop")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        for words, exit_code in ((["stop"], 0), (["status"], 1)):
            document = self.document("daemon", "daemon", *words, exit_code=exit_code)
            self.assertEqual(sorted(document), ["at", "running", "schema"])
        self.document("doctor", "doctor")
        self.document("config", "config", "show")
        self.assertFalse(self.daemon_runs())

    def test_status_answers_no_with_exit_code_1(self):
        result = self.mete("daemon", "status")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "no daemon runs\n", ""))

    def test_a_socket_that_cannot_be(self):
        for words in (["ps"], ["cards"], ["daemon", "status"]):
            result = self.mete(*words, env={"METE_SOCKET": "relative"})
            self.assert_refused(result, 64)

    def test_wrong_words(self):
        for words, text in ((["daemon"], "mete daemon status or mete daemon start"),
                            (["daemon", "sotp"], "did you mean mete daemon stop?"),
                            (["daemon", "stop", "now"], "'now' is not expected here"),
                            (["config"], "mete config show or mete config check"),
                            (["config", "shwo"], "did you mean mete config show?"),
                            (["config", "show", "x"], "'x' is not expected here"),
                            (["config", "check", "a", "b"], "'b' is not expected here"),
                            (["config", "check", "--origin"], "mete config show --origin"),
                            (["ps", "x"], "'x' names no job"), (["ps", "--al"], "did you mean --all?"),
                            (["cards", "0"], "is not expected here"), (["doctor", "now"], "is not expected here"),
                            (["ps", "-o", "yaml"], "write -o json or -o text"), (["doctor", "-o", "yaml"], "-o json"),
                            (["cards", "-o"], "needs a value")):
            self.assert_refused(self.mete(*words), 64, text)


class WithDaemon(Verbs):
    def test_cards_starts_one_and_lists_them(self):
        document = self.document("cards", "cards")
        self.assertEqual([card["index"] for card in document["cards"]], [0, 1])
        self.assertTrue(self.daemon_runs())
        lines = self.mete("cards").stdout.splitlines()
        self.assertEqual(lines[0].split()[:3], ["CARD", "NAME", "STATE"])
        self.assertEqual([line.split()[0] for line in lines[1:3]], ["0", "1"])
        self.assertEqual(self.mete("cards", "--no-start").returncode, 0)

    def test_jobs_are_listed_while_they_run_wait_and_after(self):
        first = self.holder("--gpu", "2x40%", "--name", "a\tb")
        second = self.start("run", "-q", "--gpu", "2", "--", "true", stderr=subprocess.PIPE)
        self.assertIn("waiting", second.stderr.readline())
        running, pending = self.document("ps", "ps")["jobs"]
        self.assertEqual((running["state"], running["name"], running["request"]), ("running", "a\tb", "2x40%"))
        self.assertEqual((pending["state"], pending["reason"], pending["wait"]["holders"]), ("pending", "resources", ["1"]))
        title, run, wait = self.mete("ps").stdout.splitlines()
        self.assertEqual(title.split(), "ID NAME STATE GPU CARD USED TIME NOTE COMMAND".split())
        self.assertRegex(run, r"^ *1  a\\x09b  running  2x40%  0,1 ")
        self.assertRegex(wait, r"^ *2  true .* pending  2 .* next ")
        self.assertRegex(self.mete("ps", "--wide").stdout, r"running  2x40% → 2x 55\.\d+ GiB  0,1 ")
        self.assertRegex(self.mete("ps", "--wide").stdout, r" resources: .*job 1")
        cards = self.document("cards", "cards")["cards"]
        self.assertEqual([[job["id"] for job in card["jobs"]] for card in cards], [["1"], ["1"]])
        self.assertGreater(cards[0]["granted_bytes"], 0)
        self.assertEqual(self.document("daemon", "daemon", "status")["jobs"], {"pending": 1, "running": 1})
        self.release(first)
        self.assertEqual(second.wait(support.BOUND_S), 0)
        self.assertEqual(self.document("ps", "ps")["jobs"], [])
        self.assertIn("-a shows", self.mete("ps").stderr)
        ended = self.document("ps", "ps", "-a")["jobs"]
        self.assertEqual([(job["outcome"], job["exit_code"]) for job in ended], [("failed", 3), ("ok", 0)])
        self.assertIn(" failed 3 ", self.mete("ps", "-a").stdout)

    def test_run_says_what_it_was_given(self):
        document = self.validated("run", self.mete("run", "--gpu", "8G", "-o", "json", "--", "true").stderr)
        self.assertEqual([card["bytes"] for card in document["cards"]], [8 << 30])

    def test_stop_waits_until_it_is_gone_and_jobs_live_on(self):
        job = self.holder("--gpu", "8G")
        status = self.document("daemon", "daemon", "status")
        self.assertEqual(status["mode"], "user")
        self.assertIn(f"pid {status['pid']} ", self.mete("daemon", "status").stdout)
        result = self.mete("daemon", "stop")
        self.assertFalse(self.lives(status["pid"]), "it is gone when stop returns")
        self.assertIn("its jobs run on", result.stderr)
        self.assertEqual([job["state"] for job in self.document("ps", "ps")["jobs"]], ["running"])
        self.release(job)
        ended = self.document("daemon", "daemon", "stop")
        self.assertFalse(ended["running"])
        self.assertNotEqual(ended["ended_pid"], status["pid"])


class ConfiguredDaemon(Verbs):
    def configure(self, text):
        path = self.folder / "daemon.toml"
        path.write_text(text)
        self.env["METE_CONFIG"] = str(path)
        return path

    def test_the_daemon_keeps_to_it(self):
        self.configure('[daemon]\nidle_s = 0\npolicy = "spread"\n[cards]\nreserve = "10G"\ndevices = [1]\n')
        out, used = self.document("cards", "cards")["cards"]
        self.assertIn("configuration", out["unusable"])
        self.assertEqual((out["grantable_bytes"], "unusable" in used), (0, False))
        plain = self.document("cap", "cap", "--gpu", "1", "--dry-run")["cards"][0]["capacity_bytes"]
        self.assertEqual(used["capacity_bytes"], plain - (10 << 30))
        status = self.document("daemon", "daemon", "status")
        self.assertEqual((status["policy"], "idle_end_s" in status), ("spread", False))
        self.assertIn("on card 1", self.mete("run", "--gpu", "8G", "--", "true").stderr)
        self.assert_refused(self.mete("run", "--gpu", "2", "--", "true"), 69, "the configuration leaves it out")

    def test_an_idle_daemon_ends_by_itself(self):
        self.configure("[daemon]\nidle_s = 1\n")
        self.assertEqual(self.document("cards", "cards")["cards"][0]["index"], 0)
        support.wait_until(lambda: not self.daemon_runs(), "it ends when idle")

    def test_a_daemon_does_not_start_with_a_bad_file(self):
        path = self.configure("[daemon]\nidel_s = 1\n")
        self.assert_refused(self.mete("cards"), 64, f"{path}:2:1: there is no key 'daemon.idel_s'",
                            "did you mean daemon.idle_s?")
        self.assertFalse(self.daemon_runs())


class Config(Verbs):
    sim = None

    def write(self, text, name="config/mete/config.toml"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_defaults(self):
        settings = {s["key"]: s for s in self.document("config", "config", "show")["settings"]}
        self.assertEqual(settings["daemon.idle_s"], {"key": "daemon.idle_s", "value": 600, "origin": "default"})
        self.assertNotIn("value", settings["cards.devices"])

    def test_origins(self):
        path = self.write('# mine\n[daemon]\npolicy = "spread"\n')
        text = self.mete("config", "show", "--origin").stdout
        self.assertRegex(text, rf'(?m)^policy = "spread" +# {path}:3$')
        self.assertRegex(text, r"(?m)^idle_s = 600 +# default$")
        self.assertIn(f"# METE_STATE_DIR={self.state} in the environment", text)
        setting = [s for s in self.document("config", "config", "show")["settings"] if s["origin"] == "file"]
        self.assertEqual(setting, [{"key": "daemon.policy", "value": "spread", "origin": "file", "file": str(path),
                                    "line": 3}])

    def test_what_is_shown_is_a_file_of_the_same_meaning(self):
        self.write('[daemon]\nidle_s = 0\n[cards]\nreserve = "1G"\ndevices = [1, "GPU-8a"]\n')
        shown = self.write(self.mete("config", "show").stdout, "shown.toml")
        self.assertEqual(self.mete("config", "check", shown).stdout, f"{shown}: good\n")
        values = [s.get("value") for s in self.document("config", "config", "show")["settings"]]
        again = self.document("config", "config", "show", env={"METE_CONFIG": str(shown)})
        self.assertEqual([s.get("value") for s in again["settings"]], values)

    def test_a_bad_file_is_65_with_its_place(self):
        path = self.write('[daemon]\nidel_s = 5\npolicy = 3\n')
        result = self.mete("config", "check")
        self.assertEqual((result.returncode, result.stdout), (65, ""))
        self.assertIn(f"{path}:2:1: there is no key 'daemon.idel_s'", result.stderr)
        self.assertIn("did you mean daemon.idle_s?", result.stderr)
        self.assertIn(f"{path}:3:10: daemon.policy must be", result.stderr)
        self.assert_refused(self.mete("config", "show"), 65, f"{path}:2:1:")
        errors = [self.validated("error", line)["error"] for line in self.mete("config", "check", "-o", "json").stderr.splitlines()]
        self.assertEqual([error["exit"] for error in errors], [65, 65])
        other = self.write("[daemon]\nidle_s = 5\n", "other.toml")
        self.assertEqual(self.mete("config", "check", other).returncode, 0)
        self.assertEqual(self.mete("config", "show", env={"METE_CONFIG": str(other)}).returncode, 0)

    def test_files_that_cannot_be_read(self):
        self.assertEqual(self.mete("config", "check", "/no/such/file").returncode, 65)
        self.assertEqual(self.mete("config", "check", self.folder).returncode, 65)
        self.assertEqual(self.mete("config", "show", env={"METE_CONFIG": "/no/such/file"}).returncode, 65)
        self.assertEqual(self.mete("config", "show", env={"METE_CONFIG": "relative.toml"}).returncode, 65)
        self.assertEqual(self.mete("config", "check").returncode, 0)


class Doctor(Verbs):
    def checks(self, *, exit_code=0, **options):
        document = self.document("doctor", "doctor", exit_code=exit_code, **options)
        verdicts = [check["verdict"] for check in document["checks"]]
        self.assertEqual((document["ok"], document["warnings"], document["failed"]),
                         tuple(verdicts.count(verdict) for verdict in ("ok", "warn", "fail")))
        return {(check["group"], check["what"]): check for check in document["checks"]}

    def failed(self, **options):
        return {key: check for key, check in self.checks(exit_code=1, **options).items() if check["verdict"] == "fail"}

    def test_simulated_cards_are_healthy(self):
        checks = self.checks()
        self.assertEqual(checks["driver", "version"]["verdict"], "ok")
        self.assertIn("NVIDIA H200", checks["driver", "card 1"]["evidence"])
        self.assertIn("none runs", checks["daemon", "daemon"]["evidence"])
        text = self.mete("doctor").stdout
        self.assertRegex(text, r"(?m)^ok    driver: card 0 +NVIDIA H200")
        self.assertRegex(text, r"\n\n\d+ ok, \d+ warnings, 0 failed\n$")

    def test_a_daemon_that_runs_is_seen(self):
        self.mete("cards")
        self.assertIn("answers at", self.checks()["daemon", "daemon"]["evidence"])

    def test_a_lost_card(self):
        self.mete("cards")  # a card that was lost before its first reading has no name
        subprocess.run([support.BUILD / "simgpu" / "mete-simgpu", "--ctl", "lose-card", "1"], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)
        failed = self.failed()
        self.assertEqual(list(failed), [("driver", "card 1")])
        self.assertIn("--gpu-reset -i 1", failed["driver", "card 1"]["fix"])
        lost = r"(?m)^ *1 .* lost .* fell off the bus or needs a reset$"
        support.wait_until(lambda: re.search(lost, self.mete("cards").stdout), "the daemon sees it too")

    def broken(self, how):
        return {"METE_SIM": "", "METE_TEST_NVML": how,
                "LD_LIBRARY_PATH": str(support.BUILD / "tests" / "broken_nvml")}

    def test_a_driver_of_another_version(self):
        for how, said, helps in (("18", "different versions", "reboot"), ("4", "no permission", "group"),
                                 ("9", "not loaded", "modprobe"), ("0", "no card", "lspci")):
            failed = self.failed(env=self.broken(how))
            check = failed["driver", "cards" if how == "0" else "NVML"]
            self.assertIn(said, check["evidence"])
            self.assertIn(helps, check["fix"])

    def test_cards_of_a_driver_in_trouble(self):
        self.addCleanup(self.mete, "daemon", "stop", env=self.broken("18"))
        result = self.mete("cards", env=self.broken("18"))
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        self.assertIn("hint: reboot", result.stderr)
        self.assertEqual(self.document("cards", "cards", env=self.broken("18"))["cards"], [])

    def test_a_driver_that_hangs_is_a_line_of_the_table(self):
        failed = self.failed(env=self.broken("hang"))
        self.assertIn("no answer", failed["driver", "look"]["evidence"])

    def test_no_driver(self):
        result = self.mete("doctor", env={"METE_SIM": ""})
        if result.returncode == 0:
            self.skipTest("this machine has a GPU")
        failed = self.failed(env={"METE_SIM": ""})
        self.assertIn("METE_SIM", failed["driver", "libnvidia-ml.so.1"]["fix"])
        self.assertIn("FAIL  driver: libnvidia-ml.so.1", result.stdout)

    def test_bad_configuration(self):
        path = self.folder / "bad.toml"
        path.write_text("[daemon]\nidel_s = 1\n")
        failed = self.failed(env={"METE_CONFIG": str(path)})
        self.assertEqual(failed["state", "configuration"]["fix"], "mete config check")

    def test_state_folder_that_others_can_write(self):
        self.state.mkdir()
        self.state.chmod(0o777)
        self.assertEqual(self.failed()["state", "state folder"]["fix"], f"chmod go-w {self.state}")

    def test_state_folder_that_is_a_file(self):
        self.state.write_text("")
        self.assertIn("is not a folder", self.failed()["state", "state folder"]["evidence"])

    def test_something_else_at_the_socket(self):
        path = self.folder / "socket"
        path.write_text("")
        self.assertIn(("daemon", "socket"), self.failed(env={"METE_SOCKET": str(path)}))
        self.assertIn(("daemon", "socket"), self.failed(env={"METE_SOCKET": "/" + "x" * 200}))

    def test_a_listener_that_never_answers_is_not_waited_for(self):
        path = self.folder / "silent"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            self.assertIn(("daemon", "daemon"), self.failed(env={"METE_SOCKET": str(path)}))

    def test_missing_parts(self):
        (self.folder / "bin").mkdir()
        shutil.copy(support.METE, self.folder / "bin" / "mete")
        result = self.mete("doctor", "-o", "json", program=str(self.folder / "bin" / "mete"))
        failed = [check["what"] for check in json.loads(result.stdout)["checks"] if check["verdict"] == "fail"]
        self.assertIn("libmete.so", failed)
        self.assertEqual(result.returncode, 1)

    def test_a_rival_preload(self):
        library = self.folder / "libvgpu.so"
        shutil.copy(support.BUILD / "simgpu" / "libnvidia-ml.so.1", library)
        # A sanitized mete wants its runtime to be the first library.
        check = self.checks(env={"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"})["program", "LD_PRELOAD"]
        self.assertEqual((check["verdict"], check["fix"]), ("warn", "unset LD_PRELOAD"))

    def test_real_cards_are_looked_at_without_changing_anything(self):
        self.mete("doctor", env={"METE_SIM": ""})
        self.assertFalse(self.state.exists())


if __name__ == "__main__":
    support.main()
