// SPDX-License-Identifier: Apache-2.0
// See identity.h.
#include "launch/identity.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace mete::launch {

namespace {

bool has_all_ids(const Identity& identity) {
  uid_t real_uid = 0, uid = 0, saved_uid = 0;
  gid_t real_gid = 0, gid = 0, saved_gid = 0;
  if (getresuid(&real_uid, &uid, &saved_uid) != 0 || getresgid(&real_gid, &gid, &saved_gid) != 0)
    return false;
  return real_uid == identity.uid && uid == identity.uid && saved_uid == identity.uid &&
         real_gid == identity.gid && gid == identity.gid && saved_gid == identity.gid;
}

bool has_all_groups(const Identity& identity) {
  const int count = getgroups(0, nullptr);
  if (count < 0) return false;
  std::vector<gid_t> now(static_cast<std::size_t>(count));
  if (count > 0 && getgroups(count, now.data()) != count) return false;
  std::vector<gid_t> wanted(identity.groups.begin(), identity.groups.end());
  std::sort(now.begin(), now.end());
  std::sort(wanted.begin(), wanted.end());
  return now == wanted;
}

}  // namespace

Result<void> become(const Identity& identity) {
  const std::vector<gid_t> groups(identity.groups.begin(), identity.groups.end());
  if (setgroups(groups.size(), groups.data()) != 0) return Error::from_errno("setgroups", errno);
  if (setresgid(identity.gid, identity.gid, identity.gid) != 0)
    return Error::from_errno("setgid", errno);
  if (setresuid(identity.uid, identity.uid, identity.uid) != 0)
    return Error::from_errno("setuid", errno);
  if (!has_all_ids(identity) || !has_all_groups(identity))
    return Error::io("the job's user could not be taken on");
  if (identity.uid != 0 && (setuid(0) == 0 || seteuid(0) == 0))
    return Error::io("the rights of root could not be given up");
  // We still hold what root has opened: the user may end us, not look into us. (It is so by itself
  // unless somebody has set fs.suid_dumpable.)
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return Error::from_errno("close ourselves", errno);
  return {};
}

void raise_hard_limits(const std::vector<core::ResourceLimit>& limits) {
  for (const core::ResourceLimit& limit : limits) {
    const auto which = static_cast<__rlimit_resource>(limit.resource);
    rlimit now{};
    if (getrlimit(which, &now) != 0 || limit.hard <= now.rlim_max) continue;
    now.rlim_max = limit.hard;
    (void)setrlimit(which, &now);
  }
}

}  // namespace mete::launch
