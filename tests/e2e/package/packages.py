# SPDX-License-Identifier: Apache-2.0
"""The packages of this build, made once per test program, and roots to install them in."""
import functools
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import BUILD, SOURCE, wait_until  # noqa: E402


@functools.cache
def make(version=""):
    """(the .deb, the .tar.gz) of this build; with a version, packages that claim to be of it."""
    environment = {**os.environ, **({"METE_PACKAGE_VERSION": version} if version else {})}
    made = subprocess.run([SOURCE / "tools/package", "--build", BUILD], env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    found = [pathlib.Path(line.split()[0]) for line in made.stdout.splitlines()]
    wanted = version or "0.1.0"
    deb = next(p for p in found if p.suffix == ".deb" and f"_{wanted}-" in p.name)
    archive = next(p for p in found if p.name.endswith(".tar.gz") and f"-{wanted}-" in p.name)
    return SOURCE / deb, SOURCE / archive


def unpack(archive, folder):
    """The one folder that is in the archive."""
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    inside = list(pathlib.Path(folder).iterdir())
    assert len(inside) == 1, inside
    return inside[0]


# The C library and nothing else.
GLIBC = ["ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"]


def bare_root(folder):
    """A root folder with glibc alone."""
    library = folder / "lib/x86_64-linux-gnu"
    library.mkdir(parents=True)
    for name in GLIBC:
        shutil.copy(f"/lib/x86_64-linux-gnu/{name}", library)
    (folder / "lib64").symlink_to("lib/x86_64-linux-gnu")
    for name in ("proc", "dev", "tmp", "home"):
        (folder / name).mkdir()
    return folder


def in_root(root, command, env):
    """Runs a command in the root, in mount and process namespaces of its own, so that nothing is left of it."""
    script = ('mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" && chroot "$0" "$@"; exit $?')  # the shell is process 1
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, root, *map(str, command)], capture_output=True,
                          text=True, timeout=300, check=False, stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], **env})


class Machine:
    """A Debian with nothing but its base system, in namespaces of its own, that lives until end()."""

    def __init__(self, root):
        self.root = root
        script = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" && mount -t tmpfs tmpfs "$0/run" && mkdir -m 1777 "$0/run/lock" && echo up && exec chroot "$0" sleep infinity'
        self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, root], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "up\n"
        pid = self.process.pid
        self.first = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        # Before chroot has run, a command would see the machine of the test.
        wait_until(lambda: os.path.samefile(f"/proc/{self.first}/root", root), "it is in its root")
        made = self("useradd -m -s /bin/sh alice")
        assert made.returncode == 0, made.stderr

    def __call__(self, script, user="root", env=None):
        """A shell script as that user; stdout, stderr and exit code."""
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root" if user == "root" else f"/home/{user}", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **(env or {})}
        command = ["nsenter", "--target", self.first, "--mount", "--pid", "--root", "--wd"]
        if user != "root":
            uid = next(line.split(":")[2] for line in (self.root / "etc/passwd").read_text().splitlines() if line.startswith(user + ":"))
            command += ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        return subprocess.run([*command, "sh", "-c", f'cd "$HOME" && {script}'], env=variables, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
