// SPDX-License-Identifier: Apache-2.0
// Building graphs: nodes, edges, copies. See graph.h.
#include "simgpu/graph.h"

namespace simgpu {
namespace {

CUresult take_addresses(Graph* graph, GraphNode* node) {
  CUDA_MEM_ALLOC_NODE_PARAMS& params = node->alloc;
  if (params.bytesize == 0 || params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (!device_ok(params.poolProps.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (params.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  const CUresult result =
      graph_memory_place(graph, params.poolProps.location.id, params.bytesize, &address);
  params.dptr = address;
  params.accessDescs = nullptr;  // the caller's array; every card of the process may access it
  params.accessDescCount = 0;
  return result;
}

}  // namespace

Graph* make_graph(Context* context) {
  Graph* const graph = make<Graph>();
  if (graph != nullptr) graph->context = context;
  return graph;
}

CUresult add_node(Graph* graph, const CUgraphNode* after, size_t count, GraphNode* node) {
  if (after == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    const GraphNode* const other = find_node(after[i]);
    if (other == nullptr || other->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    for (size_t j = 0; j < i; j++)
      if (after[j] == after[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    const CUresult result = take_addresses(graph, node);
    if (result != CUDA_SUCCESS) return result;
  }
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE && !graph_memory_knows(node->freed))
    return CUDA_ERROR_INVALID_VALUE;
  if (!graph->nodes.push(node)) return CUDA_ERROR_OUT_OF_MEMORY;
  node->graph = graph;
  for (size_t i = 0; i < count; i++) {
    GraphNode* const other = find_node(after[i]);
    node->after.push(other);
    other->before.push(node);
  }
  return CUDA_SUCCESS;
}

static void free_node(GraphNode* node) {
  task_release(node->task);
  if (node->child != nullptr) destroy_graph(node->child);
  node->magic = 0;
  destroy(node);
}

void destroy_graph(Graph* graph) {
  // An existing executable copy keeps the addresses (there is one at most).
  if (!graph->execs.empty()) {
    for (GraphSegment* const segment : graph->segments)
      graph->execs[0]->copy->segments.push(segment);
    graph->segments.clear();
  }
  graph_memory_orphan(graph);
  for (GraphExec* const exec : graph->execs) exec->source = nullptr;
  for (GraphNode* const node : graph->nodes) free_node(node);
  graph->magic = 0;
  destroy(graph);
}

CUresult copy_graph(const Graph* from, Graph** out) {
  Graph* const graph = make_graph(from->context);
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  for (GraphNode* const node : from->nodes) {
    GraphNode* const copy = make<GraphNode>();
    if (copy == nullptr || !graph->nodes.push(copy)) {
      destroy(copy);
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    copy->type = node->type;
    copy->graph = graph;
    copy->task = node->task;
    task_retain(copy->task);
    copy->alloc = node->alloc;
    copy->freed = node->freed;
    copy->enabled = node->enabled;
    copy->original = node;
    node->copied_to = copy;
    if (node->child != nullptr) result = copy_graph(node->child, &copy->child);
    if (result != CUDA_SUCCESS) break;
    if (copy->child != nullptr) copy->child->parent = copy;
  }
  if (result != CUDA_SUCCESS) {
    destroy_graph(graph);
    return result;
  }
  for (GraphNode* const copy : graph->nodes) {
    for (GraphNode* const other : copy->original->after) copy->after.push(other->copied_to);
    for (GraphNode* const other : copy->original->before) copy->before.push(other->copied_to);
  }
  *out = graph;
  return CUDA_SUCCESS;
}

bool has_memory_nodes(const Graph* graph) {
  for (const GraphNode* const node : graph->nodes) {
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return true;
    if (node->child != nullptr && has_memory_nodes(node->child)) return true;
  }
  return false;
}

// Nodes whose dependencies are all placed come next, in the order in which they were added.
bool sort_nodes(const Graph* graph, List<GraphNode*>* order) {
  for (GraphNode* const node : graph->nodes) {
    node->unmet = node->after.size();
    if (node->unmet == 0) order->push(node);
  }
  for (size_t i = 0; i < order->size(); i++)
    for (GraphNode* const next : (*order)[i]->before)
      if (--next->unmet == 0) order->push(next);
  return order->size() == graph->nodes.size();
}
}  // namespace simgpu
