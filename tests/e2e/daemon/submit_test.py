#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete submit` with a daemon: what is printed, what the job gets of its submitter, scripts, files of several jobs, what is refused."""
import json
import os
import pathlib
import signal
import subprocess

import jsonschema

from world import BOUND_S, METE, DaemonTest, Forgetful, wait_until
from support import SOURCE, main


class SubmitTest(DaemonTest):
    sim = "2xH200"

    def submit(self, *words, **options):
        result = self.mete("submit", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def run_to_end(self, *words, code=0, **options):
        """Submits one job, waits for it, returns what it has written."""
        (job,) = self.submit(*words, **options)
        result = self.mete("wait", job)
        self.assertEqual(result.returncode, code, result.stderr)
        return self.log_of(job)

    def log_of(self, job):
        return pathlib.Path(self.api(f"/v1/jobs/{job}/show")[1]["job"]["log"]).read_bytes()

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def refused(self, exit_code, *words, says):
        result = self.mete("submit", *words)
        self.assert_refused(result, exit_code, says)
        return result


class One(SubmitTest):
    def test_the_id_is_all_that_is_printed(self):
        result = self.mete("submit", "--cpu-only", "--", "true")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "1\n", ""))
        schema = json.loads((SOURCE / "docs" / "formats" / "submit.schema.json").read_text())
        for words, elements in (([], None), (["--array", "3-7:2"], 3)):
            result = self.mete("submit", "-o", "json", "--cpu-only", *words, "--", "true")
            document = json.loads(result.stdout)
            jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
            self.assertEqual(document.get("elements"), elements)

    def test_environment_and_arguments_arrive_byte_for_byte(self):
        odd = b"caf\xe9 \"'\\\n\xff"
        script = "printf '%s|' \"$@\" \"$ODD\" \"$NEW\" \"${METE_GRANT-none}\" \"$METE_JOB_ID\" \"$PWD\" \"$(umask)\""
        words = [METE, "submit", "--cpu-only", "-e", b"NEW=" + odd, "--", "sh", "-c", script, "x", odd, ""]
        env = {**{k.encode(): v.encode() for k, v in self.env.items()}, b"ODD": odd, b"METE_GRANT": b"/of/another",
               b"METE_JOB_ID": b"99"}
        result = subprocess.run(words, env=env, capture_output=True, timeout=BOUND_S, cwd=self.folder, umask=0o027)
        self.assertEqual(result.returncode, 0, result.stderr)
        job = result.stdout.decode().strip()
        self.assertEqual(self.mete("wait", job).returncode, 0)
        self.assertEqual(self.log_of(job), b"|".join([odd, b"", odd, odd, b"none", b"1", str(self.folder).encode(), b"0027", b""]))

    def test_output_goes_where_it_is_said(self):
        (self.folder / "100%").mkdir()
        job = self.submit("--cpu-only", "-J", "net", "-D", self.folder / "100%", "--log", "%j-%x.out", "--err", "%a.err",
                          "--array", "4-5", "--", "sh", "-c", "echo out; echo err >&2")[0]
        self.assertEqual(self.mete("wait", job).returncode, 0)
        self.assertEqual({p.name: p.read_text() for p in (self.folder / "100%").glob("[!.]*")},
                         {f"{job}_4-net.out": "out\n", "4.err": "err\n", f"{job}_5-net.out": "out\n", "5.err": "err\n"})

    def test_the_last_job_is_known_by_a_sign(self):
        self.refused(66, "--cpu-only", "--after", "@", "--", "true", says="you have submitted no job yet")
        first, = self.submit("--cpu-only", "--", "sh", "-c", "exit 3")
        second, = self.submit("--cpu-only", "--after", "@:fail", "--", "true")
        third, = self.submit("--cpu-only", "--after", "@,@~1:any", "--", "true")
        self.assertEqual(self.mete("wait", "@").returncode, 0)
        after = self.api(f"/v1/jobs/{third}/show")[1]["job"]["after"]
        self.assertEqual([(a["id"], a["when"]) for a in after], [(second, "ok"), (first, "any")])

    def test_a_share_is_shown_as_it_was_written(self):
        job, = self.submit("--hold", "--gpu", "8GB", "--", "true")
        self.assertEqual((self.jobs()[0]["request"], "request_written" in self.jobs()[0]), ("8GB", False))
        for verb in (("ps", "--wide"), ("show", job), ("events", "--from", "1")):
            self.assertIn("8GB = 7.45 GiB", self.mete(*verb).stdout, verb)
        self.mete("release", job)
        self.assertEqual(self.mete("wait", job).returncode, 0)
        self.assertIn("8GB → 7.44 GiB", self.mete("show", job).stdout)
        half, = self.submit("--hold", "--gpu", "0.5", "--", "true")
        self.assertEqual([(j["request"], j["request_written"]) for j in self.jobs() if j["id"] == half], [("50%", "0.5")])
        self.assertIn(" 0.5 ", self.mete("ps").stdout)
        self.refused(69, "--gpu", "8000GB", "--", "true", says="8000GB = 7450.58 GiB")
        self.mete("cancel", half)

    def test_a_share_that_grows_may_shed(self):
        script = self.file("grow.sh", "#!/bin/sh\n#METE --gpu 8G..20G --shed\n")
        file = self.file("grow.yaml", "gpu: 8G..20G\nshed: true\ncommand: [\"true\"]\n")
        for words in (("--gpu", "8G..20G", "--shed", "--", "true"), (script,), ("-f", file)):
            job, = self.submit(*words)
            self.assertEqual(self.mete("wait", job).returncode, 0, words)

    def test_what_the_daemon_refuses(self):
        self.refused(69, "--gpu", "900G", "--", "true", says="can never fit here")
        self.refused(66, "--cpu-only", "--after", "77", "--", "true", says="77")
        self.submit("--gpu", "all", "--", "sleep", "1000")
        self.refused(75, "--gpu", "1", "--no-wait", "--", "true", says="")
        self.assertEqual(len(self.jobs()), 1, "what was refused left nothing behind")
        self.mete("cancel", "1")

    def test_what_is_too_large_to_send_is_said(self):
        many = [f"{'x' * 100_000}{i}" for i in range(12)]
        self.refused(64, "--cpu-only", "--", "true", *many, says="too large to send")


