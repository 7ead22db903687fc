// SPDX-License-Identifier: Apache-2.0
// The paths of stream-ordered pools and of graph memory (see paths.h).
#pragma once

#include "tests/gpu/paths.h"

namespace gpu {

struct OwnStream {
  OwnStream() { must(cu.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING), "cuStreamCreate"); }
  ~OwnStream() { (void)cu.cuStreamDestroy_v2(handle); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  void wait() const { must(cu.cuStreamSynchronize(handle), "cuStreamSynchronize"); }
  CUstream handle = nullptr;
};

// Stream-ordered. kKept: a release threshold keeps the memory in the pool after the free, and it
// must be had back when it is needed. kSet: a pool of one's own set as the card's current one.
struct Async : Path {
  enum Pool { kDefault, kKept, kOwn, kSet };
  Async(Pool kind, bool per_thread) : kind_(kind), per_thread_(per_thread) {
    const CUmemPoolProps props = pool_on_card();
    if (kind == kOwn || kind == kSet)
      must(cu.cuMemPoolCreate(&pool_, &props), "cuMemPoolCreate");
    else
      must(cu.cuDeviceGetDefaultMemPool(&pool_, device), "cuDeviceGetDefaultMemPool");
    if (kind == kSet) must(cu.cuDeviceSetMemPool(device, pool_), "cuDeviceSetMemPool");
    if (kind == kKept) threshold(~cuuint64_t{0});
  }
  ~Async() override {
    if (kind_ == kKept) threshold(0);
    if (kind_ != kOwn && kind_ != kSet) return;
    CUmemoryPool usual = nullptr;
    (void)cu.cuDeviceGetDefaultMemPool(&usual, device);
    if (kind_ == kSet) (void)cu.cuDeviceSetMemPool(device, usual);
    (void)cu.cuMemPoolDestroy(pool_);
  }
  void threshold(cuuint64_t bytes) {
    must(cu.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes),
         "release threshold");
  }
  CUresult take() override {
    CUdeviceptr p = 0;
    const auto from_pool =
        per_thread_ ? cu.cuMemAllocFromPoolAsync_ptsz : cu.cuMemAllocFromPoolAsync;
    const auto plain = per_thread_ ? cu.cuMemAllocAsync_ptsz : cu.cuMemAllocAsync;
    const CUresult r = kind_ == kOwn ? from_pool(&p, kChunk, pool_, stream_.handle)
                                     : plain(&p, kChunk, stream_.handle);
    if (r == CUDA_SUCCESS) blocks_.push_back(p);
    return r;
  }
  std::string drop() override {
    const auto release = per_thread_ ? cu.cuMemFreeAsync_ptsz : cu.cuMemFreeAsync;
    for (const CUdeviceptr p : blocks_) must(release(p, stream_.handle), "cuMemFreeAsync");
    blocks_.clear();
    stream_.wait();
    return "";
  }
  size_t held() const override { return pool_reserved(pool_); }
  size_t slack() const override { return kGrowth + kChunk; }
  OwnStream stream_;
  Pool kind_;
  bool per_thread_;
  CUmemoryPool pool_ = nullptr;
  std::vector<CUdeviceptr> blocks_;
};

// Graph memory: a node that allocates, made in several ways, a graph made executable in several
// ways; memory comes with an upload or with the launch.
struct Graph : Path {
  enum Node { kNode, kOldGeneric, kGeneric, kOldCapture, kCapture, kCaptureToGraph, kCapturePool };
  enum Exec { kFlags, kFirst, kSecond, kParams, kUploaded, kPerThread };
  explicit Graph(Node node, Exec exec = kFlags) : node_(node), exec_(exec) {
    const CUmemPoolProps props = pool_on_card();
    if (node == kCapturePool) must(cu.cuMemPoolCreate(&pool_, &props), "cuMemPoolCreate");
  }
  ~Graph() override {
    if (pool_) (void)cu.cuMemPoolDestroy(pool_);
  }

