// SPDX-License-Identifier: Apache-2.0
#include "cli/job_ref.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace mete::cli {
namespace {

using core::JobId;
using Ids = std::vector<JobId>;

TEST(JobRef, IsReadAsItIsWritten) {
  EXPECT_EQ(*parse_job_ref("12"), (JobRef{12, 0, {}}));
  EXPECT_EQ(*parse_job_ref("12_3"), (JobRef{12, 0, {3}}));
  EXPECT_EQ(*parse_job_ref("12_[1-3,7]"), (JobRef{12, 0, {1, 2, 3, 7}}));
  EXPECT_EQ(*parse_job_ref("@"), (JobRef{0, 0, {}}));
  EXPECT_EQ(*parse_job_ref("@~2"), (JobRef{0, 2, {}}));
  EXPECT_EQ(*parse_job_ref("@~1_[0]"), (JobRef{0, 1, {0}}));
  for (const char* text : {"12", "12_3", "12_[1,2,3]", "@", "@~2", "@_0"})
    EXPECT_EQ(to_string(*parse_job_ref(text)), text);
}

TEST(JobRef, IsRefusedWhenItNamesNoJob) {
  for (const char* text :
       {"",         "0",  "x",     "12_",   "12_x", "12_[]", "12_[1-]", "12_[1%2]",
        "12_1-3",   "@~", "@~100", "@1",    "~1",   "-1",    "12 ",     "12_[0-999999]",
        "12_[1,1]", "01", "007_1", "12_03", "@~01x"})
    EXPECT_FALSE(parse_job_ref(text)) << text;
}

class LastJobs : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "mete-last-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    setenv("METE_STATE_DIR", folder.c_str(), 1);
    unsetenv("METE_SIM");
  }
  void TearDown() override {
    unsetenv("METE_STATE_DIR");
    std::filesystem::remove_all(folder_);
  }
  static Result<Ids> at(const char* socket, const char* ref) { return resolve_jobs({ref}, socket); }
  std::string folder_;
};

TEST_F(LastJobs, AreThoseOfTheSameDaemon) {
  EXPECT_EQ(at("/run/a", "@").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(remember_job(7, "/run/a"));
  ASSERT_TRUE(remember_job(1, "/run/b"));
  ASSERT_TRUE(remember_job(9, "/run/a"));
  EXPECT_EQ(*at("/run/a", "@"), Ids{{9}});
  EXPECT_EQ(*at("/run/a", "@~1"), Ids{{7}});
  EXPECT_EQ(*at("/run/a", "@~1_[2-3]"), (Ids{{7, 2}, {7, 3}}));
  EXPECT_EQ(*at("/run/b", "@"), Ids{{1}});
  EXPECT_EQ(at("/run/b", "@~1").error().message,
            "you have submitted no more than 1 job that @ knows of");
  EXPECT_EQ(at("/run", "@").error().code, ErrorCode::kNotFound);
}

TEST_F(LastJobs, AreNamedOnceEach) {
  ASSERT_TRUE(remember_job(7, "/run/a"));
  EXPECT_EQ(*resolve_jobs({"7", "@", "7_1"}, "/run/a"), (Ids{{7}, {7, 1}}));
}

TEST_F(LastJobs, AreKeptInABoundedFile) {
  const std::string socket = "/run/" + std::string(90, 's');
  for (std::uint64_t i = 1; i <= 1000; ++i) ASSERT_TRUE(remember_job(i, socket));
  EXPECT_LT(std::filesystem::file_size(folder_ + "/last-jobs"), 34u << 10);
  EXPECT_EQ(*at(socket.c_str(), "@"), Ids{{1000}});
  EXPECT_EQ(*at(socket.c_str(), "@~99"), Ids{{901}});
}

TEST_F(LastJobs, SurviveAFileThatSomebodyElseWrote) {
  ASSERT_TRUE(base::write_atomic(folder_ + "/last-jobs", "x\n5 /run/a\n\n y /run/a\n-1 /run/a\n"));
  EXPECT_EQ(*at("/run/a", "@"), Ids{{5}});
  EXPECT_FALSE(at("/run/a", "@~1"));
}

}  // namespace
}  // namespace mete::cli
