// SPDX-License-Identifier: Apache-2.0
// The entry points that add nodes to graphs, and that report the parameters of memory nodes and
// child graphs. Each fills the task of an empty node and passes it with its dependencies to
// add_node(); arguments are copied, since the caller's may be gone when the graph runs.
#include <cstring>

#include "simgpu/graph.h"
#include "simgpu/launch.h"

namespace simgpu {
namespace {

// Adds the node that `fill` makes of an empty one.
template <class Fill>
CUresult add(CUgraphNode* out, CUgraph graph_handle, const CUgraphNode* after, size_t count,
             Fill fill) {
  const Guard guard;
  Graph* const graph = find_graph(graph_handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* const node = make<GraphNode>();
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = fill(node);
  if (result == CUDA_SUCCESS) result = add_node(graph, after, count, node);
  if (result != CUDA_SUCCESS) {
    task_release(node->task);
    if (node->child != nullptr) destroy_graph(node->child);
    destroy(node);
    return result;
  }
  *out = handle_of(node);
  return CUDA_SUCCESS;
}

CUresult fill_kernel(GraphNode* node, CUDA_KERNEL_NODE_PARAMS params) {
  CUresult result = CUDA_SUCCESS;
  const CUfunction handle =
      params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  const Shape shape = {{params.gridDimX, params.gridDimY, params.gridDimZ},
                       {params.blockDimX, params.blockDimY, params.blockDimZ},
                       params.sharedMemBytes};
  result = check_shape(function, shape);
  Task task;
  if (result == CUDA_SUCCESS)
    result = kernel_task(function, shape, params.kernelParams, params.extra, &task);
  if (result != CUDA_SUCCESS) return result;
  node->type = CU_GRAPH_NODE_TYPE_KERNEL;
  node->task = task;
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUDA_KERNEL_NODE_PARAMS params = {};
  memcpy(&params, &old, sizeof old);
  return params;
}

CUresult fill_memset(GraphNode* node, const CUDA_MEMSET_NODE_PARAMS& params) {
  if (params.elementSize != 1 && params.elementSize != 2 && params.elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
  if (params.width == 0 || params.height == 0) return CUDA_ERROR_INVALID_VALUE;
  node->type = CU_GRAPH_NODE_TYPE_MEMSET;
  node->task.kind = TaskKind::kMemset;
  node->task.memset = params;
  return CUDA_SUCCESS;
}

CUresult fill_memcpy(GraphNode* node, const CUDA_MEMCPY3D& params) {
  node->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  node->task.kind = TaskKind::kMemcpy;
  node->task.memcpy = params;
  return CUDA_SUCCESS;
}

CUresult fill_host(GraphNode* node, const CUDA_HOST_NODE_PARAMS& params) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->type = CU_GRAPH_NODE_TYPE_HOST;
  node->task.kind = TaskKind::kHost;
  node->task.context = current_context();
  node->task.host = params;
  return CUDA_SUCCESS;
}

CUresult fill_child(GraphNode* node, CUgraph handle, bool move) {
  Graph* const child = find_graph(handle);
  if (child == nullptr || child->parent != nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Addresses of memory nodes are fixed: such a graph can be moved, not copied.
  if (!move && has_memory_nodes(child)) return CUDA_ERROR_NOT_SUPPORTED;
  node->type = CU_GRAPH_NODE_TYPE_GRAPH;
  if (move) {
    node->child = child;
  } else {
    const CUresult result = copy_graph(child, &node->child);
    if (result != CUDA_SUCCESS) return result;
  }
  node->child->parent = node;
  return CUDA_SUCCESS;
}

CUresult fill_alloc(GraphNode* node, const CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  node->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  node->alloc = params;
  return CUDA_SUCCESS;
}

CUresult fill_free(GraphNode* node, CUdeviceptr address) {
  node->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  node->freed = address;
  return CUDA_SUCCESS;
}

CUDA_MEMSET_NODE_PARAMS without_context(const CUDA_MEMSET_NODE_PARAMS_v2& p) {
  return {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
}

template <class To, class From>
To same_layout(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

CUresult fill_any(GraphNode* node, const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return fill_kernel(node, same_layout<CUDA_KERNEL_NODE_PARAMS>(params.kernel));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return fill_memcpy(node, params.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      if (params.memset.ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return fill_memset(node, without_context(params.memset));
    case CU_GRAPH_NODE_TYPE_HOST:
      return fill_host(node, {params.host.fn, params.host.userData});
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return fill_child(node, params.graph.graph,
                        params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return fill_alloc(node, same_layout<CUDA_MEM_ALLOC_NODE_PARAMS>(params.alloc));
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return fill_free(node, params.free.dptr);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult add_any(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                 CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      add(out, graph, after, count, [&](GraphNode* node) { return fill_any(node, *params); });
  if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    params->alloc.dptr = find_node(*out)->alloc.dptr;
  return result;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define ADD_ARGUMENTS CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count

extern "C" {

CUresult cuGraphAddEmptyNode(ADD_ARGUMENTS) {
  SIM_ENTRY_CONTEXT(cuGraphAddEmptyNode);
  return add(out, graph, after, count, [](GraphNode*) { return CUDA_SUCCESS; });
}
CUresult cuGraphAddKernelNode_v2(ADD_ARGUMENTS, const CUDA_KERNEL_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddKernelNode_v2);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_kernel(n, *params); });
}
CUresult cuGraphAddKernelNode(ADD_ARGUMENTS, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddKernelNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count,
             [&](GraphNode* n) { return fill_kernel(n, widen(*params)); });
}
CUresult cuGraphAddHostNode(ADD_ARGUMENTS, const CUDA_HOST_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddHostNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_host(n, *params); });
}
CUresult cuGraphAddMemAllocNode(ADD_ARGUMENTS, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddMemAllocNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      add(out, graph, after, count, [&](GraphNode* n) { return fill_alloc(n, *params); });
  if (result == CUDA_SUCCESS) params->dptr = find_node(*out)->alloc.dptr;
  return result;
}
CUresult cuGraphAddMemFreeNode(ADD_ARGUMENTS, CUdeviceptr address) {
  SIM_ENTRY_CONTEXT(cuGraphAddMemFreeNode);
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_free(n, address); });
}
CUresult cuGraphAddNode(ADD_ARGUMENTS, CUgraphNodeParams* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddNode);
  return add_any(out, graph, after, count, params);
}
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddNode_v2);
  return add_any(out, graph, after, count, params);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  SIM_ENTRY(cuGraphMemAllocNodeGetParams);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || out == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *out = node->alloc;
  return CUDA_SUCCESS;
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* out) {
  SIM_ENTRY(cuGraphChildGraphNodeGetGraph);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || node->child == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(node->child);
  return CUDA_SUCCESS;
}

}  // extern "C"