class Scripts(SubmitTest):
    def test_the_text_of_a_script_is_what_runs(self):
        script = self.file("job.sh", "#!/bin/bash\n#METE --cpu-only --name tale -e WHO=world\necho \"hello $WHO $1 $#\"\n")
        job, = self.submit("--hold", script, "a b", "c")
        script.write_text("#!/bin/sh\nexit 9\n")
        script.unlink()
        self.mete("release", job)
        self.assertEqual(self.mete("wait", job).returncode, 0)
        self.assertEqual(self.log_of(job), b"hello world a b 2\n")
        self.assertEqual(self.job(job)["name"], "tale")
        self.assertEqual(self.job(job)["command"][0], str(script))

    def test_other_interpreters_and_no_permission_to_run(self):
        script = self.file("job.py", "#!/usr/bin/env python3\nimport os, sys\nprint(os.getcwd(), sys.argv[1:])\n")
        script.chmod(0o400)
        self.assertEqual(self.run_to_end("--cpu-only", script, "x", cwd=self.folder).decode(), f"{self.folder} ['x']\n")

    def test_a_script_that_cannot_be_run_names_its_interpreter(self):
        for text, says in (("#!/no/such/bash -x\necho never\n", "its interpreter '/no/such/bash': No such file"), ("#!", "names no program after #!"),
                           ("#!/etc/passwd\n", "its interpreter '/etc/passwd': Permission denied")):
            job, = self.submit("--cpu-only", self.file("s.sh", text))
            self.assertIn(self.mete("wait", job).returncode, (126, 127))
            self.assertIn(says, self.mete("show", job).stdout)

    def test_a_script_of_slurm(self):
        script = self.file("s.sbatch", "#!/bin/bash\n#SBATCH -J slurm --array=1-2 --output=s-%A_%a.txt --gres=gpu:1\n"
                           "#SBATCH --mem=512 --account=lab\necho $METE_ARRAY_INDEX ${CUDA_VISIBLE_DEVICES:0:4}\n")
        result = self.mete("sbatch", script, cwd=self.folder)
        self.assertEqual(result.stderr, f"mete: {script}:3: #SBATCH --account has no meaning here and was left out\n")
        job = result.stdout.strip()
        self.assertEqual(self.mete("wait", job).returncode, 0)
        for element in (1, 2):
            # Where no control group may be made, a line about --mem comes first.
            self.assertTrue((self.folder / f"s-{job}_{element}.txt").read_text().endswith(f"{element} GPU-\n"))

    def test_a_script_of_slurm_finds_its_variables(self):
        script = self.file("s.sh", "#!/bin/bash\n#SBATCH -J tale --array=1-3:2 -c 1 --output=%a.txt\n"
                           "set -u\necho $SLURM_JOB_NAME $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID "
                           "$SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP "
                           "$((SLURM_JOB_ID)) $SLURM_JOBID $SLURM_SUBMIT_DIR $SLURM_CPUS_PER_TASK $SLURM_NTASKS "
                           "$SLURM_PROCID $SLURM_NNODES ${SLURMD_NODENAME:+host} ${SLURM_OLD-none}\n")
        # Variables of a surrounding job are not passed to this job.
        job, = self.submit("-q", script, cwd=self.folder, env={"SLURM_JOB_ID": "77", "SLURM_OLD": "1"})
        self.assertEqual(self.mete("wait", job).returncode, 0)
        for element in (1, 3):
            words = (self.folder / f"{element}.txt").read_text().splitlines()[-1].split()
            number = f"{job}{element:07}"
            self.assertEqual(words, ["tale", job, str(element), "2", "1", "3", "2", number, number, str(self.folder),
                                     "1", "1", "0", "1", "host", "none"])

    def test_a_program_finds_no_variables_of_slurm_but_its_shells(self):
        script = self.file("m.sh", "#!/bin/bash\n#METE --cpu-only\nenv | grep ^SLURM || true\n")
        self.assertEqual(self.run_to_end(script), b"")
        self.assertEqual(self.run_to_end(script, env={"SLURM_JOB_ID": "77"}), b"SLURM_JOB_ID=77\n")


