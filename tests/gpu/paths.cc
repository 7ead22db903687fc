// SPDX-License-Identifier: Apache-2.0
// Fills a capped card by every path an allocation can take, and reports what was advertised, what
// was got and how the refusal read. Run it inside a cap:   mete cap --gpu 16G -- paths [--way WAY]
// [--only PATH] [--quick] Each path must get all that was free, to within one chunk (pools, graphs:
// one growth step more), not a byte more, and be refused with CUDA_ERROR_OUT_OF_MEMORY; afterwards
// the whole budget must be there again for cuMemAlloc. Never takes more than 1 GiB above what was
// advertised, so that an uncapped run does no harm.
#include <cinttypes>
#include <functional>
#include <memory>

#include "tests/gpu/gpu.h"

using namespace gpu;

namespace {

constexpr size_t kChunk = 16 * kMiB;

// One way to take memory. take() adds one piece; held() is the physical memory of all pieces.
struct Path {
  virtual ~Path() = default;
  virtual CUresult take() = 0;
  virtual void drop() = 0;
  virtual size_t held() const = 0;
  virtual size_t slack() const = 0;  // how much of what was free may be left over
};

// Pieces of a known physical size.
struct Pieces : Path {
  explicit Pieces(size_t unit) : unit_(unit) {}
  size_t held() const override { return count() * unit_; }
  size_t slack() const override { return unit_; }
  virtual size_t count() const = 0;
  size_t unit_;
};

struct Plain : Pieces {
  explicit Plain(size_t request) : Pieces(round_up(request, kGranule)), request_(request) {}
  CUresult take() override {
    CUdeviceptr p = 0;
    const CUresult r = cu.cuMemAlloc_v2(&p, request_);
    if (r == CUDA_SUCCESS) blocks_.push_back(p);
    return r;
  }
  void drop() override {
    for (const CUdeviceptr p : blocks_) must(cu.cuMemFree_v2(p), "cuMemFree");
    blocks_.clear();
  }
  size_t count() const override { return blocks_.size(); }
  size_t request_;
  std::vector<CUdeviceptr> blocks_;
};

// Narrow rows: four bytes wide, so that the pitch is 128 times what was asked for.
struct Pitch : Plain {
  Pitch() : Plain(0) { unit_ = 32 * kMiB; }
  CUresult take() override {
    CUdeviceptr p = 0;
    size_t pitch = 0;
    const CUresult r = cu.cuMemAllocPitch_v2(&p, &pitch, 4, 65536, 4);
    if (r != CUDA_SUCCESS) return r;
    unit_ = round_up(pitch * 65536, kGranule);
    blocks_.push_back(p);
    return r;
  }
};

struct Managed : Plain {
  Managed() : Plain(kChunk) {}
  CUresult take() override {
    CUdeviceptr p = 0;
    const CUresult r = cu.cuMemAllocManaged(&p, kChunk, CU_MEM_ATTACH_GLOBAL);
    if (r == CUDA_SUCCESS) blocks_.push_back(p);
    return r;
  }
};

struct Create : Pieces {
  Create() : Pieces(kChunk) {}
  CUresult take() override {
    const CUmemAllocationProp prop = on_card();
    CUmemGenericAllocationHandle h{};
    const CUresult r = cu.cuMemCreate(&h, kChunk, &prop, 0);
    if (r == CUDA_SUCCESS) handles_.push_back(h);
    return r;
  }
  void drop() override {
    for (const CUmemGenericAllocationHandle h : handles_) must(cu.cuMemRelease(h), "cuMemRelease");
    handles_.clear();
  }
  size_t count() const override { return handles_.size(); }
  std::vector<CUmemGenericAllocationHandle> handles_;
};

// Map, then release the handle at once: the memory lives until it is unmapped. `retained`: instead
// the mapping goes and a retained handle keeps the memory alive. Half is given back first and must
// show.
struct Mapped : Pieces {
  explicit Mapped(bool retained) : Pieces(kChunk), retained_(retained) {}
  CUresult take() override {
    if (!base_) {
      span_ = round_up(memory().free + 2 * kGiB, kChunk);
      must(cu.cuMemAddressReserve(&base_, span_, 0, 0, 0), "cuMemAddressReserve");
    }
    const CUmemAllocationProp prop = on_card();
    CUmemGenericAllocationHandle h{};
    const CUresult r = cu.cuMemCreate(&h, kChunk, &prop, 0);
    if (r != CUDA_SUCCESS) return r;
    const CUdeviceptr at = base_ + count_ * kChunk;
    const CUmemAccessDesc access = read_write();
    must(cu.cuMemMap(at, kChunk, 0, h, 0), "cuMemMap");
    must(cu.cuMemSetAccess(at, kChunk, &access, 1), "cuMemSetAccess");
    must(cu.cuMemRelease(h), "cuMemRelease");
    if (retained_) {
      CUmemGenericAllocationHandle again{};
      must(cu.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)),
           "cuMemRetainAllocationHandle");
      must(cu.cuMemUnmap(at, kChunk), "cuMemUnmap");
      handles_.push_back(again);
    }
    count_++;
    return r;
  }
  void drop() override {
    if (!base_) return;
    if (retained_) {
      for (const CUmemGenericAllocationHandle h : handles_)
        must(cu.cuMemRelease(h), "cuMemRelease");
    } else {
      const size_t half = count_ / 2, before = memory().free;
      if (half) must(cu.cuMemUnmap(base_, half * kChunk), "cuMemUnmap of half");
      const size_t back = memory().free - before;
      check(back == half * kChunk, "map-then-release: unmapping half gives back half",
            mib(back) + " of " + mib(half * kChunk));
      must(cu.cuMemUnmap(base_ + half * kChunk, (count_ - half) * kChunk),
           "cuMemUnmap of the rest");
    }
    must(cu.cuMemAddressFree(base_, span_), "cuMemAddressFree");
    handles_.clear();
    base_ = 0, count_ = 0;
  }
  size_t count() const override { return count_; }
  bool retained_;
  CUdeviceptr base_ = 0;
  size_t span_ = 0, count_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

