// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiate, upload, launch. An executable graph is a copy of the graph with
// its nodes in a valid order; launching backs the memory of its mem-alloc nodes and submits its
// nodes to the stream one after the other. A launch in a capture becomes a child graph.
#include "simgpu/capture.h"
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

// Memory of an earlier launch that was not freed: freed now if the graph was instantiated so, else
// an error.
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

}  // namespace

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

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned int enabled) {
  SIM_ENTRY_CONTEXT(cuGraphNodeSetEnabled);
  const Guard guard;
  const GraphExec* const exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (GraphNode* const node : exec->copy->nodes) {
    if (handle_of(node->original) != node_handle) continue;
    if (node->type > CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
    node->enabled = enabled != 0;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
