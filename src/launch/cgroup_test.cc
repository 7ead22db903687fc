// SPDX-License-Identifier: Apache-2.0
#include "launch/cgroup.h"

#include <gtest/gtest.h>

namespace mete::launch {
namespace {

constexpr const char* kVersion1 =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kVersion2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

CgroupPlace found(Controller controller, const char* own, const char* mounts) {
  const Result<CgroupPlace> place = find_cgroup(controller, own, mounts);
  return place ? *place : CgroupPlace{place.error().message, "", false};
}

TEST(Cgroup, EachControllerOfVersion1HasAPlaceOfItsOwn) {
  const char* own = "4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/\n";
  EXPECT_EQ(found(Controller::kMemory, own, kVersion1),
            (CgroupPlace{"/sys/fs/cgroup/memory", "/jobs/7", false}));
  EXPECT_EQ(found(Controller::kCpu, own, kVersion1),
            (CgroupPlace{"/sys/fs/cgroup/cpu,cpuacct", "/", false}));
}

TEST(Cgroup, Version2HasOnePlaceForAll) {
  const char* own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n";
  for (const Controller controller : {Controller::kMemory, Controller::kCpu})
    EXPECT_EQ(
        found(controller, own, kVersion2),
        (CgroupPlace{"/sys/fs/cgroup",
                     "/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope", true}));
}

TEST(Cgroup, AContainersMountBeginsInTheMiddle) {
  EXPECT_EQ(found(Controller::kMemory, "4:memory:/docker/7f/x\n",
                  "35 31 0:32 /docker/7f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"),
            (CgroupPlace{"/sys/fs/cgroup/memory", "/x", false}));
}

TEST(Cgroup, WhereThereIsNoneThatIsSaid) {
  EXPECT_FALSE(find_cgroup(Controller::kMemory, "0::/\n", "").ok());
  EXPECT_FALSE(find_cgroup(Controller::kMemory, "", kVersion2).ok());
  EXPECT_FALSE(find_cgroup(Controller::kCpu, "nonsense\n:\n", "nonsense - \n").ok());
}

}  // namespace
}  // namespace mete::launch
