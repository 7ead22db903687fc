// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiate, upload, launch, update. An executable graph is a copy with an
// order; launching submits its nodes to the stream one after the other.
#include "simgpu/capture.h"
#include "simgpu/event.h"
#include "simgpu/launch.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

void destroy_exec(GraphExec* exec) {
  if (exec->source != nullptr) {
    exec->source->instances--;
    exec->source->execs.remove(exec);
  }
  destroy_graph(exec->copy);
  exec->magic = 0;
  destroy(exec);
}

CUresult instantiate(Graph* graph, unsigned long long flags, GraphExec** out) {
  if (graph == nullptr || (flags & ~15ull) != 0) return CUDA_ERROR_INVALID_VALUE;
  // The addresses of its memory are fixed, so only one copy may use them.
  if (graph->instances != 0 && has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  GraphExec* const exec = make<GraphExec>();
  if (exec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = copy_graph(graph, &exec->copy);
  if (result != CUDA_SUCCESS) {
    destroy(exec);
    return result;
  }
  exec->flags = flags;
  exec->context = current_context();
  if (!sort_nodes(exec->copy, &exec->order)) {
    destroy_exec(exec);
    return CUDA_ERROR_INVALID_VALUE;
  }
  exec->source = graph;
  graph->instances++;
  graph->execs.push(exec);
  *out = exec;
  return CUDA_SUCCESS;
}

CUresult instantiate_entry(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  GraphExec* exec = nullptr;
  const CUresult result = instantiate(find_graph(handle), flags, &exec);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUgraphExec>(exec);
  return result;
}

CUresult instantiate_params(CUgraphExec* out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS* params,
                            bool per_thread) {
  if (out == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  GraphExec* exec = nullptr;
  CUresult result = instantiate(find_graph(handle), params->flags, &exec);
  if (result != CUDA_SUCCESS) return result;
  if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    Stream* stream = nullptr;
    result = find_stream(params->hUploadStream, per_thread, &stream);
    if (result == CUDA_SUCCESS) result = graph_memory_map(exec, stream);
  }
  if (result != CUDA_SUCCESS) {
    destroy_exec(exec);
    return result;
  }
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  *out = reinterpret_cast<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

// Memory of an earlier launch that nobody freed: freed now if the graph was made so, else an error.
CUresult settle_live_memory(const GraphExec* exec, const Graph* graph, Stream* stream) {
  for (const GraphNode* const node : graph->nodes) {
    if (node->child != nullptr) {
      const CUresult result = settle_live_memory(exec, node->child, stream);
      if (result != CUDA_SUCCESS) return result;
    }
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !graph_memory_is_live(node->alloc.dptr))
      continue;
    if ((exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    (void)graph_memory_free(node->alloc.dptr, stream);
  }
  return CUDA_SUCCESS;
}

CUresult prepare_kernels(const Graph* graph) {
  CUresult result = CUDA_SUCCESS;
  for (const GraphNode* const node : graph->nodes) {
    if (result == CUDA_SUCCESS && node->child != nullptr) result = prepare_kernels(node->child);
    if (result == CUDA_SUCCESS && node->type == CU_GRAPH_NODE_TYPE_KERNEL)
      result = prepare_launch(reinterpret_cast<Function*>(node->task.kernel.params.func));
  }
  return result;
}

CUresult run_nodes(const List<GraphNode*>& order, Stream* stream);

CUresult run_node(GraphNode* node, Stream* stream) {
  switch (node->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      graph_memory_start(node->alloc.dptr, stream);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return graph_memory_free(node->freed, stream);
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      List<GraphNode*> order;
      return sort_nodes(node->child, &order) ? run_nodes(order, stream) : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return stream_wait_event(stream, node->event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return record_event(node->task.record.event, stream);
    default:
      task_retain(node->task);
      return submit(stream, node->task);
  }
}

CUresult run_nodes(const List<GraphNode*>& order, Stream* stream) {
  CUresult result = CUDA_SUCCESS;
  for (GraphNode* const node : order)
    if (result == CUDA_SUCCESS && node->enabled) result = run_node(node, stream);
  return result;
}

CUresult launch_entry(CUgraphExec handle, CUstream stream_handle, bool per_thread) {
  const Guard guard;
  GraphExec* const exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  CUresult result = find_stream(stream_handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  if (result != CUDA_SUCCESS) return result;
  if (!is_capturing(stream)) return launch_exec(exec, stream);
  // A launch that is captured becomes a child graph.
  if (has_memory_nodes(exec->copy)) return CUDA_ERROR_NOT_SUPPORTED;
  GraphNode* const node = make<GraphNode>();
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  node->type = CU_GRAPH_NODE_TYPE_GRAPH;
  result = copy_graph(exec->copy, &node->child);
  if (result != CUDA_SUCCESS) {
    destroy(node);
    return result;
  }
  return capture_node(stream, node);
}

CUresult upload_entry(CUgraphExec handle, CUstream stream_handle, bool per_thread) {
  const Guard guard;
  const GraphExec* const exec = find_exec(handle);
  Stream* stream = nullptr;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = find_stream(stream_handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_wait(stream);
  return result == CUDA_SUCCESS ? graph_memory_map(exec, stream) : result;
}

// The new graph must have the same nodes in the same places; then it takes over their parameters.
CUgraphExecUpdateResult update(GraphExec* exec, const Graph* graph, GraphNode** culprit) {
  *culprit = nullptr;
  if (graph->nodes.size() != exec->copy->nodes.size()) return 2;  // topology
  for (size_t i = 0; i < graph->nodes.size(); i++) {
    GraphNode* const now = exec->copy->nodes[i];
    GraphNode* const wanted = graph->nodes[i];
    *culprit = wanted;
    if (now->type != wanted->type) return 3;  // type
    if (now->after.size() != wanted->after.size()) return 2;
    if (now->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || now->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return 6;  // not supported
  }
  *culprit = nullptr;
  for (size_t i = 0; i < graph->nodes.size(); i++) {
    GraphNode* const now = exec->copy->nodes[i];
    task_retain(graph->nodes[i]->task);
    task_release(now->task);
    now->task = graph->nodes[i]->task;
    now->original = graph->nodes[i];
  }
  return 0;
}

GraphNode* node_of_exec(GraphExec* exec, CUgraphNode handle) {
  for (GraphNode* const node : exec->copy->nodes)
    if (handle_of(node->original) == handle) return node;
  return nullptr;
}

}  // namespace

GraphNode* find_exec_node(CUgraphExec handle, CUgraphNode node) {
  GraphExec* const exec = find_exec(handle);
  return exec == nullptr ? nullptr : node_of_exec(exec, node);
}

CUresult launch_exec(GraphExec* exec, Stream* stream) {
  CUresult result = settle_live_memory(exec, exec->copy, stream);
  if (result == CUDA_SUCCESS) result = graph_memory_map(exec, stream);
  if (result == CUDA_SUCCESS) result = prepare_kernels(exec->copy);
  if (result == CUDA_SUCCESS) result = run_nodes(exec->order, stream);
  return result;
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  SIM_ENTRY_CONTEXT(cuGraphInstantiateWithFlags);
  return instantiate_entry(out, graph, flags);
}
CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* culprit, char* log,
                            size_t log_bytes) {
  SIM_ENTRY_CONTEXT(cuGraphInstantiate);
  if (culprit != nullptr) *culprit = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return instantiate_entry(out, graph, 0);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* culprit, char* log,
                               size_t log_bytes) {
  SIM_ENTRY_CONTEXT(cuGraphInstantiate_v2);
  if (culprit != nullptr) *culprit = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return instantiate_entry(out, graph, 0);
}
SIM_PAIR(cuGraphInstantiateWithParams,
         (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
         instantiate_params(out, graph, params, per_thread));
SIM_PAIR(cuGraphLaunch, (CUgraphExec exec, CUstream stream),
         launch_entry(exec, stream, per_thread));
SIM_PAIR(cuGraphUpload, (CUgraphExec exec, CUstream stream),
         upload_entry(exec, stream, per_thread));

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  SIM_ENTRY(cuGraphExecDestroy);
  const Guard guard;
  GraphExec* const exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  destroy_exec(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  SIM_ENTRY(cuGraphExecGetFlags);
  const GraphExec* const exec = find_exec(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  SIM_ENTRY_CONTEXT(cuGraphExecUpdate_v2);
  const Guard guard;
  GraphExec* const exec = find_exec(handle);
  const Graph* const graph = find_graph(graph_handle);
  if (exec == nullptr || graph == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* culprit = nullptr;
  info->result = update(exec, graph, &culprit);
  info->errorNode = handle_of(culprit);
  info->errorFromNode = nullptr;
  return info->result == 0 ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}
CUresult cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode* culprit,
                           CUgraphExecUpdateResult* result) {
  SIM_ENTRY_CONTEXT(cuGraphExecUpdate);
  CUgraphExecUpdateResultInfo info = {};
  const CUresult answer = cuGraphExecUpdate_v2(handle, graph, &info);
  if (culprit != nullptr) *culprit = info.errorNode;
  if (result != nullptr) *result = info.result;
  return answer;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec handle, CUgraphNode node_handle,
                                            CUgraph child_handle) {
  SIM_ENTRY_CONTEXT(cuGraphExecChildGraphNodeSetParams);
  const Guard guard;
  GraphNode* const node = find_exec_node(handle, node_handle);
  const Graph* const child = find_graph(child_handle);
  if (node == nullptr || child == nullptr || node->child == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(child) || child->nodes.size() != node->child->nodes.size())
    return CUDA_ERROR_INVALID_VALUE;
  Graph* copy = nullptr;
  const CUresult result = copy_graph(child, &copy);
  if (result != CUDA_SUCCESS) return result;
  destroy_graph(node->child);
  node->child = copy;
  copy->parent = node;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned int enabled) {
  SIM_ENTRY_CONTEXT(cuGraphNodeSetEnabled);
  const Guard guard;
  GraphNode* const node = find_exec_node(handle, node_handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (node->type > CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned int* out) {
  SIM_ENTRY_CONTEXT(cuGraphNodeGetEnabled);
  const Guard guard;
  const GraphNode* const node = find_exec_node(handle, node_handle);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->enabled;
  return CUDA_SUCCESS;
}

}  // extern "C"
