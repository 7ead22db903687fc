// SPDX-License-Identifier: Apache-2.0
// See identity.h.
#include "launch/identity.h"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/assert.h"

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

Identity identity_of(std::uint32_t uid) {
  constexpr std::uint32_t kNoGroup = 65534;
  const passwd* entry = getpwuid(uid);
  if (entry == nullptr) return {uid, kNoGroup, {}};
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (getgrouplist(entry->pw_name, entry->pw_gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    (void)getgrouplist(entry->pw_name, entry->pw_gid, groups.data(), &count);
  }
  groups.resize(static_cast<std::size_t>(count));
  return {uid, entry->pw_gid, {groups.begin(), groups.end()}};
}

Result<RightsOf> RightsOf::take(const Identity& identity) {
  RightsOf rights;
  if (geteuid() != 0 || identity.uid == 0) return rights;
  const int count = getgroups(0, nullptr);
  std::vector<gid_t> ours(static_cast<std::size_t>(std::max(count, 0)));
  if (count < 0 || getgroups(count, ours.data()) != count)
    return Error::from_errno("getgroups", errno);
  rights.groups_.assign(ours.begin(), ours.end());
  rights.gid_ = getegid();
  rights.taken_ = true;  // from here on the destructor undoes it
  const std::vector<gid_t> theirs(identity.groups.begin(), identity.groups.end());
  if (setgroups(theirs.size(), theirs.data()) != 0 || setegid(identity.gid) != 0 ||
      seteuid(identity.uid) != 0)
    return Error::from_errno("take on the rights of user " + std::to_string(identity.uid), errno);
  return rights;
}

RightsOf::RightsOf(RightsOf&& other) noexcept
    : taken_(std::exchange(other.taken_, false)),
      groups_(std::move(other.groups_)),
      gid_(other.gid_) {}

RightsOf::~RightsOf() {
  if (!taken_) return;
  const std::vector<gid_t> ours(groups_.begin(), groups_.end());
  const bool back =
      seteuid(0) == 0 && setegid(gid_) == 0 && setgroups(ours.size(), ours.data()) == 0;
  METE_ASSERT(back);
}

Result<void> become(const Identity& identity) {
  const std::vector<gid_t> groups(identity.groups.begin(), identity.groups.end());
  if (setgroups(groups.size(), groups.data()) != 0) return Error::from_errno("setgroups", errno);
  if (setresgid(identity.gid, identity.gid, identity.gid) != 0)
    return Error::from_errno("setgid", errno);
  if (setresuid(identity.uid, identity.uid, identity.uid) != 0)
    return Error::from_errno("setuid", errno);
  if (!has_all_ids(identity) || !has_all_groups(identity))
    return Error::io("could not become the job's user");
  if (identity.uid != 0 && (setuid(0) == 0 || seteuid(0) == 0))
    return Error::io("the rights of root could not be given up");
  // We still hold what root has opened: the user may kill us, but not read our memory. (This is the
  // default unless fs.suid_dumpable is set.)
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
