# SPDX-License-Identifier: Apache-2.0
"""Runs every command of README.md and of docs/guide on simulated cards, one guide after the other, each in its own folder.

guide.py says what the blocks of a guide mean. Commands that are only shown (blocks of the kind console, and code in sentences and
tables) are compared with `mete VERB --help`: verb and options must exist. Blocks of the kind toml are checked by `mete config check`.
"""
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "daemon"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from world import BOUND_S, BUILD, METE, SOURCE, DaemonTest  # noqa: E402

import guide  # noqa: E402

# Commands that are not run, with the reason: (guide, the first line of the block).
NOT_RUN = {
    ("README.md", "./demo.sh"): "they build everything and run all tests; ctest has `demo`, and this test is a part of ./test.sh",
    ("README.md", "sudo apt install ./mete_*.deb"): "needs root and the packages: tests/e2e/package installs them",
    ("docs/guide/cap.md", "docker run --gpus all -v /opt/mete:/opt/mete:ro IMAGE /opt/mete/bin/mete cap --gpu 16G -- python train.py"):
        "needs Docker and a GPU",
    ("docs/guide/cap.md", "#SBATCH --gres=gpu:1"): "needs Slurm itself",
    ("docs/guide/top.md", "mete top"): "a screen with keys: tests/e2e/daemon/top_test.py",
    ("docs/guide/park.md", "mete park 12"): "needs a job that holds memory: tests/e2e/daemon/park_test.py",
    ("docs/guide/watch.md", "mete submit --gpu 8G --notify mail -- python train.py"):
        "sends mail, and a request to another machine: tests/e2e/daemon/notify_test.py",
    ("docs/guide/metrics.md", "curl --unix-socket \"$(mete daemon status -o json | jq -r .socket)\" http://mete/v1/snapshot | jq '.cards[] | {index, used_bytes, reading_age_s}'"):
        "needs curl and jq, and a stream without an end: tests/e2e/daemon/sight_test.py",
    ("docs/guide/queue.md", "mete events -w -o json | jq -r 'select(.type == \"job.ended\") | .job'"):
        "follows events without an end: tests/e2e/daemon/queue_test.py",
    ("docs/guide/lab-server.md", "sudo apt install ./mete_*.deb"): "needs root and systemd: tests/e2e/package, tests/e2e/daemon/users_test.py",
    ("docs/guide/lab-server.md", "sudo cp lab.toml /etc/mete/config.toml"): "needs root and systemd; the file itself is checked",
    ("docs/guide/sweep.md", "mete sweep --gpu auto --grid batch=64,128,256,512 --grid width=512,1024,2048 --grid lr=0.1,0.01 --minimize loss --as-flags -- python sweep_model.py"):
        "needs PyTorch and a GPU: tests/gpu/sweep.py",
    ("docs/guide/notebooks.md", "mete run --gpu 8G -- jupyter lab"): "needs Jupyter and a browser: tests/e2e/daemon/notebook_test.py",
}

# What other parts of mete are going to bring: a verb, `verb word`, `verb --option` or `config section.key`. While the built mete does
# not know it, a block that uses it is left out, and the test says so. The list must become empty.
LATER = ()

# Guides that other parts of mete bring, and whose blocks do not say what they are yet. The list must become empty.
LATER_GUIDES = ()

# Tests that SECURITY.md names and that other parts of mete bring. The list must become empty.
LATER_TESTS = set()

CARDS = {"docs/guide/lab-server.md": "4xH200"}  # the others have two
USED_BEFORE = {"docs/guide/watch.md", "docs/guide/backup.md"}  # guides for a machine where jobs have run
# Users in the guides stand for users that every machine has.
USERS = {"alice": "daemon", "bob": "bin", "carol": "sys"}


