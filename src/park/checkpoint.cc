// SPDX-License-Identifier: Apache-2.0
// See checkpoint.h. out() locks every process, then checkpoints every one; in() restores every
// process, then unlocks every one. Both begin with the state that the driver reports and skip steps
// that are done. If a step fails, undo() brings all processes back to where they were. A process
// that has ended meanwhile counts as done.
#include "park/checkpoint.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "abi/process.h"

namespace mete::park {

namespace {

std::int64_t now_ms() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

// True for a process that has ended, reaped or not.
bool is_gone(int pid) {
  abi::ProcessStat stat;
  switch (abi::read_stat(static_cast<std::uint32_t>(pid), &stat)) {
    case abi::StatResult::kNoSuchProcess:
      return true;
    case abi::StatResult::kRead:
      return stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
    case abi::StatResult::kUnknown:
      break;
  }
  return false;
}

}  // namespace

std::string_view name_of(CheckpointEnd::Kind kind) {
  switch (kind) {
    case CheckpointEnd::kDone:
      return "done";
    case CheckpointEnd::kBusy:
      return "busy";
    case CheckpointEnd::kUnsupported:
      return "unsupported";
    case CheckpointEnd::kLost:
      return "lost";
    case CheckpointEnd::kFailed:
      break;
  }
  return "failed";
}

Result<Checkpoints> Checkpoints::open(const std::string& library) {
  // Whatever the caller may see: the processes are on cards of their own.
  (void)unsetenv("CUDA_VISIBLE_DEVICES");
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Error::unsupported("cannot open " + library).with_evidence(why != nullptr ? why : "");
  }
  Checkpoints made;
#define METE_CHECKPOINT_LOOKUP(name)                                        \
  made.name##_ = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  if (made.name##_ == nullptr) return Error::unsupported("this driver has no " #name);
  METE_CHECKPOINT_FUNCTIONS(METE_CHECKPOINT_LOOKUP)
#undef METE_CHECKPOINT_LOOKUP
  // A restore needs an initialised driver: without persistence mode it would initialise for each
  // process.
  if (const CUresult result = made.cuInit_(0); result != CUDA_SUCCESS)
    return Error::io("cuInit failed: " + made.error_name(result));
  return made;
}

std::string Checkpoints::error_name(CUresult code) const {
  const char* name = nullptr;
  if (cuGetErrorName_(code, &name) != CUDA_SUCCESS || name == nullptr) name = "?";
  return std::string(name) + " (" + std::to_string(static_cast<int>(code)) + ")";
}

CUresult Checkpoints::state_of(int pid, CUprocessState* state) const {
  return cuCheckpointProcessGetState_(pid, state);
}

CheckpointEnd Checkpoints::refused(int pid, const char* step, CUresult code) const {
  CheckpointEnd end{CheckpointEnd::kFailed, pid, step, code, error_name(code)};
  if (code == CUDA_ERROR_NOT_READY) end.kind = CheckpointEnd::kBusy;
  if (code == CUDA_ERROR_NOT_SUPPORTED) end.kind = CheckpointEnd::kUnsupported;
  return end;
}

// The living processes with their state. `all_known`: a process that the driver does not know is an
// error.
Result<std::vector<Checkpoints::Process>> Checkpoints::look(const std::vector<int>& pids,
                                                            CheckpointEnd* end,
                                                            bool all_known) const {
  std::vector<Process> processes;
  for (const int pid : pids) {
    CUprocessState state = CU_PROCESS_STATE_RUNNING;
    const CUresult code = state_of(pid, &state);
    if (is_gone(pid) || (code != CUDA_SUCCESS && !all_known)) continue;
    if (code != CUDA_SUCCESS || state == CU_PROCESS_STATE_FAILED) {
      *end = refused(pid, "look", code);
      if (code == CUDA_SUCCESS) end->kind = CheckpointEnd::kLost;
      return Error::io("the checkpoint state of a process cannot be read");
    }
    processes.push_back({pid, state});
  }
  return processes;
}

