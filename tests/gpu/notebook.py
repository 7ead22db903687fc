#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An idle PyTorch session is parked, another job has the card, and the next line finds the same tensor: once in a program that
reads lines (--idle of mete run), once in a Jupyter kernel, where ipykernel is installed.   notebook.py PATH-TO-mete [--quick]"""
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import time

from rows import GIB, Nvml, check, end, info, no_escapes, skip

LIMIT_S = 120
MAKE = "import torch; torch.manual_seed(7); x = torch.randn({gib}, 1 << 28, device='cuda'); s = (sum(row.double().sum().item() for row in x), x[0, :3].tolist()); print(s)"
LOOK = "print((sum(row.double().sum().item() for row in x), x[0, :3].tolist()) == s, x.data_ptr() == p)"


def jobs(mete, env):
    done = subprocess.run([mete, "ps", "-o", "json"], env=env, capture_output=True, text=True, timeout=LIMIT_S)
    return json.loads(done.stdout)["jobs"]


def until_parked(mete, env):
    begin = time.monotonic()
    while time.monotonic() < begin + LIMIT_S:
        job = jobs(mete, env)[0]
        if job["state"] == "parked":
            return job, time.monotonic() - begin
        time.sleep(0.1)
    return None, None


class Lines:
    """A program that runs each line that it reads, as a notebook does."""
    CODE = "import sys\nspace = {}\nfor line in sys.stdin:\n    exec(line, space)\n    print('done', flush=True)"

    def __init__(self, mete, env, share):
        self.process = subprocess.Popen([mete, "run", "-q", "--gpu", share, "--idle", "2s", "--", sys.executable, "-c", self.CODE],
                                        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = ""
        while (got := self.process.stdout.readline()) not in ("done\n", ""):
            said += got
        return said.strip()

    def close(self):
        self.process.stdin.close()
        return self.process.wait(LIMIT_S) == 0


class Kernel:
    """The same in a Jupyter kernel that mete installed."""

    def __init__(self, mete, env, share):
        import jupyter_client
        from jupyter_client.kernelspec import KernelSpecManager
        subprocess.run([mete, "kernel", "install", "--gpu", share, "--idle", "2s", "--name", "test", "--python", sys.executable], env=env, check=True,
                       stdout=subprocess.DEVNULL, timeout=LIMIT_S)
        specs = KernelSpecManager(kernel_dirs=[env["JUPYTER_DATA_DIR"] + "/kernels"])
        self.manager = jupyter_client.KernelManager(kernel_name="test", kernel_spec_manager=specs)
        self.manager.start_kernel(env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT_S)

    def run(self, code):
        cell, said = self.client.execute(code), ""
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=LIMIT_S)
            except queue.Empty:
                return said
            if message["parent_header"].get("msg_id") != cell:
                continue
            if message["msg_type"] in ("stream", "error"):
                said += message["content"].get("text") or str(message["content"])
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return said.strip()

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel()
        return True


def session(kind, what, mete, env, quick):
    gib = 2 if quick else 20
    total = Nvml().memory().total
    one = kind(mete, env, f"{gib + 8}G")
    first = one.run(MAKE.format(gib=gib) + "; p = x.data_ptr()")
    check("(" in first, f"notebook: {what}: a tensor of {gib} GiB", first[:120])
    job, took = until_parked(mete, env)
    if not check(job is not None, f"notebook: {what}: it is parked when idle", f"after {took:.1f} s" if took else str(jobs(mete, env)[0])[:200]):
        one.close()
        return
    check(job["park"]["cause"] == "idle", f"notebook: {what}: because it was idle", job["park"]["cause"])
    # More than was free while the session held its share.
    large = int((total - (gib // 2) * GIB) // GIB) - 4
    code = f"import torch; y = torch.empty({large - 2}, 1 << 28, device='cuda'); y.fill_(1); torch.cuda.synchronize(); print(y.numel())"
    other = subprocess.run([mete, "run", "-q", "--gpu", f"{large}G", "--", sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=LIMIT_S * 3)
    check(other.returncode == 0, f"notebook: {what}: another job has {large} GiB of the card meanwhile", (other.stdout + other.stderr)[-200:])
    check(one.run("print(len(s))") == "2", f"notebook: {what}: a line without the GPU runs while it is parked")
    check(jobs(mete, env)[0]["state"] == "parked", f"notebook: {what}: and leaves it parked")
    begin = time.monotonic()
    said = one.run(LOOK)
    check(said == "True True", f"notebook: {what}: the next line finds the same tensor at the same address", said[:120])
    info(f"notebook: {what}: from the line to its answer", f"{time.monotonic() - begin:.2f} s")
    check(one.close(), f"notebook: {what}: it ends well")


def main():
    mete, quick = sys.argv[1], "--quick" in sys.argv
    if not (pathlib.Path(mete).parent / "meted").exists():
        skip("notebook", "meted is not built")
    try:
        import torch
    except ImportError as error:
        skip("notebook", f"{error}")
    if not torch.cuda.is_available():
        skip("notebook", "PyTorch sees no card")
    try:
        import ipykernel  # noqa: F401
        import jupyter_client  # noqa: F401
        kinds = [(Lines, "lines"), (Kernel, "kernel")]
    except ImportError as error:
        info("notebook: no Jupyter kernel", str(error))
        kinds = [(Lines, "lines")]
    for kind, what in kinds:
        with tempfile.TemporaryDirectory(prefix="mete-gpu-notebook-") as folder:
            config = pathlib.Path(folder, "config.toml")
            config.write_text('[park]\nmin_run_s = 1\narena = "%dG"\n' % (4 if quick else 24))
            env = {**os.environ, "METE_STATE_DIR": folder + "/state", "METE_SOCKET": folder + "/s", "METE_CLAIMS_DIR": folder + "/claims",
                   "METE_CONFIG": str(config), "JUPYTER_DATA_DIR": folder + "/jupyter", "JUPYTER_RUNTIME_DIR": folder + "/runtime"}
            os.environ["JUPYTER_RUNTIME_DIR"] = folder + "/runtime"
            try:
                session(kind, what, mete, env, quick)
            finally:
                no_escapes(mete, env, "notebook")
                subprocess.run([mete, "daemon", "stop"], env=env, capture_output=True, timeout=LIMIT_S)
    end()


if __name__ == "__main__":
    main()
