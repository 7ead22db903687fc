// SPDX-License-Identifier: Apache-2.0
// cuCheckpointProcess*: another process is locked, its memory taken from the cards and put back.
// The server does it; a lock is retried until the process is at rest or time is up.
#include <time.h>

#include "simgpu/client.h"
#include "simgpu/driver.h"

namespace simgpu {
namespace {

int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

CUresult step(int pid, CheckpointStep what, CUprocessState* state) {
  Reply reply{};
  const int status = call_server(Op::kCheckpoint, static_cast<uint64_t>(pid),
                                 static_cast<uint64_t>(what), 0, &reply);
  if (state != nullptr) *state = static_cast<CUprocessState>(reply.v[0]);
  return static_cast<CUresult>(status);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  SIM_ENTRY_TOOL(cuCheckpointProcessGetState);
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return step(pid, CheckpointStep::kState, state);
}

// The thread of the process that does the work of a restore: here its first.
extern "C" CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* tid) {
  SIM_ENTRY_TOOL(cuCheckpointProcessGetRestoreThreadId);
  if (tid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = step(pid, CheckpointStep::kState, nullptr);
  if (result == CUDA_SUCCESS) *tid = pid;
  return result;
}

extern "C" CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* arguments) {
  SIM_ENTRY_TOOL(cuCheckpointProcessLock);
  const unsigned timeout = arguments != nullptr ? arguments->timeoutMs : 0;
  const int64_t until = now_ms() + timeout;
  for (;;) {
    const CUresult result = step(pid, CheckpointStep::kLock, nullptr);
    if (result != CUDA_ERROR_NOT_READY) return result;
    if (timeout != 0 && now_ms() >= until) {
      (void)step(pid, CheckpointStep::kCancel, nullptr);
      return CUDA_ERROR_NOT_READY;
    }
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

extern "C" CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs*) {
  SIM_ENTRY_TOOL(cuCheckpointProcessCheckpoint);
  return step(pid, CheckpointStep::kCheckpoint, nullptr);
}

extern "C" CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs*) {
  SIM_ENTRY_TOOL(cuCheckpointProcessRestore);
  return step(pid, CheckpointStep::kRestore, nullptr);
}

extern "C" CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs*) {
  SIM_ENTRY_TOOL(cuCheckpointProcessUnlock);
  return step(pid, CheckpointStep::kUnlock, nullptr);
}
