// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes of every kind do their work, and graph memory comes at launch and stays until
// trimmed. Each scenario builds a graph, launches or uploads it, and prints what the card holds
// after every step; graph_test.cc compares the values.
#include <initializer_list>

#include "probe.h"

namespace {
using probe::kMiB;
using probe::say;

const char kModule[] = "simgpu-module 1\nkernel fill\nkernel add\n";

long long graph_memory(CUgraphMem_attribute attr) {
  cuuint64_t value = 0;
  OK(CU(cuDeviceGetGraphMemAttribute)(0, attr, &value));
  return static_cast<long long>(value);
}
long long reserved() { return graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT); }
long long in_use() { return graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT); }

CUgraph make_graph() {
  CUgraph graph = nullptr;
  OK(CU(cuGraphCreate)(&graph, 0));
  return graph;
}

CUstream make_stream() {
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, flags));
  return exec;
}

CUgraphNode add_alloc(CUgraph graph, size_t bytes, CUdeviceptr* out) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps = mete::abi::pool_on(0);
  params.bytesize = bytes;
  CUgraphNode node = nullptr;
  OK(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params));
  *out = params.dptr;
  return node;
}

// alloc -> free, the whole life of the memory inside one graph
CUgraph alloc_and_free(size_t bytes) {
  CUgraph graph = make_graph();
  CUdeviceptr pointer = 0;
  CUgraphNode alloc = add_alloc(graph, bytes, &pointer);
  CUgraphNode free_node = nullptr;
  OK(CU(cuGraphAddMemFreeNode)(&free_node, graph, &alloc, 1, pointer));
  return graph;
}

void memory_life() {
  probe::start();
  CUstream stream = make_stream();
  const long long before = probe::used();
  CUgraph graph = make_graph();
  CUdeviceptr pointer = 0;
  CUgraphNode alloc = add_alloc(graph, 16 * kMiB, &pointer);
  say("address_at_add", pointer != 0);
  CUgraphNode free_node = nullptr;
  OK(CU(cuGraphAddMemFreeNode)(&free_node, graph, &alloc, 1, pointer));
  CUgraphExec exec = instantiate(graph);
  say("reserved_instantiated", reserved());
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_launched", reserved());
  say("physical_launched", probe::used() - before);
  say("used_launched", in_use());
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved_again", reserved());
  OK(CU(cuGraphExecDestroy)(exec));
  OK(CU(cuGraphDestroy)(graph));
  say("reserved_destroyed", reserved());
  OK(CU(cuDeviceGraphMemTrim)(0));
  say("reserved_trimmed", reserved());
  say("physical_trimmed", probe::used() - before);
  say("reserved_high", graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
  cuuint64_t zero = 0;
  OK(CU(cuDeviceSetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
  say("reserved_high_reset", graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
}

void sizes() {
  probe::start();
  CUstream stream = make_stream();
  for (const size_t mib : {1, 33, 100}) {
    CUgraphExec exec = instantiate(alloc_and_free(mib * kMiB));
    OK(CU(cuGraphLaunch)(exec, stream));
    OK(CU(cuStreamSynchronize)(stream));
    char key[32];
    snprintf(key, sizeof key, "reserved_%zu", mib);
    say(key, reserved());
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuDeviceGraphMemTrim)(0));
  }
}

void upload() {
  probe::start();
  CUstream stream = make_stream();
  CUgraphExec exec = instantiate(alloc_and_free(40 * kMiB));
  say("before", reserved());
  OK(CU(cuGraphUpload)(exec, stream));
  say("uploaded", reserved());
  OK(CU(cuGraphLaunch)(exec, stream));
  say("launched", reserved());
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  params.hUploadStream = stream;
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuGraphExecDestroy)(exec));
  OK(CU(cuDeviceGraphMemTrim)(0));
  OK(CU(cuGraphInstantiateWithParams)(&exec, alloc_and_free(8 * kMiB), &params));
  say("instantiated_with_upload", reserved());
  say("result", params.result_out);
}

