#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Notebooks: kernels that `mete kernel install` makes, started by a real Jupyter client, with real ipykernels on simulated cards."""
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

try:
    import ipykernel  # noqa: F401
    import jupyter_client
except ImportError:
    # Debian's packages are of Debian's Python, which may not be the first in PATH.
    if sys.executable.startswith("/usr/bin/"):
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", "-m", "unittest", "-v", os.path.basename(__file__)])

from jupyter_client.kernelspec import KernelSpecManager

from world import BOUND_S, METE, DaemonTest, read, wait_until

# 64 MiB with a pattern, by the driver's interface alone.
TAKE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *words):
    code = getattr(cuda, name)(*words)
    assert code == 0, (name, code)
SIZE = 64 << 20
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(SIZE))
call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(7), ctypes.c_size_t(SIZE))
"""
LOOK = """
buffer = ctypes.create_string_buffer(SIZE)
call("cuMemcpyDtoH_v2", buffer, pointer, ctypes.c_size_t(SIZE))
print("the same" if buffer.raw == b"\\x07" * SIZE else "other bytes")
"""


class Notebook:
    """A client and the kernel that it starts."""

    def __init__(self, test, name):
        self.test = test
        self.log = open(test.folder / "server.log", "a+", encoding="utf-8")
        self.manager = jupyter_client.KernelManager(kernel_name=name, kernel_spec_manager=KernelSpecManager(kernel_dirs=[test.kernels]))
        self.start()

    def start(self):
        self.manager.start_kernel(env=self.test.env, stdout=self.log, stderr=self.log)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=BOUND_S)
        self.hears()

    def hears(self):
        """Returns once the client subscribes to output: what is published before is lost."""
        deadline = time.monotonic() + BOUND_S
        while time.monotonic() < deadline:
            self.client.kernel_info()
            try:
                self.client.get_iopub_msg(timeout=0.2)
                return
            except queue.Empty:
                pass
        raise AssertionError(f"no output; the server says {self.said()}")

    @property
    def pid(self):
        return self.manager.provisioner.process.pid

    def send(self, code):
        return self.client.execute(code, stop_on_error=False)

    def message(self, cell, kind, holds=lambda content: True):
        """The first output of this kind that the cell has from now on."""
        deadline = time.monotonic() + BOUND_S
        while time.monotonic() < deadline:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") == cell and message["msg_type"] == kind and holds(message["content"]):
                return message["content"]
        raise AssertionError(f"no {kind}; the server says {self.said()}")

    def reply(self, cell):
        while True:
            message = self.client.get_shell_msg(timeout=BOUND_S)
            if message["parent_header"].get("msg_id") == cell:
                return message["content"]

    def run(self, code):
        """What the cell shows when it is done. As in a browser, clear_output removes what was shown before."""
        cell, text, clear = self.send(code), "", False
        while True:
            message = self.client.get_iopub_msg(timeout=BOUND_S)
            if message["parent_header"].get("msg_id") != cell:
                continue
            if message["msg_type"] == "clear_output":
                clear = message["content"]["wait"]
                text = text if clear else ""
            if message["msg_type"] == "stream":
                text = message["content"]["text"] if clear else text + message["content"]["text"]
                clear = False
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        reply = self.reply(cell)
        self.test.assertEqual(reply["status"], "ok", reply)
        return text

    def said(self):
        return read(self.test.folder / "server.log").decode(errors="replace")[-2000:]

    def close(self):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=True)
        self.log.close()


class NotebookTest(DaemonTest):
    sim = "1xH200"
    config = "[park]\nmin_run_s = 0\narena = \"4G\"\n"

    def setUp(self):
        super().setUp()
        (self.folder / "config.toml").write_text(self.config)
        self.env["METE_CONFIG"] = str(self.folder / "config.toml")
        self.env["JUPYTER_DATA_DIR"] = str(self.folder / "jupyter")
        self.env["JUPYTER_RUNTIME_DIR"] = os.environ["JUPYTER_RUNTIME_DIR"] = str(self.folder / "runtime")
        self.env["IPYTHONDIR"] = str(self.folder / "ipython")
        self.env["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        for name in ("JUPYTER_PATH", "VIRTUAL_ENV", "JPY_PARENT_PID"):
            self.env.pop(name, None)
        self.kernels = str(self.folder / "jupyter" / "kernels")
        self.addCleanup(self.end_movers)

    def end_movers(self):
        self.end_daemon()
        for pid in self.processes("mete-mover"):
            os.kill(pid, signal.SIGKILL)

    def install(self, *words, name="test"):
        self.ok("kernel", "install", "--python", sys.executable, "--name", name, *words)
        return name

    def open(self, name="test"):
        notebook = Notebook(self, name)
        self.addCleanup(notebook.close)
        return notebook

    def kernels_left(self):
        """Processes of kernels and stand-ins."""
        found = []
        for pid in self.processes(os.path.basename(sys.executable)) + self.processes(os.path.basename(os.path.realpath(sys.executable))):
            if b"mete_kernel.py" in read(f"/proc/{pid}/cmdline"):
                found.append(pid)
        return found

    def assert_gone(self):
        wait_until(lambda: not self.kernels_left() and not self.processes("mete"), "the kernel's processes are gone")
        self.assert_nothing_left()

    def only_job(self, state="running"):
        wait_until(lambda: [job["state"] for job in self.jobs(everything=False)] == [state], f"one job, {state}")
        return self.jobs(everything=False)[0]


class Files(NotebookTest):
    def test_install_ls_rm(self):
        self.assertIn("there is no kernel of mete", self.ok("kernel", "ls").stderr)
        self.assertEqual(self.document("kernels", "kernel", "ls")["kernels"], [])
        self.ok("kernel", "install", "--gpu", "8G", "--python", sys.executable)
        kernel, = self.document("kernels", "kernel", "ls")["kernels"]
        self.assertEqual((kernel["name"], kernel["display_name"], kernel["gpu"], kernel["idle"]), ("python-8-gib", "Python (8 GiB)", "8G", "10m"))
        spec = json.loads((self.folder / "jupyter" / "kernels" / "python-8-gib" / "kernel.json").read_text())
        self.assertEqual(spec["argv"][0], os.path.realpath(METE))
        self.assertEqual((spec["argv"][-1], spec["interrupt_mode"], spec["language"]), ("{connection_file}", "signal", "python"))
        self.assertIn("python-8-gib", KernelSpecManager(kernel_dirs=[self.kernels]).find_kernel_specs())
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8G", "--python", sys.executable), 64, "already", "--replace")
        self.ok("kernel", "install", "--gpu", "8G", "--idle", "never", "--replace", "--python", sys.executable)
        self.assertEqual(self.document("kernels", "kernel", "ls")["kernels"][0]["idle"], "never")
        self.assertIn("Python (8 GiB)", self.ok("kernel", "ls").stdout)
        self.assert_refused(self.mete("kernel", "rm", "python-9"), 66, "python-9", "mete kernel ls")
        self.ok("kernel", "rm", "python-8-gib")
        self.assertEqual(self.document("kernels", "kernel", "ls")["kernels"], [])
        self.assertEqual(os.listdir(self.kernels), [])

    def test_a_kernel_of_somebody_else_is_left_alone(self):
        theirs = self.folder / "jupyter" / "kernels" / "test" / "kernel.json"
        theirs.parent.mkdir(parents=True)
        theirs.write_text('{"argv":["python3"],"display_name":"test"}')
        words = ("kernel", "install", "--gpu", "8G", "--name", "test", "--replace", "--python", sys.executable)
        self.assert_refused(self.mete(*words), 64, "not mete's", "--name")
        self.assert_refused(self.mete("kernel", "rm", "test"), 66)
        self.assertIn("display_name", theirs.read_text())

    def test_prefix(self):
        self.ok("kernel", "install", "--gpu", "0.4", "--name", "x", f"--prefix={self.folder}/p", "--python", sys.executable)
        self.assertTrue((self.folder / "p" / "share" / "jupyter" / "kernels" / "x" / "kernel.json").exists())
        self.assertEqual(self.document("kernels", "kernel", "ls")["kernels"], [])
        self.assertEqual(len(self.document("kernels", "kernel", "ls", f"--prefix={self.folder}/p")["kernels"]), 1)

    def test_what_is_wrong_is_said_at_install(self):
        self.assert_refused(self.mete("kernel", "install"), 64, "--gpu")
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8X"), 64, "8X")
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8G", "--idle", "soon"), 64, "--idle")
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8G", "--name", "é", "--python", sys.executable), 64, "--name")
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8G", "--python", "/bin/true"), 64, "is no Python")
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8G", "--python", "/no/python"), 125, "/no/python")
        bare = self.folder / "bare"
        bare.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S \"$@\"\n")
        bare.chmod(0o755)
        self.assert_refused(self.mete("kernel", "install", "--gpu", "8G", "--python", bare), 125, "ipykernel is missing", "pip install")
        self.assert_refused(self.mete("kernel", "ls", "--gpu", "8G"), 64, "mete kernel install")
        self.assert_refused(self.mete("kernel", "isntall"), 64, "mete kernel install")


class Kernels(NotebookTest):
    def test_a_kernel_is_a_job_from_start_to_shutdown(self):
        notebook = self.open(self.install("--gpu", "8G"))
        job = self.only_job()
        self.assertEqual((job["name"], job["request"], job["grant"][0]["bytes"]), ("test", "8G", 8 << 30))
        self.assertEqual(notebook.run("x = 6 * 7; print(x)"), "42\n")
        self.assertEqual(notebook.run("import os; print(os.environ['METE_JOB_ID'], 'METE_KERNEL_FD' in os.environ)"), f"{job['id']} False\n")
        notebook.run(TAKE)
        self.assertEqual(notebook.run(LOOK), "the same\n")
        cell = notebook.send("call('cuMemAlloc_v2', ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(9 << 30))")
        self.assertIn("('cuMemAlloc_v2', 2)", notebook.reply(cell)["evalue"], "no more than its share")

        # An interrupt ends the cell, and neither the kernel nor the job.
        cell = notebook.send("import time\nprint('in')\nwhile True: time.sleep(0.01)")
        notebook.message(cell, "stream")
        notebook.manager.interrupt_kernel()
        self.assertEqual(notebook.reply(cell)["ename"], "KeyboardInterrupt")
        self.assertEqual(notebook.run("print(x)"), "42\n")
        # One that reaches the parent alone, as some clients send it.
        cell = notebook.send("print('in')\nwhile True: time.sleep(0.01)")
        notebook.message(cell, "stream")
        os.kill(notebook.pid, signal.SIGINT)
        self.assertEqual(notebook.reply(cell)["ename"], "KeyboardInterrupt")
        self.assertEqual(notebook.run("print(x)"), "42\n")
        self.assertEqual(self.only_job()["id"], job["id"])

        # A restart is another job, and nothing of the first is left.
        notebook.manager.restart_kernel()
        notebook.client.wait_for_ready(timeout=BOUND_S)
        self.assertEqual(self.job(job["id"])["state"], "ended")
        self.assertNotEqual(self.only_job()["id"], job["id"])
        self.assertEqual(notebook.run("print('x' in dir())"), "False\n")
        notebook.manager.shutdown_kernel()
        self.assert_gone()

    def test_a_kernel_that_is_killed_leaves_nothing(self):
        notebook = self.open(self.install("--gpu", "8G"))
        notebook.run(TAKE)
        notebook.run("import subprocess; child = subprocess.Popen(['sleep', '1000'], start_new_session=True)")
        notebook.manager.shutdown_kernel(now=True)
        wait_until(lambda: self.job(1)["state"] == "ended" and not self.kernels_left(), "the kernel and its job are gone")
        self.assertEqual(self.processes("sleep"), [])
        self.assertEqual(self.card()["granted_bytes"], 0)

    def test_a_kernel_ends_with_its_server(self):
        self.install("--gpu", "8G")
        server = subprocess.Popen(
            [sys.executable, "-c", "import jupyter_client, sys, os\n"
             "from jupyter_client.kernelspec import KernelSpecManager\n"
             "manager = jupyter_client.KernelManager(kernel_name='test', kernel_spec_manager=KernelSpecManager(kernel_dirs=[sys.argv[1]]))\n"
             "manager.start_kernel(env=dict(os.environ))\nclient = manager.client()\nclient.start_channels()\n"
             "client.wait_for_ready(timeout=60)\nprint('up', flush=True)\nsys.stdin.read()", self.kernels],
            env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.finish, server)
        self.assertEqual(server.stdout.readline(), "up\n")
        self.only_job()
        server.kill()
        server.wait()
        self.assert_gone()


class Waiting(NotebookTest):
    def test_a_kernel_that_waits_says_so_and_runs_its_cells_when_it_may(self):
        holder = self.holder("100%")
        notebook = self.open(self.install("--gpu", "8G"))
        first = notebook.send("x = 6 * 7\nprint('first', x)")
        text = notebook.message(first, "stream")["text"]
        self.assertIn("mete: this kernel waits for 8 GiB", text)
        self.assertTrue(notebook.client.is_alive())
        second = notebook.send("print('second', x + 1)")
        self.assertIn("waits for", notebook.message(second, "stream")["text"])
        self.assertEqual(self.job(2)["state"], "pending")
        self.release(holder)
        notebook.message(first, "clear_output")
        self.assertEqual(notebook.message(first, "stream", lambda content: content["name"] == "stdout")["text"], "first 42\n")
        self.assertEqual(notebook.message(second, "stream", lambda content: content["name"] == "stdout")["text"], "second 43\n")
        self.assertEqual([notebook.reply(cell)["execution_count"] for cell in (first, second)], [1, 2])
        self.assertEqual(notebook.run("print(x)"), "42\n")
        self.assertEqual(list((self.folder / "runtime").glob("*.mete")), [])
        notebook.manager.shutdown_kernel()
        self.assert_gone()

    def test_an_interrupt_takes_cells_back_and_the_kernel_waits_on(self):
        holder = self.holder("100%")
        notebook = self.open(self.install("--gpu", "8G"))
        cell = notebook.send("print('never')")
        notebook.message(cell, "stream")
        notebook.manager.interrupt_kernel()
        self.assertEqual(notebook.reply(cell)["ename"], "KeyboardInterrupt")
        self.assertEqual(self.job(2)["state"], "pending")
        self.release(holder)
        self.assertEqual(notebook.run("print('x' in dir())"), "False\n")

    def test_a_client_whose_output_comes_back_late_loses_none(self):
        holder = self.holder("100%")
        notebook = self.open(self.install("--gpu", "8G"))
        # This client's subscription to output reconnects a second or two after the socket that sends cells.
        output, url = notebook.client.iopub_channel.socket, notebook.client._make_url("iopub")
        output.disconnect(url)
        output.reconnect_ivl = 1000
        output.connect(url)
        notebook.hears()
        cell = notebook.send("print('never')")
        notebook.message(cell, "stream")
        notebook.manager.interrupt_kernel()
        self.assertEqual(notebook.reply(cell)["ename"], "KeyboardInterrupt")
        # Nothing is kept for the kernel; the next cell comes once the stand-in has gone, from a client that waits to connect.
        self.release(holder)
        self.wait_state(2, "running")
        self.assertEqual(notebook.run("print('here')"), "here\n")

    def test_cells_that_come_while_the_stand_in_leaves_are_run(self):
        holder = self.holder("100%")
        notebook = self.open(self.install("--gpu", "8G"))
        cells = [notebook.send("ran = []")]
        has_room = threading.Event()

        def type_on():
            while not has_room.wait(0.001):
                cells.append(notebook.send(f"ran.append({len(cells)})"))

        # One after another for as long as the ports change hands; each of them runs once, in this order.
        hands = threading.Thread(target=type_on)
        hands.start()
        self.release(holder)
        self.wait_state(2, "running")
        has_room.set()
        hands.join()
        for cell in cells:
            self.assertEqual(notebook.reply(cell)["status"], "ok")
        self.assertEqual(notebook.run(f"print(ran == list(range(1, {len(cells)})))"), "True\n")

    def test_a_kernel_that_waits_can_be_shut_down(self):
        holder = self.holder("100%")
        notebook = self.open(self.install("--gpu", "8G"))
        notebook.message(notebook.send("print(1)"), "stream")
        notebook.manager.shutdown_kernel()
        wait_until(lambda: not self.kernels_left(), "the stand-in has ended")
        self.wait_state(2, "ended")
        again = self.open()
        again.manager.shutdown_kernel(now=True)
        wait_until(lambda: not self.kernels_left(), "the stand-in has ended without a word")
        self.wait_state(3, "ended")
        self.release(holder)
        self.assert_gone()

    def test_what_can_never_fit_is_said_in_the_notebook(self):
        notebook = self.open(self.install("--gpu", "500G"))
        reply = notebook.reply(notebook.send("print(1)"))
        self.assertEqual((reply["status"], reply["ename"]), ("error", "mete"))
        self.assertIn("500", reply["evalue"])
        notebook.manager.interrupt_kernel()
        self.assertIn("500", notebook.reply(notebook.send("print(2)"))["evalue"])
        notebook.manager.shutdown_kernel()
        wait_until(lambda: not self.kernels_left() and not self.processes("mete"), "it has ended")

    def test_a_daemon_that_dies_meanwhile_changes_nothing(self):
        holder = self.holder("100%")
        notebook = self.open(self.install("--gpu", "8G"))
        cell = notebook.send("print('here')")
        notebook.message(cell, "stream")
        self.kill_daemon()
        self.release(holder)
        self.assertEqual(notebook.message(cell, "stream", lambda content: content["name"] == "stdout")["text"], "here\n")


class Idle(NotebookTest):
    def test_an_idle_kernel_is_parked_and_comes_back_with_its_variables(self):
        notebook = self.open(self.install("--gpu", "60%", "--idle", "1s"))
        notebook.run("x = 'kept'\n" + TAKE)
        job = self.only_job("parked")
        self.assertEqual(job["park"]["cause"], "idle")
        other = self.run_("-q", "--gpu", "90%", "--", "true")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(notebook.run("print(x)"), "kept\n", "without a GPU call nothing changes")
        self.assertEqual(self.job(job["id"])["state"], "parked")
        self.assertEqual(notebook.run(LOOK), "the same\n")
        self.wait_state(job["id"], "parked")
        self.assertEqual(notebook.run(LOOK), "the same\n", "and again")
        notebook.manager.shutdown_kernel()
        self.assert_gone()

    def test_a_cell_that_cannot_go_on_says_why(self):
        notebook = self.open(self.install("--gpu", "60%", "--idle", "1s"))
        notebook.run(TAKE)
        self.only_job("parked")
        holder = self.holder("90%")
        cell = notebook.send(LOOK)
        said = notebook.message(cell, "stream", lambda content: content["name"] == "stderr")["text"]
        self.assertIn("mete: this kernel was parked, and waits for room to come back", said)
        self.assertIn("job 2", said)
        self.release(holder)
        self.assertEqual(notebook.message(cell, "stream", lambda content: content["name"] == "stdout")["text"], "the same\n")

    def test_a_grant_that_was_never_used_is_free_for_others(self):
        notebook = self.open(self.install("--gpu", "60%", "--idle", "1s"))
        self.assertEqual(notebook.run("print(1)"), "1\n")
        self.only_job("parked")
        other = self.run_("-q", "--gpu", "90%", "--", "true")
        self.assertEqual(other.returncode, 0, other.stderr)
        notebook.run(TAKE)
        self.assertEqual(notebook.run(LOOK), "the same\n")

    def test_never_means_never(self):
        (self.folder / "config.toml").write_text(self.config + "idle_s = 1\npreemptible = true\n")
        stays = self.open(self.install("--gpu", "20%", "--idle", "never", name="stays"))
        parks = self.open(self.install("--gpu", "20%", "--idle", "1s", name="parks"))
        stays.run(TAKE)
        wait_until(lambda: "idle_since" in self.job(1), "it is idle")
        parks.run(TAKE)
        self.wait_state(2, "parked")
        self.assertEqual(self.job(1)["state"], "running")

    def test_a_parked_kernel_is_restarted_and_shut_down(self):
        notebook = self.open(self.install("--gpu", "60%", "--idle", "1s"))
        notebook.run(TAKE)
        first = self.only_job("parked")["id"]
        notebook.manager.restart_kernel()
        notebook.client.wait_for_ready(timeout=BOUND_S)
        self.wait_state(first, "ended")
        notebook.run(TAKE)
        self.only_job("parked")
        notebook.manager.shutdown_kernel()
        self.assert_gone()


if __name__ == "__main__":
    import unittest
    unittest.main()
