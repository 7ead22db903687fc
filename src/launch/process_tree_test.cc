// SPDX-License-Identifier: Apache-2.0
#include "launch/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "launch/job_scan.h"

namespace mete::launch {
namespace {

// A child with a child of its own; both live until they are released.
class Family {
 public:
  Family() {
    Result<base::Pipe> told = base::make_pipe();
    child_ = fork();
    if (child_ == 0) {
      const pid_t grandchild = fork();
      if (grandchild > 0) (void)!write(told->write.get(), &grandchild, sizeof grandchild);
      for (;;) pause();
    }
    (void)!read(told->read.get(), &grandchild_, sizeof grandchild_);
  }
  ~Family() {
    (void)kill(grandchild_, SIGKILL);
    (void)kill(child_, SIGKILL);
    (void)waitpid(child_, nullptr, 0);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  pid_t child_ = -1;
  pid_t grandchild_ = -1;
};

bool has(const std::vector<pid_t>& list, pid_t pid) {
  return std::find(list.begin(), list.end(), pid) != list.end();
}

TEST(ProcessTree, DescendantsAreFoundBothWays) {
  const Family family;
  for (const std::vector<pid_t>& list :
       {descendants(getpid(), {}), some_descendants(getpid(), 100)}) {
    EXPECT_TRUE(has(list, family.child_));
    EXPECT_TRUE(has(list, family.grandchild_));
    EXPECT_FALSE(has(list, getpid()));
    EXPECT_FALSE(has(list, getppid()));
  }
}

TEST(ProcessTree, OutsidersAndWhatTheyForkedAreLeftOut) {
  const Family family;
  EXPECT_FALSE(has(descendants(getpid(), {{family.child_}, ""}), family.grandchild_));
  EXPECT_TRUE(is_outsider(family.child_, {{family.child_}, ""}));
  EXPECT_FALSE(is_outsider(family.child_, {{}, "/bin/true"}));
}

// A failed look says nothing about what is there.
TEST(ProcessTree, WithoutADescriptorALookIsNotWhole) {
  const Family family;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  bool whole = true;
  EXPECT_FALSE(descendants(getpid(), {}, &whole).empty());
  EXPECT_TRUE(whole);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool none_seen = descendants(getpid(), {}, &whole).empty();
  const bool scanned = scan_job({{{12, {}}, getuid(), {2147483, 77}}, {}, {}},
                                {[](pid_t) {}, [](const core::ProcessRef&) {}});
  const bool lives = is_living({family.child_, 1});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(none_seen);
  EXPECT_FALSE(whole);
  EXPECT_FALSE(scanned);
  EXPECT_TRUE(lives) << "as far as can be said";
}

}  // namespace
}  // namespace mete::launch
