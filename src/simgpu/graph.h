// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes and edges, the executable copies made of them, and the memory of mem-alloc nodes.
// Everything under the driver's lock.
#pragma once

#include "simgpu/stream.h"

namespace simgpu {

struct Graph;
struct GraphExec;
struct GraphSegment;

struct GraphNode {
  static constexpr uint32_t kMagic = 0x4e4f4445;
  uint32_t magic = kMagic;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Graph* graph = nullptr;
  Task task;  // kernel, memset, memcpy, host
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = {};
  CUdeviceptr freed = 0;
  Graph* child = nullptr;
  bool enabled = true;
  size_t unmet = 0;                // while sorting: dependencies not yet placed
  GraphNode* original = nullptr;   // in a copy: the node that this is a copy of
  GraphNode* copied_to = nullptr;  // while copying
  List<GraphNode*> after;          // nodes that it depends on
  List<GraphNode*> before;         // nodes that depend on it
};

struct Graph {
  static constexpr uint32_t kMagic = 0x47524150;
  uint32_t magic = kMagic;
  Context* context = nullptr;
  List<GraphNode*> nodes;
  List<GraphSegment*> segments;  // addresses of its mem-alloc nodes
  GraphNode* parent = nullptr;   // a child graph: its node
  int instances = 0;             // executable copies in existence
  List<GraphExec*> execs;        // and which
};

struct GraphExec {
  static constexpr uint32_t kMagic = 0x45584543;
  uint32_t magic = kMagic;
  unsigned long long flags = 0;
  Graph* copy = nullptr;
  Graph* source = nullptr;  // null once destroyed
  Context* context = nullptr;
  List<GraphNode*> order;  // every node after its dependencies
};

template <class T, class Handle>
T* checked(Handle handle) {
  T* const object = reinterpret_cast<T*>(handle);
  return object != nullptr && object->magic == T::kMagic ? object : nullptr;
}
inline Graph* find_graph(CUgraph handle) { return checked<Graph>(handle); }
inline GraphNode* find_node(CUgraphNode handle) { return checked<GraphNode>(handle); }
inline GraphExec* find_exec(CUgraphExec handle) { return checked<GraphExec>(handle); }
inline CUgraphNode handle_of(GraphNode* node) { return reinterpret_cast<CUgraphNode>(node); }
inline CUgraph handle_of(Graph* graph) { return reinterpret_cast<CUgraph>(graph); }

// graph.cc: building. add_node takes over the task's references in `node`.
Graph* make_graph(Context* context);
void destroy_graph(Graph* graph);
CUresult add_node(Graph* graph, const CUgraphNode* after, size_t count, GraphNode* node);
CUresult copy_graph(const Graph* from, Graph** out);
bool has_memory_nodes(const Graph* graph);
bool sort_nodes(const Graph* graph, List<GraphNode*>* order);  // false: a cycle

// graph_exec.cc
CUresult launch_exec(GraphExec* exec, Stream* stream);

// graph_memory.cc: addresses when the node is added, memory when it is launched.
CUresult graph_memory_place(Graph* graph, int device, size_t bytes, CUdeviceptr* out);
// Backs all addresses of the nodes. What a failed attempt got stays with the graph until trimmed,
// as in the real driver.
CUresult graph_memory_map(const GraphExec* exec, Stream* stream);
// The address is that of a mem-alloc node.
bool graph_memory_knows(CUdeviceptr address);
bool graph_memory_is_live(CUdeviceptr address);
void graph_memory_start(CUdeviceptr address, Stream* stream);
CUresult graph_memory_free(CUdeviceptr address, Stream* stream);
// The graph is gone: its reserved memory stays until trimmed, its live memory until freed.
void graph_memory_orphan(Graph* graph);

}  // namespace simgpu
