// SPDX-License-Identifier: Apache-2.0
// See job_groups.h. Each wish becomes a Limit with its settings for both versions. Version 1: one
// group in the hierarchy of each controller. Version 2: one group for all limits below the nearest
// ancestor that delegates the controllers; if no ancestor delegates all of them, the first limit
// that can be set wins. Without limits, an empty group or a freezer contains the job.
#include "launch/job_groups.h"

#include <algorithm>

#include "base/file.h"

namespace mete::launch {

namespace {

constexpr std::uint64_t kPeriodUs = 100'000;

}  // namespace

// One limit, as settings of both versions.
struct JobGroups::Limit {
  Controller controller;
  const char* option;
  std::vector<Cgroup::Setting> version1;
  std::vector<Cgroup::Setting> version2;
};

std::vector<JobGroups::Limit> JobGroups::limits_of(const GroupWish& wish) {
  std::vector<Limit> limits;
  if (wish.ram) {
    // Without a limit on swap the memory would only move to the disk; not every kernel counts swap.
    const std::string bytes = std::to_string(wish.ram->count());
    limits.push_back(
        {Controller::kMemory,
         "--ram",
         {{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes, false}},
         {{"memory.max", bytes}, {"memory.swap.max", "0", false}}});
  }
  if (wish.cpus) {
    const std::string quota = std::to_string(*wish.cpus * kPeriodUs);
    const std::string period = std::to_string(kPeriodUs);
    limits.push_back({Controller::kCpu,
                      "--cpus",
                      {{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}},
                      {{"cpu.max", quota + " " + period}}});
  }
  return limits;
}

// Version 2: below the nearest ancestor that delegates all these controllers.
Result<Cgroup> JobGroups::make_below_lender(const CgroupPlace& place, const std::string& name,
                                            const std::vector<const Limit*>& limits) {
  std::vector<Cgroup::Setting> settings;
  std::string controllers;
  for (const Limit* limit : limits) {
    settings.insert(settings.end(), limit->version2.begin(), limit->version2.end());
    controllers += (controllers.empty() ? "" : " and ") + std::string(to_string(limit->controller));
  }
  for (CgroupPlace above = place; above.group != "/";) {
    above.group = base::parent_path(above.group);
    if (std::all_of(limits.begin(), limits.end(),
                    [&](const Limit* limit) { return lends(above.folder(), limit->controller); }))
      return Cgroup::make(above.folder(), name, settings);
  }
  return Error::not_found("no parent control group delegates the " + controllers + " controller");
}

bool JobGroups::take(Result<Cgroup> group, const char* option) {
  if (group)
    groups_.push_back(*std::move(group));
  else if (option != nullptr)
    refused_.push_back({option, group.error().message});
  return group.ok();
}

// A process is in one group of version 2, so all limits belong to one group. If that is not
// possible, the first limit that is possible.
void JobGroups::limit_together(const CgroupPlace& place, const std::string& name,
                               const std::vector<const Limit*>& limits) {
  const bool all = take(make_below_lender(place, name, limits), nullptr);
  bool some = all;
  for (const Limit* limit : limits) {
    if (all) break;
    if (some)
      refused_.push_back(
          {limit->option, "no parent control group delegates all requested controllers"});
    else
      some = take(make_below_lender(place, name, {limit}), limit->option);
  }
  if (some) container_ = groups_.size() - 1;
}

void JobGroups::contain(const std::string& name, std::string_view own, std::string_view mounts) {
  if (container_ != SIZE_MAX) return;
  if (const Result<CgroupPlace> place = find_unified(own, mounts);
      place && take(Cgroup::make(place->folder(), name, {}), nullptr)) {
    container_ = groups_.size() - 1;
    return;
  }
  if (const Result<CgroupPlace> place = find_cgroup(Controller::kFreezer, own, mounts);
      place && !place->unified && take(Cgroup::make(place->folder(), name, {}), nullptr))
    container_ = groups_.size() - 1;
}

JobGroups JobGroups::make(const GroupWish& wish) {
  JobGroups made;
  const std::vector<Limit> limits = limits_of(wish);
  if (limits.empty() && !wish.contain) return made;
  const Result<std::string> own = base::read_all("/proc/self/cgroup");
  const Result<std::string> mounts = base::read_all("/proc/self/mountinfo", 4 << 20);
  std::vector<const Limit*> unified;
  CgroupPlace unified_place;
  for (const Limit& limit : limits) {
    const Result<CgroupPlace> place = own && mounts
                                          ? find_cgroup(limit.controller, *own, *mounts)
                                          : Result<CgroupPlace>(own ? mounts.error() : own.error());
    if (!place) {
      made.refused_.push_back({limit.option, place.error().message});
    } else if (place->unified) {
      unified.push_back(&limit);
      unified_place = *place;
    } else {
      (void)made.take(Cgroup::make(place->folder(), wish.name, limit.version1), limit.option);
    }
  }
  if (!unified.empty()) made.limit_together(unified_place, wish.name, unified);
  if (wish.contain && own && mounts) made.contain(wish.name, *own, *mounts);
  return made;
}

std::vector<int> JobGroups::doors() const {
  std::vector<int> doors;
  for (const Cgroup& group : groups_) doors.push_back(group.door());
  return doors;
}

std::vector<std::string> JobGroups::folders() const {
  std::vector<std::string> folders;
  for (const Cgroup& group : groups_) folders.push_back(group.folder());
  return folders;
}

std::uint64_t JobGroups::out_of_memory() const {
  std::uint64_t times = 0;
  for (const Cgroup& group : groups_) times += group.out_of_memory();
  return times;
}

void JobGroups::drop_closed() {
  const auto closed = std::find_if(groups_.begin(), groups_.end(),
                                   [](const Cgroup& group) { return !group.can_enter(); });
  if (closed == groups_.end()) return;
  refused_.push_back(
      {"a control group of its own", "the job's user may not enter " + closed->folder()});
  groups_.clear();
  container_ = SIZE_MAX;
}

void JobGroups::keep() {
  for (Cgroup& group : groups_) group.keep();
}

}  // namespace mete::launch