// Stream-ordered: the default pool, the same by the per-thread variant, a pool of one's own;
// `keep`: a release threshold keeps the memory in the pool after the free, and the meter must get
// it back when it is needed.
struct Async : Path {
  enum Kind { kDefault, kPerThread, kOwnPool, kKeep };
  explicit Async(Kind kind) : kind_(kind) {
    must(cu.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    const CUmemPoolProps props = pool_on_card();
    if (kind == kOwnPool)
      must(cu.cuMemPoolCreate(&pool_, &props), "cuMemPoolCreate");
    else
      must(cu.cuDeviceGetDefaultMemPool(&pool_, device), "cuDeviceGetDefaultMemPool");
    if (kind == kKeep) threshold(~cuuint64_t{0});
  }
  ~Async() override {
    if (kind_ == kOwnPool) (void)cu.cuMemPoolDestroy(pool_);
    if (kind_ == kKeep) threshold(0);
    (void)cu.cuStreamDestroy_v2(stream_);
  }
  void threshold(cuuint64_t bytes) {
    must(cu.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes),
         "release threshold");
  }
  CUresult take() override {
    CUdeviceptr p = 0;
    const CUresult r = kind_ == kOwnPool ? cu.cuMemAllocFromPoolAsync(&p, kChunk, pool_, stream_)
                       : kind_ == kPerThread ? cu.cuMemAllocAsync_ptsz(&p, kChunk, stream_)
                                             : cu.cuMemAllocAsync(&p, kChunk, stream_);
    if (r == CUDA_SUCCESS) blocks_.push_back(p);
    return r;
  }
  void drop() override {
    for (const CUdeviceptr p : blocks_)
      must(kind_ == kPerThread ? cu.cuMemFreeAsync_ptsz(p, stream_) : cu.cuMemFreeAsync(p, stream_),
           "cuMemFreeAsync");
    blocks_.clear();
    must(cu.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }
  size_t held() const override { return pool_reserved(pool_); }
  size_t slack() const override { return kGrowth + kChunk; }
  Kind kind_;
  CUstream stream_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  std::vector<CUdeviceptr> blocks_;
};

// Graph memory: an allocation node made in three ways; memory comes at launch.
struct Graph : Path {
  enum Kind { kNode, kGenericNode, kCaptured };
  explicit Graph(Kind kind) : kind_(kind) {
    must(cu.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  ~Graph() override { (void)cu.cuStreamDestroy_v2(stream_); }

  CUresult build(CUgraph* graph, CUdeviceptr* p) {
    const CUmemAccessDesc access = read_write();
    if (kind_ == kCaptured) {
      must(cu.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL),
           "cuStreamBeginCapture");
      const CUresult r = cu.cuMemAllocAsync(p, kChunk, stream_);
      const CUresult end = cu.cuStreamEndCapture(stream_, graph);
      return r != CUDA_SUCCESS ? r : end;
    }
    must(cu.cuGraphCreate(graph, 0), "cuGraphCreate");
    CUgraphNode node = nullptr;
    CUresult r = CUDA_SUCCESS;
    if (kind_ == kNode) {
      CUDA_MEM_ALLOC_NODE_PARAMS params{};
      params.poolProps = pool_on_card();
      params.accessDescs = &access, params.accessDescCount = 1, params.bytesize = kChunk;
      r = cu.cuGraphAddMemAllocNode(&node, *graph, nullptr, 0, &params);
      *p = params.dptr;
    } else {
      CUgraphNodeParams params{};
      params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
      params.alloc.poolProps = pool_on_card();
      params.alloc.accessDescs = &access, params.alloc.accessDescCount = 1,
      params.alloc.bytesize = kChunk;
      r = cu.cuGraphAddNode_v2(&node, *graph, nullptr, nullptr, 0, &params);
      *p = params.alloc.dptr;
    }
    if (r != CUDA_SUCCESS) (void)cu.cuGraphDestroy(*graph);
    return r;
  }
  CUresult take() override {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr p = 0;
    CUresult r = build(&graph, &p);
    if (r != CUDA_SUCCESS) return r;
    r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    (void)cu.cuGraphDestroy(graph);
    if (r != CUDA_SUCCESS) return r;
    r = cu.cuGraphLaunch(exec, stream_);
    if (r == CUDA_SUCCESS) r = cu.cuStreamSynchronize(stream_);
    if (r != CUDA_SUCCESS) {
      (void)cu.cuGraphExecDestroy(exec);
      return r;
    }
    pieces_.push_back({exec, p});
    return r;
  }
  void drop() override {
    for (const Piece& piece : pieces_) {
      must(cu.cuMemFreeAsync(piece.p, stream_), "cuMemFreeAsync of graph memory");
      must(cu.cuStreamSynchronize(stream_), "cuStreamSynchronize");
      must(cu.cuGraphExecDestroy(piece.exec), "cuGraphExecDestroy");
    }
    pieces_.clear();
  }
  size_t held() const override { return graph_reserved(); }
  size_t slack() const override { return kGrowth + kChunk; }
  struct Piece {
    CUgraphExec exec;
    CUdeviceptr p;
  };
  Kind kind_;
  CUstream stream_ = nullptr;
  std::vector<Piece> pieces_;
};

struct Array : Pieces {
  explicit Array(bool deep) : Pieces(deep ? 64 * kMiB : 16 * kMiB), deep_(deep) {}
  CUresult take() override {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR flat{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    CUDA_ARRAY3D_DESCRIPTOR deep{256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0};
    const CUresult r =
        deep_ ? cu.cuArray3DCreate_v2(&array, &deep) : cu.cuArrayCreate_v2(&array, &flat);
    if (r == CUDA_SUCCESS) arrays_.push_back(array);
    return r;
  }
  void drop() override {
    for (const CUarray a : arrays_) must(cu.cuArrayDestroy(a), "cuArrayDestroy");
    arrays_.clear();
  }
  size_t count() const override { return arrays_.size(); }
  bool deep_;
  std::vector<CUarray> arrays_;
};

struct Mipmap : Pieces {
  Mipmap() : Pieces(22 * kMiB) {}
  CUresult take() override {
    CUmipmappedArray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    const CUresult r = cu.cuMipmappedArrayCreate(&array, &shape, 11);
    if (r == CUDA_SUCCESS) arrays_.push_back(array);
    return r;
  }
  void drop() override {
    for (const CUmipmappedArray a : arrays_)
      must(cu.cuMipmappedArrayDestroy(a), "cuMipmappedArrayDestroy");
    arrays_.clear();
  }
  size_t count() const override { return arrays_.size(); }
  std::vector<CUmipmappedArray> arrays_;
};

struct Case {
  const char* name;
  bool common;  // also tried by every other way in
  std::function<std::unique_ptr<Path>()> make;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"cuMemAlloc 16 MiB", true, [] { return std::make_unique<Plain>(kChunk); }},
      {"cuMemAlloc 1 MiB+1", false, [] { return std::make_unique<Plain>(kMiB + 1); }},
      {"cuMemAlloc 2 MiB+1", false, [] { return std::make_unique<Plain>(2 * kMiB + 1); }},
      {"cuMemAlloc 3 MiB", false, [] { return std::make_unique<Plain>(3 * kMiB); }},
      {"cuMemAllocPitch, 4-byte rows", true, [] { return std::make_unique<Pitch>(); }},
      {"cuMemAllocManaged", false, [] { return std::make_unique<Managed>(); }},
      {"cuMemCreate", true, [] { return std::make_unique<Create>(); }},
      {"map-then-release", false, [] { return std::make_unique<Mapped>(false); }},
      {"retained handle", false, [] { return std::make_unique<Mapped>(true); }},
      {"cuMemAllocAsync", true, [] { return std::make_unique<Async>(Async::kDefault); }},
      {"cuMemAllocAsync_ptsz", false, [] { return std::make_unique<Async>(Async::kPerThread); }},
      {"cuMemAllocFromPoolAsync", true, [] { return std::make_unique<Async>(Async::kOwnPool); }},
      {"cuMemAllocAsync, kept by the pool", false,
       [] { return std::make_unique<Async>(Async::kKeep); }},
      {"cuGraphAddMemAllocNode", true, [] { return std::make_unique<Graph>(Graph::kNode); }},
      {"cuGraphAddNode", false, [] { return std::make_unique<Graph>(Graph::kGenericNode); }},
      {"captured cuMemAllocAsync", false, [] { return std::make_unique<Graph>(Graph::kCaptured); }},
      {"cuArrayCreate", true, [] { return std::make_unique<Array>(false); }},
      {"cuArray3DCreate", false, [] { return std::make_unique<Array>(true); }},
      {"cuMipmappedArrayCreate", false, [] { return std::make_unique<Mipmap>(); }},
  };
  return all;
}

void fill(const Case& c, const std::string& prefix) {
  const std::string name = prefix + c.name;
  const Memory before = memory();
  CUresult result = CUDA_SUCCESS;
  size_t held = 0, free_then = 0, slack = 0;
  {
    std::unique_ptr<Path> path = c.make();
    while (result == CUDA_SUCCESS && path->held() < before.free + kGiB) result = path->take();
    held = path->held(), slack = path->slack();
    free_then = memory().free;
    path->drop();
  }
  check(result == CUDA_ERROR_OUT_OF_MEMORY && held <= before.free && before.free - held <= slack,
        name,
        text("advertised %s, got %s, left %s, %s", mib(before.free).c_str(), mib(held).c_str(),
             mib(free_then).c_str(),
             result == CUDA_SUCCESS ? "NEVER REFUSED" : error_name(result).c_str()));
  // The whole budget again, in one piece, by another path: what pools and graphs kept is trimmed
  // for it.
  const size_t whole = before.free / kGranule * kGranule;
  CUdeviceptr p = 0;
  const CUresult again = cu.cuMemAlloc_v2(&p, whole);
  if (again == CUDA_SUCCESS) must(cu.cuMemFree_v2(p), "cuMemFree");
  if (again != CUDA_SUCCESS)
    check(false, name + ", then the whole budget by cuMemAlloc", error_name(again));
}

// Ten thousand blocks of 512 bytes live in a few 2 MiB slabs: they cost some MiB, not 20 GB, and
// not nothing.
void small_blocks() {
  const size_t before = memory().free;
  std::vector<CUdeviceptr> blocks(10000);
  for (CUdeviceptr& p : blocks) must(cu.cuMemAlloc_v2(&p, 512), "cuMemAlloc of 512 bytes");
  const size_t cost = before - memory().free;
  for (const CUdeviceptr p : blocks) must(cu.cuMemFree_v2(p), "cuMemFree");
  const size_t after = memory().free;
  check(cost >= 10000 * 512 / kGranule * kGranule && cost <= 16 * kMiB, "10,000 blocks of 512 B",
        "charged " + mib(cost));
  check(before - after <= kGranule, "10,000 blocks of 512 B, freed",
        "still charged " + mib(before - after));
}

}  // namespace

