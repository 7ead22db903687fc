// SPDX-License-Identifier: Apache-2.0
// The asynchronous half of the simulated driver under threads, and at a context's end.
#include "run_probe.h"

namespace simgpu_async {
namespace {

TEST(SimgpuStress, ThreadsNeverShareABlockAndAllComesBack) {
  for (const char* environment : {"", "METE_SIM_DELAY_US=200,7"}) {
    const Values v = SimulatedCards().run("simgpu_stress_probe", "threads", "1xH200", environment);
    EXPECT_VALUE(v, "wrong", 0);
    EXPECT_VALUE(v, "used", 0);
    EXPECT_VALUE(v, "reserved", 0);
    EXPECT_VALUE(v, "physical", 0);
    EXPECT_VALUE(v, "host_calls", 1);
  }
}

TEST(SimgpuStress, AContextTakesEverythingWithIt) {
  const Values v = SimulatedCards().run("simgpu_stress_probe", "context_ends");
  EXPECT_VALUE(v, "took", 1);
  EXPECT_VALUE(v, "left", 0);
  EXPECT_VALUE(v, "host_calls", 1);
  EXPECT_VALUE(v, "again", 128 * kMiB);
}

}  // namespace
}  // namespace simgpu_async
