#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package on a bare Debian 12 (debootstrap, in namespaces of its own): the first run after the installation, an upgrade while jobs run,
wait and are parked, a downgrade, a removal while jobs run, a purge; what lintian says; and that two builds give the same bits."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import packages
from support import BUILD, SOURCE, wait_until

SIM = {"METE_SIM": "2xH200"}
# Of dpkg and the machine, not of mete.
FOREIGN = ("/var/lib/dpkg", "/var/log", "/var/cache", "/proc", "/dev", "/tmp", "/run", "/home", "/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", "/etc/subuid",
           "/etc/subgid", "/root")


def base_system():
    """An archive of a fresh base system, made once for this build."""
    archive = BUILD / "packages/debian.tar"
    if not archive.exists():
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder], capture_output=True, text=True, timeout=1200, check=False)
            if made.returncode != 0:
                raise unittest.SkipTest("debootstrap: " + made.stdout[-300:])
            subprocess.run(["tar", "-cf", f"{archive}.new", "-C", folder, "."], check=True)
        os.rename(f"{archive}.new", archive)
    return archive


class DebianTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("debootstrap"):
            self.skipTest("needs root and debootstrap")
        self.deb = packages.make()[0]
        self.newer = packages.make("0.9.0")[0]
        base = base_system()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="mete-debian-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        subprocess.run(["tar", "-xf", base, "-C", self.root], check=True)
        self.root.chmod(0o755)  # a temporary folder is its owner's; / is for everyone
        self.machine = packages.Machine(self.root)
        self.addCleanup(self.machine.end)
        for deb in (self.deb, self.newer):
            shutil.copy(deb, self.root / "root")

    def dpkg(self, deb, env=None):
        return self.machine(f"dpkg -i ./{deb.name}", env=env)

    def alice(self, script):
        return self.machine(script, user="alice", env=SIM)

    def good(self, result):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout.strip()

    def job(self, number):
        return json.loads(self.good(self.alice(f"mete show {number} -o json")))["job"]

    def submit(self, words):
        return self.good(self.alice(f"mete submit {words}"))

    def paths(self):
        """Every file of the machine that is not the machine's own business."""
        found = set()
        for folder, names, files in os.walk(self.root):
            at = "/" + os.path.relpath(folder, self.root).removeprefix(".")
            at = at.replace("//", "/")
            names[:] = [n for n in names if not os.path.join(at, n).startswith(FOREIGN)]
            found |= {os.path.join(at, n) for n in names + files if not os.path.join(at, n).startswith(FOREIGN)}
        return found

    def test_the_first_run_needs_no_other_command(self):
        self.good(self.dpkg(self.deb))
        ran = self.alice("mete run --gpu 2G -- /usr/libexec/mete/mete-demo-program greedy 20")
        self.assertEqual((ran.returncode, "refused" in ran.stdout), (2, True), ran.stdout + ran.stderr)
        self.good(self.alice("mete demo --sim"))
        self.assertIn("/usr/bin/meted --system", (self.root / "usr/lib/systemd/system/meted.service").read_text())

    def test_jobs_survive_an_upgrade(self):
        self.good(self.dpkg(self.deb))
        wait = "while [ ! -e go ]; do sleep 0.05; done"
        runs = self.submit(f"--gpu 2G -- sh -c '{wait}; /usr/libexec/mete/mete-demo-program greedy 20; exit 3'")
        parked = self.submit(f"--gpu 4G --preemptible -- sh -c '{wait} | /usr/libexec/mete/mete-demo-program holder 4'")
        waits = self.submit("--gpu 2 -- touch ran")
        wait_until(lambda: (self.job(parked).get("grant") or [{}])[0].get("used_bytes", 0) >= 1 << 30, "it holds its memory")
        self.good(self.alice(f"mete park {parked}"))
        wait_until(lambda: self.job(parked)["state"] == "parked", "it is parked")
        before = json.loads(self.good(self.alice("mete daemon status -o json")))["pid"]
        self.good(self.dpkg(self.newer))
        self.assertEqual([self.job(j)["state"] for j in (runs, parked, waits)], ["running", "parked", "pending"])
        wait_until(lambda: json.loads(self.alice("mete daemon status -o json").stdout or "{}").get("pid") not in (None, before) or
                   "(deleted)" not in self.good(self.machine(f"readlink /proc/{before}/exe")), "the daemon has become the new program")
        self.good(self.alice(f"mete unpark {parked}"))
        self.good(self.alice("touch go"))
        self.assertEqual(self.alice(f"mete wait {runs}").returncode, 3)
        self.assertIn("refused", self.good(self.alice(f"mete logs {runs}")))  # a process that came after the upgrade has its limit
        self.good(self.alice(f"mete wait {parked}"))
        self.good(self.alice(f"mete wait {waits}"))
        self.good(self.alice("test -e ran"))

    def test_the_daemon_of_the_machine_goes_on_with_its_jobs(self):
        self.good(self.dpkg(self.deb))
        start = "METE_SIM=2xH200 METE_SIM_DIR=/tmp/sim setsid meted --system </dev/null >/dev/null 2>&1 & for i in $(seq 100); do METE_SIM= mete daemon status >/dev/null && break; sleep 0.1; done"
        self.good(self.machine(start))
        job = self.machine("mete submit --gpu 1G -- sh -c 'while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 5'", user="alice")
        number = self.good(job)
        self.good(self.dpkg(self.newer))
        self.good(self.machine("kill $(cat /var/lib/mete/meted.pid); while [ -e /var/lib/mete/meted.pid ]; do sleep 0.05; done"))
        self.good(self.machine(start))
        self.good(self.machine("touch /tmp/go"))
        self.assertEqual(self.machine(f"mete wait {number}", user="alice").returncode, 5)

    def test_a_downgrade_is_refused_with_the_way_back(self):
        self.good(self.dpkg(self.newer))
        refused = self.dpkg(self.deb)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("mete daemon restore", refused.stderr)
        self.assertIn("0.9.0", self.good(self.machine("dpkg-query -W mete")))
        self.good(self.alice("mete run -q --gpu 1G -- true"))
        self.good(self.dpkg(self.deb, env={"METE_ALLOW_DOWNGRADE": "1"}))

    def test_an_edited_configuration_survives(self):
        self.good(self.dpkg(self.deb))
        config = self.root / "etc/mete/config.toml"
        config.write_text('[daemon]\npolicy = "spread"\n')
        self.good(self.machine(f"dpkg --force-confold -i ./{self.newer.name}"))
        self.assertIn('policy = "spread"', config.read_text())
        self.assertIn("spread", self.good(self.alice("mete config show")))

    def test_removal_waits_for_jobs_and_a_purge_leaves_nothing(self):
        before = self.paths()
        self.good(self.dpkg(self.deb))
        job = self.submit("--gpu 1G -- sleep 1000")
        wait_until(lambda: self.job(job)["state"] == "running", "it runs")
        refused = self.machine("dpkg --purge mete")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("jobs still run", refused.stderr)
        self.assertEqual(self.job(job)["state"], "running")
        self.good(self.alice(f"mete cancel {job} && mete wait {job}; true"))
        wait_until(lambda: self.machine("grep -l '/usr/lib/mete/[0-9]*/libmete' /proc/[0-9]*/maps; ls -l /proc/[0-9]*/exe | grep mete-keeper").stdout == "", "its processes have ended")
        self.good(self.machine("dpkg --purge mete"))
        self.assertEqual(self.paths() - before, set())
        self.assertEqual(self.machine("ls -l /proc/[0-9]*/exe | grep -E 'meted|mete-'").stdout, "")

    def test_a_full_disk_leaves_no_half(self):
        full = self.root / "usr/libexec"
        full.mkdir(exist_ok=True)
        self.good(self.machine("mount -t tmpfs -o size=2m tmpfs /usr/libexec"))
        refused = self.dpkg(self.deb)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("No space left", refused.stderr)
        self.assertEqual(self.machine("ls /usr/bin/mete /usr/lib/mete").stdout, "")
        self.good(self.machine("umount /usr/libexec"))
        self.good(self.dpkg(self.deb))
        self.good(self.alice("mete run -q --gpu 1G -- true"))


