// SPDX-License-Identifier: Apache-2.0
// cuCheckpointProcess*: what a process that is locked, checkpointed and restored notices, and what
// other processes get: its memory is free meanwhile, its calls wait, its bytes come back, and a
// restore without room is final.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

constexpr size_t kLeft = 4 * kMiB;

class CheckpointTest : public SimTest {
 protected:
  // A child that holds `bytes`, filled with 7, reports it, waits for `go`, and checks them.
  pid_t holder(Pipe* up, Pipe* go, size_t bytes) {
    return start([=] {
      begin();
      CUdeviceptr block = 0;
      OK(cuMemAlloc_v2(&block, bytes));
      OK(cuMemsetD8_v2(block, 7, bytes));
      up->signal();
      go->wait();
      unsigned char last = 0;
      OK(cuMemcpyDtoH_v2(&last, block + bytes - 1, 1));
      CHECK(last == 7);
    });
  }
};

CUresult lock(int pid, unsigned ms) {
  CUcheckpointLockArgs arguments{};
  arguments.timeoutMs = ms;
  return cuCheckpointProcessLock(pid, &arguments);
}

CUprocessState state_of(int pid) {
  CUprocessState state = CU_PROCESS_STATE_FAILED;
  OK(cuCheckpointProcessGetState(pid, &state));
  return state;
}

TEST_F(CheckpointTest, MemoryLeavesTheCardAndComesBack) {
  Pipe up;
  Pipe go;
  const pid_t job = holder(&up, &go, 100 * kGiB);
  up.wait();
  in_child([&] {
    OK(cuInit(0));
    CHECK(state_of(job) == CU_PROCESS_STATE_RUNNING);
    CHECK(cuCheckpointProcessCheckpoint(job, nullptr) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(cuCheckpointProcessUnlock(job, nullptr) == CUDA_ERROR_ILLEGAL_STATE);
    OK(lock(job, 20000));
    CHECK(state_of(job) == CU_PROCESS_STATE_LOCKED);
    CHECK(lock(job, 100) == CUDA_ERROR_ILLEGAL_STATE);
    OK(cuCheckpointProcessCheckpoint(job, nullptr));
    CHECK(state_of(job) == CU_PROCESS_STATE_CHECKPOINTED);
    int tid = 0;
    OK(cuCheckpointProcessGetRestoreThreadId(job, &tid));
    CHECK(kill(tid, 0) == 0);
  });
  EXPECT_EQ(kLeft, used());
  go.signal();  // its next call waits
  in_child([] {
    begin();
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 130 * kGiB));
  });
  in_child([&] {
    OK(cuInit(0));
    OK(cuCheckpointProcessRestore(job, nullptr));
    CHECK(state_of(job) == CU_PROCESS_STATE_LOCKED);
    OK(cuCheckpointProcessUnlock(job, nullptr));
  });
  EXPECT_EQ(0, finish(job));
  EXPECT_EQ(0u, used());
}

TEST_F(CheckpointTest, WithoutRoomItHasFailedForGood) {
  Pipe up;
  Pipe go;
  Pipe other_up;
  Pipe never;
  const pid_t job = holder(&up, &go, 100 * kGiB);
  up.wait();
  in_child([&] {
    OK(cuInit(0));
    OK(lock(job, 20000));
    OK(cuCheckpointProcessCheckpoint(job, nullptr));
  });
  const pid_t other = holder(&other_up, &never, 60 * kGiB);
  other_up.wait();
  in_child([&] {
    OK(cuInit(0));
    CHECK(cuCheckpointProcessRestore(job, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(state_of(job) == CU_PROCESS_STATE_FAILED);
  });
  kill(other, SIGKILL);
  (void)finish(other);
  in_child([&] {
    OK(cuInit(0));
    CHECK(cuCheckpointProcessRestore(job, nullptr) == CUDA_ERROR_ILLEGAL_STATE);
  });
  kill(job, SIGKILL);
  EXPECT_EQ(128 + SIGKILL, finish(job));
  EXPECT_TRUE(eventually([this] { return used() == 0; }));
}

TEST_F(CheckpointTest, ALockWaitsForWorkAndGivesUp) {
  Pipe up;
  Pipe go;
  const pid_t job = start([&] {
    begin();
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(
        stream, [](void* pipe) { static_cast<Pipe*>(pipe)->wait(); }, &go));
    up.signal();
    OK(cuStreamSynchronize(stream));
  });
  up.wait();
  in_child([&] {
    OK(cuInit(0));
    CHECK(lock(job, 200) == CUDA_ERROR_NOT_READY);
    CHECK(state_of(job) == CU_PROCESS_STATE_RUNNING);
  });
  // A locker that is killed while it waits leaves it running too.
  const pid_t locker = start([&] {
    OK(cuInit(0));
    (void)lock(job, 0);
  });
  usleep(50'000);
  kill(locker, SIGKILL);
  (void)finish(locker);
  go.signal();
  EXPECT_EQ(0, finish(job));
}

TEST_F(CheckpointTest, SharedMemoryIsNotSupported) {
  Pipe up;
  Pipe go;
  const pid_t job = start([&] {
    begin();
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 4 * kMiB));
    CUipcMemHandle handle{};
    OK(cuIpcGetMemHandle(&handle, block));
    up.signal();
    go.wait();
    OK(cuMemsetD8_v2(block, 7, 4 * kMiB));
  });
  up.wait();
  in_child([&] {
    OK(cuInit(0));
    OK(lock(job, 20000));
    CHECK(cuCheckpointProcessCheckpoint(job, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(state_of(job) == CU_PROCESS_STATE_LOCKED);
    OK(cuCheckpointProcessUnlock(job, nullptr));
  });
  go.signal();
  EXPECT_EQ(0, finish(job));
}

// Threads that call without a pause: none is inside while the memory is away.
TEST_F(CheckpointTest, ProgramsAtWork) {
  Pipe up;
  const pid_t job = start([&] {
    const CUcontext context = begin();
    std::atomic<bool> end{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        OK(cuCtxSetCurrent(context));
        CUdeviceptr block = 0;
        OK(cuMemAlloc_v2(&block, 3 * kMiB));
        for (unsigned value = 0; !end; ++value) {
          OK(cuMemsetD32_v2(block, value, 3 * kMiB / 4));
          unsigned seen = 0;
          OK(cuMemcpyDtoH_v2(&seen, block + 1024 * static_cast<unsigned>(t), 4));
          CHECK(seen == value);
        }
      });
    up.signal();
    usleep(600'000);
    end = true;
    for (std::thread& one : threads) one.join();
  });
  up.wait();
  in_child([&] {
    OK(cuInit(0));
    for (int i = 0; i < 5; ++i) {
      OK(lock(job, 20000));
      OK(cuCheckpointProcessCheckpoint(job, nullptr));
      usleep(10'000);
      OK(cuCheckpointProcessRestore(job, nullptr));
      OK(cuCheckpointProcessUnlock(job, nullptr));
      usleep(10'000);
    }
  });
  EXPECT_EQ(0, finish(job));
}

TEST_F(CheckpointTest, AProcessWithoutCudaIsNone) {
  in_child([] {
    OK(cuInit(0));
    CUprocessState state{};
    CHECK(cuCheckpointProcessGetState(1, &state) == CUDA_ERROR_INVALID_VALUE);
  });
}

}  // namespace
}  // namespace simgpu_test
