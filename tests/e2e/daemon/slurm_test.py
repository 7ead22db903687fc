#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""srun, sbatch, squeue, scancel, sinfo and scontrol for scripts that were written for Slurm, called by their own names."""
import os
import re
import subprocess
import unittest

from world import BOUND_S, BUILD, METE, VerbTest, wait_until

SLURM = BUILD / "share" / "mete" / "slurm"


class Slurm(VerbTest):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{SLURM}:{self.env['PATH']}"

    def call(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(list(map(str, words)), env=self.env, cwd=self.folder, text=True, capture_output=True, timeout=BOUND_S, **options)

    def good(self, *words, **options):
        result = self.call(*words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, code, words, *texts):
        result = self.call(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)

    def script(self, text, name="job.sh"):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        return path

    def batch(self, *words, **options):
        return self.good("sbatch", "--parsable", *words, **options).strip()


class Batch(Slurm):
    def test_a_script_is_submitted_and_its_log_is_where_people_look(self):
        self.script("#SBATCH --gpus=1 --job-name=train --time=10\necho $SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_NTASKS $1\n")
        said = self.good("sbatch", "job.sh", "word")
        self.assertEqual(said, "Submitted batch job 1\n")
        self.mete("wait", "1")
        self.assertEqual((self.folder / "slurm-1.out").read_text(), "1 train 1 word\n")

    def test_wrap_parsable_wait_and_options_over_lines(self):
        result = self.call("sbatch", "--parsable", "--wait", "--wrap", "echo wrapped $SLURM_JOB_ID; exit 3")
        self.assertEqual((result.returncode, result.stdout), (3, "1\n"), result.stderr)
        self.assertEqual((self.folder / "slurm-1.out").read_text(), "wrapped 1\n")
        self.script("#SBATCH --gpus=1\n#SBATCH --job-name=below\nsleep 1000\n")
        job = self.batch("--job-name=above", "--gpus=2", "job.sh")
        self.assertEqual((self.job(job)["name"], self.job(job)["request"]), ("above", "2"))

    def test_a_script_from_standard_input(self):
        job = self.batch("--gpus=1", stdin=None, input="#!/bin/sh\necho from stdin\n")
        self.mete("wait", job)
        self.assertEqual((self.folder / f"slurm-{job}.out").read_text(), "from stdin\n")

    def test_arrays_and_dependencies(self):
        first = self.batch("--array=1-3", "--wrap", "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_JOB_ID")
        second = self.batch(f"--dependency=afterok:{first}", "--wrap", "true")
        self.assertEqual(self.mete("wait", second).returncode, 0)
        self.assertEqual((self.folder / f"slurm-{first}_2.out").read_text(), f"{first} 2 {first}0000002\n")

    def test_what_is_not_there_is_said_with_its_line(self):
        self.script("#SBATCH --gpus=1\n#SBATCH --nodes=2\ntrue\n")
        for words in (("sbatch", "job.sh"), (METE, "submit", "job.sh")):
            self.refused(65, words, "job.sh:3: #SBATCH --nodes '2' is not possible here", "this machine alone")
        self.script("#SBATCH --gpus=1\n#SBATCH --partition=gpu --qos=high\ntrue\n")
        result = self.call("sbatch", "job.sh")
        self.assertEqual(result.returncode, 0)
        self.assertIn("job.sh:3: #SBATCH --partition has no meaning here and was left out", result.stderr)
        result = self.call("sbatch", "--nodes=2", "job.sh")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("error: sbatch --nodes '2' is not possible here", result.stderr)
        self.refused(64, ("sbatch", "--gpsu=1", "job.sh"), "sbatch has no such option", "did you mean --gpus?")
        self.refused(65, ("sbatch", "missing.sh"), "missing.sh")
        (self.folder / "plain").write_text("echo\n")
        self.refused(65, ("sbatch", "plain"), "shebang")
        self.assertEqual([job["id"] for job in self.jobs()], ["1"])

    def test_a_missing_script_is_said_at_submit(self):
        self.refused(65, (METE, "submit", "--gpu", "1G", "missing.sh"), "there is no file 'missing.sh'", "after --")
        self.refused(65, (METE, "submit", "--gpu", "1G", "./missing.sh"), "there is no file './missing.sh'")
        # After -- nothing is looked at: the program may come with another job.
        job = self.submit("--gpu", "1G", "--", "/missing/program")
        self.assertEqual(self.mete("wait", job).returncode, 127)


class Steps(Slurm):
    LINE = "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_STEP_ID"

    def test_srun_inside_a_job_starts_its_tasks(self):
        self.script("#SBATCH --ntasks=2 --cpus-per-task=1\n"
                    f"echo once $SLURM_NTASKS $SLURM_CPUS_PER_TASK\nsrun sh -c '{self.LINE}'\nsrun -n1 sh -c '{self.LINE}'\n")
        job = self.batch("job.sh")
        self.assertEqual(self.mete("wait", job).returncode, 0)
        lines = (self.folder / f"slurm-{job}.out").read_text().splitlines()
        self.assertEqual(lines[0], "once 2 1")
        self.assertEqual(sorted(lines[1:3]), ["0 0 2 0", "1 1 2 0"])
        self.assertEqual(lines[3:], ["0 0 1 0"])

    def test_each_task_has_its_own_cards(self):
        self.script("#SBATCH --ntasks=2 --gpus-per-task=1\necho $CUDA_VISIBLE_DEVICES\n"
                    "srun --gpus-per-task=1 --output=card-%t.txt sh -c 'echo $CUDA_VISIBLE_DEVICES'\nsrun -o all.txt sh -c 'echo $CUDA_VISIBLE_DEVICES'\n")
        job = self.batch("job.sh")
        self.assertEqual(self.mete("wait", job).returncode, 0)
        both = (self.folder / f"slurm-{job}.out").read_text().strip()
        own = [(self.folder / f"card-{task}.txt").read_text().strip() for task in (0, 1)]
        self.assertEqual(",".join(own), both)
        self.assertEqual((self.folder / "all.txt").read_text(), f"{both}\n" * 2)
        self.script("#SBATCH --gpus=1\nsrun -n2 --gpus-per-task=1 true\n")
        job = self.batch("job.sh")
        self.assertEqual(self.mete("wait", job).returncode, 64)
        self.assertIn("more than the job has", (self.folder / f"slurm-{job}.out").read_text())

    def test_a_task_that_fails_ends_the_others(self):
        self.script("srun -n2 sh -c 'test $SLURM_PROCID = 0 && exec sleep 1000; exit 7'\n")
        job = self.batch("job.sh")
        self.assertEqual(self.mete("wait", job).returncode, 7)

    def test_srun_outside_a_job_is_mete_run(self):
        said = self.good("srun", "-n2", "--gpus=1", "--job-name=both", "-t", "5", "sh", "-c", f"{self.LINE} $SLURM_JOB_ID $METE_JOB_ID $SLURM_GPUS_ON_NODE")
        self.assertEqual(sorted(said.splitlines()), ["0 0 2 0 1 1 1", "1 1 2 0 1 1 1"])
        job = self.job(1)
        self.assertEqual((job["name"], job["request"], job["outcome"]), ("both", "1", "ok"))
        self.assertEqual(self.call("srun", "--gpus=1", "sh", "-c", "exit 9").returncode, 9)
        self.refused(64, ("srun", "--gpus=1"), "names no program")
        self.refused(64, ("srun", "--gpus=x:y:1", "true"), "srun --gpus 'x:y:1' is no number of GPUs")
        self.assertEqual(self.good("srun", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE"), "-1\n", "without a GPU it sees none")


class Queue(Slurm):
    def test_squeue(self):
        self.assertEqual(self.good("squeue", "-h"), "")
        running = self.batch("--gpus=2", "--job-name=train", "--time=1:00:00", "--wrap", "sleep 1000")
        self.wait_state(running, "running")
        waiting = self.batch("--gpus=1", "--job-name=later", "--array=0-1", "--wrap", "sleep 1000")
        text = self.good("squeue")
        self.assertEqual(text.splitlines()[0].split(), ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"])
        self.assertRegex(text, rf"(?m)^ +{running} +mete +train +\S+ +R +\d+:\d\d +1 \S+$")
        self.assertRegex(text, rf"(?m)^ +{waiting}_0 +mete +later +\S+ +PD +0:00 +1 \((Resources|Priority)\)$")
        self.assertEqual(self.good("squeue", "-h", "-o", "%i|%j|%t|%T|%l", "-t", "RUNNING"), f"{running}|train|R|RUNNING|1:00:00\n")
        self.assertEqual(self.good("squeue", "--me", "-ho%i", "--name=later"), f"{waiting}_0\n{waiting}_1\n")
        self.assertEqual(self.good("squeue", "-h", "-u", "nobody-here", "-o", "%i"), "")
        self.assertEqual(self.good("squeue", "-h", "-j", f"{waiting}0000001", "-o", "%F %K %.4t|"), f"{waiting} 1   PD|\n")
        self.refused(64, ("squeue", "-o", "%i %X"), "'%X'", "mete-slurm(7)")
        self.refused(64, ("squeue", "12"), "squeue -j 12")
        self.good("scancel", running)
        self.mete("wait", running)
        self.assertEqual(self.good("squeue", "-h", "-j", running, "-o", "%T"), "CANCELLED\n")

    def test_scancel(self):
        jobs = [self.batch("--gpus=1", f"--job-name={name}", "--wrap", "sleep 1000") for name in ("a", "a", "b", "c")]
        self.refused(64, ("scancel",), "names no job", "--me")
        self.good("scancel", "--name=a")
        self.good("scancel", "-n", "nothing")
        self.good("scancel", jobs[2], jobs[2])
        wait_until(lambda: self.good("squeue", "-h", "-o", "%j %t") == "c R\n", "c alone is left")
        self.assertNotEqual(self.call("scancel", "-s", "USR1", jobs[3]).returncode, 0)
        self.assertNotEqual(self.call("scancel", "999").returncode, 0)
        self.good("scancel", "--signal=KILL", "-u", self.good("id", "-un").strip())
        wait_until(lambda: self.good("squeue", "-h") == "", "nothing is left")
        array = self.batch("--array=0-3", "--wrap", "sleep 1000", "--gpus=1")
        self.good("scancel", f"{array}_[1-2]")
        wait_until(lambda: self.good("squeue", "-h", "-o", "%K").split() == ["0", "3"], "two are left")
        self.good("scancel", array)

    def test_sinfo(self):
        host = self.good("sinfo", "-h", "-o", "%N").strip()
        self.assertEqual(host, os.uname().nodename.split(".")[0])
        self.assertEqual(self.good("sinfo", "-h", "-o", "%P %a %t %G"), "mete* up idle gpu:h200:2\n")
        self.assertEqual(self.good("sinfo").splitlines()[0].split(), ["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"])
        one = self.batch("--gpus=1", "--wrap", "sleep 1000")
        self.wait_state(one, "running")
        self.assertEqual(self.good("sinfo", "-h", "-o%T"), "mixed\n")
        two = self.batch("--gpus=1", "--wrap", "sleep 1000")
        self.wait_state(two, "running")
        self.assertEqual(self.good("sinfo", "-h", "-o%t"), "alloc\n")

    def test_scontrol(self):
        job = self.batch("--gpus=2", "--job-name=train", "--wrap", "sleep 1000")
        self.wait_state(job, "running")
        text = self.good("scontrol", "show", "job", job)
        for field in (f"JobId={job} JobName=train", "JobState=RUNNING", "NumNodes=1", "TresPerNode=gres/gpu:2", "TimeLimit=UNLIMITED",
                      f"StdOut={self.folder}/slurm-{job}.out"):
            self.assertIn(field, text)
        self.assertRegex(text, r"RunTime=00:0\d:\d\d ")
        self.assertEqual(len(self.good("scontrol", "-o", "show", "job", job).splitlines()), 1)
        waiting = self.batch("--gpus=2", "--wrap", "true")
        self.good("scontrol", "hold", waiting)
        self.assertIn("Reason=JobHeldUser", self.good("scontrol", "show", "job", waiting))
        self.good("scontrol", "release", waiting)
        self.assertEqual(self.good("scontrol", "show", "hostnames", "n[1-2]"), "n1\nn2\n")
        self.assertNotEqual(self.call("scontrol", "show", "job", "999").returncode, 0)
        self.assertNotEqual(self.call("scontrol", "reboot").returncode, 0)
        self.script("#SBATCH --gpus=0\nscontrol show hostnames $SLURM_JOB_NODELIST\n")
        self.good("scancel", job)
        asked = self.batch("job.sh")
        self.mete("wait", asked)
        self.assertTrue(re.fullmatch(r"\S+\n", (self.folder / f"slurm-{asked}.out").read_text()))

    def test_the_folder_is_named(self):
        self.assertEqual(self.ok("slurm", "path").stdout, f"{SLURM}\n")
        self.assertEqual(self.ok("slurm", "squeue", "-h").stdout, "")
        self.assert_refused(self.mete("slurm", "sacct"), 64, "mete slurm")
        self.assertIn("mete-slurm(7)", self.good("srun", "--help"))
        self.assertIn("mete", self.good("sbatch", "--version"))


if __name__ == "__main__":
    unittest.main()
