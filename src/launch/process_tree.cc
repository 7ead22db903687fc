// SPDX-License-Identifier: Apache-2.0
// See process_tree.h. descendants() reads /proc/PID/stat of every process and collects the children
// of `root`, their children, and so on. own_children() and some_descendants() read the kernel's
// lists of children (/proc/PID/task/TID/children), which are faster; a kernel without these lists
// makes own_children() look at every process, and leaves some_descendants() empty.
#include "launch/process_tree.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
};

// The name in the second field may contain spaces and brackets: the text behind the last ')' is
// unambiguous.
std::optional<Stat> read_stat(pid_t pid, bool* whole = nullptr) {
  const Result<std::string> text = base::read_all("/proc/" + std::to_string(pid) + "/stat");
  if (!text && whole != nullptr && text.error().code == ErrorCode::kBusy) *whole = false;
  if (!text) return std::nullopt;
  const std::size_t bracket = text->rfind(')');
  if (bracket == std::string::npos || bracket + 4 > text->size()) return std::nullopt;
  const std::string_view rest = std::string_view(*text).substr(bracket + 2);
  const std::vector<std::string_view> fields = base::split(rest, ' ');
  if (fields.size() < 2 || fields[0].size() != 1) return std::nullopt;
  const Result<std::uint64_t> parent = base::parse_uint(fields[1]);
  if (!parent) return std::nullopt;
  return Stat{fields[0].front(), static_cast<pid_t>(*parent)};
}

std::vector<pid_t> numbers_in(const std::string& folder, bool* whole = nullptr) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (!directory && whole != nullptr) *whole = false;
  if (!directory) return pids;
  while (const dirent* entry = readdir(directory.get())) {
    const Result<std::uint64_t> number = base::parse_uint(entry->d_name);
    if (number) pids.push_back(static_cast<pid_t>(*number));
  }
  return pids;
}

}  // namespace

bool is_outsider(pid_t pid, const Outsiders& outsiders) {
  if (std::find(outsiders.pids.begin(), outsiders.pids.end(), pid) != outsiders.pids.end())
    return true;
  if (outsiders.program.empty()) return false;
  char path[PATH_MAX];
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return length > 0 &&
         std::string_view(path, static_cast<std::size_t>(length)) == outsiders.program;
}

std::vector<pid_t> all_processes(bool* whole) {
  if (whole != nullptr) *whole = true;
  return numbers_in("/proc", whole);
}

std::vector<pid_t> descendants(pid_t root, const Outsiders& without, bool* whole) {
  std::multimap<pid_t, pid_t> children;
  std::set<pid_t> dead;
  for (const pid_t pid : all_processes(whole)) {
    const std::optional<Stat> stat = read_stat(pid, whole);
    if (!stat) continue;
    children.emplace(stat->parent, pid);
    if (stat->state == 'Z' || stat->state == 'X') dead.insert(pid);
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child)
      if (!is_outsider(child->second, without)) found.push_back(child->second);
  }
  found.erase(found.begin());
  // A zombie has no children. It may have died after its children were read: they count.
  std::erase_if(found, [&](pid_t pid) { return dead.contains(pid); });
  return found;
}

std::vector<pid_t> some_descendants(pid_t root, std::size_t most) {
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size() && found.size() <= most; ++i) {
    const std::string tasks = "/proc/" + std::to_string(found[i]) + "/task";
    for (const pid_t thread : numbers_in(tasks)) {
      const Result<std::string> text =
          base::read_all(tasks + "/" + std::to_string(thread) + "/children");
      if (!text) continue;
      for (const std::string_view word : base::split(*text, ' '))
        if (const Result<std::uint64_t> pid = base::parse_uint(word))
          found.push_back(static_cast<pid_t>(*pid));
    }
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> own_children(bool* whole) {
  std::vector<pid_t> children;
  const Result<std::string> text = base::read_all("/proc/thread-self/children", 16 << 20);
  if (whole != nullptr) *whole = text.ok() || text.error().code != ErrorCode::kBusy;
  if (!text && text.error().code == ErrorCode::kBusy) return children;
  if (text) {
    for (const std::string_view word : base::split(*text, ' '))
      if (const Result<std::uint64_t> pid = base::parse_uint(base::trim(word)))
        children.push_back(static_cast<pid_t>(*pid));
    return children;
  }
  // A kernel without these lists (CONFIG_PROC_CHILDREN). The folder lists every process that exists
  // when it is opened and stays.
  for (const pid_t pid : all_processes(whole))
    if (parent_of(pid) == getpid()) children.push_back(pid);
  return children;
}

pid_t parent_of(pid_t pid) {
  const std::optional<Stat> stat = read_stat(pid);
  return stat ? stat->parent : 0;
}

// "SigCgt:\t0000000000004002": bit 0 is signal 1.
bool catches(pid_t pid, int signal_number) {
  const Result<std::string> status = base::read_all("/proc/" + std::to_string(pid) + "/status");
  if (!status) return false;
  const std::size_t line = status->find("\nSigCgt:");
  if (line == std::string::npos) return false;
  const unsigned long long mask = std::strtoull(status->c_str() + line + 8, nullptr, 16);
  return (mask >> (signal_number - 1) & 1) != 0;
}

bool is_stopped(pid_t pid) {
  const std::optional<Stat> stat = read_stat(pid);
  return stat && stat->state == 'T';
}

}  // namespace mete::launch
