// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace mete::cli {
namespace {

class KernelFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-kernel-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static wire::KernelSpec spec(const std::string& name) {
    return {{"/usr/bin/mete"}, name, wire::KernelSpec::Mete{"8G", "10m", "/usr/bin/python3"}};
  }
  std::string folder_;
};

TEST(KernelName, IsWhatJupyterAccepts) {
  EXPECT_EQ(kernel_name("Python (8 GiB)"), "python-8-gib");
  EXPECT_EQ(kernel_name("  a__b.c -- D  "), "a__b.c-d");
  EXPECT_EQ(kernel_name("é"), "");
  EXPECT_EQ(kernel_name("../../etc"), "etc");
  EXPECT_EQ(kernel_name("..."), "");
}

TEST_F(KernelFiles, AreWrittenFoundAndRemoved) {
  const Result<std::string> path = write_kernel(folder_ + "/k", "a", spec("A"), false);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(*path, folder_ + "/k/a/kernel.json");
  const std::vector<KernelFile> found = find_kernels({folder_ + "/none", folder_ + "/k"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].spec, spec("A"));
  ASSERT_TRUE(remove_kernel(found[0]).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/k/a"));
}

TEST_F(KernelFiles, AnotherOfThatNameIsReplacedOnlyOnRequestAndOnlyIfItIsOurs) {
  ASSERT_TRUE(write_kernel(folder_, "a", spec("A"), false).ok());
  EXPECT_FALSE(write_kernel(folder_, "a", spec("B"), false).ok());
  ASSERT_TRUE(write_kernel(folder_, "a", spec("B"), true).ok());
  EXPECT_EQ(find_kernels({folder_})[0].spec.display_name, "B");
  ASSERT_TRUE(base::make_directories(folder_ + "/theirs").ok());
  const std::string theirs = folder_ + "/theirs/kernel.json";
  ASSERT_TRUE(base::write_atomic(theirs, R"({"argv":["python3"],"display_name":"P"})").ok());
  EXPECT_FALSE(write_kernel(folder_, "theirs", spec("B"), true).ok());
  EXPECT_EQ(find_kernels({folder_}).size(), 1u) << "theirs is not ours to list";
}

TEST_F(KernelFiles, WhatElseIsInTheFolderStays) {
  ASSERT_TRUE(write_kernel(folder_, "a", spec("A"), false).ok());
  ASSERT_TRUE(base::write_atomic(folder_ + "/a/logo.svg", "x").ok());
  ASSERT_TRUE(remove_kernel(find_kernels({folder_})[0]).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/a/logo.svg"));
}

}  // namespace
}  // namespace mete::cli