class Quality(unittest.TestCase):
    def test_lintian_finds_no_error(self):
        if not shutil.which("lintian"):
            self.skipTest("needs lintian")
        said = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", packages.make()[0]], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(said.returncode, 0, said.stdout)

    def test_units_are_correct(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("needs systemd")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "-x", packages.make()[0], folder], check=True)
            units = pathlib.Path(folder) / "usr/lib/systemd/system"
            service = units / "meted.service"
            service.write_text(service.read_text().replace("/usr/bin/meted", f"{folder}/usr/bin/meted"))
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", service, units / "meted.socket"], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((said.returncode, [line for line in said.stderr.splitlines() if "mete" in line]), (0, []), said.stderr)

    def test_two_builds_give_the_same_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            tracked = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCE, capture_output=True, check=True).stdout
            copy = pathlib.Path(folder) / "a-longer-name-for-the-sources"
            copy.mkdir()
            subprocess.run(["cpio", "-0", "-p", "-d", "--quiet", copy], cwd=SOURCE, input=tracked, check=True)
            time = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=SOURCE, capture_output=True, text=True, check=True).stdout.strip()
            environment = {**os.environ, "CCACHE_DISABLE": "1", "SOURCE_DATE_EPOCH": time}
            made = subprocess.run([copy / "tools/package"], env=environment, capture_output=True, text=True, timeout=1700, check=False)
            self.assertEqual(made.returncode, 0, made.stdout[-2000:] + made.stderr[-2000:])
            for ours in packages.make():
                theirs = copy / "build/release/packages" / ours.name
                self.assertEqual(hashlib.sha256(ours.read_bytes()).hexdigest(), hashlib.sha256(theirs.read_bytes()).hexdigest(), ours.name)


if __name__ == "__main__":
    unittest.main()
