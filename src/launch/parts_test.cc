// SPDX-License-Identifier: Apache-2.0
#include "launch/parts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace mete::launch {
namespace {

class PartsTest : public testing::Test {
 protected:
  PartsTest() {
    std::string name = testing::TempDir() + "mete-parts-XXXXXX";
    root_ = mkdtemp(name.data());
    touch("bin/mete");
  }
  ~PartsTest() override { std::filesystem::remove_all(root_); }

  void touch(const std::string& path) {
    const std::string whole = base::join_path(root_, path);
    ASSERT_TRUE(base::make_directories(base::parent_path(whole)));
    ASSERT_TRUE(base::write_atomic(whole, ""));
  }
  void touch_meter(const std::string& folder) {
    for (const char* name :
         {"libmete.so", "libmete-cuda.so", "libmete-nvml.so", "libmete-nvml-1.so"})
      touch(base::join_path(folder, name));
  }
  Result<Parts> find() const { return find_parts_from(base::join_path(root_, "bin")); }

  std::string root_;
};

TEST_F(PartsTest, AreFoundInABuildTree) {
  touch_meter("lib");
  touch("lib/libmete-z.so");
  touch("lib/libother.so");
  touch("simgpu/libcuda.so.1");
  const Result<Parts> parts = find();
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->preload.size(), 5u);
  EXPECT_EQ(parts->preload.front(), root_ + "/lib/libmete.so");
  EXPECT_EQ(parts->preload.back(), root_ + "/lib/libmete-z.so");
  EXPECT_EQ(parts->simgpu, root_ + "/simgpu");
}

TEST_F(PartsTest, AreFoundWhenInstalled) {
  touch_meter("lib/mete/1");
  touch("lib/mete/simgpu/libcuda.so.1");
  const Result<Parts> parts = find();
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->preload.front(), root_ + "/lib/mete/1/libmete.so");
  EXPECT_EQ(parts->simgpu, root_ + "/lib/mete/simgpu");
}

TEST_F(PartsTest, MissingMeterIsAnErrorMissingSimulationIsNot) {
  EXPECT_EQ(find().error().code, ErrorCode::kIo);
  touch_meter("lib");
  EXPECT_EQ(find()->simgpu, "");
}

TEST_F(PartsTest, AMissingCompanionIsAnErrorToo) {
  touch_meter("lib");
  ASSERT_TRUE(base::remove_file(root_ + "/lib/libmete-nvml.so"));
  EXPECT_EQ(find().error().code, ErrorCode::kIo);
}

TEST_F(PartsTest, APathThatCannotBePreloadedIsRefused) {
  touch("with space/bin/mete");
  touch("with space/lib/libmete.so");
  const Result<Parts> parts = find_parts_from(root_ + "/with space/bin");
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace mete::launch
