// SPDX-License-Identifier: Apache-2.0
// What calls cost and how long processes take to start. A program like this one runs with a cap and
// another without; tests/gpu/run lets them take turns, so that whatever slows the machine slows
// both.
//   cost calls     answers each line of its input with rows `cost <tab> name <tab> nanoseconds` and
//                  `done`; the line `live` is about a process with 100000 live blocks.
//                  Under a cap also `NAME, past the meter`: the same calls, in the same process and
//                  in turn with the metered ones, by the driver's own functions.
//   cost gate      rows of what the gate of a parkable process costs a call, in the same process,
//                  by it and past it in turn: the difference of the best rounds, and the median of
//                  the rounds' differences. A launch that the driver refuses at once shows it
//                  better than one that takes a thousand times as long.
//   cost starts    answers each line with one process start and its parts, in such rows
//   cost starts64  64 starts at once
#include <link.h>

#include <algorithm>
#include <functional>

#include "tests/gpu/children.h"

using namespace gpu;

namespace {

constexpr size_t kLiveBlocks = 100000;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void row(const std::string& name, double nanoseconds) {
  printf("cost\t%s\t%.1f\n", name.c_str(), nanoseconds);
  fflush(stdout);
}

// The driver's own functions under a cap, past the meter: the library that the meter has loaded, by
// its path. Without a cap there is nothing to go past.
std::vector<Cuda> entrances() {
  std::vector<Cuda> all = {cu};
  if (grant() == kNothing) return all;
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* found) {
        const std::string name = object->dlpi_name;
        if (name.find("/libcuda.so") != std::string::npos) *static_cast<std::string*>(found) = name;
        return 0;
      },
      &path);
  void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) die("the driver itself is not loaded under a cap");
  const Cuda metered = cu;
  resolve(dlsym_in(library));
  if (cu.cuMemAlloc_v2 == metered.cuMemAlloc_v2) die("the driver's functions are the meter's");
  all.push_back(cu);
  cu = metered;
  return all;
}

// Medians over batches of the time of one call; batches by the several entrances in turn.
class Bench {
 public:
  Bench() : entrances_(entrances()) {
    const char* ptx =
        ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
    CUmodule module = nullptr;
    must(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
    must(cu.cuModuleGetFunction(&kernel_, module, "k"), "cuModuleGetFunction");
    must(cu.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    must(cu.cuGraphCreate(&graph, 0), "cuGraphCreate");
    must(cu.cuGraphAddEmptyNode(&node, graph, nullptr, 0), "cuGraphAddEmptyNode");
    must(cu.cuGraphInstantiateWithFlags(&graph_, graph, 0), "instantiate");
    cuuint64_t keep = ~cuuint64_t{0};
    CUmemoryPool pool = nullptr;
    must(cu.cuDeviceGetDefaultMemPool(&pool, device), "pool");
    must(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "threshold");
  }

  void queries() {
    measure("cuMemGetInfo", 1000, [] { (void)memory(); });
  }
  // Synchronises now and then: a full launch queue would measure the card instead of the call.
  void launches() {
    measure("launch", 500, [this] {
      must(cu.cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), "launch");
      now_and_then();
    });
    measure("graph launch", 500, [this] {
      must(cu.cuGraphLaunch(graph_, stream_), "cuGraphLaunch");
      now_and_then();
    });
  }
  void gate() {
    differences("refused launch", 2000, 400, [] {
      (void)cu.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    });
    differences("launch", 200, 300, [this] {
      (void)cu.cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr);
    });
  }
  void pairs(const std::string& more) {
    measure("alloc pair" + more, 50, [] { pair(2 * kMiB); });
    measure("small pair" + more, 50, [] { pair(512); });
    measure("async pair" + more, 2000, [] {
      CUdeviceptr p = 0;
      must(cu.cuMemAllocAsync(&p, kMiB, nullptr), "cuMemAllocAsync");
      must(cu.cuMemFreeAsync(p, nullptr), "cuMemFreeAsync");
    });
    must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
  }

