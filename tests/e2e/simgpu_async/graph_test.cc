// SPDX-License-Identifier: Apache-2.0
// Graphs of the simulated driver: physical memory comes at upload or launch, in steps, and stays
// until it is trimmed.
#include "run_probe.h"

namespace simgpu_async {
namespace {

Values probe(const char* scenario, const char* machine = "1xH200") {
  return SimulatedCards().run("simgpu_graph_probe", scenario, machine);
}

TEST(SimgpuGraph, MemoryComesAtLaunchAndStaysUntilTrimmed) {
  const Values v = probe("memory_life");
  EXPECT_VALUE(v, "address_at_add", 1);
  EXPECT_VALUE(v, "reserved_instantiated", 0);
  EXPECT_VALUE(v, "reserved_launched", 32 * kMiB);
  EXPECT_VALUE(v, "physical_launched", 32 * kMiB);
  EXPECT_VALUE(v, "used_launched", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_again", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_destroyed", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_trimmed", 0);
  EXPECT_VALUE(v, "physical_trimmed", 0);
  EXPECT_VALUE(v, "reserved_high", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_high_reset", 0);
}

TEST(SimgpuGraph, GrowsInStepsOf32MiB) {
  const Values v = probe("sizes");
  EXPECT_VALUE(v, "reserved_1", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_33", 64 * kMiB);
  EXPECT_VALUE(v, "reserved_100", 128 * kMiB);
}

TEST(SimgpuGraph, UploadTakesTheMemoryOfTheFirstLaunch) {
  const Values v = probe("upload");
  EXPECT_VALUE(v, "before", 0);
  EXPECT_VALUE(v, "uploaded", 64 * kMiB);
  EXPECT_VALUE(v, "launched", 64 * kMiB);
  EXPECT_VALUE(v, "instantiated_with_upload", 32 * kMiB);
  EXPECT_VALUE(v, "result", 0);
}

TEST(SimgpuGraph, GraphsThatFreeTheirMemoryShareIt) {
  const Values v = probe("shared_between_graphs");
  EXPECT_VALUE(v, "reserved", 32 * kMiB);
}

TEST(SimgpuGraph, MemoryThatOutlivesItsGraphIsUsedUntilFreed) {
  const Values v = probe("outlives_graph");
  EXPECT_VALUE(v, "second_instance", 1);
  EXPECT_VALUE(v, "used", 32 * kMiB);
  EXPECT_VALUE(v, "launch_unfreed", 1);
  EXPECT_VALUE(v, "trim_keeps_live", 32 * kMiB);
  EXPECT_VALUE(v, "last_byte", 0x21);
  EXPECT_VALUE(v, "launch_freed", 0);
  EXPECT_VALUE(v, "plain_free", 0);
  EXPECT_VALUE(v, "used_after", 32 * kMiB);
  EXPECT_VALUE(v, "auto_free_reserved", 32 * kMiB);
  EXPECT_VALUE(v, "auto_free_used", 32 * kMiB);
}

TEST(SimgpuGraph, NodesAddedByTheGenericCall) {
  const Values v = probe("generic_nodes");
  EXPECT_VALUE(v, "address_at_add", 1);
  EXPECT_VALUE(v, "copied", 0x42);
  EXPECT_VALUE(v, "reserved", 64 * kMiB);
  EXPECT_VALUE(v, "nodes", 4);
  EXPECT_VALUE(v, "edges", 3);
  EXPECT_VALUE(v, "roots", 1);
}

TEST(SimgpuGraph, KernelAndHostNodesRunInOrder) {
  const Values v = probe("work_nodes");
  EXPECT_VALUE(v, "sum_times_10", 30);
  EXPECT_VALUE(v, "host_calls", 2);
  EXPECT_VALUE(v, "kernel_type", 0);
  EXPECT_VALUE(v, "disabled_sum", 0);
  EXPECT_VALUE(v, "clone_sum_times_10", 30);
}

TEST(SimgpuGraph, ACapturedAsyncAllocationIsGraphMemory) {
  const Values v = probe("captured_memory");
  EXPECT_VALUE(v, "address_at_capture", 1);
  EXPECT_VALUE(v, "byte_before", 0);
  EXPECT_VALUE(v, "nodes", 4);
  EXPECT_VALUE(v, "alloc_nodes", 1);
  EXPECT_VALUE(v, "pool_reserved", 0);
  EXPECT_VALUE(v, "physical_instantiated", 0);
  EXPECT_VALUE(v, "byte_after", 0x77);
  EXPECT_VALUE(v, "reserved", 32 * kMiB);
  EXPECT_VALUE(v, "physical", 32 * kMiB);
}

TEST(SimgpuGraph, NodesShareSteps) {
  const Values v = probe("packing");
  EXPECT_VALUE(v, "reserved_3_x_20", 64 * kMiB);
  EXPECT_VALUE(v, "used", 64 * kMiB);
}

TEST(SimgpuGraph, ALaunchThatDoesNotFitKeepsWhatItGotUntilTrimmed) {
  const Values v = probe("out_of_memory", "1xT4");
  EXPECT_VALUE(v, "launch", 2);
  ASSERT_TRUE(v.count("reserved") && v.count("free"));
  EXPECT_GT(v.at("reserved"), v.at("free") - 32 * kMiB);
  EXPECT_VALUE(v, "small_launch", 2);
  EXPECT_VALUE(v, "reserved_trimmed", 0);
  EXPECT_VALUE(v, "small_launch_again", 0);
}

}  // namespace
}  // namespace simgpu_async
