// SPDX-License-Identifier: Apache-2.0
// What arrives at the engine and may change what is decided: requests of people (with who asks),
// and what became of processes and cards.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/job/job.h"

namespace mete::core {

// `mete run`: the job is its caller's child, once it may start.
struct Submit {
  JobSpec spec;
  std::optional<ProcessRef> runner;
  bool wait = true;  // false: refused (exhausted) unless it can start at once
};
// The runner has started the program.
struct Started {
  JobId id;
  std::uint32_t by_uid = 0;
  ProcessRef program;
  std::uint64_t ago_ms = 0;
};
// The runner says that every process of the job is gone.
struct Ended {
  JobId id;
  std::uint32_t by_uid = 0;
  Exit exit;
  // For a program that ended before its start was told.
  std::optional<ProcessRef> program = {};
  std::uint64_t ago_ms = 0;
};
struct Cancel {
  JobId id;
  std::uint32_t by_uid = 0;
};
// The runner itself is gone, with or without its program.
struct RunnerGone {
  JobId id;
};
// The last process of a job that nobody waited for is gone.
struct JobGone {
  JobId id;
};
// The cards or what others hold there have changed.
struct Look {};

using Input = std::variant<Submit, Started, Ended, Cancel, RunnerGone, JobGone, Look>;

}  // namespace mete::core
