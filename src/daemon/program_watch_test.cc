// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace mete::daemon {
namespace {

class ProgramWatchTest : public ::testing::Test {
 protected:
  ProgramWatchTest() {
    char folder[] = "/tmp/mete-program-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/meted";
    put(path_);
    (void)link(path_.c_str(), (folder_ + "/running").c_str());  // a running program keeps its file
  }
  ~ProgramWatchTest() override {
    for (const char* name : {"/meted", "/running", "/new"}) (void)unlink((folder_ + name).c_str());
    (void)rmdir(folder_.c_str());
  }
  static void put(const std::string& path, mode_t mode = 0755) {
    ASSERT_TRUE(base::write_atomic(path, "program").ok());
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  // The number of looks until it says so; 0: it never does.
  static int looks(ProgramWatch& watch) {
    for (int i = 1; i <= 3 * ProgramWatch::kSettled; ++i)
      if (watch.replaced()) return i;
    return 0;
  }

  std::string folder_, path_;
};

TEST_F(ProgramWatchTest, SaysThatTheFileWasReplacedOnceItIsSettled) {
  ProgramWatch watch(path_);
  EXPECT_EQ(looks(watch), 0);
  put(path_);
  EXPECT_EQ(looks(watch), ProgramWatch::kSettled);
}

TEST_F(ProgramWatchTest, BeginsAgainWhenTheFileIsReplacedAgain) {
  ProgramWatch watch(path_);
  put(path_);
  for (int i = 1; i < ProgramWatch::kSettled; ++i) EXPECT_FALSE(watch.replaced());
  (void)link(path_.c_str(), (folder_ + "/new").c_str());  // keeps its number from being used again
  put(path_);
  EXPECT_EQ(looks(watch), ProgramWatch::kSettled);
}

TEST_F(ProgramWatchTest, AFileThatIsGoneOrNotExecutableIsNoNewProgram) {
  ProgramWatch watch(path_);
  ASSERT_EQ(unlink(path_.c_str()), 0);
  EXPECT_EQ(looks(watch), 0);
  put(path_, 0);
  EXPECT_EQ(looks(watch), 0);  // root, too, executes nothing without a bit for it
  put(path_);
  EXPECT_EQ(looks(watch), ProgramWatch::kSettled);
}

TEST_F(ProgramWatchTest, AProgramWithoutAPathIsNeverReplaced) {
  ProgramWatch watch("");
  EXPECT_EQ(looks(watch), 0);
}

}  // namespace
}  // namespace mete::daemon