int main(int argc, char** argv) {
  std::string way = "dlopen", only;
  bool common_only = false;
  for (int i = 1; i < argc; i++) {
    const std::string arg = argv[i];
    if (arg == "--way" && i + 1 < argc)
      way = argv[++i];
    else if (arg == "--only" && i + 1 < argc)
      only = argv[++i];
    else if (arg == "--quick")
      common_only = true;
    else
      die("usage: paths [--way WAY] [--only TEXT] [--quick]");
  }
#ifdef GPU_LINKED
  way = "linked";
#endif
  const std::string prefix = way == "dlopen" ? "" : way + ": ";
  start(way);
  const Memory m = memory();
  if (grant() == kNothing) die("run me inside a cap: mete cap --gpu 16G -- paths");
  if (prefix.empty())
    check(m.total == grant() && m.free >= grant() - 536 * kMiB - 64 * kMiB, "advertised",
          text("grant %s, total %s, free %s, context and reserve %s", mib(grant()).c_str(),
               mib(m.total).c_str(), mib(m.free).c_str(), mib(m.total - m.free).c_str()));
  for (const Case& c : cases()) {
    if (!only.empty() && std::string(c.name).find(only) == std::string::npos) continue;
    if (common_only && !c.common) continue;
    // Managed memory beyond some hundred MiB is no test for a shared card: a run of its own under a
    // small cap.
    if (strstr(c.name, "Managed") && m.free > kGiB) continue;
    fill(c, prefix);
  }
  if (prefix.empty() && only.empty()) small_blocks();
  return failures ? 1 : 0;
}