class Files(SubmitTest):
    def test_several_jobs_run_in_their_order(self):
        trace = self.folder / "trace"
        path = self.file("jobs.yaml", f"""
cpu-only: true
env: {{TRACE: {trace}}}
jobs:
  - {{name: report, after: [train], command: "echo report >> $TRACE"}}
  - {{name: train, after: "prepare:ok", array: 0-1%1, command: "echo train $METE_ARRAY_INDEX >> $TRACE"}}
  - name: prepare
    script: |
      #!/bin/sh
      echo prepare >> $TRACE
""")
        ids = self.submit("-f", path)
        self.assertEqual([self.api(f"/v1/jobs/{i}/show")[1]["job"]["name"] for i in ids], ["prepare", "train", "report"])
        self.assertEqual(self.mete("wait", ids[-1]).returncode, 0)
        self.assertEqual(trace.read_text(), "prepare\ntrain 0\ntrain 1\nreport\n")
        self.assertEqual(self.mete("wait", "@").returncode, 0)

    def test_all_of_them_or_none(self):
        trace = self.folder / "trace"
        path = self.file("jobs.yaml", f"jobs:\n- {{name: a, cpu-only: true, command: 'touch {trace}'}}\n"
                         "- {name: b, gpu: 900G, command: x}\n")
        self.refused(69, "-f", path, says="can never fit here")
        self.assertEqual([job["outcome"] for job in self.jobs()], ["cancelled"])
        self.assertFalse(trace.exists())
        self.assertEqual(self.mete("submit", "--cpu-only", "--after", "@", "--", "true").returncode, 66, "@ is none of them")

    def test_a_signal_takes_back_what_was_sent(self):
        path = self.file("jobs.yaml", "cpu-only: true\njobs:\n"
                         + "".join(f"- {{name: n{i}, command: 'true'}}\n" for i in range(1000)))
        self.mete("cards")
        for number in (signal.SIGINT, signal.SIGTERM):
            before = len(self.jobs())
            process = self.start("submit", "-f", path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until(lambda: len(self.jobs()) > before, "the first are there")
            daemon = self.daemon_pid()
            os.kill(daemon, signal.SIGSTOP)  # so that it is in the middle
            try:
                process.send_signal(number)
            finally:
                os.kill(daemon, signal.SIGCONT)
            out, err = process.communicate(timeout=BOUND_S)
            self.assertEqual((process.returncode, out), (128 + number, ""), err)
            self.assertRegex(err, "taken back")
            jobs = self.jobs()
            self.assertLess(before, len(jobs))
            self.assertEqual({job["state"] for job in jobs}, {"ended"})

    def test_jobs_that_are_held_stay_held(self):
        path = self.file("jobs.yaml", "cpu-only: true\ncommand: [true]\njobs: [{name: a, hold: true}, {name: b}]\n")
        a, b = self.submit("-f", path)
        self.assertEqual(self.mete("wait", b).returncode, 0)
        self.assertEqual(self.job(a)["reason"], "held")


class AskedTwice(SubmitTest):
    """The daemon has taken a job and goes away before it has said so."""

    def lossy(self, line, times=1):
        self.mete("cards")  # it runs
        before = Forgetful(self, line, times)
        return before, dict(self.env, METE_SOCKET=before.path)

    def test_the_job_is_asked_for_again_and_is_one(self):
        before, env = self.lossy(b"POST /v1/jobs ", times=2)
        for words in ([], ["--array", "0-4"]):
            before.seen = 0
            jobs = len(self.jobs())
            result = self.mete("submit", "-o", "json", "--cpu-only", "--hold", *words, "--", "true", env=env)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("asking again", result.stderr)
            self.assertEqual(before.seen, 3)
            document = json.loads(result.stdout)
            self.assertEqual(document.get("elements"), 5 if words else None)
            self.assertEqual(len(self.jobs()), jobs + (5 if words else 1))
            self.assertEqual(self.mete("show", document["id"]).returncode, 0)

    def test_it_is_one_over_a_kill_too(self):
        self.mete("cards")
        body = {"job": {"name": "x", "command": ["true"], "cwd": "/", "request": {"gpu": "0"}, "held": True, "detached": {"umask": 18}},
                "environment": [], "key": "k-1"}
        first = self.api("/v1/jobs", "POST", json.dumps(body))
        self.assertEqual(first[0], 201, first)
        self.kill_daemon()
        self.mete("ps")
        again = self.api("/v1/jobs", "POST", json.dumps(body))
        self.assertEqual((again[0], again[1]["id"]), (201, first[1]["id"]))
        body["key"] = "k-2"
        self.assertNotEqual(self.api("/v1/jobs", "POST", json.dumps(body))[1]["id"], first[1]["id"])

    def test_a_daemon_that_does_not_come_back_is_told(self):
        before, env = self.lossy(b"POST /v1/jobs ", times=1000)
        result = self.mete("submit", "--cpu-only", "--hold", "--", "true", env=env)
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertIn("whether it has taken the job is not known", result.stderr)
        self.assertEqual(len(self.jobs()), 1)

    def test_what_is_not_known_is_refused_by_name(self):
        self.mete("cards")
        good = {"job": {"name": "x", "command": ["true"], "cwd": "/", "request": {"gpu": "0"}, "held": True, "detached": {"umask": 18}},
                "environment": []}
        self.assertEqual(self.api("/v1/jobs", "POST", json.dumps(good))[0], 201)
        for wrong in ({**good, "gpu_memory": 1}, {**good, "job": {**good["job"], "gpu_memory": 1}},
                      {**good, "job": {**good["job"], "request": {"gpu": "0", "gpu_memory": 1}}}):
            for path in ("/v1/jobs", "/v1/try"):
                status, answer = self.api(path, "POST", json.dumps(wrong))
                self.assertEqual((status, answer["error"]["code"], answer["error"]["exit"]), (400, "invalid", 64))
                self.assertIn("unknown field 'gpu_memory'", answer["error"]["message"])
        for path, body in (("/v1/jobs/1/priority", {"priority": -1}), ("/v1/quotas", {"user": "root", "cards": 1}),
                           ("/v1/reservations", {"user": "root", "gpu": "1"})):
            answer = self.api(path, "POST", json.dumps({**body, "gpu_memory": 1}))
            self.assertEqual(answer[0], 400, answer)
        self.assertEqual(len(self.jobs()), 1)


if __name__ == "__main__":
    main()
