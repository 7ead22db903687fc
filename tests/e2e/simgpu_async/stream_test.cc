// SPDX-License-Identifier: Apache-2.0
// Streams, events and capture of the simulated driver.
#include "run_probe.h"

namespace simgpu_async {
namespace {

Values probe(const char* scenario) { return SimulatedCards().run("simgpu_stream_probe", scenario); }

TEST(SimgpuStream, PrioritiesFlagsAndIdentity) {
  const Values v = probe("basics");
  EXPECT_VALUE(v, "least", 0);
  EXPECT_VALUE(v, "greatest", -5);
  EXPECT_VALUE(v, "clamped", -5);
  EXPECT_VALUE(v, "flags", 1);
  EXPECT_VALUE(v, "three_ids", 1);
  EXPECT_VALUE(v, "per_thread_is_ptsz_null", 1);
  EXPECT_VALUE(v, "same_context", 1);
  EXPECT_VALUE(v, "query", 0);
  EXPECT_VALUE(v, "destroy_null", 400);
  EXPECT_VALUE(v, "bad_flags", 1);
}

TEST(SimgpuStream, AKernelThatTakesTimeKeepsItsStreamBusy) {
  const Values v = probe("busy");
  EXPECT_VALUE(v, "unrecorded_query", 0);
  EXPECT_VALUE(v, "event_sync", 0);
  EXPECT_VALUE(v, "at_least_20_ms", 1);
  EXPECT_VALUE(v, "busy_stream", 600);
  EXPECT_VALUE(v, "busy_event", 600);
  EXPECT_VALUE(v, "idle_stream", 0);
  EXPECT_VALUE(v, "elapsed_not_ready", 600);
  EXPECT_VALUE(v, "waits", 600);
  EXPECT_VALUE(v, "no_timing", 400);
}

TEST(SimgpuStream, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const Values v = probe("default_streams");
  EXPECT_VALUE(v, "free_stream", 0);
  EXPECT_VALUE(v, "legacy", 600);
  EXPECT_VALUE(v, "legacy_by_name", 600);
  EXPECT_VALUE(v, "free_stream_still", 0);
  EXPECT_VALUE(v, "later", 600);
}

TEST(SimgpuStream, EachThreadHasItsOwnDefaultStream) {
  const Values v = probe("per_thread_default");
  EXPECT_VALUE(v, "per_thread", 600);
  EXPECT_VALUE(v, "other_thread", 0);
}

TEST(SimgpuStream, HostFunctionsRunInOrderOnAnotherThread) {
  const Values v = probe("host_functions");
  EXPECT_VALUE(v, "order", 123);
  EXPECT_VALUE(v, "own_thread", 1);
}

TEST(SimgpuStream, ASynchronousCopyWaitsForItsDefaultStreamAlone) {
  const Values v = probe("synchronous_copies");
  EXPECT_VALUE(v, "after_blocking_stream", 1);
  EXPECT_VALUE(v, "apart", 600);
  EXPECT_VALUE(v, "blocking", 600);
  EXPECT_VALUE(v, "byte", 1);
}

TEST(SimgpuStream, ACopyReadsWhatTheHostFunctionBeforeItWrote) {
  const Values v = probe("host_function_before_copy");
  EXPECT_VALUE(v, "byte", 0x61);
}

TEST(SimgpuStream, WaitsForAWordThatAnotherStreamWrites) {
  const Values v = probe("value_waits");
  EXPECT_VALUE(v, "waits", 600);
  EXPECT_VALUE(v, "not_yet", 0);
  EXPECT_VALUE(v, "word", 9);
  EXPECT_VALUE(v, "behind", 0x11111111);
}

TEST(SimgpuStream, GreenContextsHaveAShareAndStreams) {
  const Values v = probe("green_context");
  EXPECT_VALUE(v, "sms", 132);
  EXPECT_VALUE(v, "half", 72);  // 66 in steps of 8
  EXPECT_VALUE(v, "rest", 60);
  EXPECT_VALUE(v, "sync", 0);
}

TEST(SimgpuCapture, CuMemAllocIsForbiddenInAGlobalCapture) {
  const Values v = probe("capture_alloc");
  EXPECT_VALUE(v, "alloc_global", 900);
  EXPECT_VALUE(v, "end", 901);
}

TEST(SimgpuCapture, ForbidsWhatTheDriverForbids) {
  const Values v = probe("capture_forbids");
  EXPECT_VALUE(v, "load_global", 900);
  EXPECT_VALUE(v, "status", 2);
  EXPECT_VALUE(v, "end", 901);
  EXPECT_VALUE(v, "graph_null", 1);
  EXPECT_VALUE(v, "status_after", 0);
  EXPECT_VALUE(v, "alloc_relaxed", 0);
  EXPECT_VALUE(v, "old_mode", 0);
  EXPECT_VALUE(v, "alloc_exchanged", 0);
  EXPECT_VALUE(v, "sync_captured", 900);
  EXPECT_VALUE(v, "status_after_sync", 2);
  EXPECT_VALUE(v, "end_after_sync", 901);
  EXPECT_VALUE(v, "begin_twice", 401);
  EXPECT_VALUE(v, "end_without_begin", 401);
  EXPECT_VALUE(v, "capture_legacy", 900);
  EXPECT_VALUE(v, "legacy_launch", 906);
  EXPECT_VALUE(v, "end_after_legacy", 901);
}

TEST(SimgpuCapture, ForksAndJoinsByEvents) {
  const Values v = probe("capture_fork");
  EXPECT_VALUE(v, "captured_event_query", 907);
  EXPECT_VALUE(v, "side_captures", 1);
  EXPECT_VALUE(v, "info_status", 1);
  EXPECT_VALUE(v, "info_id", 1);
  EXPECT_VALUE(v, "info_dependencies", 1);
  EXPECT_VALUE(v, "same_graph", 1);
  EXPECT_VALUE(v, "nodes", 4);
  EXPECT_VALUE(v, "edges", 4);
  EXPECT_VALUE(v, "side_after", 0);
  EXPECT_VALUE(v, "unjoined", 904);
}

}  // namespace
}  // namespace simgpu_async
