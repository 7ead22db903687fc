// SPDX-License-Identifier: Apache-2.0
// See groups.h.
#include "selftest/groups.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/process.h"
#include "selftest/rows.h"

extern char** environ;

namespace mete::selftest {

namespace {

constexpr int kPatienceMs = 120'000;

constexpr std::array kGroups = std::to_array<Group>({
    {"start", check_start, false},
    {"lookups", check_lookups, false},
    {"linear", check_linear, false},
    {"virtual", check_virtual, false},
    {"pools", check_pools, false},
    {"managed", check_managed, false},
    {"managed-current", check_current_managed, false},
    {"graphs", check_graphs, false},
    {"arrays", check_arrays, false},
    {"contexts", check_contexts, false},
    {"old", check_old, false},
    {"queries", check_queries, false},
    {"nvml", check_nvml, false},
    {"sharing", check_sharing, true},
    {"deaths", check_deaths, true},
});

// Waits for a child for so long and no longer. Returns its wait status, or nothing when it had to
// be killed.
std::optional<int> wait_for(pid_t pid) {
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process) {
    pollfd ready{process.get(), POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) == 0) {
      (void)kill(pid, SIGKILL);
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      return std::nullopt;
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return status;
}

// Runs `program --group NAME` with these variables. Its rows go straight to our stdout.
void run_child(const Group& group, const Task& task, std::vector<std::string> variables,
               bool silent) {
  std::vector<std::string> words{task.program, "--group", std::string(group.name)};
  for (const KnownCard& card : task.cards) {
    words.emplace_back("--card");
    words.push_back(card.uuid + "," + card.bus + "," + card.serial);
  }
  const std::vector<char*> argv = base::pointers(words);
  const std::vector<char*> variable_list = base::pointers(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (silent) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, task.program.c_str(), &actions, nullptr, argv.data(), variable_list.data());
  posix_spawn_file_actions_destroy(&actions);
  set_group(group.name);
  if (error != 0) {
    Check(kRoads, "the checks").that(false, std::string("cannot start: ") + std::strerror(error));
    return;
  }
  const std::optional<int> status = wait_for(pid);
  // A process that gives up prints the reason in a row of its own and exits with 1.
  if (!status)
    Check(kRoads, "the checks").that(false, "did not end within two minutes");
  else if (WIFSIGNALED(*status))
    Check(kRoads, "the checks").that(false, "ended by signal " + std::to_string(WTERMSIG(*status)));
}

}  // namespace

std::span<const Group> groups() { return kGroups; }

const Group* find_group(std::string_view name) {
  for (const Group& group : kGroups)
    if (group.name == name) return &group;
  return nullptr;
}

void run_group(const Group& group, const Task& task) {
  if (group.several) {
    set_group(group.name);
    return group.run(task);
  }
  std::vector<std::string> variables = base::own_environment();
  if (group.run != check_start) return run_child(group, task, std::move(variables), false);
  // The meter prints on stderr why it refuses; here a refusal is wanted.
  std::vector<std::string> without;
  for (const std::string& line : variables)
    if (!line.starts_with("METE_GRANT=")) without.push_back(line);
  run_child(group, task, without, true);
  without.emplace_back("METE_GRANT=/dev/null/no-such-grant");
  run_child(group, task, without, true);
}

}  // namespace mete::selftest
