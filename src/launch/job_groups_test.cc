// SPDX-License-Identifier: Apache-2.0
// With real control groups where this machine lets us make some, and skipped where not.
#include "launch/job_groups.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/fd.h"
#include "base/file.h"

namespace mete::launch {
namespace {

// A child in the group that has forked another; both sleep. Returns its pid once both are there.
pid_t two_inside(int door) {
  Result<base::Pipe> pipe = base::make_pipe();
  const pid_t child = fork();
  if (child == 0) {
    if (write(door, "0", 1) != 1) _exit(1);
    (void)signal(SIGTERM, SIG_IGN);
    (void)!fork();
    (void)!write(pipe->write.get(), "x", 1);
    for (;;) pause();
  }
  std::array<char, 2> there{};
  for (std::size_t got = 0; got < 2;) {
    const ssize_t more = read(pipe->read.get(), there.data(), 2 - got);
    if (more <= 0) return -1;
    got += static_cast<std::size_t>(more);
  }
  return child;
}

void expect_all_killed(const Cgroup& group, pid_t child) {
  group.kill_all();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  for (int i = 0; i < 1000 && !group.members().empty(); ++i) {
    group.kill_all();
    (void)usleep(1000);
  }
  EXPECT_TRUE(group.members().empty());
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST(JobGroups, WithoutAWishThereAreNone) {
  const JobGroups none = JobGroups::make({"1", {}, {}, false});
  EXPECT_TRUE(none.groups().empty());
  EXPECT_TRUE(none.refused().empty());
  EXPECT_EQ(none.container(), nullptr);
}

TEST(JobGroups, TheContainerHoldsAndEndsWhatIsForkedInIt) {
  std::string folder;
  {
    const JobGroups groups = JobGroups::make({"1.1", {}, {}, true});
    if (groups.container() == nullptr) GTEST_SKIP() << "no control group can be made here";
    folder = groups.container()->folder();
    EXPECT_TRUE(folder.ends_with("/" + Cgroup::name_of("1.1", getpid())));
    const pid_t child = two_inside(groups.container()->door());
    ASSERT_GT(child, 0);
    EXPECT_EQ(groups.container()->members().size(), 2u);
    expect_all_killed(*groups.container(), child);
    EXPECT_TRUE(exists(folder));
  }
  EXPECT_FALSE(exists(folder)) << "it goes with its maker";
}

// Its pid means nothing to a mete in another PID namespace, such as that of a container: a new
// group, still empty, looked like one of a killed run there.
TEST(JobGroups, ANewGroupIsLeftAloneByAnotherPidNamespace) {
  const JobGroups groups = JobGroups::make({"1.1", {}, {}, true});
  if (groups.container() == nullptr) GTEST_SKIP() << "no control group can be made here";
  const std::string& folder = groups.container()->folder();
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(2);
    const pid_t inside = fork();
    if (inside == 0) {
      const std::string above = folder.substr(0, folder.rfind('/'));
      bool made = false;
      { made = Cgroup::make(above, "2.1", {}).ok(); }
      _exit(made ? 0 : 1);
    }
    int status = 0;
    (void)waitpid(inside, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no PID namespace can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(exists(folder));
}

TEST(JobGroups, AGroupThatAnEarlierProcessWithThisPidHasLeftIsReplaced) {
  const JobGroups groups = JobGroups::make({"1.1", {}, {}, true});
  if (groups.container() == nullptr) GTEST_SKIP() << "no control group can be made here";
  const std::string above =
      groups.container()->folder().substr(0, groups.container()->folder().rfind('/'));
  const std::string left = above + "/" + Cgroup::name_of("2.1", getpid());
  ASSERT_EQ(mkdir(left.c_str(), 0755), 0);
  const Result<Cgroup> group = Cgroup::make(above, "2.1", {});
  ASSERT_TRUE(group.ok()) << group.error().message;
  EXPECT_FALSE(Cgroup::make(above, "2.1", {}).ok()) << "this one has an owner";
  EXPECT_TRUE(exists(left));
}

TEST(JobGroups, AGroupOfAKilledRunIsRemovedByTheNext) {
  const JobGroups groups = JobGroups::make({"1.1", {}, {}, true});
  if (groups.container() == nullptr) GTEST_SKIP() << "no control group can be made here";
  const std::string above =
      groups.container()->folder().substr(0, groups.container()->folder().rfind('/'));
  const pid_t child = fork();
  if (child == 0) {
    const Result<Cgroup> group = Cgroup::make(above, "2.1", {});
    (void)kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const std::string left = above + "/" + Cgroup::name_of("2.1", child);
  EXPECT_TRUE(exists(left));
  { EXPECT_TRUE(Cgroup::make(above, "3.1", {}).ok()); }
  EXPECT_FALSE(exists(left));
}

// Whatever this machine has: also a freezer of version 1 beside version 2.
TEST(JobGroups, AFreezerOfVersion1EndsThemToo) {
  const Result<std::string> own = base::read_all("/proc/self/cgroup");
  const Result<std::string> mounts = base::read_all("/proc/self/mountinfo");
  ASSERT_TRUE(own.ok() && mounts.ok());
  const Result<CgroupPlace> place = find_cgroup(Controller::kFreezer, *own, *mounts);
  if (!place || place->unified) GTEST_SKIP() << "no freezer here";
  const Result<Cgroup> group = Cgroup::make(place->folder(), "1.1", {});
  if (!group) GTEST_SKIP() << group.error().message;
  const pid_t child = two_inside(group->door());
  ASSERT_GT(child, 0);
  expect_all_killed(*group, child);
}

TEST(JobGroups, AGroupThatIsFoundIsNotRemovedByAccident) {
  const JobGroups groups = JobGroups::make({"1.1", {}, {}, true});
  if (groups.container() == nullptr) GTEST_SKIP() << "no control group can be made here";
  const std::string& folder = groups.container()->folder();
  { EXPECT_TRUE(Cgroup::find(folder).ok()); }
  EXPECT_TRUE(exists(folder));
  EXPECT_TRUE(Cgroup::find(folder)->remove());
  EXPECT_FALSE(exists(folder));
  EXPECT_FALSE(Cgroup::find(folder).ok());
  EXPECT_FALSE(Cgroup::find("/tmp").ok()) << "no control group";
}

TEST(JobGroups, LimitsAreMadeOrRefusedEachByItsName) {
  const JobGroups groups = JobGroups::make({"1.1", Bytes::from_mib(512), 2, true});
  EXPECT_LE(groups.refused().size(), 2u);
  for (const JobGroups::Refused& refused : groups.refused()) {
    EXPECT_TRUE(refused.option == "--ram" || refused.option == "--cpus");
    EXPECT_FALSE(refused.why.empty());
  }
  EXPECT_EQ(groups.doors().size(), groups.folders().size());
  EXPECT_EQ(groups.out_of_memory(), 0u);
}

}  // namespace
}  // namespace mete::launch
