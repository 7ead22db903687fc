# SPDX-License-Identifier: Apache-2.0
"""A simulated machine for one test: its own folder, its own server, which is stopped at the end."""
import os
import pathlib
import shutil
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ["METE_BUILD_DIR"])
SIMGPU = BUILD / "simgpu"
NVML = SIMGPU / "libnvidia-ml.so.1"
CUDA = SIMGPU / "libcuda.so.1"


class Machine:
    def __init__(self, cards: str):
        self.folder = tempfile.mkdtemp(prefix="mete-nvml-")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("METE_SIM", "CUDA_", "LD_PRELOAD"))}
        self.env |= {"METE_SIM": cards, "METE_SIM_DIR": self.folder}
        self.holders = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()
        self.control("stop")
        shutil.rmtree(self.folder)

    def control(self, *words: str) -> str:
        return subprocess.run([SIMGPU / "mete-simgpu", "--ctl", *words], env=self.env, check=True, text=True,
                              capture_output=True).stdout

    def hold(self, card: int, plain: int = 0, managed: int = 0) -> subprocess.Popen:
        """A process with a context on the card and this much memory; returns when it has it."""
        holder = subprocess.Popen([BUILD / "tests/nvml_holder", CUDA, str(card), str(plain), str(managed)],
                                  env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError("the holder did not get its memory")
        return holder
