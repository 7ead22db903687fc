// SPDX-License-Identifier: Apache-2.0
// See proc.h. Each reader reads one file of /proc/PID whole and passes its text to a parser; ENOENT
// and ESRCH become not_found. The walk over descendants asks each process for its children; kernels
// without the children files make it read the parent of every process instead.
#include "node/proc.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/text.h"

namespace mete::node {
namespace {

// A process that is gone answers ENOENT to open and ESRCH to read.
Result<std::string> read_proc(pid_t pid, const std::string& file) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  Result<std::string> text = base::read_all(path);
  if (text || text.error().code == ErrorCode::kNotFound || text.error().code == ErrorCode::kDenied)
    return text;
  if (access(("/proc/" + std::to_string(pid)).c_str(), F_OK) != 0)
    return Error::not_found("process " + std::to_string(pid) + " is gone");
  return text;
}

std::optional<std::uint64_t> number(std::string_view text) {
  Result<std::uint64_t> value = base::parse_uint(text);
  if (!value) return std::nullopt;
  return *value;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find_first_not_of(" \t\n", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return found;
}

}  // namespace

Result<ProcessStat> parse_stat(std::string_view text) {
  // "PID (COMM) S PPID …": COMM is the process's own choice, so it ends at the *last* parenthesis.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return Error::corrupt("a stat line without a name");
  ProcessStat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  const std::optional<std::uint64_t> pid = number(base::trim(text.substr(0, open)));
  // fields[0] is field 3 of proc(5), the state; field N is fields[N - 3].
  const std::vector<std::string_view> fields = words(text.substr(close + 1));
  if (!pid || fields.size() < 26 || fields[0].size() != 1)
    return Error::corrupt("a stat line with too few fields");
  const std::optional<std::uint64_t> parent = number(fields[1]), threads = number(fields[17]),
                                     start = number(fields[19]), stack = number(fields[25]),
                                     flags = number(fields[6]);
  if (!parent || !threads || !start || !stack || !flags)
    return Error::corrupt("a stat line with a field that is no number");
  stat.pid = static_cast<pid_t>(*pid);
  stat.state = fields[0][0];
  stat.parent = static_cast<pid_t>(*parent);
  stat.flags = *flags;
  stat.threads = static_cast<unsigned>(*threads);
  stat.start_ticks = *start;
  stat.start_stack = *stack;
  return stat;
}

Result<ProcessStatus> parse_status(std::string_view text) {
  ProcessStatus status;
  bool have_uid = false, have_group = false;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::vector<std::string_view> values = words(line.substr(colon + 1));
    if (key == "Uid" && values.size() >= 2 && number(values[0]) && number(values[1])) {
      status.real_uid = static_cast<uid_t>(*number(values[0]));
      status.effective_uid = static_cast<uid_t>(*number(values[1]));
      have_uid = true;
    } else if (key == "Tgid" && values.size() == 1 && number(values[0])) {
      status.group = static_cast<pid_t>(*number(values[0]));
      have_group = true;
    } else if (key == "NSpid") {
      for (const std::string_view value : values) {
        const std::optional<std::uint64_t> pid = number(value);
        if (!pid) return Error::corrupt("NSpid that is no number");
        status.namespace_pids.push_back(static_cast<pid_t>(*pid));
      }
    }
  }
  if (!have_uid || !have_group) return Error::corrupt("a status file without Uid or Tgid");
  return status;
}

std::optional<std::string> parse_variable(std::string_view environment, std::string_view name) {
  for (const std::string_view line : base::split(environment, '\0'))
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=')
      return std::string(line.substr(name.size() + 1));
  return std::nullopt;
}

std::optional<std::uint64_t> parse_namespace_link(std::string_view text) {
  const std::size_t open = text.find(":[");
  if (open == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  return number(text.substr(open + 2, text.size() - open - 3));
}

Result<ProcessStat> read_stat(pid_t pid) {
  Result<std::string> text = read_proc(pid, "stat");
  if (!text) return std::move(text).error();
  return parse_stat(*text);
}

Result<ProcessStatus> read_status(pid_t pid) {
  Result<std::string> text = read_proc(pid, "status");
  if (!text) return std::move(text).error();
  return parse_status(*text);
}

std::optional<std::string> read_variable(pid_t pid, std::string_view name) {
  const Result<std::string> text = read_proc(pid, "environ");
  return text ? parse_variable(*text, name) : std::nullopt;
}

Result<std::uint64_t> read_pid_namespace(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/pid";
  std::array<char, 64> link{};
  const ssize_t length = readlink(path.c_str(), link.data(), link.size());
  if (length < 0) return Error::from_errno("read " + path, errno);
  const std::optional<std::uint64_t> inode =
      parse_namespace_link(std::string_view(link.data(), static_cast<std::size_t>(length)));
  if (!inode) return Error::corrupt(path + " is not a namespace");
  return *inode;
}

Result<std::vector<pid_t>> read_all_pids() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return Error::from_errno("open /proc", errno);
  std::vector<pid_t> pids;
  while (const dirent* entry = readdir(folder.get()))
    if (const std::optional<std::uint64_t> pid = number(entry->d_name))
      pids.push_back(static_cast<pid_t>(*pid));
  return pids;
}

Result<std::string> read_boot_id() {
  Result<std::string> text = base::read_all("/proc/sys/kernel/random/boot_id", 128);
  if (!text) return text;
  return std::string(base::trim(*text));
}

}  // namespace mete::node
