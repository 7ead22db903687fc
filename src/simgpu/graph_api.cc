// SPDX-License-Identifier: Apache-2.0
// The entry points of graphs as a whole: create, destroy, clone, list nodes and edges.
#include "simgpu/graph.h"

namespace simgpu {
namespace {

// Copies as many handles as fit; *count in: room, out: how many there are (or were written).
CUresult list_nodes(const List<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; out != nullptr && i < *count; i++)
    out[i] = i < nodes.size() ? handle_of(nodes[i]) : nullptr;
  if (out == nullptr || *count > nodes.size()) *count = nodes.size();
  return CUDA_SUCCESS;
}

CUresult list_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                    size_t* count) {
  const Guard guard;
  const Graph* const graph = find_graph(handle);
  if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  size_t total = 0;
  for (GraphNode* const node : graph->nodes) {
    for (GraphNode* const other : node->after) {
      if (from != nullptr && total < *count) {
        from[total] = handle_of(other);
        to[total] = handle_of(node);
        if (data != nullptr) data[total] = {};
      }
      total++;
    }
  }
  if (from == nullptr || *count > total) *count = total;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
  SIM_ENTRY(cuGraphCreate);
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Graph* const graph = make_graph(current_context());
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle_of(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  SIM_ENTRY(cuGraphDestroy);
  const Guard guard;
  Graph* const graph = find_graph(handle);
  if (graph == nullptr || graph->parent != nullptr) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* out, CUgraph handle) {
  SIM_ENTRY(cuGraphClone);
  const Guard guard;
  const Graph* const graph = find_graph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  Graph* copy = nullptr;
  const CUresult result = copy_graph(graph, &copy);
  if (result == CUDA_SUCCESS) *out = handle_of(copy);
  return result;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* out, size_t* count) {
  SIM_ENTRY(cuGraphGetNodes);
  const Guard guard;
  const Graph* const graph = find_graph(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : list_nodes(graph->nodes, out, count);
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* out, size_t* count) {
  SIM_ENTRY(cuGraphGetRootNodes);
  const Guard guard;
  const Graph* const graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  List<GraphNode*> roots;
  for (GraphNode* const node : graph->nodes)
    if (node->after.empty()) roots.push(node);
  return list_nodes(roots, out, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  SIM_ENTRY(cuGraphGetEdges);
  return list_edges(graph, from, to, nullptr, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  SIM_ENTRY(cuGraphGetEdges_v2);
  return list_edges(graph, from, to, data, count);
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* out) {
  SIM_ENTRY(cuGraphNodeGetType);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->type;
  return CUDA_SUCCESS;
}

}  // extern "C"
