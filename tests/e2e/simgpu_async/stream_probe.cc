// SPDX-License-Identifier: Apache-2.0
// Streams, events and capture: order, completion, what is forbidden during a capture. Host
// functions and spinning kernels make work pending on purpose; each scenario prints the order and
// the codes that it saw, and stream_test.cc compares them.
#include <pthread.h>
#include <time.h>

#include "probe.h"

extern "C" CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
extern "C" CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

namespace {
using probe::say;

const char kModule[] = "simgpu-module 1\nkernel spin\nkernel nothing local=16\n";

CUfunction function(const char* name) {
  static CUmodule module = nullptr;
  if (module == nullptr) OK(CU(cuModuleLoadData)(&module, kModule));
  CUfunction found = nullptr;
  OK(CU(cuModuleGetFunction)(&found, module, name));
  return found;
}

void spin(CUstream stream, unsigned long long microseconds) {
  void* arguments[] = {&microseconds};
  OK(CU(cuLaunchKernel)(function("spin"), 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
}

CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, flags));
  return stream;
}

constexpr unsigned long long kMinute = 60'000'000;

void basics() {
  probe::start();
  int least = -9;
  int greatest = 9;
  OK(CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
  say("least", least);
  say("greatest", greatest);
  CUstream stream = nullptr;
  OK(CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -100));
  int priority = 9;
  OK(CU(cuStreamGetPriority)(stream, &priority));
  say("clamped", priority);
  unsigned flags = 9;
  OK(CU(cuStreamGetFlags)(stream, &flags));
  say("flags", flags);
  unsigned long long ids[3] = {};
  OK(CU(cuStreamGetId)(stream, &ids[0]));
  OK(CU(cuStreamGetId)(nullptr, &ids[1]));
  OK(CU(cuStreamGetId_ptsz)(nullptr, &ids[2]));
  say("three_ids", ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
  unsigned long long id = 0;
  OK(CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &id));
  say("per_thread_is_ptsz_null", id == ids[2]);
  CUcontext context = nullptr;
  CUcontext current = nullptr;
  OK(CU(cuStreamGetCtx)(stream, &context));
  OK(CU(cuCtxGetCurrent)(&current));
  say("same_context", context == current);
  say("query", CU(cuStreamQuery)(stream));
  OK(CU(cuStreamDestroy_v2)(stream));
  say("destroy_null", CU(cuStreamDestroy_v2)(nullptr));
  say("bad_flags", CU(cuStreamCreate)(&stream, 77));
}