void shared_between_graphs() {
  probe::start();
  CUstream stream = make_stream();
  CUgraphExec a = instantiate(alloc_and_free(16 * kMiB));
  CUgraphExec b = instantiate(alloc_and_free(20 * kMiB));
  OK(CU(cuGraphLaunch)(a, stream));
  OK(CU(cuGraphLaunch)(b, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("reserved", reserved());
}

void outlives_graph() {
  probe::start();
  CUstream stream = make_stream();
  CUgraph graph = make_graph();
  CUdeviceptr pointer = 0;
  add_alloc(graph, 16 * kMiB, &pointer);
  CUgraphExec exec = instantiate(graph);
  CUgraphExec second = nullptr;
  say("second_instance", CU(cuGraphInstantiateWithFlags)(&second, graph, 0) != CUDA_SUCCESS);
  OK(CU(cuGraphLaunch)(exec, stream));
  say("used", in_use());
  OK(CU(cuMemsetD8Async)(pointer, 0x21, 16 * kMiB, stream));
  say("launch_unfreed", CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuDeviceGraphMemTrim)(0));
  say("trim_keeps_live", reserved());
  unsigned char byte = 0;
  OK(CU(cuMemcpyDtoH_v2)(&byte, pointer + 16 * kMiB - 1, 1));
  say("last_byte", byte);
  OK(CU(cuMemFreeAsync)(pointer, stream));
  say("launch_freed", CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("plain_free", CU(cuMemFree_v2)(pointer));
  say("used_after", in_use());
  OK(CU(cuGraphExecDestroy)(exec));
  exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 3; i++) OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("auto_free_reserved", reserved());
  say("auto_free_used", in_use());
}

void generic_nodes() {
  CUcontext context = probe::start();
  CUstream stream = make_stream();
  CUgraph graph = make_graph();
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.alloc.bytesize = 50 * kMiB;
  CUgraphNode alloc = nullptr;
  OK(CU(cuGraphAddNode)(&alloc, graph, nullptr, 0, &params));
  const CUdeviceptr pointer = params.alloc.dptr;
  say("address_at_add", pointer != 0);
  CUgraphNodeParams set = {};
  set.type = CU_GRAPH_NODE_TYPE_MEMSET;
  set.memset = {pointer, 0, 0x42, 1, 50 * kMiB, 1, context};
  CUgraphNode memset_node = nullptr;
  OK(CU(cuGraphAddNode_v2)(&memset_node, graph, &alloc, nullptr, 1, &set));
  unsigned char bytes[64] = {};
  CUgraphNodeParams copy = {};
  copy.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  copy.memcpy.copyCtx = context;
  copy.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.memcpy.copyParams.srcDevice = pointer + 50 * kMiB - sizeof bytes;
  copy.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.memcpy.copyParams.dstHost = bytes;
  copy.memcpy.copyParams.WidthInBytes = sizeof bytes;
  copy.memcpy.copyParams.Height = 1;
  copy.memcpy.copyParams.Depth = 1;
  CUgraphNode copy_node = nullptr;
  OK(CU(cuGraphAddNode)(&copy_node, graph, &memset_node, 1, &copy));
  CUgraphNodeParams end = {};
  end.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  end.free.dptr = pointer;
  CUgraphNode end_node = nullptr;
  OK(CU(cuGraphAddNode)(&end_node, graph, &copy_node, 1, &end));
  CUgraphExec exec = nullptr;
  CUgraphNode bad = nullptr;
  char log[32] = {};
  OK(CU(cuGraphInstantiate_v2)(&exec, graph, &bad, log, sizeof log));
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("copied", bytes[63]);
  say("reserved", reserved());
  size_t count = 0;
  OK(CU(cuGraphGetNodes)(graph, nullptr, &count));
  say("nodes", static_cast<long long>(count));
  OK(CU(cuGraphGetEdges)(graph, nullptr, nullptr, &count));
  say("edges", static_cast<long long>(count));
  OK(CU(cuGraphGetRootNodes)(graph, nullptr, &count));
  say("roots", static_cast<long long>(count));
}

void count_up(void* counter) { ++*static_cast<int*>(counter); }

void work_nodes() {
  probe::start();
  CUmodule module = nullptr;
  OK(CU(cuModuleLoadData)(&module, kModule));
  CUfunction fill = nullptr;
  CUfunction add = nullptr;
  OK(CU(cuModuleGetFunction)(&fill, module, "fill"));
  OK(CU(cuModuleGetFunction)(&add, module, "add"));
  CUdeviceptr memory = 0;
  OK(CU(cuMemAlloc_v2)(&memory, 4096));
  CUgraph graph = make_graph();
  CUgraphNode last = nullptr;
  OK(CU(cuGraphAddEmptyNode)(&last, graph, nullptr, 0));
  // a[0..15] = 1.0f, b[0..15] = 2.0f by fill of 4-byte patterns; c = a + b
  const CUdeviceptr a = memory;
  const CUdeviceptr b = memory + 64;
  const CUdeviceptr c = memory + 128;
  size_t count = 16;
  unsigned one = 0x3f800000;
  unsigned two = 0x40000000;
  const struct {
    CUdeviceptr to;
    unsigned* value;
  } fills[] = {{a, &one}, {b, &two}};
  for (const auto& f : fills) {
    CUdeviceptr to = f.to;
    void* arguments[] = {&to, &count, f.value};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = fill;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = 16;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    CUgraphNode node = nullptr;
    OK(CU(cuGraphAddKernelNode_v2)(&node, graph, &last, 1, &params));
    last = node;
  }
  CUdeviceptr pa = a;
  CUdeviceptr pb = b;
  CUdeviceptr pc = c;
  void* arguments[] = {&pc, &pa, &pb, &count};
  CUDA_KERNEL_NODE_PARAMS_v1 params = {};
  params.func = add;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 16;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  CUgraphNode node = nullptr;
  OK(CU(cuGraphAddKernelNode)(&node, graph, &last, 1, &params));
  last = node;
  int calls = 0;
  const CUDA_HOST_NODE_PARAMS host = {count_up, &calls};
  OK(CU(cuGraphAddHostNode)(&node, graph, &last, 1, &host));
  CUstream stream = make_stream();
  CUgraphExec exec = instantiate(graph);
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  float sum[16] = {};
  OK(CU(cuMemcpyDtoH_v2)(sum, c, sizeof sum));
  say("sum_times_10", static_cast<long long>(sum[15] * 10));
  say("host_calls", calls);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(CU(cuGraphNodeGetType)(last, &type));
  say("kernel_type", type);
  OK(CU(cuGraphNodeSetEnabled)(exec, last, 0));
  OK(CU(cuMemsetD8_v2)(c, 0, 64));
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuMemcpyDtoH_v2)(sum, c, sizeof sum));
  say("disabled_sum", static_cast<long long>(sum[15] * 10));
  CUgraph clone = nullptr;
  OK(CU(cuGraphClone)(&clone, graph));
  OK(CU(cuGraphDestroy)(graph));
  OK(CU(cuGraphLaunch)(instantiate(clone), stream));
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuMemcpyDtoH_v2)(sum, c, sizeof sum));
  say("clone_sum_times_10", static_cast<long long>(sum[15] * 10));
}

