// SPDX-License-Identifier: Apache-2.0
// The entry points of graphs as a whole: make, destroy, copy, ask for nodes and edges, user
// objects, attributes of kernel nodes.
#include <cstdio>

#include "simgpu/graph.h"

namespace simgpu {
namespace {

// Copies as many handles as fit; *count in: room, out: how many there are (or were written).
template <class At>
CUresult hand_out(size_t total, CUgraphNode* out, size_t* count, At at) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = total;
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; i++) out[i] = i < total ? at(i) : nullptr;
  if (*count > total) *count = total;
  return CUDA_SUCCESS;
}

CUresult list_nodes(const List<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  return hand_out(nodes.size(), out, count, [&](size_t i) { return handle_of(nodes[i]); });
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

CUresult list_neighbours(CUgraphNode handle, bool after, CUgraphNode* out, CUgraphEdgeData* data,
                         size_t* count) {
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const size_t room = *count;
  const CUresult result = list_nodes(after ? node->after : node->before, out, count);
  for (size_t i = 0; data != nullptr && out != nullptr && i < room; i++) data[i] = {};
  return result;
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      bool add) {
  const Guard guard;
  const Graph* const graph = find_graph(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    const GraphNode* const first = find_node(from[i]);
    GraphNode* const second = find_node(to[i]);
    if (first == nullptr || second == nullptr || first == second || first->graph != graph ||
        second->graph != graph)
      return CUDA_ERROR_INVALID_VALUE;
    if (second->after.contains(const_cast<GraphNode*>(first)) == add)
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; i++) {
    GraphNode* const first = find_node(from[i]);
    GraphNode* const second = find_node(to[i]);
    if (add) {
      second->after.push(first);
      first->before.push(second);
    } else {
      second->after.remove(first);
      first->before.remove(second);
    }
  }
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

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph handle) {
  SIM_ENTRY(cuGraphNodeFindInClone);
  const Guard guard;
  const Graph* const clone = find_graph(handle);
  if (out == nullptr || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (GraphNode* const node : clone->nodes) {
    if (handle_of(node->original) != original) continue;
    *out = handle_of(node);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
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
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  SIM_ENTRY(cuGraphNodeGetDependencies);
  return list_neighbours(node, true, out, nullptr, count);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data,
                                       size_t* count) {
  SIM_ENTRY(cuGraphNodeGetDependencies_v2);
  return list_neighbours(node, true, out, data, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  SIM_ENTRY(cuGraphNodeGetDependentNodes);
  return list_neighbours(node, false, out, nullptr, count);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data,
                                         size_t* count) {
  SIM_ENTRY(cuGraphNodeGetDependentNodes_v2);
  return list_neighbours(node, false, out, data, count);
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  SIM_ENTRY(cuGraphAddDependencies);
  return change_edges(graph, from, to, count, true);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  SIM_ENTRY(cuGraphAddDependencies_v2);
  return change_edges(graph, from, to, count, true);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  SIM_ENTRY(cuGraphRemoveDependencies);
  return change_edges(graph, from, to, count, false);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
  SIM_ENTRY(cuGraphRemoveDependencies_v2);
  return change_edges(graph, from, to, count, false);
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* out) {
  SIM_ENTRY(cuGraphNodeGetType);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  SIM_ENTRY(cuGraphDestroyNode);
  const Guard guard;
  GraphNode* const node = find_node(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Others may depend on the addresses: memory nodes stay.
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_NOT_SUPPORTED;
  destroy_node(node);
  return CUDA_SUCCESS;
}

// The shape of the graph for Graphviz; details (flags) are left out.
CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
  SIM_ENTRY(cuGraphDebugDotPrint);
  const Guard guard;
  const Graph* const graph = find_graph(handle);
  if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FILE* const file = fopen(path, "we");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  fputs("digraph graph_1 {\n", file);
  for (const GraphNode* const node : graph->nodes) {
    fprintf(file, "\"%p\" [label=\"type %d\"];\n", static_cast<const void*>(node),
            static_cast<int>(node->type));
    for (const GraphNode* const other : node->after)
      fprintf(file, "\"%p\" -> \"%p\";\n", static_cast<const void*>(other),
              static_cast<const void*>(node));
  }
  fputs("}\n", file);
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  SIM_ENTRY(cuGraphKernelNodeSetAttribute);
  const Guard guard;
  GraphNode* const node = find_node(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL || value == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  for (NodeAttribute& kept : node->attributes) {
    if (kept.id != id) continue;
    kept.value = *value;
    return CUDA_SUCCESS;
  }
  return node->attributes.push({id, *value}) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* out) {
  SIM_ENTRY(cuGraphKernelNodeGetAttribute);
  const Guard guard;
  const GraphNode* const node = find_node(handle);
  if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL || out == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  for (const NodeAttribute& kept : node->attributes)
    if (kept.id == id) *out = kept.value;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  SIM_ENTRY(cuGraphKernelNodeCopyAttributes);
  const Guard guard;
  GraphNode* const target = find_node(to);
  const GraphNode* const source = find_node(from);
  if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return target->attributes.assign(source->attributes.begin(), source->attributes.size())
             ? CUDA_SUCCESS
             : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy_function,
                            unsigned int references, unsigned int) {
  SIM_ENTRY(cuUserObjectCreate);
  if (out == nullptr || destroy_function == nullptr || references == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  UserObject* const object = make<UserObject>();
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->destroy = destroy_function;
  object->data = data;
  object->references = references;
  *out = reinterpret_cast<CUuserObject>(object);
  return CUDA_SUCCESS;
}
CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  SIM_ENTRY(cuUserObjectRetain);
  const Guard guard;
  UserObject* const object = checked<UserObject>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}
CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  SIM_ENTRY(cuUserObjectRelease);
  const Guard guard;
  UserObject* const object = checked<UserObject>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  object_release(object, count);
  return CUDA_SUCCESS;
}
// flags 1: the caller's references move to the graph; else the graph gets its own.
CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
                                 unsigned int flags) {
  SIM_ENTRY(cuGraphRetainUserObject);
  const Guard guard;
  Graph* const graph = find_graph(graph_handle);
  UserObject* const object = checked<UserObject>(handle);
  if (graph == nullptr || object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & 1) == 0) object->references += count;
  return graph->objects.push({object, count}) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count) {
  SIM_ENTRY(cuGraphReleaseUserObject);
  const Guard guard;
  Graph* const graph = find_graph(graph_handle);
  UserObject* const object = checked<UserObject>(handle);
  if (graph == nullptr || object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < graph->objects.size(); i++) {
    HeldObject& held = graph->objects[i];
    if (held.object != object || held.references < count) continue;
    held.references -= count;
    if (held.references == 0) graph->objects.drop(i);
    object_release(object, count);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
