// SPDX-License-Identifier: Apache-2.0
#include "serve/submitter.h"

#include <pwd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/content_hash.h"
#include "base/file.h"
#include "base/text.h"
#include "wire/submit.h"

namespace mete::serve {

namespace {

// The second number of "Uid:" in its status. (Root owns /proc/PID of a process that cannot be
// traced.)
std::optional<uid_t> effective_uid_of(pid_t pid) {
  const Result<std::string> status =
      base::read_all("/proc/" + std::to_string(pid) + "/status", 16 << 10);
  if (!status) return std::nullopt;
  for (const std::string_view line : base::split(*status, '\n')) {
    if (!line.starts_with("Uid:")) continue;
    const std::vector<std::string_view> numbers = base::split(line, '\t');
    const Result<std::uint64_t> uid = base::parse_uint(numbers.size() > 2 ? numbers[2] : "");
    return uid ? std::optional(static_cast<uid_t>(*uid)) : std::nullopt;
  }
  return std::nullopt;
}

// By their names in /proc/PID/limits, which every user may read; prlimit(2) on another user's
// process needs a capability that root lacks in many containers.
struct Named {
  std::string_view name;
  int resource;
};
constexpr std::array kLimits{
    Named{"Max cpu time", RLIMIT_CPU},
    Named{"Max file size", RLIMIT_FSIZE},
    Named{"Max data size", RLIMIT_DATA},
    Named{"Max stack size", RLIMIT_STACK},
    Named{"Max core file size", RLIMIT_CORE},
    Named{"Max resident set", RLIMIT_RSS},
    Named{"Max processes", RLIMIT_NPROC},
    Named{"Max open files", RLIMIT_NOFILE},
    Named{"Max locked memory", RLIMIT_MEMLOCK},
    Named{"Max address space", RLIMIT_AS},
    Named{"Max file locks", RLIMIT_LOCKS},
    Named{"Max pending signals", RLIMIT_SIGPENDING},
    Named{"Max msgqueue size", RLIMIT_MSGQUEUE},
    Named{"Max nice priority", RLIMIT_NICE},
    Named{"Max realtime priority", RLIMIT_RTPRIO},
    Named{"Max realtime timeout", RLIMIT_RTTIME},
};

std::optional<std::uint64_t> limit_from(std::string_view text) {
  if (text == "unlimited") return RLIM_INFINITY;
  const Result<std::uint64_t> number = base::parse_uint(text);
  return number ? std::optional(*number) : std::nullopt;
}

std::vector<core::ResourceLimit> limits_of(pid_t pid) {
  std::vector<core::ResourceLimit> limits;
  const Result<std::string> text =
      base::read_all("/proc/" + std::to_string(pid) + "/limits", 16 << 10);
  if (!text) return limits;
  for (const std::string_view line : base::split(*text, '\n')) {
    for (const Named& known : kLimits) {
      if (!line.starts_with(known.name) || !line.substr(known.name.size()).starts_with("  "))
        continue;
      std::vector<std::string_view> words;
      for (const std::string_view word : base::split(line.substr(known.name.size()), ' '))
        if (!word.empty()) words.push_back(word);
      if (words.size() < 2) continue;
      const std::optional<std::uint64_t> soft = limit_from(words[0]);
      const std::optional<std::uint64_t> hard = limit_from(words[1]);
      if (soft && hard) limits.push_back({known.resource, *soft, *hard});
    }
  }
  return limits;
}

}  // namespace

std::string name_of_user(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return std::to_string(uid);
}

bool is_user(const std::string& name) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr)
    return true;
  // A user without a name is known by its number; a user with a name is not.
  const Result<std::uint64_t> uid = base::parse_uint(name);
  return uid && *uid < static_cast<uid_t>(-1) && name_of_user(static_cast<uid_t>(*uid)) == name;
}

bool is_member(const net::Peer& peer, gid_t group) {
  return peer.gid == group ||
         std::find(peer.groups.begin(), peer.groups.end(), group) != peer.groups.end();
}

Contents take_contents(core::JobSpec& spec, const std::vector<std::string>& environment,
                       std::string script) {
  Contents contents;
  const auto add = [&](std::string data, std::string& hash, std::uint64_t& bytes) {
    hash = base::content_hash(data);
    bytes = data.size();
    contents.emplace_back(hash, std::move(data));
  };
  if (spec.detached) {
    core::Detached& detached = *spec.detached;
    add(wire::blob_of(environment), detached.environment, detached.environment_bytes);
    if (!script.empty()) add(std::move(script), detached.script, detached.script_bytes);
  }
  std::string command = wire::blob_of(spec.command);
  if (command.size() > wire::kLongCommand) {
    spec.command = wire::beginning_of(spec.command);
    add(std::move(command), spec.command_content, spec.command_bytes);
  }
  return contents;
}

Result<void> take_identity(const net::Peer& peer, core::Detached& detached) {
  detached.gid = peer.gid;
  detached.groups.assign(peer.groups.begin(), peer.groups.end());
  detached.limits = limits_of(peer.pid);
  // The pid may belong to another process by now: then these are not the client's limits.
  if (detached.limits.empty() || effective_uid_of(peer.pid) != peer.uid)
    return Error::busy("the process that asks has gone").with_evidence("its limits are not known");
  return {};
}

}  // namespace mete::serve
