// SPDX-License-Identifier: Apache-2.0
// What the tests of `mete submit` share: a folder with files, surroundings that are always the
// same, and the plan that words come to.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/submit_plan.h"
#include "cli/submit_print.h"
#include "core/request/gpu.h"

namespace mete::cli {

using Texts = std::vector<std::string>;

inline constexpr WallTime kNow{1'763'208'000'000};  // 2025-11-15T12:00:00Z

class SubmitTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "mete-submit-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    around_ = {"/home/ann/50% off", {"HOME=/home/ann", "PATH=/bin"}, 027, kNow};
    setenv("TZ", "UTC", 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  Result<SubmitPlan> plan(const Texts& args) {
    const Result<Parsed> parsed = parse_options(submit_options(), args, Rest::kCommand);
    if (!parsed) return parsed.error();
    SubmitPlanner planner(*parsed, around_);
    Result<SubmitPlan> result = planner.plan();
    if (!result) exit_code_ = planner.exit_code(result.error());
    return result;
  }
  wire::SubmitRequest one(const Texts& args) {
    Result<SubmitPlan> result = plan(args);
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->jobs.size(), 1u);
    return result->jobs.front().job.request;
  }
  // The error's message, less the folder of the test.
  std::string refused(const Texts& args, int exit_code = 64) {
    Result<SubmitPlan> result = plan(args);
    EXPECT_FALSE(result);
    if (result) return "";
    EXPECT_EQ(exit_code_, exit_code) << result.error().message;
    EXPECT_FALSE(result.error().hint.empty()) << result.error().message;
    std::string message = result.error().message;
    for (std::size_t at; (at = message.find(folder_ + "/")) != std::string::npos;)
      message.erase(at, folder_.size() + 1);
    return message;
  }

  static Texts afters(const SubmitPlan& plan, std::size_t job = 0) {
    Texts texts;
    for (const AfterWord& word : plan.jobs[job].job.after) texts.push_back(to_string(word));
    return texts;
  }

  std::string folder_;
  Surroundings around_;
  int exit_code_ = 64;
};

}  // namespace mete::cli
