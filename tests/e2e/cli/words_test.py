#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options and values that mete accepts, and those that it refuses: each with one clear error and the documented exit code."""
import re
import subprocess

import support


class Words(support.MeteTest):
    def test_alone_it_shows_a_short_overview(self):
        result = self.mete()
        self.assertEqual(result.returncode, 0)
        self.assertLessEqual(len(result.stdout.splitlines()), 24, "a screen")
        self.assertIn("mete cap --gpu", result.stdout)
        self.assertEqual(self.mete("help").stdout, result.stdout)
        self.assertEqual(self.mete("--help").stdout, result.stdout)
        every = self.mete("help", "--all").stdout
        for verb in ("undrain", "reserve", "attach", "selftest"):
            self.assertIn(f"\n  {verb} ", every)

    def test_help_of_a_verb_begins_with_examples(self):
        for words in (["cap", "--help"], ["cap", "-h"], ["help", "cap"]):
            result = self.mete(*words)
            self.assertEqual(result.returncode, 0)
            self.assertTrue(result.stdout.startswith("Examples:\n"), result.stdout)

    def test_help_fits_in_80_columns(self):
        every = self.mete("help", "--all").stdout
        verbs = re.findall(r"^  ([a-z]+)  +\S", every, re.M)
        self.assertIn("submit", verbs)
        for text in (every, self.mete().stdout, *(self.mete(verb, "--help").stdout for verb in verbs)):
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_unknown_verb_suggests_the_nearest(self):
        self.assert_refused(self.mete("cpa"), 64, "there is no verb 'cpa'", "did you mean mete cap?")
        self.assert_refused(self.mete("versoin"), 64, "did you mean mete version?")
        self.assert_refused(self.mete("frobnicate"), 64, "mete help lists the verbs")
        self.assert_refused(self.mete("--bogus"), 64)
        self.assert_refused(self.mete(""), 64)

    def test_verbs_of_other_programs_are_answered_with_ours(self):
        for name, verb in {"status": "mete ps", "queue": "mete ps", "list": "mete ps", "jobs": "mete ps", "squeue": "mete ps",
                           "scancel": "mete cancel", "srun": "mete run", "sinfo": "mete cards", "nvidia-smi": "mete cards",
                           "nvtop": "mete top", "restart": "mete requeue", "pause": "mete hold"}.items():
            self.assert_refused(self.mete(name), 64, f"there is no verb '{name}'", f"did you mean {verb}")
            self.assertEqual(self.error_object(self.mete(name, "12", "-o", "json"))["exit"], 64)
        for name in ("kill", "stop"):  # aliases
            self.assert_refused(self.mete(name), 64, "which job is not said", "mete cancel 12")

    def test_verbs_of_the_design_are_refused_by_name(self):
        for verb in ("service",):
            result = self.mete(verb, "--gpu", "1", "--", "true")
            self.assert_refused(result, 64, f"mete {verb} is not implemented yet")
            self.assertEqual(self.error_object(self.mete(verb, "-o", "json"))["code"], "unsupported")

    def test_bad_requests(self):
        for gpu, text in {
            "1.5": "a share above 1 must be a whole number of cards",
            "0x8G": "the number of cards must be at least 1",
            "8Q": "there is no unit 'Q'",
            "-1": "it is negative",
            "": "it is empty",
            "0.0001": "more than three decimals",
            "101%": "1% to 100%",
            "8": None,  # eight whole cards: understood, and then there are fewer
            "99999999999999999999G": "too large a number",
            "20000000000G": "larger than 2^64",
            "2x1": "not a number of cards",
            "20G..8G": "the second size must be larger",
            "8G\x1b[2J": "\\x1b[2J",
        }.items():
            if text:
                self.assert_refused(self.mete("cap", "--gpu", gpu, "--", "true"), 64, text, "hint: ")
                self.assert_refused(self.mete("cap", f"--gpu={gpu}", "true"), 64, text)

    def test_what_is_not_built_is_refused_and_not_ignored(self):
        for words in (["--procs", "2"], ["--time", "5m"], ["--requeue"], ["--compute", "50%"], ["--name", "x"]):
            self.assert_refused(self.mete("cap", "--gpu", "8G", *words, "--", "true"), 64, f"{words[0]} is not implemented yet")
        for gpu in ("8G..20G", "grow", "8G..all"):
            self.assert_refused(self.mete("cap", "--gpu", gpu, "--", "true"), 64, "a cap alone cannot grow")

    def test_contradicting_words(self):
        for words in (["--gpu", "8G", "--cpu-only"], ["--gpu", "0", "--devices", "1"], ["--gpu", "0", "--gpu-type", "T4"],
                      ["--gpu", "8G", "--gpu", "9G"], ["--cpu-only", "--devices", "0"]):
            self.assert_refused(self.mete("cap", *words, "--", "true"), 64, "hint: ")

    def test_incomplete_words(self):
        self.assert_refused(self.mete("cap"), 64)
        self.assert_refused(self.mete("cap", "--gpu", "8G"), 64, "there is no program to run")
        self.assert_refused(self.mete("cap", "--gpu", "8G", "--"), 64, "there is no program to run")
        self.assert_refused(self.mete("cap", "--", "true"), 64, "how much of a card is not said")
        self.assert_refused(self.mete("cap", "--gpu"), 64, "--gpu needs a value")
        self.assert_refused(self.mete("cap", "--gpu", "0", "--", ""), 64, "name of the program is empty")
        self.assert_refused(self.mete("cap", "--gup", "8G", "--", "true"), 64, "did you mean --gpu?")
        self.assert_refused(self.mete("cap", "--gpu", "0", "--visible", "x", "--", "true"), 64)
        self.assert_refused(self.mete("cap", "--gpu", "0", "--env", "X", "--", "true"), 64, "is not NAME=VALUE")
        self.assert_refused(self.mete("cap", "--gpu", "0", "--env", "METE_GRANT=x", "--", "true"), 64)
        self.assert_refused(self.mete("version", "--output", "xml"), 64)
        self.assert_refused(self.mete("version", "more"), 64)
        self.assert_refused(self.mete("completion"), 64)
        self.assert_refused(self.mete("completion", "tcsh"), 64)

    def test_the_command_reaches_the_program_untouched(self):
        script = 'printf "%s|" "$@"'
        for words in (["--", "sh", "-c", script, "x"], ["sh", "-c", script, "x"]):
            result = self.mete("cap", "--gpu", "0", "-q", *words, "--gpu", "3", "--", "a b", "", "-o", "json")
            self.assertEqual(result.stdout, "--gpu|3|--|a b||-o|json|")
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_exit_codes_are_the_programs(self):
        for code in (0, 1, 3, 64, 125, 255):
            self.assertEqual(self.mete("cap", "--gpu", "0", "--", "sh", "-c", f"exit {code}").returncode, code)
        self.assertEqual(self.mete("cap", "--gpu", "0", "--", "sh", "-c", "kill -9 $$").returncode, 137)
        self.assertEqual(self.mete("cap", "--gpu", "0", "--", "sh", "-c", "kill -TERM $$").returncode, 143)

    def test_a_program_that_cannot_be_run(self):
        self.assertEqual(self.mete("cap", "--gpu", "0", "--", "no-such-program-here").returncode, 127)
        self.assertEqual(self.mete("cap", "--gpu", "0", "--", "/no/such/program").returncode, 127)
        plain = self.folder / "plain"
        plain.write_text("hello")
        result = self.mete("cap", "--gpu", "0", "--", plain)
        self.assertEqual(result.returncode, 126)
        self.assertIn("Permission denied", result.stderr)
        self.assertEqual(self.mete("cap", "--gpu", "0", "--", self.folder).returncode, 126)

    def test_folder_and_variables(self):
        result = self.mete("cap", "--gpu", "0", "-q", "--chdir", "/", "--env", "A=1", "--env=B=x=y", "--", "sh", "-c",
                           'echo "$PWD $A $B"')
        self.assertEqual(result.stdout, "/ 1 x=y\n")
        result = self.mete("cap", "--gpu", "0", "-q", "--chdir", "/no/where", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("/no/where", result.stderr)

    def test_without_gpu_the_program_sees_none(self):
        for words in (["--gpu", "0"], ["--cpu-only"], ["--cpu-only", "--gpu", "0"]):
            result = self.mete("cap", *words, "--", "sh", "-c",
                               'echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $LD_PRELOAD$METE_GRANT"')
            self.assertEqual(result.stdout, "-1 void \n")
        self.assertFalse(self.state.exists())

    def test_errors_have_colour_only_on_a_terminal(self):
        self.assertNotIn("\033", self.mete("cpa", env={"TERM": "xterm"}).stderr)

        def on_terminal(**env):
            words = ["script", "-qec", f"{support.METE} cpa", "/dev/null"]
            return subprocess.run(words, env={**self.env, "TERM": "xterm", **env}, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=support.BOUND_S).stdout
        self.assertIn("\033[1;31merror:", on_terminal())
        self.assertNotIn("\033", on_terminal(NO_COLOR="1"))
        self.assertNotIn("\033", on_terminal(TERM="dumb"))

    def test_completions_are_valid_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            result = self.mete("completion", shell)
            self.assertEqual(result.returncode, 0)
            for word in ("cap", "version", "--gpu-type" if shell != "fish" else "gpu-type"):
                self.assertIn(word, result.stdout)
        script = self.mete("completion", "bash").stdout + """
          complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mete; echo "${COMPREPLY[*]}"; }
          complete_words mete ca
          complete_words mete cap --gpu-
          complete_words mete completion f
          complete_words mete daemon sto
          complete_words mete cap --gpu 8G -- prog --gpu-
        """
        result = subprocess.run(["bash", "-uc", script], capture_output=True, text=True, timeout=support.BOUND_S)
        self.assertEqual(result.stdout, "cancel cards cap\n--gpu-type\nfish\nstop\n\n", result.stderr)


if __name__ == "__main__":
    support.main()
