// SPDX-License-Identifier: Apache-2.0
// Stream-ordered pools of the simulated driver, in bytes, as measured on an H200. Each test runs
// one scenario of pool_probe.cc and compares its values: what a pool reserves at each step, what a
// trim or a synchronisation gives back, and what an importer keeps.
#include "run_probe.h"

namespace simgpu_async {
namespace {

Values probe(const char* scenario, const char* machine = "1xH200") {
  return SimulatedCards().run("simgpu_pool_probe", scenario, machine);
}

TEST(SimgpuPool, GrowsInStepsOf32MiB) {
  const Values v = probe("steps");
  const std::map<long long, long long> steps = {
      {12, 32}, {kMiB, 32}, {16 * kMiB, 32}, {33 * kMiB, 64}, {100 * kMiB, 128}};
  for (const auto& [request, mib] : steps) {
    EXPECT_VALUE(v, "reserved_" + std::to_string(request), mib * kMiB);
    EXPECT_VALUE(v, "physical_" + std::to_string(request), mib * kMiB);
    EXPECT_VALUE(v, "left_" + std::to_string(request), 0);
  }
}

TEST(SimgpuPool, ReusesInsideAStepAndKeepsUpToTheThreshold) {
  const Values v = probe("reuse");
  EXPECT_VALUE(v, "reserved_1", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_2", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_3", 64 * kMiB);
  EXPECT_VALUE(v, "distinct", 1);
  EXPECT_VALUE(v, "reserved_after_reuse", 64 * kMiB);
  EXPECT_VALUE(v, "used_after_free", 0);
  EXPECT_VALUE(v, "reserved_after_sync", 64 * kMiB);
  EXPECT_VALUE(v, "reserved_after_trim_40", 64 * kMiB);
  EXPECT_VALUE(v, "reserved_after_trim", 0);
  EXPECT_VALUE(v, "physical_after_trim", 0);
}

TEST(SimgpuPool, ReservedFallsAtASynchroniseNotAtTheFree) {
  const Values v = probe("threshold_zero");
  EXPECT_VALUE(v, "after_free", 32 * kMiB);
  EXPECT_VALUE(v, "after_stream_sync", 0);
  EXPECT_VALUE(v, "after_event_sync", 0);
  EXPECT_VALUE(v, "after_context_sync", 0);
}

TEST(SimgpuPool, FreesThatNobodySawCountAsOutstandingForTrim) {
  const Values v = probe("unobserved");
  EXPECT_VALUE(v, "query_busy", 600);
  EXPECT_VALUE(v, "after_trim_busy", 32 * kMiB);
  EXPECT_VALUE(v, "after_sync", 32 * kMiB);
  EXPECT_VALUE(v, "after_trim", 0);
}

TEST(SimgpuPool, HighMarksStayUntilReset) {
  const Values v = probe("high_marks");
  EXPECT_VALUE(v, "reserved_high", 64 * kMiB);
  EXPECT_VALUE(v, "used_high", 64 * kMiB);
  EXPECT_VALUE(v, "set_five", 1);
  EXPECT_VALUE(v, "set_current", 1);
  EXPECT_VALUE(v, "reserved_high_reset", 0);
  EXPECT_VALUE(v, "used_high_reset", 0);
}

TEST(SimgpuPool, EitherFreeTakesEitherPointer) {
  const Values v = probe("other_frees");
  EXPECT_VALUE(v, "mem_free", 0);
  EXPECT_VALUE(v, "used_after_mem_free", 0);
  EXPECT_VALUE(v, "free_twice", 1);
  EXPECT_VALUE(v, "free_nothing", 0);
  EXPECT_VALUE(v, "async_free_of_plain", 0);
  EXPECT_VALUE(v, "plain_came_back", 6 * kMiB);
  EXPECT_VALUE(v, "zero_bytes", 0);
}

TEST(SimgpuPool, MaxSizeIsKept) {
  const Values v = probe("limits");
  EXPECT_VALUE(v, "first", 0);
  EXPECT_VALUE(v, "second", 2);
  EXPECT_VALUE(v, "small", 0);
  EXPECT_VALUE(v, "no_such_card", 1);
}

TEST(SimgpuPool, PerThreadEntryPointsShareTheCardsPool) {
  const Values v = probe("per_thread");
  EXPECT_VALUE(v, "distinct_entry_points", 1);
  EXPECT_VALUE(v, "reserved", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_after", 0);
}

TEST(SimgpuPool, TheCurrentPoolServesPlainAsyncRequests) {
  const Values v = probe("current_pool");
  EXPECT_VALUE(v, "default_is_current", 1);
  EXPECT_VALUE(v, "reserved_mine", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_standard", 0);
  EXPECT_VALUE(v, "pointer_names_pool", 1);
  EXPECT_VALUE(v, "back_to_default", 1);
  EXPECT_VALUE(v, "destroy_default", 1);
}

TEST(SimgpuPool, DestroyingAPoolKeepsLiveMemoryUntilItIsFreed) {
  const Values v = probe("destroyed_with_live_memory");
  EXPECT_VALUE(v, "held_after_destroy", 32 * kMiB);
  EXPECT_VALUE(v, "held_after_free", 0);
}

TEST(SimgpuPool, MemoryHasContents) {
  const Values v = probe("contents");
  EXPECT_VALUE(v, "same", 1);
  EXPECT_VALUE(v, "byte_99", 1);
  EXPECT_VALUE(v, "byte_100", 0x5a);
  EXPECT_VALUE(v, "byte_149", 0x5a);
  EXPECT_VALUE(v, "byte_150", 1);
}

TEST(SimgpuPool, FillsTheCardToOneStepAndOutOfMemoryIsNotSticky) {
  const Values v = probe("fill", "1xT4");
  ASSERT_TRUE(v.count("free") && v.count("got"));
  EXPECT_GT(v.at("got"), v.at("free") - 32 * kMiB);
  EXPECT_LE(v.at("got"), v.at("free"));
  EXPECT_VALUE(v, "result", 2);
  EXPECT_VALUE(v, "again", 2);
  EXPECT_VALUE(v, "sync", 0);
}

TEST(SimgpuPool, BlocksLieAcrossSteps) {
  const Values v = probe("odd_sizes");
  EXPECT_VALUE(v, "reserved", 160 * kMiB);
  EXPECT_VALUE(v, "wrong", 0);
  EXPECT_VALUE(v, "reserved_one_left", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_none_left", 0);
}

TEST(SimgpuPool, RequestsShareStepsAndStepsGoBackOneByOne) {
  const Values v = probe("packing");
  EXPECT_VALUE(v, "used_12", 12);
  EXPECT_VALUE(v, "used_1012", 1012);
  EXPECT_VALUE(v, "reserved_16", 32 * kMiB);
  EXPECT_VALUE(v, "reserved_16_33", 64 * kMiB);
  EXPECT_VALUE(v, "reserved_16_33_100", 160 * kMiB);
  EXPECT_VALUE(v, "reserved_16_33_100_20", 192 * kMiB);
  EXPECT_VALUE(v, "reserved_without_100", 128 * kMiB);
  EXPECT_VALUE(v, "reserved_threshold_10", 0);
}

TEST(SimgpuPool, AHostPoolTakesNothingFromTheCard) {
  const Values v = probe("locations");
  EXPECT_VALUE(v, "card_pool_is_default", 1);
  EXPECT_VALUE(v, "host_pool_on_card", 0);
  EXPECT_VALUE(v, "host_pool_reserved", 64 * kMiB);
  EXPECT_VALUE(v, "managed_pool", 0);
  EXPECT_VALUE(v, "own_access", 3);
}

TEST(SimgpuPool, AnImporterKeepsTheMemoryOfADeadOwner) {
  const Values v = probe("owner_dies");
  EXPECT_VALUE(v, "import_costs", 0);
  EXPECT_VALUE(v, "alloc_from_imported", 1);
  EXPECT_VALUE(v, "byte_4095", 0x33);
  EXPECT_VALUE(v, "owner_context_back", 1);
  EXPECT_VALUE(v, "back_after_import_gone", 32 * kMiB);
}

}  // namespace
}  // namespace simgpu_async
