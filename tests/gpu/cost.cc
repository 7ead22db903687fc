// SPDX-License-Identifier: Apache-2.0
// What calls cost, in nanoseconds (medians of batches), and how long processes take to start. Run
// it with and without a cap; tests/gpu/run interleaves the two and forms the ratios.   cost
// [calls|starts|starts64] ...
#include <algorithm>
#include <functional>

#include "tests/gpu/children.h"

using namespace gpu;

namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Median over batches of the time of one call.
void measure(const char* name, int batches, int calls, const std::function<void()>& call) {
  for (int i = 0; i < calls; i++) call();
  std::vector<double> times;
  for (int b = 0; b < batches; b++) {
    const double begin = now_s();
    for (int i = 0; i < calls; i++) call();
    times.push_back((now_s() - begin) * 1e9 / calls);
  }
  printf("cost\t%s\t%.1f\n", name, median(times));
  fflush(stdout);
}

void pairs(const char* plain, const char* async) {
  CUdeviceptr p = 0;
  measure(plain, 21, 50, [&] {
    must(cu.cuMemAlloc_v2(&p, 2 * kMiB), "cuMemAlloc");
    must(cu.cuMemFree_v2(p), "cuMemFree");
  });
  cuuint64_t keep = ~cuuint64_t{0};
  CUmemoryPool pool = nullptr;
  must(cu.cuDeviceGetDefaultMemPool(&pool, device), "pool");
  must(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "threshold");
  measure(async, 21, 2000, [&] {
    must(cu.cuMemAllocAsync(&p, kMiB, nullptr), "cuMemAllocAsync");
    must(cu.cuMemFreeAsync(p, nullptr), "cuMemFreeAsync");
  });
  must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

void launches() {
  const char* ptx = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  must(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
  must(cu.cuModuleGetFunction(&kernel, module, "k"), "cuModuleGetFunction");
  CUstream stream = nullptr;
  must(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  int since = 0;
  // Synchronise now and then: a full launch queue would measure the card instead of the call.
  measure("launch", 21, 500, [&] {
    must(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "launch");
    if (++since % 250 == 0) must(cu.cuStreamSynchronize(stream), "sync");
  });
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  must(cu.cuGraphCreate(&graph, 0), "cuGraphCreate");
  must(cu.cuGraphAddEmptyNode(&node, graph, nullptr, 0), "cuGraphAddEmptyNode");
  must(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  measure("graph launch", 21, 500, [&] {
    must(cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
    if (++since % 250 == 0) must(cu.cuStreamSynchronize(stream), "sync");
  });
  must(cu.cuStreamSynchronize(stream), "sync");
}

void calls(size_t live_blocks) {
  start();
  measure("cuMemGetInfo", 21, 1000, [] { (void)memory(); });
  launches();
  pairs("alloc pair", "async pair");
  std::vector<CUdeviceptr> blocks(live_blocks);
  for (CUdeviceptr& p : blocks) must(cu.cuMemAlloc_v2(&p, 512), "cuMemAlloc");
  pairs(text("alloc pair, %zu live", live_blocks).c_str(),
        text("async pair, %zu live", live_blocks).c_str());
  measure("small pair", 21, 500, [] {
    CUdeviceptr p = 0;
    must(cu.cuMemAlloc_v2(&p, 512), "cuMemAlloc");
    must(cu.cuMemFree_v2(p), "cuMemFree");
  });
  for (const CUdeviceptr p : blocks) must(cu.cuMemFree_v2(p), "cuMemFree");
}

// From spawn to the end of a process that makes a context; `at_once` of them together.
void starts(const char* name, int at_once, int rounds) {
  std::vector<double> times;
  for (int r = 0; r < rounds; r++) {
    const double begin = now_s();
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < at_once; i++)
      children.push_back(std::make_unique<Child>(std::vector<std::string>{"--start"}));
    for (auto& c : children) {
      c->expect("up", 300);
      if (c->wait() != 0) die("a child failed");
    }
    times.push_back((now_s() - begin) * 1e9);
  }
  printf("cost\t%s\t%.1f\n", name, median(times));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && !strcmp(argv[1], "--start")) {
    start();
    tell("up");
    return 0;
  }
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "calls"))
      calls(100000);
    else if (!strcmp(argv[i], "starts"))
      starts("process start", 1, 5);
    else if (!strcmp(argv[i], "starts64"))
      starts("64 starts at once", 64, 1);
    else
      die("usage: cost [calls|starts|starts64] ...");
  }
  return failures ? 1 : 0;
}
