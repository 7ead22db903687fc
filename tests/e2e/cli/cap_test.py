#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mete cap` on simulated cards: what the program is given, what is refused, and that nothing stays behind."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import unittest

import support

# Takes device memory in steps until it is refused or has MIB; prints what it got. Driver API by ctypes.
FILL = r"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    code = getattr(cuda, name)(*args)
    if code: raise SystemExit(f"{name}: {code}")
call("cuInit", 0)
context = ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
held, code = 0, 0
while held < int(sys.argv[1]):
    pointer = ctypes.c_uint64()
    code = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20))
    if code: break
    held += 64
print(held, code, flush=True)
if len(sys.argv) > 2: sys.stdin.read()
sys.exit(code)
"""


class Cap(support.MeteTest):
    sim = "2xH200"

    def setUp(self):
        super().setUp()
        self.fill = self.folder / "fill.py"
        self.fill.write_text(FILL)

    def capped(self, *words, env=None, **options):
        return self.mete("cap", *words, env=env, **options)

    def test_memory_past_the_cap_is_refused_and_explained(self):
        result = self.capped("--gpu", "4G", "--", "python3", self.fill, "999999")
        held, code = map(int, result.stdout.split())
        self.assertEqual((code, result.returncode), (2, 2))
        self.assertLessEqual(held, 4096 - 518)
        self.assertGreater(held, 4096 - 518 - 128)
        talk = result.stderr.splitlines()
        self.assertEqual(len(talk), 2)
        self.assertIn("4 GiB (4294967296 bytes) on card 0", talk[0])
        self.assertRegex(talk[1], r"^mete: hint: .* refused .* cap on card 0 is 4 GiB, its peak was 3\.\d+ GiB")
        self.assertEqual(self.grants(), [])

    def test_a_program_that_stays_inside_hears_nothing(self):
        result = self.capped("-q", "--gpu", "4G", "--", "python3", self.fill, "1024")
        self.assertEqual((result.stdout, result.stderr, result.returncode), ("1024 0\n", "", 0))

    def test_a_program_that_fails_otherwise_gets_no_hint(self):
        result = self.capped("-q", "--gpu", "4G", "--", "sh", "-c", f"python3 {self.fill} 512; exit 9")
        self.assertEqual((result.stderr, result.returncode), ("", 9))

    def test_environment(self):
        script = ('echo "$CUDA_VISIBLE_DEVICES"; echo "$NVIDIA_VISIBLE_DEVICES"; echo "$CUDA_DEVICE_ORDER"; '
                  'echo "$METE_GPU_MEM_BYTES"; echo "$METE_JOB_ID.$METE_ATTEMPT"; echo "$METE_GRANT"; '
                  'echo "${LD_PRELOAD%%:*}"; echo "${LD_PRELOAD##*:}"; echo "${LD_LIBRARY_PATH%%:*}"')
        result = self.capped("-q", "--gpu", "8G", "--devices", "1,0", "--", "sh", "-c", script,
                             env={"LD_PRELOAD": "/nonexistent/libjemalloc.so"})
        cards, nvidia, order, size, job, grant, first, last, library = result.stdout.split("\n")[:9]
        self.assertRegex(cards, r"^GPU-[0-9a-f-]{36},GPU-[0-9a-f-]{36}$")
        self.assertEqual(nvidia, cards)
        self.assertEqual((order, size), ("PCI_BUS_ID", str(8 << 30)))
        self.assertEqual(grant, f"{self.state}/grants/{job}")
        self.assertEqual(first, str(support.BUILD / "lib" / "libmete.so"))
        self.assertEqual(last, "/nonexistent/libjemalloc.so")
        self.assertEqual(library, str(support.BUILD / "simgpu"))
        result = self.capped("-q", "--gpu", "8G", "--devices", "1,0", "--visible", "index", "--", "sh", "-c",
                             "echo $CUDA_VISIBLE_DEVICES")
        self.assertEqual(result.stdout, "1,0\n")

    def test_cards_that_the_caller_was_given_are_kept(self):
        document = self.capped("--gpu", "40%", "--dry-run", env={"CUDA_VISIBLE_DEVICES": "1"})
        self.assertIn("on card 1", document.stdout)
        self.assert_refused(self.capped("--gpu", "2x8G", "--", "true", env={"CUDA_VISIBLE_DEVICES": "1"}), 69,
                            "CUDA_VISIBLE_DEVICES='1' hides cards")
        self.assert_refused(self.capped("--gpu", "8G", "--", "true", env={"CUDA_VISIBLE_DEVICES": "-1"}), 69)
        self.assert_refused(self.capped("--gpu", "8G", "--", "true", env={"CUDA_VISIBLE_DEVICES": "MIG-1"}), 64)

    def test_what_can_never_fit(self):
        self.assert_refused(self.capped("--gpu", "200G", "--", "true"), 69, "--gpu 200G can never fit here",
                            "the largest card is card 0 (H200, 139.8 GiB)", "would fit")
        self.assert_refused(self.capped("--gpu", "3", "--", "true"), 69, "--gpu 2 would fit")
        self.assert_refused(self.capped("--gpu", "3x8G", "--", "true"), 69, "--gpu 2x8G would fit")
        self.assert_refused(self.capped("--gpu", "8G", "--devices", "5", "--", "true"), 69)
        self.assert_refused(self.capped("--gpu", "8G", "--gpu-type", "T4", "--", "true"), 69, "cards here: H200")

    def test_contradicting_words(self):
        for words in (["--gpu", "1", "--devices", "0,1"], ["--gpu", "all", "--devices", "0"],
                      ["--gpu", "8G", "--devices", "0,0"], ["--gpu", "8G", "--devices", "0", "--gpu-type", "T4"],
                      ["--gpu", "8G", "--devices", "0,"], ["--devices", "x"]):
            self.assert_refused(self.capped(*words, "--", "true"), 64, "hint: ")

    def test_no_driver(self):
        result = self.capped("--gpu", "8G", "--", "true", env={"METE_SIM": ""})
        if result.returncode == 0:
            self.skipTest("this machine has a GPU")
        self.assert_refused(result, 69, "this machine has no usable GPU", "libnvidia-ml.so.1")

    def test_a_cap_below_a_cap(self):
        # A sanitized mete as the program: its runtime must be the first library, and a preload comes before it.
        self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        result = self.capped("-q", "--gpu", "8G", "--", support.METE, "cap", "--gpu", "4G", "--", "true")
        self.assertEqual(result.returncode, 64)
        self.assertIn("already inside a mete job", result.stderr)
        self.assertEqual(self.capped("-q", "--gpu", "8G", "--", support.METE, "cap", "--gpu", "0", "--", "true").returncode, 0)

    def test_the_grant_file_lives_as_long_as_the_job(self):
        process = self.start("cap", "-q", "--gpu", "4G", "--", "python3", self.fill, "512", "stay",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "512 0\n")
        self.assertEqual(self.grants(), [f"cap-{process.pid}.1"])
        for path, mode in ((self.state / "grants", 0o700), (self.state / "grants" / self.grants()[0], 0o600)):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode)
        # Another cap beside it takes nothing away, and sees its own budget.
        self.assertEqual(self.capped("-q", "--gpu", "4G", "--", "python3", self.fill, "1024").stdout, "1024 0\n")
        self.assertEqual(self.grants(), [f"cap-{process.pid}.1"])
        process.stdin.close()
        self.assertEqual(process.wait(support.BOUND_S), 0)
        self.assertEqual(self.grants(), [])

    def test_what_a_killed_mete_leaves_is_removed_when_its_job_is_gone(self):
        process = self.start("cap", "-q", "--gpu", "4G", "--", "python3", self.fill, "512", "stay",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "512 0\n")
        left = self.grants()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.capped("-q", "--gpu", "4G", "--", "true")
        self.assertEqual(self.grants(), left, "its program still runs under the cap")
        process.stdin.close()
        self.assertEqual(process.stdout.read(), "")  # until the program has closed it
        def gone():
            self.capped("-q", "--gpu", "4G", "--", "true")
            return self.grants() == []
        support.wait_until(gone, "the leftover is removed")

    def test_signals_end_a_capped_job_cleanly(self):
        process = self.start("cap", "-q", "--gpu", "4G", "--", "python3", self.fill, "512", "stay",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "512 0\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(support.BOUND_S), 143)
        self.assertEqual(self.grants(), [])

    def test_a_sampler_that_dies_is_replaced(self):
        process = self.start("cap", "-q", "--gpu", "4G", "--", "python3", self.fill, "512", "stay",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "512 0\n")
        def samplers():
            found = []
            for entry in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                except OSError:
                    continue
                if name == "mete-sampler" and int(rest.split()[1]) == process.pid and rest.split()[0] != "Z":
                    found.append(int(entry.name))
            return found
        support.wait_until(lambda: len(samplers()) == 1, "the sampler runs")
        first = samplers()
        os.kill(first[0], signal.SIGKILL)
        support.wait_until(lambda: len(samplers()) == 1 and samplers() != first, "another sampler runs")
        self.assertIsNone(process.poll())
        process.stdin.close()
        self.assertEqual(process.wait(support.BOUND_S), 0)
        self.assertEqual(samplers(), [])

    def test_memory_outside_the_meter_is_reported(self):
        process = self.start("cap", "-q", "--gpu", "4G", "--", "env", "-u", "LD_PRELOAD", "python3", self.fill, "512", "stay",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "512 0\n")
        grant = self.state / "grants" / self.grants()[0]
        escapes = slice(120, 128)  # docs/formats/grant.md
        support.wait_until(lambda: any(grant.read_bytes()[escapes]), "NVML shows the process")
        process.stdin.close()
        self.assertEqual(process.wait(support.BOUND_S), 0)
        self.assertRegex(process.stderr.read(), r"^mete: warning: 1 process of the job held GPU memory outside the cap "
                         r"\(pid \d+, up to [\d.]+ [GM]iB\)")

    def test_nothing_else_about_the_program_changes(self):
        code = ("import os, signal; print(sorted(os.listdir('/proc/self/fd')), sorted(signal.pthread_sigmask(0, [])),"
                " oct(os.umask(0)), os.getcwd(), len(os.listdir('/proc/self/task')), os.getpgrp() == os.getppid() or 1)")
        alone = subprocess.run(["python3", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        capped = self.capped("-q", "--gpu", "4G", "--", "python3", "-c", code)
        self.assertEqual((capped.stdout, capped.stderr), (alone.stdout, ""))


class Broken(support.MeteTest):
    """Missing parts and broken disks."""
    sim = "1xH200"

    def copy_of_mete(self, *parts):
        (self.folder / "bin").mkdir()
        shutil.copy(support.METE, self.folder / "bin" / "mete")
        for part in parts:
            (self.folder / part).mkdir()
            for file in (support.BUILD / part).iterdir():
                if file.is_file():
                    shutil.copy(file, self.folder / part / file.name)
        return str(self.folder / "bin" / "mete")

    def test_missing_meter(self):
        mete = self.copy_of_mete("simgpu")
        self.assert_refused(self.mete("cap", "--gpu", "8G", "--", "true", program=mete), 125, "libmete.so is missing")
        self.assertFalse(self.state.exists())

    def test_missing_companion(self):
        mete = self.copy_of_mete("simgpu", "lib")
        (self.folder / "lib" / "libmete-cuda.so").unlink()
        self.assert_refused(self.mete("cap", "--gpu", "8G", "--", "true", program=mete), 125,
                            "libmete-cuda.so is missing")

    def test_missing_simulation(self):
        mete = self.copy_of_mete("lib")
        self.assert_refused(self.mete("cap", "--gpu", "8G", "--", "true", program=mete), 125,
                            "the simulated drivers are missing")

    def test_a_moved_tree_works(self):
        mete = self.copy_of_mete("lib", "simgpu")
        result = self.mete("cap", "-q", "--gpu", "8G", "--", "sh", "-c", "echo ${LD_PRELOAD%%:*}", program=mete)
        self.assertEqual(result.stdout, f"{self.folder}/lib/libmete.so\n", result.stderr)

    def test_state_folder_that_cannot_be(self):
        self.state.write_text("a file in the way")
        result = self.mete("cap", "--gpu", "8G", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("the state folder cannot be used", result.stderr)
        self.assertEqual(self.state.read_text(), "a file in the way")
        for value in ("relative/path", "state"):
            result = self.mete("cap", "--gpu", "8G", "--", "true", env={"METE_STATE_DIR": value})
            self.assertEqual(result.returncode, 64)
            self.assertIn("not an absolute path", result.stderr)

    def test_where_the_state_is_by_default(self):
        for name, value, folder in (("XDG_STATE_HOME", self.folder / "xdg", "xdg/mete"),
                                    ("HOME", self.folder / "home", "home/.local/state/mete")):
            env = {k: v for k, v in self.env.items() if k not in ("METE_STATE_DIR", "XDG_STATE_HOME", "HOME")}
            result = subprocess.run([support.METE, "cap", "-q", "--gpu", "1G", "--", "sh", "-c", "echo $METE_GRANT"],
                                    env={**env, name: str(value)}, capture_output=True, text=True,
                                    timeout=support.BOUND_S)
            self.assertTrue(result.stdout.startswith(f"{self.folder}/{folder}/grants/cap-"), result)

    def test_state_folder_that_others_can_write(self):
        (self.state / "grants").mkdir(parents=True)
        (self.state / "grants").chmod(0o777)
        result = self.mete("cap", "--gpu", "8G", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("writable by others", result.stderr)

    def in_small_disk(self, options, script):
        """Runs a script with the state folder on a tmpfs of its own."""
        if os.geteuid() != 0:
            self.skipTest("mounting a small disk needs root")
        self.state.mkdir()
        whole = f"mount -t tmpfs -o {options} tmpfs {self.state} || exit 99; {script}"
        result = subprocess.run(["unshare", "-m", "sh", "-c", whole], env=self.env, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=support.BOUND_S)
        if result.returncode == 99 or "unshare" in result.stderr:
            self.skipTest(f"a small disk cannot be mounted here: {result.stderr}")
        return result

    def test_full_disk(self):
        result = self.in_small_disk("size=512k,mode=700", f"{support.METE} cap --gpu 8G -- true; echo $?; "
                                    f"ls {self.state}/grants | wc -l")
        self.assertEqual(result.stdout.split(), ["125", "0"], result.stderr)
        self.assertIn("the grant file cannot be made", result.stderr)
        self.assertIn("No space left on device", result.stderr)

    def test_read_only_disk(self):
        result = self.in_small_disk("size=4m,mode=700", f"mount -o remount,ro {self.state}; "
                                    f"{support.METE} cap --gpu 8G -- true; echo $?; ls {self.state} | wc -l")
        self.assertEqual(result.stdout.split(), ["125", "0"], result.stderr)
        self.assertIn("Read-only file system", result.stderr)

    def test_read_only_disk_with_a_grants_folder(self):
        result = self.in_small_disk("size=4m,mode=700", f"mkdir -m 700 {self.state}/grants; "
                                    f"mount -o remount,ro {self.state}; {support.METE} cap --gpu 8G -- true; echo $?")
        self.assertEqual(result.stdout.split(), ["125"], result.stderr)
        self.assertIn("Read-only file system", result.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folder_without_permission(self):
        self.state.mkdir(mode=0o500)
        self.assert_refused(self.mete("cap", "--gpu", "8G", "--", "true"), 125, "Permission denied")

    def test_bad_simulation(self):
        result = self.mete("cap", "--gpu", "8G", "--", "true", env={"METE_SIM": "nonsense"})
        self.assertIn(result.returncode, (64, 69, 125))
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        self.assertEqual(self.grants(), [])


if __name__ == "__main__":
    support.main()
