// SPDX-License-Identifier: Apache-2.0
// Modules and launches of the simulated driver: what the driver takes unasked, in bytes.
#include "run_probe.h"

namespace simgpu_async {
namespace {

Values probe(const char* scenario, const char* more_environment = "") {
  return SimulatedCards().run("simgpu_module_probe", scenario, "1xH200", more_environment);
}

TEST(SimgpuModule, AGlobalTakesItsBytesAtLoad) {
  const Values v = probe("globals");
  ASSERT_TRUE(v.count("loaded"));
  EXPECT_GE(v.at("loaded"), 512 * kMiB);
  EXPECT_LE(v.at("loaded"), 516 * kMiB);
  EXPECT_VALUE(v, "big_bytes", 512 * kMiB);
  EXPECT_VALUE(v, "last_byte", 0x11);
  EXPECT_VALUE(v, "small_bytes", 100);
  EXPECT_VALUE(v, "no_global", 500);
  EXPECT_VALUE(v, "no_function", 500);
  EXPECT_VALUE(v, "unloaded", 0);
  EXPECT_VALUE(v, "with_options", 512 * kMiB);
  EXPECT_VALUE(v, "no_file", 301);
  EXPECT_VALUE(v, "not_a_module", 200);
  EXPECT_VALUE(v, "too_big", 2);
}

TEST(SimgpuModule, ReadsPtx) {
  const Values v = probe("ptx");
  EXPECT_VALUE(v, "table_bytes", 8 * kMiB);
  EXPECT_VALUE(v, "counter_bytes", 8);
  EXPECT_VALUE(v, "functions", 2);
  EXPECT_VALUE(v, "second_local", 512);
  EXPECT_VALUE(v, "second_parameter_offset", 8);
  EXPECT_VALUE(v, "second_parameter_bytes", 4);
  EXPECT_VALUE(v, "third_parameter", 1);
  EXPECT_VALUE(v, "launch", 0);
}

TEST(SimgpuModule, LocalMemoryGrowsAtALaunchAndStays) {
  const Values v = probe("local_memory");
  EXPECT_VALUE(v, "plain", 0);
  EXPECT_VALUE(v, "sms", 132);
  // 132 SMs x 2048 threads x bytes: from the default 1 KiB stack to 4 KiB, then to 8 KiB.
  EXPECT_VALUE(v, "deep", 132LL * 2048 * (4096 - 1024));
  EXPECT_VALUE(v, "again", 0);
  EXPECT_VALUE(v, "deeper", 132LL * 2048 * (8192 - 4096));
  EXPECT_VALUE(v, "kept_after_unload", 1);
}

TEST(SimgpuModule, TheHeapIsTakenAtTheFirstLaunch) {
  const Values v = probe("heap");
  EXPECT_VALUE(v, "before_launch", 0);
  EXPECT_VALUE(v, "heap_taken", 1);
  EXPECT_VALUE(v, "again", 0);
}

TEST(SimgpuModule, CodeIsLoadedLazily) {
  const Values v = probe("lazy");
  EXPECT_VALUE(v, "first_at_least_its_code", 1);
  EXPECT_VALUE(v, "one_again", 0);
  EXPECT_VALUE(v, "two", 4 * kMiB);
}

TEST(SimgpuModule, CodeIsLoadedAtOnceWhenAskedFor) {
  const Values v = probe("eager", "CUDA_MODULE_LOADING=EAGER");
  EXPECT_VALUE(v, "at_load", 1);
  EXPECT_VALUE(v, "mode", 1);
  EXPECT_VALUE(v, "back", 0);
}

TEST(SimgpuModule, LibrariesAndEveryWayToLaunch) {
  const Values v = probe("libraries");
  EXPECT_VALUE(v, "g_bytes", 4 * kMiB);
  EXPECT_VALUE(v, "by_function", 1);
  EXPECT_VALUE(v, "by_kernel", 1);
  EXPECT_VALUE(v, "by_ex", 1);
  EXPECT_VALUE(v, "by_extra", 1);
  EXPECT_VALUE(v, "blocks", 8);
  EXPECT_VALUE(v, "too_many_threads", 1);
  EXPECT_VALUE(v, "no_blocks", 1);
}

TEST(SimgpuModule, LinkedTextsAreOneModule) {
  const Values v = probe("linked");
  EXPECT_VALUE(v, "functions", 2);
  EXPECT_VALUE(v, "launch", 0);
}

TEST(SimgpuModule, AFaultIsSticky) {
  const Values v = probe("fault");
  EXPECT_VALUE(v, "fault", 700);
  EXPECT_VALUE(v, "after", 700);
}

}  // namespace
}  // namespace simgpu_async