CheckpointEnd Checkpoints::undo(const std::vector<Process>& processes, CheckpointEnd why) const {
  for (const Process& one : processes) {
    CUprocessState state = CU_PROCESS_STATE_RUNNING;
    if (is_gone(one.pid) || state_of(one.pid, &state) != CUDA_SUCCESS) continue;
    CUresult code = CUDA_SUCCESS;
    const char* step = "unlock";
    if (state == CU_PROCESS_STATE_CHECKPOINTED) {
      step = "restore";
      code = cuCheckpointProcessRestore_(one.pid, nullptr);
    }
    if (code == CUDA_SUCCESS && state != CU_PROCESS_STATE_RUNNING)
      code = cuCheckpointProcessUnlock_(one.pid, nullptr);
    if (code == CUDA_SUCCESS || is_gone(one.pid)) continue;
    why = refused(one.pid, step, code);
    why.kind = CheckpointEnd::kLost;
  }
  return why;
}

CheckpointEnd Checkpoints::out(const std::vector<int>& pids, unsigned timeout_ms) const {
  CheckpointEnd end;
  Result<std::vector<Process>> processes = look(pids, &end, true);
  if (!processes) return end;
  const std::int64_t until = now_ms() + timeout_ms;
  for (Process& one : *processes) {
    if (one.state != CU_PROCESS_STATE_RUNNING) continue;
    CUcheckpointLockArgs arguments{};
    // 0 would mean no limit.
    arguments.timeoutMs = static_cast<unsigned>(std::max<std::int64_t>(until - now_ms(), 1));
    const CUresult code = cuCheckpointProcessLock_(one.pid, &arguments);
    if (code == CUDA_SUCCESS) one.state = CU_PROCESS_STATE_LOCKED;
    if (code != CUDA_SUCCESS && !is_gone(one.pid))
      return undo(*processes, refused(one.pid, "lock", code));
  }
  for (const Process& one : *processes) {
    if (one.state != CU_PROCESS_STATE_LOCKED) continue;
    const CUresult code = cuCheckpointProcessCheckpoint_(one.pid, nullptr);
    if (code != CUDA_SUCCESS && !is_gone(one.pid))
      return undo(*processes, refused(one.pid, "checkpoint", code));
  }
  return end;
}

CheckpointEnd Checkpoints::in(const std::vector<int>& pids) const {
  CheckpointEnd end;
  Result<std::vector<Process>> processes = look(pids, &end, false);
  if (!processes) return end;
  std::vector<int> restored;
  for (Process& one : *processes) {
    if (one.state != CU_PROCESS_STATE_CHECKPOINTED) continue;
    const CUresult code = cuCheckpointProcessRestore_(one.pid, nullptr);
    if (code == CUDA_SUCCESS) {
      one.state = CU_PROCESS_STATE_LOCKED;
      restored.push_back(one.pid);
      continue;
    }
    if (is_gone(one.pid)) continue;
    end = refused(one.pid, "restore", code);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) end.kind = CheckpointEnd::kBusy;
    CUprocessState now = CU_PROCESS_STATE_FAILED;
    if (state_of(one.pid, &now) != CUDA_SUCCESS || now != CU_PROCESS_STATE_CHECKPOINTED)
      end.kind = CheckpointEnd::kLost;
    // The job is parked as a whole.
    for (const int pid : restored) (void)cuCheckpointProcessCheckpoint_(pid, nullptr);
    return end;
  }
  for (const Process& one : *processes) {
    if (one.state != CU_PROCESS_STATE_LOCKED) continue;
    const CUresult code = cuCheckpointProcessUnlock_(one.pid, nullptr);
    if (code == CUDA_SUCCESS || is_gone(one.pid)) continue;
    end = refused(one.pid, "unlock", code);
    end.kind = CheckpointEnd::kLost;
  }
  return end;
}

}  // namespace mete::park
