// SPDX-License-Identifier: Apache-2.0
// Several processes on one card: death, sharing, many at once. Killed processes release their
// memory, forked children keep it, importers keep what the owner lost; NVML's figures follow. Pipes
// order the steps of the processes.
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "abi/nvml_api.h"
#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using ProcessTest = SimTest;

// Holds `bytes` until killed.
void hold(Pipe* ready, size_t bytes) {
  begin();
  CUdeviceptr block = 0;
  OK(cuMemAlloc_v2(&block, bytes));
  ready->signal();
  for (;;) pause();
}

// NVML's figure for this process on the first card.
size_t counted_here() {
  // By its path: the address sanitizer calls dlopen for us, and so our run path is not searched.
  void* library = dlopen(METE_SIMGPU_DIR "/libnvidia-ml.so.1", RTLD_NOW);
  CHECK(library != nullptr);
#define FUNCTION(name) reinterpret_cast<decltype(&::name)>(dlsym(library, #name))
  CHECK(FUNCTION(nvmlInit_v2)() == NVML_SUCCESS);
  nvmlDevice_t card = nullptr;
  CHECK(FUNCTION(nvmlDeviceGetHandleByIndex_v2)(0, &card) == NVML_SUCCESS);
  nvmlProcessInfo_t processes[8] = {};
  unsigned int count = 8;
  CHECK(FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3)(card, &count, processes) == NVML_SUCCESS);
#undef FUNCTION
  for (unsigned int i = 0; i < count; ++i)
    if (processes[i].pid == static_cast<unsigned int>(getpid())) return processes[i].usedGpuMemory;
  return 0;
}

TEST_F(ProcessTest, AKilledProcessGivesItsMemoryBackAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Pipe ready;
    const pid_t victim = start([&] { hold(&ready, 138 * kGiB); });
    ready.wait();
    kill(victim, SIGKILL);
    ASSERT_EQ(128 + SIGKILL, finish(victim));
    // The first attempt after the process was reaped.
    in_child([] {
      begin();
      CUdeviceptr block = 0;
      OK(cuMemAlloc_v2(&block, 138 * kGiB));
    });
  }
}

TEST_F(ProcessTest, TeardownMayTakeAWhile) {
  setenv("METE_SIM_TEARDOWN_MS", "400", 1);
  Pipe ready;
  const pid_t victim = start([&] { hold(&ready, 100 * kGiB); });
  ready.wait();
  kill(victim, SIGKILL);
  ASSERT_EQ(128 + SIGKILL, finish(victim));
  EXPECT_EQ(kContext + 100 * kGiB, used());  // dead, and not yet gone
  EXPECT_TRUE(eventually([this] { return used() == 0; }));
}

// As on a real card: they have the driver's descriptors open.
TEST_F(ProcessTest, ForkedChildrenOfADeadProcessKeepItsMemory) {
  Pipe ready;
  const pid_t victim = start([&] {
    begin();
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 10 * kGiB));
    if (fork() == 0) {
      alarm(60);  // no process waits for this one
      // As after any fork of an initialised process.
      CHECK_EQ(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
      CHECK_EQ(CUDA_ERROR_NOT_INITIALIZED, cuMemFree_v2(block));
      int version = 0;
      OK(cuDriverGetVersion(&version));
      const pid_t self = getpid();
      ready.send(&self, sizeof self);
      for (;;) pause();
    }
    // And one that no fork handler has seen: it still has the socket.
    const pid_t raw = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (raw == 0) {
      alarm(60);
      for (;;) pause();
    }
    ready.send(&raw, sizeof raw);
    for (;;) pause();
  });
  pid_t children[2] = {};
  ready.receive(children, sizeof children);
  EXPECT_EQ(kContext + 10 * kGiB, used());
  kill(victim, SIGKILL);
  ASSERT_EQ(128 + SIGKILL, finish(victim));
  for (const pid_t child : children) {
    EXPECT_EQ(kContext + 10 * kGiB, used());
    kill(child, SIGKILL);
    for (int i = 0; i < 30'000 && kill(child, 0) == 0; ++i)
      usleep(1000);  // another process reaps it
  }
  EXPECT_EQ(0u, used());
}

