// SPDX-License-Identifier: Apache-2.0
// See host_room.h.
#include "launch/host_room.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

// The number at the beginning of a text, after blanks.
std::optional<std::uint64_t> leading_number(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return std::nullopt;
  const std::size_t end = text.find_first_not_of("0123456789", begin);
  const Result<std::uint64_t> number =
      base::parse_uint(text.substr(begin, end == std::string::npos ? end : end - begin));
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const Result<std::string> text = base::read_all(path);
  return text ? leading_number(*text) : std::nullopt;  // "max" is no limit
}

std::optional<std::uint64_t> available(const std::string& proc) {
  constexpr std::string_view kKey = "MemAvailable:";
  const Result<std::string> text = base::read_all(proc + "/meminfo");
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::optional<std::uint64_t> kib = leading_number(text->substr(at + kKey.size(), 40));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

// The process's group in the hierarchy of version 2: "/a/b".
std::string group_of(std::uint32_t pid, const std::string& proc) {
  const Result<std::string> text = base::read_all(proc + "/" + std::to_string(pid) + "/cgroup");
  const std::size_t at = text ? text->find("0::/") : std::string::npos;
  if (at == std::string::npos) return "";
  return text->substr(at + 3, text->find('\n', at) - at - 3);
}

// Calls visit(limit, usage) for each group above a process that has a limit.
template <class Visit>
void each_limit(std::uint32_t pid, const HostFiles& files, Visit visit) {
  for (std::string group = group_of(pid, files.proc); group.size() > 1;
       group.resize(group.rfind('/'))) {
    const std::optional<std::uint64_t> most = number_in(files.cgroup + group + "/memory.max");
    const std::optional<std::uint64_t> now = number_in(files.cgroup + group + "/memory.current");
    if (most && now) visit(*most, *now);
  }
}

}  // namespace

Bytes host_limit(std::uint32_t pid, const HostFiles& files) {
  std::uint64_t limit = UINT64_MAX;
  each_limit(pid, files, [&](std::uint64_t most, std::uint64_t) { limit = std::min(limit, most); });
  return Bytes::from_bytes(limit);
}

Bytes host_room(std::uint32_t pid, const HostFiles& files) {
  std::uint64_t room = available(files.proc).value_or(UINT64_MAX);
  each_limit(pid, files, [&](std::uint64_t most, std::uint64_t now) {
    room = std::min(room, most > now ? most - now : 0);
  });
  return Bytes::from_bytes(room);
}

}  // namespace mete::launch
