// SPDX-License-Identifier: Apache-2.0
// Graphs that allocate: however one is instantiated, uploaded or launched, the charge must equal
// what the driver holds for graphs afterwards. Each entry point gets a fresh graph with one
// allocating node, is called, and is compared; then the memory is freed and trimmed.
#include <functional>
#include <vector>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::size_t kBytes = 40 * kMiB;  // two growth steps

using Instantiate = std::function<CUresult(CUgraphExec*, CUgraph)>;
using Launch = std::function<CUresult(CUgraphExec)>;

class Graphs {
 public:
  explicit Graphs(const Card& card) : card_(card), base_(Ledger::of_this_job().charged()) {
    (void)CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING);
  }

  void run() {
    const Launch usual_launch = [&](CUgraphExec exec) { return CU(cuGraphLaunch)(exec, stream_); };
    const Instantiate usual = [](CUgraphExec* exec, CUgraph graph) {
      return CU(cuGraphInstantiateWithFlags)(exec, graph, 0);
    };
    one(
        "cuGraphInstantiate",
        [](CUgraphExec* exec, CUgraph graph) {
          return CU(cuGraphInstantiate)(exec, graph, nullptr, nullptr, 0);
        },
        usual_launch);
    one(
        "cuGraphInstantiate_v2",
        [](CUgraphExec* exec, CUgraph graph) {
          return CU(cuGraphInstantiate_v2)(exec, graph, nullptr, nullptr, 0);
        },
        usual_launch);
    one("cuGraphInstantiateWithFlags", usual, usual_launch);
    one(
        "cuGraphInstantiateWithParams",
        [](CUgraphExec* exec, CUgraph graph) {
          CUDA_GRAPH_INSTANTIATE_PARAMS params{};
          return CU(cuGraphInstantiateWithParams)(exec, graph, &params);
        },
        usual_launch);
    one(
        "cuGraphInstantiateWithParams_ptsz",
        [](CUgraphExec* exec, CUgraph graph) {
          CUDA_GRAPH_INSTANTIATE_PARAMS params{};
          return CU(cuGraphInstantiateWithParams_ptsz)(exec, graph, &params);
        },
        usual_launch);
    one("cuGraphLaunch", usual, usual_launch);
    one("cuGraphLaunch_ptsz", usual,
        [&](CUgraphExec exec) { return CU(cuGraphLaunch_ptsz)(exec, stream_); });
    one("cuGraphUpload", usual, [&](CUgraphExec exec) { return CU(cuGraphUpload)(exec, stream_); });
    one("cuGraphUpload_ptsz", usual,
        [&](CUgraphExec exec) { return CU(cuGraphUpload_ptsz)(exec, stream_); });
    trim(usual, usual_launch);
    end();
  }

 private:
  struct Made {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr block = 0;
  };

  std::uint64_t held() const {
    cuuint64_t bytes = 0;
    (void)CU(cuDeviceGetGraphMemAttribute)(card_.device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                           &bytes);
    return bytes;
  }

  void agree(Check& check, bool holding) const {
    const std::uint64_t now = held();
    check.equal("graphs hold " + std::to_string(now) + ", charged",
                Ledger::of_this_job().charged() - base_, now);
    if (holding && now == 0) check.skip("this driver takes no memory at this call");
    if (!holding && now > 0) check.skip("this driver keeps the memory at this call");
  }

  bool build(Check& check, Made* made) const {
    const CUmemAccessDesc access = abi::access_on(card_.device);
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps = abi::pool_on(card_.device);
    params.accessDescs = &access;
    params.accessDescCount = 1;
    params.bytesize = kBytes;
    CUgraphNode node = nullptr;
    if (!check.did(CU(cuGraphCreate)(&made->graph, 0), "cuGraphCreate") ||
        !check.did(CU(cuGraphAddMemAllocNode)(&node, made->graph, nullptr, 0, &params),
                   "cuGraphAddMemAllocNode"))
      return false;
    made->block = params.dptr;
    return true;
  }

  bool launch(Check& check, const Instantiate& instantiate, const Launch& go, Made* made) const {
    if (!build(check, made) || !check.did(instantiate(&made->exec, made->graph)) ||
        !check.did(go(made->exec)) ||
        !check.did(CU(cuStreamSynchronize)(stream_), "cuStreamSynchronize"))
      return false;
    return true;
  }

  // An uploaded graph was not launched: its memory cannot be freed, only trimmed. The executable
  // graph stays until the end: the driver would give its handle to the next one, which the meter
  // might then recognise by its handle although it never saw its creation.
  void clean(const Made& made) {
    if (made.block != 0) (void)CU(cuMemFreeAsync)(made.block, stream_);
    (void)CU(cuStreamSynchronize)(stream_);
    if (made.exec != nullptr) execs_.push_back(made.exec);
    if (made.graph != nullptr) (void)CU(cuGraphDestroy)(made.graph);
  }

  void one(const char* entry, const Instantiate& instantiate, const Launch& go) {
    Made made;
    {
      Check check(kCharged, entry);
      if (launch(check, instantiate, go, &made)) agree(check, true);
    }
    clean(made);
    (void)CU(cuDeviceGraphMemTrim)(card_.device);
  }

  void trim(const Instantiate& instantiate, const Launch& go) {
    Check check(kBack, "cuDeviceGraphMemTrim");
    Made made;
    if (!launch(check, instantiate, go, &made)) return;
    clean(made);
    if (check.did(CU(cuDeviceGraphMemTrim)(card_.device))) agree(check, false);
  }

  void end() {
    Check check(kBack, "cuGraphExecDestroy");
    bool ended = true;
    for (const CUgraphExec exec : execs_) ended = check.did(CU(cuGraphExecDestroy)(exec)) && ended;
    (void)CU(cuDeviceGraphMemTrim)(card_.device);
    if (ended) agree(check, false);
  }

  Card card_;
  std::uint64_t base_;
  CUstream stream_ = nullptr;
  std::vector<CUgraphExec> execs_;
};

}  // namespace

void check_graphs(const Task&) { Graphs(start()).run(); }

}  // namespace mete::selftest