 private:
  // The call is a template here: a std::function would be half of a short one.
  template <class Call>
  void differences(const std::string& name, int calls, int rounds, Call call) {
    if (entrances_.size() != 2) die("there is nothing to go past");
    std::vector<double> by, past, differences;
    for (int round = -2; round < rounds; round++) {
      double times[2] = {};
      for (int turn = 0; turn < 2; turn++) {
        const int e = (turn + round) & 1;  // each is first in every other round
        cu = entrances_[static_cast<size_t>(e)];
        for (int i = 0; i < calls / 10; i++) call();  // its code and its branches are known again
        must(cu.cuStreamSynchronize(stream_), "cuStreamSynchronize");
        const double begin = now_s();
        for (int i = 0; i < calls; i++) call();
        times[e] = (now_s() - begin) * 1e9 / calls;
        must(cu.cuStreamSynchronize(stream_), "cuStreamSynchronize");
      }
      if (round < 0) continue;
      by.push_back(times[0]);
      past.push_back(times[1]);
      differences.push_back(times[0] - times[1]);
    }
    cu = entrances_[0];
    row(name + ", past the gate", median(past));
    row(name + ", best",
        *std::min_element(by.begin(), by.end()) - *std::min_element(past.begin(), past.end()));
    row(name + ", median", median(differences));
  }
  void measure(const std::string& name, int calls, const std::function<void()>& call) {
    std::vector<std::vector<double>> times(entrances_.size());
    for (int batch = -1; batch < kBatches; batch++) {
      for (size_t e = 0; e < entrances_.size(); e++) {
        cu = entrances_[e];
        const double begin = now_s();
        for (int i = 0; i < calls; i++) call();
        if (batch >= 0) times[e].push_back((now_s() - begin) * 1e9 / calls);  // the first warms up
      }
    }
    cu = entrances_[0];
    row(name, median(times[0]));
    if (times.size() > 1) row(name + ", past the meter", median(times[1]));
  }
  static void pair(size_t bytes) {
    CUdeviceptr p = 0;
    must(cu.cuMemAlloc_v2(&p, bytes), "cuMemAlloc");
    must(cu.cuMemFree_v2(p), "cuMemFree");
  }
  void now_and_then() {
    if (++since_ % 250 == 0) must(cu.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

  static constexpr int kBatches = 9;
  std::vector<Cuda> entrances_;
  CUfunction kernel_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraphExec graph_ = nullptr;
  int since_ = 0;
};

void calls() {
  start();
  Bench bench;
  std::vector<CUdeviceptr> blocks;
  for (std::string line = order(); !line.empty(); line = order()) {
    if (line == "live") {
      while (blocks.size() < kLiveBlocks)
        must(cu.cuMemAlloc_v2(&blocks.emplace_back(), 512), "cuMemAlloc");
      bench.pairs(text(", %zu live", kLiveBlocks));
    } else {
      bench.queries();
      bench.launches();
      bench.pairs("");
    }
    tell("done");
  }
}

void gate() {
  start();
  Bench().gate();
}

// From spawn to the end of processes that make a context, in seconds; `at_once` of them together.
// `said` is what the last one said of itself.
double start_processes(int at_once, std::string* said = nullptr) {
  const double begin = now_s();
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < at_once; i++)
    children.push_back(std::make_unique<Child>(std::vector<std::string>{"--start"}));
  for (auto& c : children) {
    const std::string line = c->expect("up", 300);
    if (said) *said = line;
    if (c->wait() != 0) die("a child failed");
  }
  return now_s() - begin;
}

int be_started() {
  const double begin = now_s();
  resolve(dlsym_in(open_driver("libcuda.so.1")));
  const double loaded = now_s();
  must(cu.cuInit(0), "cuInit");
  const double ready = now_s();
  must(gpu::begin(), "begin");
  tell(text("up\t%.0f\t%.0f\t%.0f", (loaded - begin) * 1e9, (ready - loaded) * 1e9,
            (now_s() - ready) * 1e9));
  return 0;
}

void starts() {
  while (!order().empty()) {
    std::string said;
    const double whole = start_processes(1, &said);
    double library = 0, init = 0, context = 0;
    if (sscanf(said.c_str(), "up\t%lf\t%lf\t%lf", &library, &init, &context) != 3) die(said);
    row("process start", whole * 1e9);
    row("library", library);
    row("cuInit", init);
    row("context", context);
    tell("done");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "--start") return be_started();
  if (what == "calls")
    calls();
  else if (what == "gate")
    gate();
  else if (what == "starts")
    starts();
  else if (what == "starts64")
    row("64 starts at once", start_processes(64) * 1e9);
  else
    die("usage: cost calls|gate|starts|starts64");
  return failures ? 1 : 0;
}
