#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated NVML through ctypes, as pynvml loads it: processes, lost cards, faults, exported names."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import unittest

import sim

SUCCESS, UNINITIALIZED, NOT_SUPPORTED, INSUFFICIENT_SIZE, GPU_IS_LOST = 0, 1, 3, 7, 15
MIB = 1 << 20
SOURCE = pathlib.Path(os.environ["METE_SOURCE_DIR"])


class ProcessV1(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong)]


class ProcessV3(ctypes.Structure):
    _fields_ = ProcessV1._fields_ + [("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(n, ctypes.c_ulonglong) for n in ("total", "reserved", "free", "used")]


class Nvml:
    """One connection to one machine: the library reads METE_SIM* from this process's environment."""

    def __init__(self, machine: sim.Machine):
        os.environ.update({k: v for k, v in machine.env.items() if k.startswith("METE_SIM")})
        self.lib = ctypes.CDLL(str(sim.NVML))
        assert self.lib.nvmlInit_v2() == SUCCESS

    def close(self):
        while self.lib.nvmlShutdown() == SUCCESS:
            pass

    def card(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        assert self.lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == SUCCESS
        return handle

    def processes(self, card, version="_v3", kind="Compute", info=ProcessV3) -> dict:
        count = ctypes.c_uint(64)
        infos = (info * 64)()
        call = getattr(self.lib, f"nvmlDeviceGet{kind}RunningProcesses{version}")
        assert call(card, ctypes.byref(count), infos) == SUCCESS
        return {infos[i].pid: infos[i].used for i in range(count.value)}

    def memory(self, card) -> Memory:
        memory = Memory(version=ctypes.sizeof(Memory) | 2 << 24)
        assert self.lib.nvmlDeviceGetMemoryInfo_v2(card, ctypes.byref(memory)) == SUCCESS
        return memory


class NvmlTest(unittest.TestCase):
    def machine(self, cards: str) -> tuple[sim.Machine, Nvml]:
        machine = sim.Machine(cards)
        self.addCleanup(machine.__exit__)
        nvml = Nvml(machine)
        self.addCleanup(nvml.close)
        return machine, nvml

    def test_processes_and_their_memory(self):
        machine, nvml = self.machine("2xH200")
        card = nvml.card(1)
        before = nvml.memory(card)
        holder = machine.hold(1, plain=300 * MIB)
        other = machine.hold(1)
        seen = nvml.processes(card)
        self.assertEqual(set(seen), {holder.pid, other.pid})
        self.assertEqual(seen[holder.pid] - seen[other.pid], 300 * MIB, "the same context, and 300 MiB more")
        self.assertGreater(seen[other.pid], 100 * MIB, "a context costs memory")
        self.assertEqual(nvml.memory(card).used - before.used, sum(seen.values()))
        self.assertEqual(nvml.memory(card).reserved, before.reserved)
        self.assertEqual(nvml.processes(card, "_v2"), seen)
        self.assertEqual(nvml.processes(card, "", info=ProcessV1), seen)
        self.assertEqual(nvml.processes(card, kind="Graphics"), {})
        self.assertEqual(nvml.processes(card, kind="MPSCompute"), {})
        self.assertEqual(nvml.processes(nvml.card(0)), {})

    def test_managed_memory_is_not_in_the_process_figure(self):
        machine, nvml = self.machine("1xH200")
        card = nvml.card(0)
        plain = machine.hold(0)
        managed = machine.hold(0, managed=256 * MIB)
        seen = nvml.processes(card)
        self.assertEqual(seen[plain.pid], seen[managed.pid])

    def test_a_list_that_does_not_fit_says_how_long_it_is(self):
        machine, nvml = self.machine("1xH200")
        card = nvml.card(0)
        pids = {machine.hold(0).pid for _ in range(3)}
        for room in (0, 1, 2):
            count = ctypes.c_uint(room)
            infos = (ProcessV3 * 4)()
            for info in infos:
                info.pid = 77
            result = nvml.lib.nvmlDeviceGetComputeRunningProcesses_v3(card, ctypes.byref(count), infos if room else None)
            self.assertEqual((result, count.value), (INSUFFICIENT_SIZE, 3))
            self.assertTrue(all(info.pid == 77 for info in infos), "nothing is written then")
        count = ctypes.c_uint(3)
        infos = (ProcessV3 * 3)()
        self.assertEqual(nvml.lib.nvmlDeviceGetComputeRunningProcesses_v3(card, ctypes.byref(count), infos), SUCCESS)
        self.assertEqual({info.pid for info in infos}, pids)
        self.assertTrue(all(info.gpu_instance == 0xffffffff for info in infos))

    def test_a_lost_card_is_lost_and_its_neighbour_is_not(self):
        machine, nvml = self.machine("2xA100-40G")
        first, second = nvml.card(0), nvml.card(1)
        machine.control("lose-card", "1")
        name = ctypes.create_string_buffer(96)
        self.assertEqual(nvml.lib.nvmlDeviceGetName(second, name, 96), GPU_IS_LOST)
        self.assertEqual(nvml.lib.nvmlDeviceGetMemoryInfo(second, ctypes.byref(Memory())), GPU_IS_LOST)
        self.assertEqual(nvml.lib.nvmlDeviceGetName(first, name, 96), SUCCESS)
        count = ctypes.c_uint()
        nvml.lib.nvmlDeviceGetCount_v2(ctypes.byref(count))
        self.assertEqual(count.value, 2)
        machine.control("restore-card", "1")
        self.assertEqual(nvml.lib.nvmlDeviceGetName(second, name, 96), SUCCESS)

    def test_cuda_visible_devices_means_nothing_here(self):
        machine = sim.Machine("3xT4")
        self.addCleanup(machine.__exit__)
        code = ("import ctypes, sys; n = ctypes.CDLL(sys.argv[1]); n.nvmlInit_v2(); c = ctypes.c_uint();"
                "n.nvmlDeviceGetCount_v2(ctypes.byref(c)); print(c.value)")
        for visible in ("", "1", "2,0", "-1"):
            out = subprocess.run([sys.executable, "-c", code, sim.NVML], env=machine.env | {"CUDA_VISIBLE_DEVICES": visible},
                                 check=True, capture_output=True, text=True).stdout
            self.assertEqual(out, "3\n", f"CUDA_VISIBLE_DEVICES={visible!r}")

    def test_a_wedged_driver_blocks_and_may_come_back(self):
        machine = sim.Machine("1xT4")
        self.addCleanup(machine.__exit__)
        code = ("import ctypes, sys; n = ctypes.CDLL(sys.argv[1]); print('loaded', flush=True); print(n.nvmlInit_v2(), flush=True)")
        flag = pathlib.Path(machine.folder) / "wedged"
        flag.touch()
        for setting in ("1", str(flag)):
            child = subprocess.Popen([sys.executable, "-c", code, sim.NVML], stdout=subprocess.PIPE, text=True,
                                     env=machine.env | {"METE_SIM_NVML_HANG": setting})
            self.assertEqual(child.stdout.readline(), "loaded\n")
            with self.assertRaises(subprocess.TimeoutExpired):
                child.wait(timeout=0.5)
            if setting == "1":
                child.kill()
            else:
                flag.unlink()
                self.assertEqual(child.stdout.readline(), "0\n")
            child.wait()
            child.stdout.close()

    def test_a_card_without_mig_or_links_says_so(self):
        machine, nvml = self.machine("2xT4")
        card = nvml.card(0)
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        self.assertEqual(nvml.lib.nvmlDeviceGetMigMode(card, ctypes.byref(current), ctypes.byref(pending)), NOT_SUPPORTED)
        self.assertEqual(nvml.lib.nvmlDeviceGetNvLinkState(card, 0, ctypes.byref(current)), NOT_SUPPORTED)

    def test_every_name_is_there_and_what_is_not_modelled_says_not_supported(self):
        names = re.findall(r"^NVML_SYMBOL\((\w+)\)", (SOURCE / "src/abi/nvml_symbols.def").read_text(), re.M)
        self.assertGreater(len(names), 400)
        machine, nvml = self.machine("1xH200")
        for name in names:
            getattr(nvml.lib, name)
        for name in ("nvmlDeviceGetEccMode", "nvmlDeviceSetMigMode", "nvmlVgpuTypeGetName", "nvmlEventSetCreate"):
            self.assertEqual(getattr(nvml.lib, name)(None, None, None), NOT_SUPPORTED, name)
        nvml.close()
        self.assertEqual(nvml.lib.nvmlDeviceGetEccMode(None, None, None), UNINITIALIZED)

    def test_the_linked_client_finds_every_promise_kept(self):
        machine = sim.Machine("4xH200")
        self.addCleanup(machine.__exit__)
        run = subprocess.run([sim.BUILD / "tests/nvml_client"], env=machine.env, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, "all promises kept\n"), run.stderr)


if __name__ == "__main__":
    unittest.main()
