// SPDX-License-Identifier: Apache-2.0
// The driver's own way of taking processes off their cards (cuCheckpointProcess*, r570 and later,
// x86-64): all of a list, or none. Everything they hold leaves the card, their contexts too; their
// calls into the driver wait. The bytes are kept in each process's own memory.
//
// Each step begins with the state that the driver reports for a process, so after a kill half-way
// the operation can simply be repeated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "abi/cuda_api.h"
#include "base/result.h"

namespace mete::park {

#define METE_CHECKPOINT_FUNCTIONS(F) \
  F(cuInit)                          \
  F(cuGetErrorName)                  \
  F(cuCheckpointProcessGetState)     \
  F(cuCheckpointProcessLock)         \
  F(cuCheckpointProcessCheckpoint)   \
  F(cuCheckpointProcessRestore)      \
  F(cuCheckpointProcessUnlock)

// How it ended, and the state of the processes.
struct CheckpointEnd {
  enum Kind {
    kDone,
    kBusy,         // not now; the processes are in their former state
    kUnsupported,  // the driver cannot do this with this process; all run
    kFailed,       // the driver refused for another reason; the processes are in their former state
    kLost,         // one of them can never go on
  };
  Kind kind = kDone;
  int pid = 0;  // the process whose step failed
  const char* step = "";
  CUresult code = CUDA_SUCCESS;
  std::string error;  // the code's name
};
std::string_view name_of(CheckpointEnd::Kind kind);

class Checkpoints {
 public:
  // unsupported: no such library, or it lacks these calls; io: the driver does not initialise.
  static Result<Checkpoints> open(const std::string& library);

  // Locks all, then checkpoints all. If one refuses, those that were stopped run again.
  CheckpointEnd out(const std::vector<int>& pids, unsigned timeout_ms) const;
  // Restores all, then lets all run. If one has no room, those that were restored are checkpointed
  // again.
  CheckpointEnd in(const std::vector<int>& pids) const;
  // The state that the driver reports for one process.
  CUresult state_of(int pid, CUprocessState* state) const;
  std::string error_name(CUresult code) const;

 private:
  struct Process {
    int pid;
    CUprocessState state;
  };
  Result<std::vector<Process>> look(const std::vector<int>& pids, CheckpointEnd* end,
                                    bool all_known) const;
  CheckpointEnd refused(int pid, const char* step, CUresult code) const;
  CheckpointEnd undo(const std::vector<Process>& processes, CheckpointEnd why) const;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot stand in parentheses here
#define METE_CHECKPOINT_MEMBER(name) decltype(&::name) name##_ = nullptr;
  METE_CHECKPOINT_FUNCTIONS(METE_CHECKPOINT_MEMBER)
#undef METE_CHECKPOINT_MEMBER
};

// The command line of mete-checkpoint (checkpoint_main.cc).
int checkpoint_main(int argc, char** argv);

}  // namespace mete::park
