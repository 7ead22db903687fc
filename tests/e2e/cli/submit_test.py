#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options, scripts and job files of `mete submit`, as far as no daemon is needed: what --dry-run makes of them, and what is refused."""
import json
import subprocess

import jsonschema

import support

FORMATS = support.SOURCE / "docs" / "formats"


class Submit(support.MeteTest):
    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def plan(self, *words, **options):
        """The only job of a dry run, as a document, without other output."""
        result = self.mete("submit", "--print", "-o", "json", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        schema = json.loads((FORMATS / "submit-plan.schema.json").read_text())
        jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
        self.stderr = result.stderr
        return document["jobs"][0] if len(document["jobs"]) == 1 else document["jobs"]

    def refused(self, exit_code, *words_and_text):
        *words, text = words_and_text
        result = self.mete("submit", *words)
        self.assert_refused(result, exit_code, text, "hint: ")
        self.assertFalse(self.state.exists(), "no daemon was started")

    def test_a_dry_run_says_what_would_be_submitted_and_touches_nothing(self):
        job = self.plan("--gpu", "0.4", "-t", "90m", "--after", "@:any,12", "--log", "out/%j", "--array", "0-9%2",
                        "--", "python", "train.py", "--gpu", "3", cwd=self.folder)
        self.assertEqual(job, {"name": "python", "gpu": "0.4", "time": "5400s", "after": ["@:any", "12:ok"],
                               "array": "0-9%2", "chdir": str(self.folder), "log": f"{self.folder}/out/%j",
                               "command": ["python", "train.py", "--gpu", "3"]})
        self.assertEqual(self.stderr, "")
        self.assertFalse(self.state.exists())

    def test_every_kind_of_word_is_in_the_document(self):
        self.plan("--devices", "0,1", "--gpu", "8G", "--gpu-type", "T4", "--or-cpu", "--procs", "2", "--cpus", "2", "--ram", "1G",
                  "--priority", "-1", "--retries", "2", "--retry-gpu", "x1.25", "--requeue", "--hold", "--begin", "now+1h",
                  "--deadline", "now+2h", "--label", "a=b", "--env", "A=\udcff", "--err", "e", "--visible", "index", "true")
        self.plan("--gpu", "1", "--tty", "--no-wait", "true")
        job = self.plan("--gpu", "8GB..20GB", "--ram", "8GB", "--shed", "--no-preempt", "--preemptible", "true")
        self.assertEqual((job["gpu"], job["ram"], job["shed"], job["no-preempt"], job["preemptible"]), ("8GB..20GB", "8GB", True, True, True))
        self.assertTrue(self.plan("--gpu", "1", "--not-preemptible", "true")["not-preemptible"])

    def test_the_text_of_a_dry_run_is_a_job_file(self):
        words = ["--gpu", "2x8G", "-e", "A='x: y'", "--begin", "18:00", "--", "sh", "-c", "echo $A | tr a-z A-Z"]
        first = self.mete("submit", "--print", *words).stdout
        again = self.mete("submit", "--print", "-f", "-", stdin=None, input=first)
        self.assertEqual((again.returncode, again.stdout), (0, first), again.stderr)

    def test_a_script_with_lines_for_mete(self):
        script = self.file("train.sh", "#!/bin/bash\n#METE --gpu 8G --time 2h # both\nexec python train.py \"$@\"\n")
        job = self.plan("--time", "1h", script, "--lr", "1")
        self.assertEqual((job["gpu"], job["time"], job["script"]), ("8G", "3600s", [str(script), "--lr", "1"]))
        self.assertEqual(self.plan("train.sh", cwd=self.folder)["script"], [str(script)], "from wherever it is read again")
        self.assertEqual(self.plan("--gpu", "1G", "--", script)["command"], [str(script)], "not looked into")
        self.assertNotIn("script", self.plan("--gpu", "0", "sh", cwd=self.folder), "a program of PATH")

    def test_a_script_for_slurm(self):
        script = self.file("job.sbatch", "#!/bin/bash\n#SBATCH -J net -t 1-00 --gres=gpu:h200:2\n"
                           "#SBATCH --partition=long --mem=16G\n#SBATCH -o log-%j.txt --dependency=afterok:12\nsrun x\n")
        job = self.plan(script, cwd=self.folder)
        self.assertEqual(job, {"name": "net", "gpu": "2", "gpu-type": "h200", "time": "86400s", "ram": "16G",
                               "after": ["12:ok"], "chdir": str(self.folder), "log": f"{self.folder}/log-%j.txt",
                               "script": [str(script)]})
        self.assertEqual(self.stderr, f"mete: {script}:3: #SBATCH --partition has no meaning here and was left out\n")
        self.plan("-q", script)
        self.assertEqual(self.stderr, "")

    def test_a_bad_script(self):
        self.refused(65, "--gpu", "1G", self.file("a.sh", "echo\n"), "a.sh has no shebang")
        self.refused(65, self.file("b.sh", "#!/bin/sh\n\n#METE --gup 1G\n"), "b.sh:3: there is no option '--gup'")
        self.refused(65, self.file("c.sh", "#!/bin/sh\n#SBATCH --nodes=2\n"), "c.sh:2: #SBATCH --nodes '2' is not possible here")
        self.refused(65, self.file("d.sh", "#!/bin/sh\n#SBATCH --gres=gpu:2 -t 1:2:3:4\n"), "d.sh:2: #SBATCH --time")

    def test_a_file_of_several_jobs(self):
        path = self.file("jobs.yaml", "gpu: 8G\njobs:\n  - {name: b, after: 'a:any', command: [x]}\n  - {name: a, command: y z}\n")
        jobs = self.plan("-f", path, "--time", "1h")
        self.assertEqual([job["name"] for job in jobs], ["a", "b"])
        self.assertEqual(jobs[1]["after"], ["a:any"])
        self.assertEqual({job["time"] for job in jobs}, {"3600s"})
        self.assertEqual(jobs[0]["command"], ["/bin/sh", "-c", "y z"])

    def test_a_bad_job_file(self):
        for text, message in {
            "gup: 8G\ncommand: x\n": "j.yaml:1:1: there is no key 'gup'\nhint: did you mean gpu?",
            "gpu: 8G\ncommand: x\nretries: many\n": "j.yaml:3:10: --retries 'many' is not a number",
            "gpu: 8G\n": "j.yaml:1: there is no program to run",
            "gpu: {a: b}\n": "j.yaml:1:6: gpu is one word",
            "gpu: 8G\n\tcommand: x\n": "this is no YAML",
            "jobs: [{name: a, after: b}, {name: b, after: a}]\ngpu: 0\ncommand: x\n": "wait for each other in a circle",
            "jobs: [{name: a, after: c}]\ngpu: 0\ncommand: x\n": "no job of this file has that name",
            "[" * 100000: "this is no YAML",
            "": "says nothing",
        }.items():
            self.refused(65, "-f", self.file("j.yaml", text), message)
        self.refused(65, "-f", self.folder / "missing.yaml", "No such file")
        self.refused(65, "-f", self.folder, "Is a directory")
        (self.folder / "large.yaml").write_bytes(b"#" * (2 << 20))
        self.refused(65, "-f", self.folder / "large.yaml", "too large for a job file")

    def test_bad_words(self):
        self.refused(64, "--gpu", "8G", "there is no program to run")
        self.refused(64, "--", "true", "how much of a card is not said")
        self.refused(64, "--gpu", "0", "--array", "0-1000000", "true", "an array has at most 50000 jobs")
        self.refused(64, "--gpu", "0", "--begin", "6pm", "true", "--begin '6pm' is no time")
        self.refused(64, "--gpu", "0", "--after", "x", "true", "--after 'x' names no job")
        self.refused(64, "--gpu", "8G..20G", "--procs", "2", "true", "one that grows has no even parts")
        self.refused(64, "--gpu", "8G", "--shed", "true", "--shed is for shares that grow")
        self.refused(64, "--gpu", "8G", "--preemptible", "--not-preemptible", "true", "contradict each other")
        self.refused(64, "--gpu", "1G", "--compute", "50%", "true", "--compute is not implemented yet")
        error = self.error_object(self.mete("submit", "-o", "json", "--gpu", "8G", "-f", self.folder / "no"))
        self.assertEqual((error["code"], error["exit"]), ("not_found", 65))

    def test_what_only_submit_can_do_is_said_by_run(self):
        for words in (["--after", "1"], ["--array", "0-3"], ["--begin", "18:00"], ["--tty"], ["--log", "x"], ["--hold"]):
            self.assert_refused(self.mete("run", "--gpu", "0", *words, "--", "true"), 64,
                                f"{words[0]} is an option of mete submit", "hint: mete submit")

    def test_times_are_local_also_when_clocks_jump(self):
        def begin(text, zone):
            return self.plan("--gpu", "0", "--begin", text, "true", env={"TZ": zone})["begin"]
        self.assertEqual(begin("2027-07-01 18:00", "Europe/Berlin"), "2027-07-01T16:00:00Z")
        self.assertEqual(begin("2027-03-28 02:30", "Europe/Berlin"), "2027-03-28T01:00:00Z", "skipped: when they jump")
        self.assertEqual(begin("2027-10-31 02:30", "Europe/Berlin"), "2027-10-31T00:30:00Z", "twice: the first")
        self.assertEqual(begin("2027-03-14 02:30", "America/New_York"), "2027-03-14T07:00:00Z")
        self.assertEqual(begin("2027-11-07 01:30", "America/New_York"), "2027-11-07T05:30:00Z")
        self.assertEqual(begin("2027-11-07T01:30:00Z", "America/New_York"), "2027-11-07T01:30:00Z")

    def test_a_folder_that_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        script = f"cd {gone} && rmdir {gone} && {support.METE} submit --gpu 0 --print true"
        result = subprocess.run(["sh", "-c", script], env=self.env, capture_output=True, text=True, timeout=support.BOUND_S)
        self.assertIn("this folder is gone", result.stderr)
        self.assertNotEqual(result.returncode, 0)

    def test_sbatch_is_another_name_for_it(self):
        result = self.mete("sbatch", "--print", "--gpu", "0", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("command:", result.stdout)


if __name__ == "__main__":
    support.main()
