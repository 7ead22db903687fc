// SPDX-License-Identifier: Apache-2.0
// The entry points that add nodes to graphs and read or change their parameters.
#include <cstring>

#include "simgpu/event.h"
#include "simgpu/graph.h"
#include "simgpu/launch.h"

namespace simgpu {
namespace {

// Adds what `fill` makes of an empty node.
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
    if (node->event != nullptr) event_release(node->event);
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
  task_release(node->task);
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
  task_release(node->task);
  node->type = CU_GRAPH_NODE_TYPE_MEMSET;
  node->task.kind = TaskKind::kMemset;
  node->task.memset = params;
  return CUDA_SUCCESS;
}

CUresult fill_memcpy(GraphNode* node, const CUDA_MEMCPY3D& params) {
  task_release(node->task);
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

CUresult fill_event(GraphNode* node, CUevent handle, bool record) {
  Event* event = nullptr;
  const CUresult result = find_event(handle, &event);
  if (result != CUDA_SUCCESS) return result;
  event->references++;
  task_release(node->task);
  if (node->event != nullptr) event_release(node->event);
  node->event = nullptr;
  node->task.kind = TaskKind::kNothing;
  if (record) {
    node->type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    node->task.kind = TaskKind::kRecord;
    node->task.record.event = event;
    node->task.record.generation = 0;
  } else {
    node->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    node->event = event;
  }
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
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return fill_event(node, params.eventWait.event, false);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return fill_event(node, params.eventRecord.event, true);
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

// Changes a node in place; its type stays.
template <class Fill>
CUresult change(GraphNode* node, CUgraphNodeType type, Fill fill) {
  if (node == nullptr || node->type != type) return CUDA_ERROR_INVALID_VALUE;
  return fill(node);
}

bool settable(CUgraphNodeType type) {
  return type <= CU_GRAPH_NODE_TYPE_HOST || type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ||
         type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
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
CUresult cuGraphAddMemsetNode(ADD_ARGUMENTS, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  SIM_ENTRY_CONTEXT(cuGraphAddMemsetNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_memset(n, *params); });
}
CUresult cuGraphAddMemcpyNode(ADD_ARGUMENTS, const CUDA_MEMCPY3D* params, CUcontext) {
  SIM_ENTRY_CONTEXT(cuGraphAddMemcpyNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_memcpy(n, *params); });
}
CUresult cuGraphAddHostNode(ADD_ARGUMENTS, const CUDA_HOST_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphAddHostNode);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_host(n, *params); });
}
CUresult cuGraphAddChildGraphNode(ADD_ARGUMENTS, CUgraph child) {
  SIM_ENTRY_CONTEXT(cuGraphAddChildGraphNode);
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_child(n, child, false); });
}
CUresult cuGraphAddEventRecordNode(ADD_ARGUMENTS, CUevent event) {
  SIM_ENTRY_CONTEXT(cuGraphAddEventRecordNode);
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_event(n, event, true); });
}
CUresult cuGraphAddEventWaitNode(ADD_ARGUMENTS, CUevent event) {
  SIM_ENTRY_CONTEXT(cuGraphAddEventWaitNode);
  return add(out, graph, after, count, [&](GraphNode* n) { return fill_event(n, event, false); });
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

// NOLINTBEGIN(bugprone-macro-parentheses): types and statements cannot stand in parentheses
// Reading and changing parameters, on the graph and on its executable copy.
#define SIM_NODE_PARAMETERS(Kind, Type, kType, read, write)                                        \
  CUresult cuGraph##Kind##NodeGetParams(CUgraphNode handle, Type* out) {                           \
    SIM_ENTRY(cuGraph##Kind##NodeGetParams);                                                       \
    const Guard guard;                                                                             \
    const GraphNode* const node = find_node(handle);                                               \
    if (node == nullptr || node->type != kType || out == nullptr) return CUDA_ERROR_INVALID_VALUE; \
    read;                                                                                          \
    return CUDA_SUCCESS;                                                                           \
  }                                                                                                \
  CUresult cuGraph##Kind##NodeSetParams(CUgraphNode handle, const Type* params) {                  \
    SIM_ENTRY_CONTEXT(cuGraph##Kind##NodeSetParams);                                               \
    const Guard guard;                                                                             \
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;                                        \
    return change(find_node(handle), kType, [&](GraphNode* node) { return write; });               \
  }
// NOLINTEND(bugprone-macro-parentheses)
SIM_NODE_PARAMETERS(Memset, CUDA_MEMSET_NODE_PARAMS, CU_GRAPH_NODE_TYPE_MEMSET,
                    *out = node->task.memset, fill_memset(node, *params))
SIM_NODE_PARAMETERS(Host, CUDA_HOST_NODE_PARAMS, CU_GRAPH_NODE_TYPE_HOST, *out = node->task.host,
                    fill_host(node, *params))

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* out) {
  SIM_ENTRY(cuGraphMemcpyNodeGetParams);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEMCPY || out == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  // A captured copy knows how to do itself, not how it would be written as a box.
  if (node->task.kind != TaskKind::kMemcpy) return CUDA_ERROR_NOT_SUPPORTED;
  *out = node->task.memcpy;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* params) {
  SIM_ENTRY_CONTEXT(cuGraphMemcpyNodeSetParams);
  const Guard guard;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(find_node(handle), CU_GRAPH_NODE_TYPE_MEMCPY,
                [&](GraphNode* node) { return fill_memcpy(node, *params); });
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* out) {
  SIM_ENTRY(cuGraphKernelNodeGetParams_v2);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL || out == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *out = node->task.kernel.params;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  SIM_ENTRY(cuGraphKernelNodeGetParams);
  CUDA_KERNEL_NODE_PARAMS wide = {};
  const CUresult result = cuGraphKernelNodeGetParams_v2(handle, &wide);
  if (result == CUDA_SUCCESS && out != nullptr) memcpy(out, &wide, sizeof *out);
  return out == nullptr ? CUDA_ERROR_INVALID_VALUE : result;
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphKernelNodeSetParams_v2);
  const Guard guard;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(find_node(handle), CU_GRAPH_NODE_TYPE_KERNEL,
                [&](GraphNode* node) { return fill_kernel(node, *params); });
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  SIM_ENTRY_CONTEXT(cuGraphKernelNodeSetParams);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*params);
  return cuGraphKernelNodeSetParams_v2(handle, &wide);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode handle,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphExecKernelNodeSetParams_v2);
  const Guard guard;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(find_exec_node(exec, handle), CU_GRAPH_NODE_TYPE_KERNEL,
                [&](GraphNode* node) { return fill_kernel(node, *params); });
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  SIM_ENTRY_CONTEXT(cuGraphExecKernelNodeSetParams);
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*params);
  return cuGraphExecKernelNodeSetParams_v2(exec, handle, &wide);
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  SIM_ENTRY_CONTEXT(cuGraphExecMemsetNodeSetParams);
  const Guard guard;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(find_exec_node(exec, handle), CU_GRAPH_NODE_TYPE_MEMSET,
                [&](GraphNode* node) { return fill_memset(node, *params); });
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
  SIM_ENTRY_CONTEXT(cuGraphExecMemcpyNodeSetParams);
  const Guard guard;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(find_exec_node(exec, handle), CU_GRAPH_NODE_TYPE_MEMCPY,
                [&](GraphNode* node) { return fill_memcpy(node, *params); });
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  SIM_ENTRY_CONTEXT(cuGraphExecHostNodeSetParams);
  const Guard guard;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(find_exec_node(exec, handle), CU_GRAPH_NODE_TYPE_HOST,
                [&](GraphNode* node) { return fill_host(node, *params); });
}
CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* params) {
  SIM_ENTRY_CONTEXT(cuGraphNodeSetParams);
  const Guard guard;
  if (params == nullptr || !settable(params->type)) return CUDA_ERROR_INVALID_VALUE;
  return change(find_node(handle), params->type,
                [&](GraphNode* node) { return fill_any(node, *params); });
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode handle, CUgraphNodeParams* params) {
  SIM_ENTRY_CONTEXT(cuGraphExecNodeSetParams);
  const Guard guard;
  if (params == nullptr || !settable(params->type)) return CUDA_ERROR_INVALID_VALUE;
  return change(find_exec_node(exec, handle), params->type,
                [&](GraphNode* node) { return fill_any(node, *params); });
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
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* out) {
  SIM_ENTRY(cuGraphMemFreeNodeGetParams);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEM_FREE || out == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *out = node->freed;
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

// NOLINTBEGIN(bugprone-macro-parentheses): a member cannot stand in parentheses
#define SIM_EVENT_NODE(Kind, kType, event_field, record)                                           \
  CUresult cuGraphEvent##Kind##NodeGetEvent(CUgraphNode handle, CUevent* out) {                    \
    SIM_ENTRY(cuGraphEvent##Kind##NodeGetEvent);                                                   \
    const Guard guard;                                                                             \
    const GraphNode* const node = find_node(handle);                                               \
    if (node == nullptr || node->type != kType || out == nullptr) return CUDA_ERROR_INVALID_VALUE; \
    *out = reinterpret_cast<CUevent>(node->event_field);                                           \
    return CUDA_SUCCESS;                                                                           \
  }                                                                                                \
  CUresult cuGraphEvent##Kind##NodeSetEvent(CUgraphNode handle, CUevent event) {                   \
    SIM_ENTRY_CONTEXT(cuGraphEvent##Kind##NodeSetEvent);                                           \
    const Guard guard;                                                                             \
    return change(find_node(handle), kType,                                                        \
                  [&](GraphNode* node) { return fill_event(node, event, record); });               \
  }                                                                                                \
  CUresult cuGraphExecEvent##Kind##NodeSetEvent(CUgraphExec exec, CUgraphNode handle,              \
                                                CUevent event) {                                   \
    SIM_ENTRY_CONTEXT(cuGraphExecEvent##Kind##NodeSetEvent);                                       \
    const Guard guard;                                                                             \
    return change(find_exec_node(exec, handle), kType,                                             \
                  [&](GraphNode* node) { return fill_event(node, event, record); });               \
  }
// NOLINTEND(bugprone-macro-parentheses)
SIM_EVENT_NODE(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD, task.record.event, true)
SIM_EVENT_NODE(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, false)

}  // extern "C"
