// SPDX-License-Identifier: Apache-2.0
// See process_tree.h.
#include "launch/process_tree.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
};

// The name in the second field may hold spaces and brackets: what follows the last ')' is
// unambiguous.
std::optional<Stat> read_stat(pid_t pid) {
  const Result<std::string> text = base::read_all("/proc/" + std::to_string(pid) + "/stat");
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

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
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

std::vector<pid_t> all_processes() { return numbers_in("/proc"); }

std::vector<pid_t> descendants(pid_t root, const Outsiders& without) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : all_processes()) {
    const std::optional<Stat> stat = read_stat(pid);
    // A zombie has no children: the kernel gave them away when it died.
    if (stat && stat->state != 'Z' && stat->state != 'X') children.emplace(stat->parent, pid);
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child)
      if (!is_outsider(child->second, without)) found.push_back(child->second);
  }
  found.erase(found.begin());
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

std::optional<bool> has_other_children(const std::vector<pid_t>& known) {
  const Result<std::string> text = base::read_all("/proc/thread-self/children", 1 << 20);
  if (!text) return std::nullopt;
  for (const std::string_view word : base::split(*text, ' ')) {
    if (base::trim(word).empty()) continue;
    const Result<std::uint64_t> pid = base::parse_uint(base::trim(word));
    if (!pid) return std::nullopt;
    if (std::find(known.begin(), known.end(), static_cast<pid_t>(*pid)) == known.end()) return true;
  }
  return false;
}

bool is_stopped(pid_t pid) {
  const std::optional<Stat> stat = read_stat(pid);
  return stat && stat->state == 'T';
}

}  // namespace mete::launch
