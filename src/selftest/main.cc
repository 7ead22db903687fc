// SPDX-License-Identifier: Apache-2.0
// mete-selftest, the program that `mete selftest` runs inside a cap:
//   --all [--only GROUP]... [--card UUID,BUS,SERIAL]...   every group of checks, rows on stdout,
//                                                         "end" as the last line
//   --group GROUP [--card ...]...                         one group, in this process
//   --agent                                               a second process of a check (agent.h)
//   --cards LIBRARY                                       outside a cap: the cards that NVML sees
// It is an ordinary program of the driver API: it finds the drivers as every program does and knows
// of the meter only the job's accounts. Rows carry the verdict; the exit code says only whether the
// program reached its end.
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/text.h"
#include "selftest/agent.h"
#include "selftest/cards.h"
#include "selftest/groups.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr int kAgentChannel = 3;

int usage() {
  std::fputs("mete-selftest is run by `mete selftest`\n", stderr);
  return 64;
}

std::string own_path() {
  char buffer[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  return length > 0 ? std::string(buffer, static_cast<std::size_t>(length)) : "";
}

bool parse_card(const char* text, Task* task) {
  const std::vector<std::string_view> parts = base::split(text, ',');
  if (parts.size() != 3) return false;
  task->cards.push_back({std::string(parts[0]), std::string(parts[1]), std::string(parts[2])});
  return true;
}

int run_all(const std::vector<std::string>& only, const Task& task) {
  for (const std::string& name : only)
    if (find_group(name) == nullptr) return usage();
  for (const Group& group : groups()) {
    bool wanted = only.empty();
    for (const std::string& name : only) wanted = wanted || name == group.name;
    if (wanted) run_group(group, task);
  }
  std::fputs("end\n", stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  Task task{own_path(), {}};
  std::vector<std::string> only;
  const Group* group = nullptr;
  bool all = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (word == "--agent") return run_agent(kAgentChannel);
    if (word == "--all") {
      all = true;
      continue;
    }
    if (value == nullptr) return usage();
    ++i;
    if (word == "--cards") return print_cards(value);
    if (word == "--only")
      only.emplace_back(value);
    else if (word == "--group")
      group = find_group(value);
    else if (word != "--card" || !parse_card(value, &task))
      return usage();
  }
  if (all) return run_all(only, task);
  if (group == nullptr) return usage();
  set_group(group->name);
  group->run(task);
  return 0;
}

}  // namespace

}  // namespace mete::selftest

int main(int argc, char** argv) { return mete::selftest::run(argc, argv); }
