// SPDX-License-Identifier: Apache-2.0
// The control groups of one job, where we may make them: limits on its memory and CPUs, and a group
// that contains the whole job, so that everything it forks can be found and ended.
//
// Version 1: one group in each hierarchy (memory, cpu, freezer) below our own. Version 2: one group
// for everything; with limits below the nearest ancestor that delegates these controllers (a group
// with processes in it cannot delegate, so it is never our own), without limits below our own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "launch/cgroup.h"

namespace mete::launch {

struct GroupWish {
  std::string name;
  std::optional<Bytes> ram;
  std::optional<std::uint64_t> cpus;
  bool contain = false;
};

class JobGroups {
 public:
  struct Refused {
    std::string option;  // "--ram"
    std::string why;
  };

  JobGroups() = default;
  // Never fails: a wish that cannot be met is refused. The container is optional, so a missing one
  // is no refusal.
  static JobGroups make(const GroupWish& wish);

  const std::vector<Refused>& refused() const { return refused_; }
  const std::vector<Cgroup>& groups() const { return groups_; }
  std::vector<int> doors() const;
  std::vector<std::string> folders() const;
  // The group that has every process of the job and no other; nullptr: there is none.
  const Cgroup* container() const {
    return container_ < groups_.size() ? &groups_[container_] : nullptr;
  }
  std::uint64_t out_of_memory() const;
  void keep();
  // For groups that were made as root and are entered as another user: if entering is not possible
  // (kernels before 5.16 check the process that enters, not the one that opened the door), removes
  // them all.
  void drop_closed();

 private:
  struct Limit;
  static std::vector<Limit> limits_of(const GroupWish& wish);
  static Result<Cgroup> make_below_lender(const CgroupPlace& place, const std::string& name,
                                          const std::vector<const Limit*>& limits);
  bool take(Result<Cgroup> group, const char* option);
  void limit_together(const CgroupPlace& place, const std::string& name,
                      const std::vector<const Limit*>& limits);
  void contain(const std::string& name, std::string_view own, std::string_view mounts);

  std::vector<Cgroup> groups_;
  std::vector<Refused> refused_;
  std::size_t container_ = SIZE_MAX;  // its place in groups_
};

}  // namespace mete::launch
