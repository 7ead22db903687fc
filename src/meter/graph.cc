// SPDX-License-Identifier: Apache-2.0
// Graphs that allocate. Memory comes when such a graph is uploaded or launched and stays until it
// is trimmed. What a graph may take is added up from its nodes when it is instantiated; a graph
// without memory nodes is never looked at again, and its launch costs one load and a jump.
#include "meter/budget.h"
#include "meter/pool.h"
#include "meter/real.h"
#include "meter/relaxed.h"

namespace mete::meter {
namespace {

// What an entry of Process::execs says.
struct Exec {
  uint64_t bytes;
  int card;
  uint32_t
      launched_at;  // the card's count of trims, plus one, at the last launch; 0 = never launched
  static Exec unpack(TableValue v) {
    return {v.a, static_cast<int>(v.b & 0xff), static_cast<uint32_t>(v.b >> 8)};
  }
  TableValue pack() const {
    return {bytes, static_cast<uint64_t>(launched_at) << 8 | static_cast<uint64_t>(card)};
  }
};

struct GraphNeed {
  uint64_t bytes = 0;
  int card = kNoCard;
};

constexpr int kMaxDepth = 16;  // child graphs within child graphs

// Adds up the memory nodes of a graph. Works through the nodes in batches: no memory of the host's
// heap.
void add_up(CUgraph graph, GraphNeed* need, int depth) {
  size_t count = 0;
  if (depth > kMaxDepth || real.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS ||
      count == 0)
    return;
  constexpr size_t kOnStack = 256;
  CUgraphNode on_stack[kOnStack];
  CUgraphNode* nodes = on_stack;
  size_t mapped = 0;
  if (count > kOnStack) {
    mapped = count * sizeof(CUgraphNode);
    nodes = static_cast<CUgraphNode*>(map_pages(mapped));
    if (nodes == nullptr) return;
  }
  if (real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS) {
    for (size_t i = 0; i < count; ++i) {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
      if (real.cuGraphNodeGetType(nodes[i], &type) != CUDA_SUCCESS) continue;
      if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        if (real.cuGraphMemAllocNodeGetParams(nodes[i], &params) != CUDA_SUCCESS) continue;
        if (params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
        const int card = card_of(params.poolProps.location.id);
        if (card == kNoCard) continue;
        need->card = card;
        need->bytes += (params.bytesize + 511) / 512 * 512;
      } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraph child = nullptr;
        if (real.cuGraphChildGraphNodeGetGraph(nodes[i], &child) == CUDA_SUCCESS)
          add_up(child, need, depth + 1);
      }
    }
  }
  if (mapped != 0) unmap_pages(nodes, mapped);
}

CUresult after_instantiate(CUresult result, CUgraphExec* exec, CUgraph graph) {
  if (result != CUDA_SUCCESS || !attach() || real.cuGraphGetNodes == nullptr) return result;
  GraphNeed need;
  add_up(graph, &need, 0);
  const auto key = reinterpret_cast<uint64_t>(*exec);
  Locked locked(process.lock);
  TableValue old;
  if (need.bytes == 0) {
    // The handle of a destroyed graph may come again for one that takes nothing.
    if (process.execs.size() > 0) process.execs.remove(key, &old);
  } else {
    process.execs.put(key, Exec{need.bytes, need.card, 0}.pack());
  }
  process.execs_with_memory.store(process.execs.size(), std::memory_order_relaxed);
  return result;
}

// A graph that was launched before finds its memory where it was left, if nothing was trimmed since
// and nothing else uses it now. A driver that took more all the same is not believed a second time.
bool finds_its_memory(const Exec& exec) {
  const CardState& state = process.cards[exec.card];
  if (exec.launched_at != state.graph_trims + 1 || state.graph_surprised) return false;
  const Relaxed relaxed;
  cuuint64_t held = 0;
  cuuint64_t used = 0;
  const CUdevice device = process.device_of_card[exec.card];
  real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &held);
  real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used);
  return held >= used && held - used >= exec.bytes;
}

template <class Call>
CUresult launch(CUgraphExec handle, Call call) {
  Exec exec{};
  {
    Locked locked(process.lock);
    const TableValue* found = process.execs.find(reinterpret_cast<uint64_t>(handle));
    if (found != nullptr) exec = Exec::unpack(*found);
  }
  if (exec.bytes == 0) return call();
  const uint64_t step = step_units(exec.bytes);
  uint64_t reserved = step;
  if (!take_if_free(exec.card, step)) {
    if (finds_its_memory(exec))
      reserved = 0;
    else if (!take(exec.card, step))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = call();
  const uint64_t grown = settle_graph(exec.card, reserved);
  Locked locked(process.lock);
  if (reserved == 0 && grown > 0) process.cards[exec.card].graph_surprised = true;
  exec.launched_at = process.cards[exec.card].graph_trims + 1;
  if (TableValue* found = process.execs.find(reinterpret_cast<uint64_t>(handle)))
    *found = exec.pack();
  return result;
}

inline bool nothing_to_do() {
  return process.execs_with_memory.load(std::memory_order_relaxed) == 0;
}

}  // namespace
}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log,
                                 size_t size) {
  return after_instantiate(real.cuGraphInstantiate(exec, graph, node, log, size), exec, graph);
}
CUresult hook_cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log,
                                    size_t size) {
  return after_instantiate(real.cuGraphInstantiate_v2(exec, graph, node, log, size), exec, graph);
}
CUresult hook_cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                          unsigned long long flags) {
  return after_instantiate(real.cuGraphInstantiateWithFlags(exec, graph, flags), exec, graph);
}
// With the upload flag these allocate at once: the need must be known before.
CUresult hook_cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  GraphNeed need;
  if (attach() && real.cuGraphGetNodes != nullptr) add_up(graph, &need, 0);
  if (need.bytes == 0)
    return after_instantiate(real.cuGraphInstantiateWithParams(exec, graph, params), exec, graph);
  const uint64_t step = step_units(need.bytes);
  if (!take(need.card, step)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real.cuGraphInstantiateWithParams(exec, graph, params);
  (void)settle_graph(need.card, step);
  return after_instantiate(result, exec, graph);
}
CUresult hook_cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  GraphNeed need;
  if (attach() && real.cuGraphGetNodes != nullptr) add_up(graph, &need, 0);
  if (need.bytes == 0)
    return after_instantiate(real.cuGraphInstantiateWithParams_ptsz(exec, graph, params), exec,
                             graph);
  const uint64_t step = step_units(need.bytes);
  if (!take(need.card, step)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real.cuGraphInstantiateWithParams_ptsz(exec, graph, params);
  (void)settle_graph(need.card, step);
  return after_instantiate(result, exec, graph);
}

CUresult hook_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return real.cuGraphLaunch(exec, stream);
  return launch(exec, [&] { return real.cuGraphLaunch(exec, stream); });
}
CUresult hook_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return real.cuGraphLaunch_ptsz(exec, stream);
  return launch(exec, [&] { return real.cuGraphLaunch_ptsz(exec, stream); });
}
CUresult hook_cuGraphUpload(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return real.cuGraphUpload(exec, stream);
  return launch(exec, [&] { return real.cuGraphUpload(exec, stream); });
}
CUresult hook_cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return real.cuGraphUpload_ptsz(exec, stream);
  return launch(exec, [&] { return real.cuGraphUpload_ptsz(exec, stream); });
}

CUresult hook_cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult result = real.cuDeviceGraphMemTrim(device);
  if (result == CUDA_SUCCESS && attach()) {
    const int card = card_of(device);
    if (card != kNoCard) note_graph_trim(card);
  }
  return result;
}
}
