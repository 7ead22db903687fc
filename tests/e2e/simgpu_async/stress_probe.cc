// SPDX-License-Identifier: Apache-2.0
// Many threads at once on pools, streams, events and host functions; and the end of a context with
// all of these.
#include <pthread.h>

#include <atomic>

#include "probe.h"

namespace {
using probe::kMiB;
using probe::say;

constexpr int kThreads = 4;
constexpr int kRounds = 150;

CUcontext context;
CUmemoryPool pool;
std::atomic<long long> wrong{0};
std::atomic<long long> host_calls{0};

struct Random {
  unsigned long long state;
  unsigned next(unsigned bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(state >> 33) % bound;
  }
};

struct Held {
  CUdeviceptr pointer;
  size_t bytes;
  unsigned char mark;
};

void check(const Held& held, CUstream stream) {
  unsigned char ends[2] = {};
  OK(CU(cuMemcpyDtoHAsync_v2)(&ends[0], held.pointer, 1, stream));
  OK(CU(cuMemcpyDtoHAsync_v2)(&ends[1], held.pointer + held.bytes - 1, 1, stream));
  OK(CU(cuStreamSynchronize)(stream));
  if (ends[0] != held.mark || ends[1] != held.mark) wrong++;
}

void* work(void* number) {
  const intptr_t me = reinterpret_cast<intptr_t>(number);
  OK(CU(cuCtxSetCurrent)(context));
  Random random = {static_cast<unsigned long long>(me) * 977 + 5};
  CUstream streams[2] = {};
  OK(CU(cuStreamCreate)(&streams[0], CU_STREAM_NON_BLOCKING));
  OK(CU(cuStreamCreate)(&streams[1], CU_STREAM_DEFAULT));
  CUevent event = nullptr;
  OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  Held held[8] = {};
  for (int round = 0; round < kRounds; round++) {
    const unsigned which = random.next(2);
    Held& h = held[random.next(8)];
    if (h.pointer != 0) {
      // Made in either stream: order this one behind the other before looking at it.
      OK(CU(cuEventRecord)(event, streams[1 - which]));
      OK(CU(cuStreamWaitEvent)(streams[which], event, 0));
      check(h, streams[which]);
      OK(CU(cuMemFreeAsync)(h.pointer, streams[which]));
      h = {};
    } else {
      h.bytes = 1 + random.next(3 * kMiB);
      h.mark = static_cast<unsigned char>(me * 50 + round % 50);
      OK(CU(cuMemAllocFromPoolAsync)(&h.pointer, h.bytes, pool, streams[which]));
      OK(CU(cuMemsetD8Async)(h.pointer, h.mark, h.bytes, streams[which]));
    }
    if (random.next(5) == 0)
      OK(CU(cuLaunchHostFunc)(
          streams[which], [](void*) { host_calls++; }, nullptr));
    if (random.next(10) == 0) OK(CU(cuCtxSynchronize)());
  }
  for (Held& h : held) {
    if (h.pointer == 0) continue;
    OK(CU(cuCtxSynchronize)());
    check(h, streams[0]);
    OK(CU(cuMemFreeAsync)(h.pointer, streams[0]));
  }
  OK(CU(cuStreamDestroy_v2)(streams[0]));
  OK(CU(cuStreamDestroy_v2)(streams[1]));
  OK(CU(cuEventDestroy_v2)(event));
  return nullptr;
}

void threads() {
  context = probe::start();
  const long long before = probe::used();
  const CUmemPoolProps props = mete::abi::pool_on(0);
  OK(CU(cuMemPoolCreate)(&pool, &props));
  pthread_t running[kThreads];
  for (intptr_t i = 0; i < kThreads; i++)
    pthread_create(&running[i], nullptr, work, reinterpret_cast<void*>(i));
  for (pthread_t& thread : running) pthread_join(thread, nullptr);
  OK(CU(cuCtxSynchronize)());
  cuuint64_t value = 1;
  OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  say("used", static_cast<long long>(value));
  OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
  say("reserved", static_cast<long long>(value));
  say("physical", probe::used() - before);
  say("wrong", wrong);
  say("host_calls", host_calls > 0);
}

void context_ends() {
  probe::start();
  const long long before = probe::used();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocAsync)(&pointer, 100 * kMiB, stream));
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(CU(cuMemAllocAsync)(&pointer, 16 * kMiB, stream));
  CUgraph graph = nullptr;
  OK(CU(cuStreamEndCapture)(stream, &graph));
  CUgraphExec exec = nullptr;
  OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  OK(CU(cuGraphLaunch)(exec, stream));
  CUmodule module = nullptr;
  OK(CU(cuModuleLoadData)(&module, "simgpu-module 1\nkernel deep local=4096\nglobal g 8388608\n"));
  CUfunction deep = nullptr;
  OK(CU(cuModuleGetFunction)(&deep, module, "deep"));
  OK(CU(cuLaunchKernel)(deep, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  OK(CU(cuLaunchHostFunc)(
      stream, [](void*) { host_calls++; }, nullptr));
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  say("took", probe::used() - before > 900 * static_cast<long long>(kMiB));
  OK(CU(cuDevicePrimaryCtxReset_v2)(0));
  probe::start();
  say("left", probe::used() - before);
  say("host_calls", host_calls);
  OK(CU(cuMemAllocAsync)(&pointer, 100 * kMiB, nullptr));
  OK(CU(cuMemsetD8_v2)(pointer, 1, 100 * kMiB));
  say("again", probe::used() - before);
}

}  // namespace

int main(int argc, char** argv) {
  const probe::Scenario scenarios[] = {{"threads", threads}, {"context_ends", context_ends}};
  return probe::main_of(argc, argv, scenarios);
}