class Mete:
    """What the built mete knows, by its --help."""

    def __init__(self):
        self.help = {}

    def text(self, verb):
        if verb not in self.help:
            asked = subprocess.run([METE, verb, "--help"], capture_output=True, text=True, timeout=BOUND_S)
            self.help[verb] = asked.stdout if asked.returncode == 0 else None
        return self.help[verb]

    def knows_option(self, verb, option):
        return re.search(rf"(?:^|[\s,]){re.escape(option)}(?![\w-])", self.text(verb).split("Options:", 1)[-1]) is not None

    def knows(self, feature):
        verb, _, rest = feature.partition(" ")
        if verb == "config":
            return self.knows_key(rest)
        if self.text(verb) is None:
            return False
        if rest.startswith("-"):
            return self.knows_option(verb, rest)
        return not rest or re.search(rf"\b{rest}\b", self.usage(verb)) is not None

    def usage(self, verb):
        return self.text(verb).split("Usage:", 1)[-1].split("About:", 1)[0]

    @staticmethod
    def knows_key(key):
        return f"{key.split('.')[-1]} = " in subprocess.run([METE, "config", "show"], capture_output=True, text=True).stdout


class Shell:
    """One bash for a guide: variables and folders of a command are there for the next one."""

    def __init__(self, folder, env):
        self.folder, self.out = folder, folder.parent / "output"
        self.pipe = folder.parent / "codes"
        os.mkfifo(self.pipe)
        self.codes = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        self.process = subprocess.Popen(["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.STDOUT, cwd=folder, env=env, text=True, start_new_session=True)

    def run(self, command):
        """The exit code, and what was printed; None: it did not end."""
        step = self.folder.parent / "command"
        step.write_text(command + "\n")
        self.process.stdin.write(f". {step} </dev/null >{self.out} 2>&1; echo $? >{self.pipe}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.codes], [], [], BOUND_S)
        code = int(os.read(self.codes, 64)) if ready else None
        return code, self.out.read_text(errors="replace")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.wait()
        os.close(self.codes)


class Guides(DaemonTest):
    sim = "2xH200"
    mete_ = Mete()

    def setUp(self):
        super().setUp()
        self.env.update(HOME=str(self.folder / "home"), USER="me", TERM="dumb",
                        PATH=f"{self.folder / 'bin'}:{BUILD / 'bin'}:{os.environ['PATH']}")
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
            self.env.pop(name, None)
        work = self.folder / "home" / "work"
        work.mkdir(parents=True)
        (self.folder / "bin").mkdir()
        programs = pathlib.Path(__file__).resolve().parent / "programs"
        for name in ("train", "evaluate", "serve", "preprocess"):
            shutil.copy(programs / "train.py", work / f"{name}.py")
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        for name in ("python", "python3"):
            (self.folder / "bin" / name).symlink_to(python)
        for name in ("vllm", "torchrun", "notify-send"):
            self.program(self.folder / "bin" / name, f"exec python {work}/train.py")
        for name in ("simulate", "nightly", "bench", "publish", "server", "program"):
            self.program(work / name, f"exec python {work}/train.py")

    @staticmethod
    def program(path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    # ---- one guide ----

    def missing(self, calls, text=""):
        """What of LATER these calls need and the built mete does not have."""
        used = {name for call in calls for name in (call.verb, f"{call.verb} {call.word}", *(f"{call.verb} {o}" for o in call.options))}
        used |= {"slurm"} if guide.SLURM.search(text) else set()
        return sorted(name for name in used & set(LATER) if not self.mete_.knows(name))

    def check_words(self, where, calls):
        """Commands that are only shown: their verbs and options exist."""
        for call in calls:
            if self.missing([call]):
                continue
            with self.subTest(guide=where, command=call.text):
                self.assertIsNotNone(self.mete_.text(call.verb), "there is no such verb")
                for option in call.options:
                    self.assertTrue(self.mete_.knows_option(call.verb, option), f"there is no option {option}")
                if call.word and call.verb in ("daemon", "config", "kernel", "slurm", "quota", "stats"):
                    self.assertRegex(self.mete_.usage(call.verb), rf"\b{call.word}\b", "there is no such word")

    def check_config(self, where, block):
        if "config sight.others" in LATER and "[sight]" in block.text and not self.mete_.knows_key("sight.others"):
            return print(f"{where}: left out: [sight] is not there yet", file=sys.stderr)
        file = self.folder / "checked.toml"
        file.write_text(block.text)
        result = self.mete("config", "check", file)
        self.assertEqual(result.returncode, 0, f"{where}: {result.stderr}")

    def run_block(self, name, block, shell):
        listed = guide.commands(block)
        for line, command, code in listed:
            for user, stand_in in USERS.items():
                command = re.sub(rf"\b{user}\b", stand_in, command)
            with self.subTest(guide=f"{name}:{line}", command=command):
                got, output = shell.run(command)
                self.assertIsNotNone(got, f"it did not end:\n{output}")
                self.assertEqual(got, code, f"it ended with {got}, the guide says {code}:\n{output}")
            if shell.process.poll() is not None or got is None:
                self.fail(f"{name}:{line}: the shell is gone; what follows was not run")
        return len(listed)

    def run_guide(self, name):
        text = (SOURCE / name).read_text()
        self.env["METE_SIM"] = CARDS.get(name, self.sim)
        self.assertNotIn(name, LATER_GUIDES)
        work, ran = self.folder / "home" / "work", 0
        shell = Shell(work, self.env)
        self.addCleanup(self.end_jobs)
        self.addCleanup(shell.close)
        self.check_words(name, guide.inline_calls(text))
        if name in USED_BEFORE:
            self.assertEqual(self.run_("--gpu", "1G", "--", "true").returncode, 0)
        for block in guide.blocks(text):
            where = f"{name}:{block.line}"
            if block.kind == "sh":
                if without := self.missing(guide.calls(block.text), block.text):
                    print(f"{where}: left out, this mete has no {', '.join(without)}", file=sys.stderr)
                    continue
                ran += self.run_block(name, block, shell)
            elif block.kind == "console":
                self.assertTrue((name, block.first) in NOT_RUN, f"{where}: commands that are not run need their reason in NOT_RUN: {block.first}")
                self.check_words(where, guide.calls(block.text))
            elif block.file:
                file = work / block.file
                file.write_text(block.text)
                file.chmod(0o755 if block.text.startswith("#!") else 0o644)
            else:
                for line in block.text.splitlines():
                    self.assertIsNone(guide.COMMAND.match(line), f"{where}: {line!r} is a command: write it in a block sh or console")
            if block.kind == "toml":
                self.check_config(where, block)
        return ran

    def end_jobs(self):
        jobs = self.mete("ps", "-q").stdout.split()
        if jobs:
            self.mete("cancel", *jobs)
            self.mete("wait", *jobs)
        self.check_escapes()
        self.mete("daemon", "stop")
        for mover in self.processes("mete-mover"):  # they outlive the daemon
            os.kill(mover, signal.SIGKILL)


def documents():
    return ["README.md", "SECURITY.md", *sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / "docs" / "guide").glob("*.md"))]


def add_guides():
    for name in documents():
        def test(self, name=name):
            self.run_guide(name)
        if name not in LATER_GUIDES:
            setattr(Guides, "test_" + re.sub(r"\W+", "_", name.removesuffix(".md").removeprefix("docs/")), test)


add_guides()


class Rules(unittest.TestCase):
    """The reader of guides sees what it must refuse."""

    def test_every_block_that_is_not_run_is_in_a_guide(self):
        there = {(name, block.first) for name in documents() if name not in LATER_GUIDES
                 for block in guide.blocks((SOURCE / name).read_text()) if block.kind == "console"}
        self.assertEqual(set(NOT_RUN) - there, set(), "NOT_RUN names blocks that no guide has")

    def test_what_comes_later_is_used(self):
        texts = [(SOURCE / name).read_text() for name in documents() if name not in LATER_GUIDES]
        used = {word for text in texts for call in guide.calls(text) for word in
                (call.verb, f"{call.verb} {call.word}", *(f"{call.verb} {option}" for option in call.options))}
        self.assertEqual(sorted(name for name in LATER if name not in used and not name.startswith("config ")), [], "no guide uses it")
        if there := [name for name in LATER if Mete().knows(name)]:
            print(f"to be removed from LATER, this mete has it: {', '.join(there)}", file=sys.stderr)

    def test_every_link_leads_to_a_file_and_a_heading(self):
        for name in documents():
            for target, anchor in re.findall(r"\]\(([^)#:\s]*)#?([^)\s]*)\)", (SOURCE / name).read_text()):
                if anchor.startswith("://"):
                    continue
                file = (SOURCE / name).parent / target if target else SOURCE / name
                with self.subTest(guide=name, link=f"{target}#{anchor}"):
                    self.assertTrue(file.exists(), "there is no such file")
                    headings = re.findall(r"(?m)^#+ (.*)$", file.read_text()) if anchor else []
                    self.assertTrue(not anchor or anchor in [re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings])

    def test_every_test_that_the_threat_model_names_exists(self):
        text = (SOURCE / "SECURITY.md").read_text()
        files = [*(SOURCE / "tests").rglob("*.py"), *(SOURCE / "src").rglob("*_test.cc")]
        tests = "".join(path.read_text() for path in files)
        paths = set(re.findall(r"`((?:tests|src)/[\w/.]+)`", text)) - LATER_TESTS
        self.assertEqual([path for path in sorted(paths) if not (SOURCE / path).exists()], [])
        self.assertEqual([name for name in sorted(set(re.findall(r"`(test_\w+)`", text))) if f"def {name}(" not in tests], [])
        named = set(re.findall(r"`([A-Z]\w+)\.([A-Z]\w+)`", text))
        self.assertGreater(len(named), 20)
        self.assertEqual([name for name in sorted(named) if not re.search(rf"TEST(_F|_P)?\({name[0]}, {name[1]}\)", tests)], [])

    def test_a_block_says_what_it_is(self):
        for text in ("```\nmete ps\n```\n", "words\n\n    mete ps\n", "```sh\nmete ps\n"):
            self.assertRaises(guide.Mistake, guide.blocks, text)
        self.assertEqual([(b.kind, b.file, b.text) for b in guide.blocks("1. x\n   ```bash a.sh\n   a\n   ```\n")], [("bash", "a.sh", "a\n")])

    def test_commands_have_continuation_lines_and_codes(self):
        block = guide.Block(1, "sh", "", "# a note\nmete run \\\n  --gpu 1 -- x  # exit 69: too large\nfor a in 1 2; do\n  echo $a\ndone\ncat <<E\nx\nE\n")
        self.assertEqual([(line, code) for line, _, code in guide.commands(block)], [(2, 69), (4, 0), (7, 0)])

    def test_calls_of_mete_are_found(self):
        found = guide.calls("METE_SIM=x mete run --gpu 1 -- mete-x --no && id=$(mete submit -q 'a --b') # mete ps --none")
        self.assertEqual([(c.verb, c.options) for c in found], [("run", ["--gpu"]), ("submit", ["-q"])])
        self.assertEqual([c.word for c in guide.calls("mete daemon status -o json")], ["status"])
        self.assertEqual([c.options for c in guide.inline_calls("use `mete ps --all` \n```sh\nmete ps --other\n```\n")], [["--all"]])

    def test_an_unknown_option_is_not_known(self):
        self.assertTrue(Mete().knows_option("ps", "--all"))
        self.assertTrue(Mete().knows_option("ps", "-a"))
        self.assertFalse(Mete().knows_option("ps", "--al"))
        self.assertFalse(Mete().knows("nothing"))


if __name__ == "__main__":
    unittest.main()
