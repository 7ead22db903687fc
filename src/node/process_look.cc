// SPDX-License-Identifier: Apache-2.0
// See process_look.h.
#include "node/process_look.h"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>

#include "base/file.h"
#include "node/proc.h"

namespace mete::node {

namespace {

constexpr int kMaxDepth = 256;            // of ancestors: more is a cycle, read while it changed
constexpr std::size_t kMaxCached = 1024;  // user names, namespaces
constexpr std::size_t kMaxEnviron = 4 << 20;

bool exists(pid_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

// What can be known of one process without its environment; nullopt: it is gone.
std::optional<ProcessFacts> facts_of(pid_t pid) {
  ProcessFacts facts;
  facts.pid = pid;
  const Result<ProcessStat> stat = read_stat(pid);
  if (!stat) {
    if (!exists(pid)) return std::nullopt;
    facts.visible = false;
    return facts;
  }
  facts.start_ticks = stat->start_ticks;
  facts.parent = stat->parent;
  facts.comm = stat->comm;
  if (const Result<ProcessStatus> status = read_status(pid)) facts.uid = status->real_uid;
  return facts;
}

bool is_first_of(pid_t pid, std::uint64_t name_space) {
  const Result<std::uint64_t> its = read_pid_namespace(pid);
  if (!its || *its != name_space) return false;
  const Result<ProcessStatus> status = read_status(pid);
  return status && !status->namespace_pids.empty() && status->namespace_pids.back() == 1;
}

}  // namespace

std::string variable_in(const std::string& environment, const std::string& name) {
  const std::string start = name + "=";
  std::size_t at = environment.starts_with(start) ? 0 : environment.find('\0' + start);
  if (at == std::string::npos) return "";
  at = environment.find('=', at) + 1;
  return environment.substr(at, environment.find('\0', at) - at);
}

std::vector<ProcessFacts> ProcessLook::take(const std::vector<seam::CardReading>& cards) {
  const Result<std::uint64_t> ours = read_pid_namespace(getpid());
  Found found;
  std::set<pid_t> looked;  // a process on several cards is looked at once
  meters_.begin();
  for (const seam::CardReading& card : cards) {
    if (!card.processes) continue;
    for (const seam::ProcessReading& process : *card.processes) {
      if (process.pid <= 0 || !exists(process.pid)) continue;
      climb(process.pid, found);
      const auto entry = found.find(process.pid);
      if (entry == found.end() || !entry->second.visible) continue;
      ProcessFacts& facts = entry->second;
      if (looked.insert(facts.pid).second) look_inside(facts);
      const Result<std::uint64_t> its = read_pid_namespace(process.pid);
      if (!ours || !its || *its == *ours) continue;
      facts.namespace_init = first_of_namespace(*its);
      if (facts.namespace_init > 0) climb(facts.namespace_init, found);
    }
  }
  std::vector<ProcessFacts> list;
  list.reserve(found.size());
  for (auto& [pid, facts] : found) list.push_back(std::move(facts));
  return list;
}

void ProcessLook::look_inside(ProcessFacts& facts) {
  const Result<ProcessStat> stat = read_stat(facts.pid);
  facts.exiting = stat && stat->is_exiting();
  const Result<std::string> environment =
      base::read_all("/proc/" + std::to_string(facts.pid) + "/environ", kMaxEnviron);
  if (!environment) return;
  facts.job = variable_in(*environment, "METE_JOB_ID");
  facts.token = variable_in(*environment, "METE_JOB_TOKEN");
  if (stat && stat->start_ticks == facts.start_ticks && !facts.exiting)
    facts.meter = meters_.take(*stat, *environment);
}

void ProcessLook::climb(pid_t pid, Found& found) {
  for (int depth = 0; depth < kMaxDepth && pid > 0 && !found.contains(pid); ++depth) {
    std::optional<ProcessFacts> facts = facts_of(pid);
    if (!facts) return;
    if (facts->uid) facts->user = user_name(*facts->uid);
    const pid_t parent = facts->parent;
    found.emplace(pid, *std::move(facts));
    pid = parent;
  }
}

const std::string& ProcessLook::user_name(std::uint32_t uid) {
  if (users_.size() > kMaxCached) users_.clear();
  const auto [entry, is_new] = users_.try_emplace(uid);
  if (is_new) {
    const passwd* known = getpwuid(uid);
    entry->second = known != nullptr ? known->pw_name : "uid " + std::to_string(uid);
  }
  return entry->second;
}

pid_t ProcessLook::first_of_namespace(std::uint64_t name_space) {
  if (const auto known = firsts_.find(name_space); known != firsts_.end()) {
    if (is_first_of(known->second, name_space)) return known->second;
    firsts_.erase(known);
  }
  if (firsts_.size() > kMaxCached) firsts_.clear();
  const Result<std::vector<pid_t>> all = read_all_pids();
  if (!all) return 0;
  for (const pid_t pid : *all)
    if (is_first_of(pid, name_space)) return firsts_[name_space] = pid;
  return 0;
}

}  // namespace mete::node
