// SPDX-License-Identifier: Apache-2.0
// See offspring.h.
#include "launch/offspring.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "abi/process.h"

namespace mete::launch {

namespace {

constexpr std::size_t kMostInOneLook = 100'000;

// Reads the kernel's lists of children: microseconds for each process, so that a process that lives
// for a millisecond is found before it ends. Lists of processes that reap meanwhile may be
// incomplete.
std::vector<pid_t> quick_look(const Outsiders& outsiders) {
  std::vector<pid_t> found;
  for (const pid_t child : own_children()) {
    if (is_outsider(child, outsiders)) continue;
    found.push_back(child);
    for (const pid_t pid : some_descendants(child, kMostInOneLook))
      if (!is_outsider(pid, outsiders)) found.push_back(pid);
  }
  return found;
}

}  // namespace

bool offspring_is_gone(const Outsiders& outsiders) {
  bool whole = true;
  const std::vector<pid_t> children = own_children(&whole);
  if (!whole) return false;  // no descriptor to look with
  return std::all_of(children.begin(), children.end(),
                     [&](pid_t pid) { return is_outsider(pid, outsiders); });
}

// False: the process has the signal already, or is gone.
bool SignalToAll::reach(pid_t pid) {
  abi::ProcessStat stat;
  if (abi::read_stat(static_cast<std::uint32_t>(pid), &stat) != abi::StatResult::kRead)
    return false;
  if (!reached_.emplace(pid, stat.start).second) return false;
  (void)kill(pid, number_);
  if (number_ == SIGTERM) (void)kill(pid, SIGCONT);
  return true;
}

// A process that has got a signal and does not handle it forks no more: the kernel delivers the
// signal first. So the set grows only by processes that were forked before, and this ends.
void SignalToAll::send(const Outsiders& outsiders) {
  const auto reach_all = [&](const std::vector<pid_t>& processes, bool first) {
    bool more = false;
    for (const pid_t pid : processes) {
      const pid_t parent = first ? 0 : parent_of(pid);
      const bool left_to_parent = parent != 0 && parent != getpid() && catches(parent, number_);
      if (!left_to_parent && reach(pid)) more = true;
    }
    return more;
  };
  std::vector<pid_t> all = descendants(getpid(), outsiders);
  for (const pid_t pid : quick_look(outsiders)) all.push_back(pid);
  (void)reach_all(all, true);
  for (int round = 0; round < kMaxRounds; ++round)
    if (!reach_all(quick_look(outsiders), false) &&
        !reach_all(descendants(getpid(), outsiders), false))
      return;
}

void SignalToAll::send_to_orphans(const Outsiders& outsiders) {
  for (const pid_t pid : own_children())
    if (!is_outsider(pid, outsiders)) (void)reach(pid);
}

}  // namespace mete::launch
