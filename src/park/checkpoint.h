// SPDX-License-Identifier: Apache-2.0
// The driver's own way of taking processes off their cards (cuCheckpointProcess*, r570 and later,
// x86-64): all of a list, or none. Everything they hold leaves, their contexts too; their calls
// into the driver wait. The bytes are kept in each process's own memory.
//
// Each step begins with what the driver says about a process, so that whoever was killed half-way
// is mended by asking for the same once more.
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

// How it ended, and where the processes stand then.
struct CheckpointEnd {
  enum Kind {
    kDone,
    kBusy,         // not now; they stand where they stood
    kUnsupported,  // the driver cannot, with this process; they run
    kFailed,       // it refused for another reason; they stand where they stood
    kLost,         // one of them can never go on
  };
  Kind kind = kDone;
  int pid = 0;  // whose step it was
  const char* step = "";
  CUresult code = CUDA_SUCCESS;
  std::string error;  // the code's name
};
std::string_view name_of(CheckpointEnd::Kind kind);

class Checkpoints {
 public:
  // unsupported: no such library, or it does not know these calls; io: the driver does not start.
  static Result<Checkpoints> open(const std::string& library);

  // Locks all, then checkpoints all. When one refuses, those that were stopped run again.
  CheckpointEnd out(const std::vector<int>& pids, unsigned timeout_ms) const;
  // Restores all, then lets all run. When one has no room those that were restored are put away
  // again.
  CheckpointEnd in(const std::vector<int>& pids) const;
  // What the driver says of one process.
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