TEST_F(ProcessTest, ImportedMemoryOutlivesItsOwner) {
  Pipe handles, opened, owner_gone;
  const pid_t owner = start([&] {
    begin();
    CUdeviceptr small = 0, large = 0;
    OK(cuMemAlloc_v2(&small, 1000));
    OK(cuMemAlloc_v2(&large, 8 * kMiB));
    OK(cuMemsetD8_v2(small, 11, 1000));
    OK(cuMemsetD8_v2(large, 22, 8 * kMiB));
    CUipcMemHandle handle[2], again;
    OK(cuIpcGetMemHandle(&handle[0], small));
    OK(cuIpcGetMemHandle(&handle[1], large));
    OK(cuIpcGetMemHandle(&again, large + 4096));
    CUdeviceptr self = 0;
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&self, again, 1));
    handles.send(handle, sizeof handle);
    for (;;) pause();
  });
  const pid_t importer = start([&] {
    begin();
    CUipcMemHandle handle[2];
    handles.receive(handle, sizeof handle);
    CUdeviceptr small = 0, large = 0, twice = 0;
    OK(cuIpcOpenMemHandle_v2(&small, handle[0], 1));
    OK(cuIpcOpenMemHandle_v2(&large, handle[1], 1));
    OK(cuIpcOpenMemHandle_v2(&twice, handle[1], 1));
    CHECK(twice == large);
    CHECK_EQ(kContext, counted_here());
    opened.signal();
    owner_gone.wait();
    unsigned char bytes[2] = {};
    OK(cuMemcpyDtoH_v2(&bytes[0], small + 999, 1));
    OK(cuMemcpyDtoH_v2(&bytes[1], large + 8 * kMiB - 1, 1));
    CHECK(bytes[0] == 11 && bytes[1] == 22);
    CHECK_EQ(kContext + 10 * kMiB, used_here());
    CHECK_EQ(kContext + 10 * kMiB, counted_here());
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(large));
    OK(cuIpcCloseMemHandle(large));
    OK(cuIpcCloseMemHandle(large));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(large));
    CHECK_EQ(kContext + 2 * kMiB, used_here());
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&large, handle[1], 1));
  });
  opened.wait();
  kill(owner, SIGKILL);
  ASSERT_EQ(128 + SIGKILL, finish(owner));
  owner_gone.signal();
  EXPECT_EQ(0, finish(importer));
  EXPECT_TRUE(eventually([this] { return used() == 0; }));
}

TEST_F(ProcessTest, OnlyPlainMemoryCanBeLent) {
  in_child([] {
    begin();
    CUipcMemHandle handle;
    const CUmemAllocationProp prop = mete::abi::memory_on(0);
    CUmemGenericAllocationHandle memory = 0;
    CUdeviceptr p = 0, managed = 0;
    OK(cuMemCreate(&memory, 2 * kMiB, &prop, 0));
    OK(cuMemAddressReserve(&p, 2 * kMiB, 0, 0, 0));
    OK(cuMemMap(p, 2 * kMiB, 0, memory, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, p));
    OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, managed));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, 12345));
  });
}

TEST_F(ProcessTest, ThirtyTwoProcessesFillACardTogether) {
  machine_ = "1xA100-40G";
  Pipe ready, go, filled, leave;
  std::vector<pid_t> pids;
  for (int i = 0; i < 32; ++i) {
    pids.push_back(start([&] {
      begin();
      ready.signal();  // all have their context before any of them fills the card
      go.wait();
      size_t mine = kContext;
      CUdeviceptr block = 0;
      while (cuMemAlloc_v2(&block, 16 * kMiB) == CUDA_SUCCESS) mine += 16 * kMiB;
      filled.send(&mine, sizeof mine);
      leave.wait();
    }));
  }
  for (int i = 0; i < 32; ++i) ready.wait();
  for (int i = 0; i < 32; ++i) go.signal();
  size_t sum = 0;
  for (int i = 0; i < 32; ++i) {
    size_t mine = 0;
    filled.receive(&mine, sizeof mine);
    sum += mine;
  }
  const size_t capacity = card_number(0, "total_bytes") - card_number(0, "reserved_bytes");
  EXPECT_EQ(sum, used());
  EXPECT_LE(sum, capacity);
  EXPECT_GT(sum + 16 * kMiB, capacity);
  for (int i = 0; i < 32; ++i) leave.signal();
  for (const pid_t pid : pids) EXPECT_EQ(0, finish(pid));
  EXPECT_TRUE(eventually([this] { return used() == 0; }));
}

TEST_F(ProcessTest, TheServerEndsAloneAndTheNextClientStartsAnother) {
  in_child([] { begin(); });
  EXPECT_TRUE(
      eventually([this] { return access((folder_ + "/sim/gpu.sock").c_str(), F_OK) != 0; }));
  in_child([] {
    begin();
    CHECK_EQ(kContext, used_here());
  });
}

TEST_F(ProcessTest, ADeepDirectoryNameFits) {
  std::string deep = folder_;
  for (int i = 0; i < 10; ++i) deep += "/a-folder-with-a-rather-long-name";
  setenv("METE_SIM_DIR", deep.c_str(), 1);
  in_child([] { begin(); });
  EXPECT_EQ(0u, used());
}

TEST_F(ProcessTest, StartingTheServerSendsNoSignalAndLeavesNoChild) {
  in_child([] {
    static volatile sig_atomic_t seen = 0;
    signal(SIGCHLD, [](int) { seen = 1; });
    begin();
    CHECK_EQ(0, seen);
    CHECK_EQ(-1, waitpid(-1, nullptr, __WALL));
  });
}

}  // namespace
}  // namespace simgpu_test