// How the nodes of one graph share the steps.
void packing() {
  probe::start();
  CUstream stream = make_stream();
  CUgraph graph = make_graph();
  CUdeviceptr p[3] = {};
  CUgraphNode nodes[3] = {};
  for (int i = 0; i < 3; i++) nodes[i] = add_alloc(graph, 20 * kMiB, &p[i]);
  for (const CUdeviceptr pointer : p) {
    CUgraphNode node = nullptr;
    OK(CU(cuGraphAddMemFreeNode)(&node, graph, nodes, 3, pointer));
  }
  OK(CU(cuGraphLaunch)(instantiate(graph), stream));
  say("reserved_3_x_20", reserved());
  say("used", in_use());
}

void captured_memory() {
  probe::start();
  CUstream stream = make_stream();
  const long long before = probe::used();
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAllocAsync)(&pointer, 16 * kMiB, stream));
  OK(CU(cuMemsetD8Async)(pointer, 0x77, 16 * kMiB, stream));
  unsigned char bytes[8] = {};
  OK(CU(cuMemcpyDtoHAsync_v2)(bytes, pointer + 16 * kMiB - 8, 8, stream));
  OK(CU(cuMemFreeAsync)(pointer, stream));
  CUgraph graph = nullptr;
  OK(CU(cuStreamEndCapture)(stream, &graph));
  say("address_at_capture", pointer != 0);
  say("byte_before", bytes[0]);
  CUgraphNode nodes[8] = {};
  size_t count = 8;
  OK(CU(cuGraphGetNodes)(graph, nodes, &count));
  say("nodes", static_cast<long long>(count));
  int allocs = 0;
  for (size_t i = 0; i < count; i++) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    OK(CU(cuGraphNodeGetType)(nodes[i], &type));
    allocs += type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  }
  say("alloc_nodes", allocs);
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  cuuint64_t pool_reserved = 1;
  OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &pool_reserved));
  say("pool_reserved", static_cast<long long>(pool_reserved));
  CUgraphExec exec = instantiate(graph);
  say("physical_instantiated", probe::used() - before);
  OK(CU(cuGraphLaunch)(exec, stream));
  OK(CU(cuStreamSynchronize)(stream));
  say("byte_after", bytes[0]);
  say("reserved", reserved());
  say("physical", probe::used() - before);
}

void out_of_memory() {
  probe::start();
  CUstream stream = make_stream();
  size_t free_bytes = 0;
  size_t total = 0;
  OK(CU(cuMemGetInfo_v2)(&free_bytes, &total));
  CUgraphExec exec = instantiate(alloc_and_free(free_bytes + 64 * kMiB));
  say("free", static_cast<long long>(free_bytes));
  say("launch", CU(cuGraphLaunch)(exec, stream));
  say("reserved", reserved());
  CUgraphExec small = instantiate(alloc_and_free(kMiB));
  say("small_launch", CU(cuGraphLaunch)(small, stream));
  OK(CU(cuDeviceGraphMemTrim)(0));
  say("reserved_trimmed", reserved());
  say("small_launch_again", CU(cuGraphLaunch)(small, stream));
}

}  // namespace

int main(int argc, char** argv) {
  const probe::Scenario scenarios[] = {
      {"memory_life", memory_life},
      {"sizes", sizes},
      {"upload", upload},
      {"shared_between_graphs", shared_between_graphs},
      {"outlives_graph", outlives_graph},
      {"generic_nodes", generic_nodes},
      {"work_nodes", work_nodes},
      {"packing", packing},
      {"captured_memory", captured_memory},
      {"out_of_memory", out_of_memory},
  };
  return probe::main_of(argc, argv, scenarios);
}
