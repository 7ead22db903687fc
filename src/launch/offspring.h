// SPDX-License-Identifier: Apache-2.0
// The processes of a job, seen from the subreaper above them (supervise.h), which has one thread
// and reaps all its children itself. Every orphan below a subreaper becomes its child, so each
// process of the job is a child of this process or descends from one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <utility>

#include "launch/process_tree.h"

namespace mete::launch {

// No process of the job is left, not even a zombie: this process has no child but outsiders. The
// kernel answers this, so a process that forks meanwhile is not missed.
bool offspring_is_gone(const Outsiders& outsiders);

// A signal for every process of the job, once for each. TERM is followed by CONT: a stopped process
// must run to handle it.
class SignalToAll {
 public:
  explicit SignalToAll(int number) : number_(number) {}

  // Repeats until every process that it finds has got the signal: a process that is forked during
  // one look is found by the next. At most kMaxRounds looks. A process that a parent with a handler
  // has forked since the first look is left to that parent: it may be part of cleaning up.
  void send(const Outsiders& outsiders);
  // To processes that have become children of this process since.
  void send_to_orphans(const Outsiders& outsiders);

 private:
  static constexpr int kMaxRounds = 100;

  bool reach(pid_t pid);

  int number_;
  std::set<std::pair<pid_t, std::uint64_t>> reached_;  // pid and start
};

}  // namespace mete::launch
