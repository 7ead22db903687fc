// SPDX-License-Identifier: Apache-2.0
// Graphs that allocate. Memory is taken when such a graph is uploaded or launched, and stays until
// it is trimmed. What a graph may take is added up from its nodes when it is instantiated. A graph
// without memory nodes is never looked at again, and its launch costs one load and a jump.
#include "meter/budget.h"
#include "meter/pool.h"
#include "meter/query.h"
#include "meter/real.h"
#include "meter/relaxed.h"
#include "meter/reserve.h"

namespace mete::meter {
namespace {

// The content of an entry of Process::execs.
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

// A graph may take memory on several cards: it has one entry for each card, with the card's number
// above the bits of the address.
uint64_t key_of(CUgraphExec exec, uint32_t card) {
  return reinterpret_cast<uint64_t>(exec) | static_cast<uint64_t>(card) << 56;
}
// The card number of a graph that wants memory on a card outside the grant.
constexpr uint32_t kOutside = abi::kMaxCards;

struct GraphNeed {
  uint64_t bytes[abi::kMaxCards] = {};
  bool any = false;
  bool outside = false;
};

constexpr int kMaxDepth = 16;  // of child graphs within child graphs

// Adds up the memory nodes of a graph, in batches on the stack: the host's heap is not used.
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
        need->any = true;
        if (card == kNoCard)
          need->outside = true;
        else
          need->bytes[card] += (params.bytesize + 511) / 512 * 512;
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
  Locked locked(process.lock);
  for (uint32_t c = 0; c <= kOutside; ++c) {
    const uint64_t bytes = c == kOutside ? need.outside : need.bytes[c];
    TableValue old;
    if (bytes > 0)
      process.execs.put(key_of(*exec, c), Exec{bytes, static_cast<int>(c), 0}.pack());
    else if (process.execs.size() > 0)  // the driver may use the handle of a destroyed graph again
      process.execs.remove(key_of(*exec, c), &old);
  }
  process.execs_with_memory.store(process.execs.size(), std::memory_order_relaxed);
  return result;
}

// A graph that was launched before finds its memory where it was, if nothing was trimmed since and
// no other graph uses it now. If the driver took new memory nevertheless, this is not relied on
// again.
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

// What one launch has reserved on one card.
struct Reserved {
  Exec exec;
  uint64_t units;
};

// Reserves a growth step for the graph's memory on a card, unless the graph finds its own memory.
// False: no room.
bool reserve(Reserved* launch) {
  launch->units = step_units(launch->exec.bytes);
  if (take_if_free(launch->exec.card, launch->units)) return true;
  // If it does not find it, the memory that it takes lies in the reserve until it is measured.
  if (finds_its_memory(launch->exec) && keep_reserve(launch->exec.card)) {
    launch->units = 0;
    return true;
  }
  return take(launch->exec.card, launch->units);
}

template <class Call>
CUresult launch(CUgraphExec handle, Call call) {
  Reserved cards[abi::kMaxCards];
  int count = 0;
  {
    Locked locked(process.lock);
    if (process.execs.find(key_of(handle, kOutside)) != nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t c = 0; c < process.grant->header.card_count; ++c)
      if (const TableValue* found = process.execs.find(key_of(handle, c)))
        cards[count++].exec = Exec::unpack(*found);
  }
  if (count == 0) return call();
  for (int i = 0; i < count; ++i) {
    if (reserve(&cards[i])) continue;
    while (--i >= 0) settle(cards[i].exec.card, cards[i].units, 0);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUresult result = call();
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = call();
  for (int i = 0; i < count; ++i) {
    Exec& exec = cards[i].exec;
    const uint64_t grown = settle_graph(exec.card, cards[i].units);
    Locked locked(process.lock);
    if (cards[i].units == 0 && grown > 0) process.cards[exec.card].graph_surprised = true;
    exec.launched_at = process.cards[exec.card].graph_trims + 1;
    if (TableValue* found = process.execs.find(key_of(handle, static_cast<uint32_t>(exec.card))))
      *found = exec.pack();
  }
  return result;
}

// Instantiates with a call that may upload at once and so take memory: the need must be known
// first.
template <class Call>
CUresult instantiate_and_upload(CUgraphExec* exec, CUgraph graph, Call call) {
  GraphNeed need;
  if (attach() && real.cuGraphGetNodes != nullptr) add_up(graph, &need, 0);
  if (need.outside) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!need.any) return after_instantiate(call(), exec, graph);
  const auto cards = static_cast<int>(process.grant->header.card_count);
  int taken = 0;
  while (taken < cards && (need.bytes[taken] == 0 || take(taken, step_units(need.bytes[taken]))))
    ++taken;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (taken == cards) {
    result = call();
    for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
      result = call();
  }
  for (int c = 0; c < taken; ++c)
    if (need.bytes[c] > 0) (void)settle_graph(c, step_units(need.bytes[c]));
  return after_instantiate(result, exec, graph);
}

// The entries leave the table before the driver is called: it may give the handle to another graph.
CUresult destroy(CUgraphExec exec) {
  TableValue entries[kOutside + 1];
  bool known[kOutside + 1];
  {
    Locked locked(process.lock);
    for (uint32_t c = 0; c <= kOutside; ++c)
      known[c] = process.execs.remove(key_of(exec, c), &entries[c]);
    process.execs_with_memory.store(process.execs.size(), std::memory_order_relaxed);
  }
  const CUresult result = real.cuGraphExecDestroy(exec);
  if (result == CUDA_SUCCESS) return result;
  Locked locked(process.lock);
  for (uint32_t c = 0; c <= kOutside; ++c)
    if (known[c]) process.execs.put(key_of(exec, c), entries[c]);
  process.execs_with_memory.store(process.execs.size(), std::memory_order_relaxed);
  return result;
}

// Instantiating takes memory at once only with this flag.
bool uploads(const CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return params != nullptr && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
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
CUresult hook_cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const auto call = [&] { return real.cuGraphInstantiateWithParams(exec, graph, params); };
  return uploads(params) ? instantiate_and_upload(exec, graph, call)
                         : after_instantiate(call(), exec, graph);
}
CUresult hook_cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const auto call = [&] { return real.cuGraphInstantiateWithParams_ptsz(exec, graph, params); };
  return uploads(params) ? instantiate_and_upload(exec, graph, call)
                         : after_instantiate(call(), exec, graph);
}

CUresult hook_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return heed(real.cuGraphLaunch(exec, stream));
  return heed(launch(exec, [&] { return real.cuGraphLaunch(exec, stream); }));
}
CUresult hook_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return heed(real.cuGraphLaunch_ptsz(exec, stream));
  return heed(launch(exec, [&] { return real.cuGraphLaunch_ptsz(exec, stream); }));
}
CUresult hook_cuGraphUpload(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return real.cuGraphUpload(exec, stream);
  return launch(exec, [&] { return real.cuGraphUpload(exec, stream); });
}
CUresult hook_cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  if (nothing_to_do()) return real.cuGraphUpload_ptsz(exec, stream);
  return launch(exec, [&] { return real.cuGraphUpload_ptsz(exec, stream); });
}

CUresult hook_cuGraphExecDestroy(CUgraphExec exec) {
  return nothing_to_do() ? real.cuGraphExecDestroy(exec) : destroy(exec);
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
