// SPDX-License-Identifier: Apache-2.0
#include "serve/submitter.h"

#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace mete::serve {

std::string name_of_user(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return std::to_string(uid);
}

bool is_member(const net::Peer& peer, gid_t group) {
  return peer.gid == group ||
         std::find(peer.groups.begin(), peer.groups.end(), group) != peer.groups.end();
}

Result<void> take_identity(const net::Peer& peer, core::Detached& detached) {
  detached.gid = peer.gid;
  detached.groups.assign(peer.groups.begin(), peer.groups.end());
  detached.limits.clear();
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    if (prlimit(peer.pid, static_cast<__rlimit_resource>(resource), nullptr, &limit) == 0)
      detached.limits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  }
  // The number may be another process's by now: then these are not its limits.
  const std::string folder = "/proc/" + std::to_string(peer.pid);
  struct stat info {};
  if (detached.limits.empty() || stat(folder.c_str(), &info) != 0 || info.st_uid != peer.uid)
    return Error::busy("the process that asks has gone").with_evidence("its limits are not known");
  return {};
}

}  // namespace mete::serve