  CUresult capture(CUgraph* graph, CUdeviceptr* p) {
    const CUstream s = stream_.handle;
    if (node_ == kCaptureToGraph) {
      must(cu.cuGraphCreate(graph, 0), "cuGraphCreate");
      must(cu.cuStreamBeginCaptureToGraph(s, *graph, nullptr, nullptr, 0,
                                          CU_STREAM_CAPTURE_MODE_GLOBAL),
           "cuStreamBeginCaptureToGraph");
    } else {
      must(node_ == kOldCapture ? cu.cuStreamBeginCapture(s)
                                : cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL),
           "cuStreamBeginCapture");
    }
    const CUresult r = node_ == kCapturePool ? cu.cuMemAllocFromPoolAsync(p, kChunk, pool_, s)
                                             : cu.cuMemAllocAsync(p, kChunk, s);
    const CUresult end = cu.cuStreamEndCapture(s, graph);
    return r != CUDA_SUCCESS ? r : end;
  }
  CUresult add_node(CUgraph* graph, CUdeviceptr* p) {
    const CUmemAccessDesc access = read_write();
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params.alloc.poolProps = pool_on_card();
    params.alloc.accessDescs = &access, params.alloc.accessDescCount = 1;
    params.alloc.bytesize = kChunk;
    CUDA_MEM_ALLOC_NODE_PARAMS old{};
    old.poolProps = pool_on_card();
    old.accessDescs = &access, old.accessDescCount = 1, old.bytesize = kChunk;
    must(cu.cuGraphCreate(graph, 0), "cuGraphCreate");
    CUgraphNode node = nullptr;
    const CUresult r = node_ == kNode ? cu.cuGraphAddMemAllocNode(&node, *graph, nullptr, 0, &old)
                       : node_ == kOldGeneric
                           ? cu.cuGraphAddNode(&node, *graph, nullptr, 0, &params)
                           : cu.cuGraphAddNode_v2(&node, *graph, nullptr, nullptr, 0, &params);
    *p = node_ == kNode ? old.dptr : params.alloc.dptr;
    return r;
  }
  CUresult instantiate(CUgraphExec* exec, CUgraph graph) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    params.flags = exec_ == kParams ? 0 : CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    params.hUploadStream = stream_.handle;
    switch (exec_) {
      case kFlags:
        return cu.cuGraphInstantiateWithFlags(exec, graph, 0);
      case kFirst:
        return cu.cuGraphInstantiate(exec, graph, nullptr, nullptr, 0);
      case kSecond:
        return cu.cuGraphInstantiate_v2(exec, graph, nullptr, nullptr, 0);
      case kParams:
      case kUploaded:
        return cu.cuGraphInstantiateWithParams(exec, graph, &params);
      case kPerThread:
        return cu.cuGraphInstantiateWithParams_ptsz(exec, graph, &params);
    }
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult launch(CUgraphExec exec) {
    const auto upload = exec_ == kPerThread ? cu.cuGraphUpload_ptsz : cu.cuGraphUpload;
    const auto run = exec_ == kPerThread ? cu.cuGraphLaunch_ptsz : cu.cuGraphLaunch;
    CUresult r = CUDA_SUCCESS;
    if (exec_ == kSecond || exec_ == kPerThread) r = upload(exec, stream_.handle);
    if (r == CUDA_SUCCESS) r = run(exec, stream_.handle);
    return r == CUDA_SUCCESS ? cu.cuStreamSynchronize(stream_.handle) : r;
  }
  CUresult take() override {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr p = 0;
    CUresult r = node_ >= kOldCapture ? capture(&graph, &p) : add_node(&graph, &p);
    if (r == CUDA_SUCCESS) r = instantiate(&exec, graph);
    if (graph) (void)cu.cuGraphDestroy(graph);
    if (r != CUDA_SUCCESS) return r;
    r = launch(exec);
    if (r == CUDA_SUCCESS)
      pieces_.push_back({exec, p});
    else
      (void)cu.cuGraphExecDestroy(exec);
    return r;
  }
  std::string drop() override {
    for (const Piece& piece : pieces_) {
      must(cu.cuMemFreeAsync(piece.p, stream_.handle), "cuMemFreeAsync of graph memory");
      stream_.wait();
      must(cu.cuGraphExecDestroy(piece.exec), "cuGraphExecDestroy");
    }
    pieces_.clear();
    return "";
  }
  size_t held() const override { return graph_reserved(); }
  size_t slack() const override { return kGrowth + kChunk; }
  struct Piece {
    CUgraphExec exec;
    CUdeviceptr p;
  };
  OwnStream stream_;
  Node node_;
  Exec exec_;
  CUmemoryPool pool_ = nullptr;
  std::vector<Piece> pieces_;
};

}  // namespace gpu