void busy() {
  probe::start();
  CUstream stream = make_stream();
  CUstream other = make_stream();
  CUevent begin = nullptr;
  CUevent end = nullptr;
  OK(CU(cuEventCreate)(&begin, CU_EVENT_DEFAULT));
  OK(CU(cuEventCreate)(&end, CU_EVENT_DEFAULT));
  say("unrecorded_query", CU(cuEventQuery)(begin));
  OK(CU(cuEventRecord)(begin, stream));
  spin(stream, 20'000);
  OK(CU(cuEventRecord)(end, stream));
  say("event_sync", CU(cuEventSynchronize)(end));
  float milliseconds = 0;
  OK(CU(cuEventElapsedTime_v2)(&milliseconds, begin, end));
  say("at_least_20_ms", milliseconds >= 20.0f);
  spin(stream, kMinute);
  OK(CU(cuEventRecord)(end, stream));
  say("busy_stream", CU(cuStreamQuery)(stream));
  say("busy_event", CU(cuEventQuery)(end));
  say("idle_stream", CU(cuStreamQuery)(other));
  say("elapsed_not_ready", CU(cuEventElapsedTime_v2)(&milliseconds, begin, end));
  OK(CU(cuStreamWaitEvent)(other, end, 0));
  say("waits", CU(cuStreamQuery)(other));
  CUevent silent = nullptr;
  OK(CU(cuEventCreate)(&silent, CU_EVENT_DISABLE_TIMING));
  say("no_timing", CU(cuEventElapsedTime_v2)(&milliseconds, begin, silent));
}

void default_streams() {
  probe::start();
  CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  CUstream free_stream = make_stream(CU_STREAM_NON_BLOCKING);
  spin(blocking, kMinute);
  say("free_stream", CU(cuStreamQuery)(free_stream));
  spin(nullptr, 1);  // the legacy stream waits for every blocking stream
  say("legacy", CU(cuStreamQuery)(nullptr));
  say("legacy_by_name", CU(cuStreamQuery)(CU_STREAM_LEGACY));
  say("free_stream_still", CU(cuStreamQuery)(free_stream));
  CUstream later = make_stream(CU_STREAM_DEFAULT);
  spin(later, 1);  // and a blocking stream waits for the legacy stream
  say("later", CU(cuStreamQuery)(later));
}

void per_thread_default() {
  probe::start();
  spin(CU_STREAM_PER_THREAD, kMinute);
  say("per_thread", CU(cuStreamQuery_ptsz)(nullptr));
  pthread_t thread;
  CUcontext context = nullptr;
  OK(CU(cuCtxGetCurrent)(&context));
  pthread_create(
      &thread, nullptr,
      [](void* current) -> void* {
        OK(CU(cuCtxSetCurrent)(static_cast<CUcontext>(current)));
        say("other_thread", CU(cuStreamQuery_ptsz)(nullptr));
        return nullptr;
      },
      context);
  pthread_join(thread, nullptr);
}

struct Order {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t thread = {};
  int digits = 0;
};
Order order;
void digit(void* number) {
  pthread_mutex_lock(&order.mutex);
  order.digits = order.digits * 10 + static_cast<int>(reinterpret_cast<intptr_t>(number));
  order.thread = pthread_self();
  pthread_mutex_unlock(&order.mutex);
}

void host_functions() {
  probe::start();
  CUstream stream = make_stream();
  OK(CU(cuLaunchHostFunc)(stream, digit, reinterpret_cast<void*>(1)));
  spin(stream, 2'000);
  OK(CU(cuLaunchHostFunc)(stream, digit, reinterpret_cast<void*>(2)));
  OK(CU(cuStreamAddCallback)(
      stream,
      [](CUstream, CUresult status, void*) {
        digit(reinterpret_cast<void*>(3 + static_cast<intptr_t>(status)));
      },
      nullptr, 0));
  OK(CU(cuStreamSynchronize)(stream));
  say("order", order.digits);
  say("own_thread", pthread_equal(order.thread, pthread_self()) == 0);
}

// A later copy in the same stream reads what a host function wrote.
void host_function_before_copy() {
  probe::start();
  CUstream stream = make_stream();
  CUdeviceptr memory = 0;
  OK(CU(cuMemAlloc_v2)(&memory, 8));
  static volatile unsigned char source[8];
  spin(stream, 3'000);
  OK(CU(cuLaunchHostFunc)(
      stream, [](void*) { source[0] = 0x61; }, nullptr));
  OK(CU(cuMemcpyHtoDAsync_v2)(memory, const_cast<unsigned char*>(source), 8, stream));
  OK(CU(cuStreamSynchronize)(stream));
  unsigned char back[8] = {};
  OK(CU(cuMemcpyDtoH_v2)(back, memory, 8));
  say("byte", back[0]);
}

// A copy without a stream waits for its default stream, and for no stream that the default stream
// does not wait for.
void synchronous_copies() {
  probe::start();
  CUstream apart = make_stream();
  CUstream blocking = make_stream(0);
  CUdeviceptr memory = 0;
  OK(CU(cuMemAlloc_v2)(&memory, 8));
  unsigned char byte = 0;
  static volatile int ran = 0;
  spin(blocking, 3'000);
  OK(CU(cuLaunchHostFunc)(
      blocking, [](void*) { ran = 1; }, nullptr));
  OK(CU(cuMemcpyDtoH_v2)(&byte, memory, 1));
  say("after_blocking_stream", ran);
  spin(apart, kMinute);
  OK(CU(cuMemcpyHtoD_v2)(memory, &byte, 1));
  OK(CU(cuMemsetD8_v2)(memory, 1, 8));
  OK(CU(cuMemcpyDtoD_v2)(memory + 4, memory, 1));
  say("apart", CU(cuStreamQuery)(apart));
  // The default stream of a thread waits for no other; the legacy one would wait for this one.
  spin(blocking, kMinute);
  OK(CU(cuMemcpyDtoH_v2_ptds)(&byte, memory + 4, 1));
  say("blocking", CU(cuStreamQuery)(blocking));
  say("byte", byte);
}

// A stream waits for a word that another stream writes; work behind the wait comes after it.
void value_waits() {
  probe::start();
  CUstream waiting = make_stream();
  CUstream writing = make_stream();
  CUdeviceptr memory = 0;
  OK(CU(cuMemAlloc_v2)(&memory, 8));
  OK(CU(cuMemsetD8_v2)(memory, 0, 8));
  OK(CU(cuStreamWaitValue32_v2)(waiting, memory, 7, 0));
  OK(CU(cuMemsetD8Async)(memory + 4, 0x11, 4, waiting));
  say("waits", CU(cuStreamQuery)(waiting));
  unsigned words[2] = {};
  OK(CU(cuMemcpyDtoHAsync_v2)(words, memory, 8, writing));
  OK(CU(cuStreamSynchronize)(writing));
  say("not_yet", words[1]);
  OK(CU(cuStreamWriteValue32_v2)(writing, memory, 9, 0));
  OK(CU(cuStreamSynchronize)(waiting));
  OK(CU(cuMemcpyDtoH_v2)(words, memory, 8));
  say("word", words[0]);
  say("behind", words[1]);
}

long long status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(CU(cuStreamIsCapturing)(stream, &status));
  return status;
}

void capture_forbids() {
  probe::start();
  CUstream stream = make_stream();
  CUdeviceptr pointer = 0;
  CUgraph graph = reinterpret_cast<CUgraph>(1);
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUmodule module = nullptr;
  say("load_global", CU(cuModuleLoadData)(&module, kModule));
  say("status", status_of(stream));
  say("end", CU(cuStreamEndCapture)(stream, &graph));
  say("graph_null", graph == nullptr);
  say("status_after", status_of(stream));
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  say("alloc_relaxed", CU(cuMemAlloc_v2)(&pointer, 1 << 20));
  OK(CU(cuMemFree_v2)(pointer));
  OK(CU(cuStreamEndCapture)(stream, &graph));
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  say("old_mode", mode);
  say("alloc_exchanged", CU(cuMemAlloc_v2)(&pointer, 1 << 20));
  OK(CU(cuMemFree_v2)(pointer));
  OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  say("sync_captured", CU(cuStreamSynchronize)(stream));
  say("status_after_sync", status_of(stream));
  say("end_after_sync", CU(cuStreamEndCapture)(stream, &graph));
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  say("begin_twice", CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuStreamEndCapture)(stream, &graph);
  say("end_without_begin", CU(cuStreamEndCapture)(stream, &graph));
  say("capture_legacy", CU(cuStreamBeginCapture_v2)(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  OK(CU(cuStreamBeginCapture_v2)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  void* arguments[] = {nullptr};
  say("legacy_launch",
      CU(cuLaunchKernel)(function("nothing"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  say("end_after_legacy", CU(cuStreamEndCapture)(blocking, &graph));
}

void green_context() {
  OK(CU(cuInit)(0));
  CUdevResource all = {};
  OK(CU(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  say("sms", all.sm.smCount);
  CUdevResource half = {};
  CUdevResource rest = {};
  unsigned groups = 1;
  OK(CU(cuDevSmResourceSplitByCount)(&half, &groups, &all, &rest, 0, all.sm.smCount / 2));
  say("half", half.sm.smCount);
  say("rest", rest.sm.smCount);
  CUdevResourceDesc description = nullptr;
  OK(CU(cuDevResourceGenerateDesc)(&description, &half, 1));
  CUgreenCtx green = nullptr;
  OK(CU(cuGreenCtxCreate)(&green, description, 0, 1));
  CUcontext context = nullptr;
  OK(CU(cuCtxFromGreenCtx)(&context, green));
  OK(CU(cuCtxSetCurrent)(context));
  CUstream stream = nullptr;
  OK(CU(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocAsync)(&pointer, 1000, stream));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  say("sync", CU(cuStreamSynchronize)(stream));
}

void capture_alloc() {
  probe::start();
  CUstream stream = make_stream();
  CUdeviceptr pointer = 0;
  CUgraph graph = nullptr;
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  say("alloc_global", CU(cuMemAlloc_v2)(&pointer, 1 << 20));
  say("end", CU(cuStreamEndCapture)(stream, &graph));
}

void capture_fork() {
  probe::start();
  CUfunction nothing = function("nothing");
  CUstream main_stream = make_stream();
  CUstream side = make_stream();
  CUevent fork_event = nullptr;
  CUevent join = nullptr;
  OK(CU(cuEventCreate)(&fork_event, CU_EVENT_DISABLE_TIMING));
  OK(CU(cuEventCreate)(&join, CU_EVENT_DISABLE_TIMING));
  const auto launch = [&](CUstream stream) {
    OK(CU(cuLaunchKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  };
  OK(CU(cuStreamBeginCapture_v2)(main_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch(main_stream);
  OK(CU(cuEventRecord)(fork_event, main_stream));
  say("captured_event_query", CU(cuEventQuery)(fork_event));
  CUgraph graph = nullptr;
  CU(cuStreamEndCapture)(main_stream, &graph);

  OK(CU(cuStreamBeginCapture_v2)(main_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch(main_stream);
  OK(CU(cuEventRecord)(fork_event, main_stream));
  OK(CU(cuStreamWaitEvent)(side, fork_event, 0));
  say("side_captures", status_of(side));
  launch(side);
  launch(main_stream);
  OK(CU(cuEventRecord)(join, side));
  OK(CU(cuStreamWaitEvent)(main_stream, join, 0));
  launch(main_stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph building = nullptr;
  const CUgraphNode* dependencies = nullptr;
  size_t count = 0;
  OK(CU(cuStreamGetCaptureInfo_v2)(main_stream, &status, &id, &building, &dependencies, &count));
  say("info_status", status);
  say("info_id", id != 0);
  say("info_dependencies", static_cast<long long>(count));
  OK(CU(cuStreamEndCapture)(main_stream, &graph));
  say("same_graph", building == graph);
  OK(CU(cuGraphGetNodes)(graph, nullptr, &count));
  say("nodes", static_cast<long long>(count));
  OK(CU(cuGraphGetEdges)(graph, nullptr, nullptr, &count));
  say("edges", static_cast<long long>(count));
  say("side_after", status_of(side));

  OK(CU(cuStreamBeginCapture_v2)(main_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(CU(cuEventRecord)(fork_event, main_stream));
  OK(CU(cuStreamWaitEvent)(side, fork_event, 0));
  launch(side);
  say("unjoined", CU(cuStreamEndCapture)(main_stream, &graph));
}

}  // namespace

int main(int argc, char** argv) {
  const probe::Scenario scenarios[] = {
      {"basics", basics},
      {"busy", busy},
      {"default_streams", default_streams},
      {"per_thread_default", per_thread_default},
      {"host_functions", host_functions},
      {"host_function_before_copy", host_function_before_copy},
      {"synchronous_copies", synchronous_copies},
      {"value_waits", value_waits},
      {"capture_forbids", capture_forbids},
      {"green_context", green_context},
      {"capture_alloc", capture_alloc},
      {"capture_fork", capture_fork},
  };
  return probe::main_of(argc, argv, scenarios);
}
