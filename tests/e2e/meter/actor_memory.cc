// SPDX-License-Identifier: Apache-2.0
// Every way to take memory, under one name each, and how each is given back. take() dispatches by
// kind, records the piece with its way back, and give() uses it; `fill` repeats a kind until it is
// refused.
#include <stdexcept>

#include "actor.h"

namespace actor {
namespace {

std::map<int, Piece> kept;
int last_id = 0;
std::map<CUdevice, CUstream> streams;
std::map<CUdevice, CUmemoryPool> own_pools;
std::map<std::string, CUmemoryPool> special_pools;  // of managed or host memory, by kind

CUresult build_graph(const std::string& kind, uint64_t bytes, CUdevice device, CUgraph* graph,
                     CUdeviceptr* pointer) {
  const CUstream stream = stream_here();
  if (kind == "captured") {
    if (const CUresult r = CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        r != CUDA_SUCCESS)
      return r;
    const CUresult r = CU(cuMemAllocAsync)(pointer, bytes, stream);
    const CUresult end = CU(cuStreamEndCapture)(stream, graph);
    return r != CUDA_SUCCESS ? r : end;
  }
  if (const CUresult r = CU(cuGraphCreate)(graph, 0); r != CUDA_SUCCESS) return r;
  const CUmemAccessDesc access = mete::abi::access_on(device);
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps = mete::abi::pool_on(device);
  params.accessDescs = &access;
  params.accessDescCount = 1;
  params.bytesize = bytes;
  CUgraphNode node = nullptr;
  const CUresult r = CU(cuGraphAddMemAllocNode)(&node, *graph, nullptr, 0, &params);
  *pointer = params.dptr;
  return r;
}

CUresult take_graph(const std::string& kind, uint64_t bytes, CUdevice device, Piece* out) {
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  CUgraphExec exec = nullptr;
  CUresult r = build_graph(kind, bytes, device, &graph, &pointer);
  if (r == CUDA_SUCCESS) r = CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
  if (graph != nullptr) (void)CU(cuGraphDestroy)(graph);
  if (r != CUDA_SUCCESS) return r;
  r = CU(cuGraphLaunch)(exec, stream_here());
  if (r == CUDA_SUCCESS) r = CU(cuStreamSynchronize)(stream_here());
  if (r != CUDA_SUCCESS) {
    (void)CU(cuGraphExecDestroy)(exec);
    return r;
  }
  out->value = pointer;
  out->exec = reinterpret_cast<uint64_t>(exec);
  return r;
}

CUresult take_array(const std::string& kind, uint64_t bytes, CUdeviceptr* out) {
  // Rows of 64 KiB, whole blocks of 128 rows and 16 slices: the size is exactly what was asked for.
  CUDA_ARRAY3D_DESCRIPTOR deep{4096, bytes >> 16, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  CUDA_ARRAY_DESCRIPTOR flat{4096, bytes >> 16, CU_AD_FORMAT_FLOAT, 4};
  if (kind == "array") return CU(cuArrayCreate_v2)(reinterpret_cast<CUarray*>(out), &flat);
  if (kind == "array3d") {
    deep.Height = bytes >> 20;
    deep.Depth = 16;
    return CU(cuArray3DCreate_v2)(reinterpret_cast<CUarray*>(out), &deep);
  }
  return CU(cuMipmappedArrayCreate)(reinterpret_cast<CUmipmappedArray*>(out), &deep, 1);
}

CUresult take_from_pool(const std::string& kind, uint64_t bytes, CUdevice device,
                        CUdeviceptr* out) {
  CUmemoryPool pool = nullptr;
  CUresult r = CUDA_SUCCESS;
  if (kind == "default-pool") {
    r = CU(cuDeviceGetDefaultMemPool)(&pool, device);
  } else if (CUmemoryPool& own = own_pools[device]; own == nullptr) {
    const CUmemPoolProps props = mete::abi::pool_on(device);
    r = CU(cuMemPoolCreate)(&own, &props);
    pool = own;
  } else {
    pool = own;
  }
  if (r != CUDA_SUCCESS) return r;
  return CU(cuMemAllocFromPoolAsync)(out, bytes, pool, stream_here());
}

bool is_special(const std::string& kind) {
  return kind.find("managed-pool") != std::string::npos ||
         kind.find("host-pool") != std::string::npos;
}

// managed-pool, host-pool: pools of the program's own; with default- or current- those of the
// driver.
CUresult special_pool(const std::string& kind, CUmemoryPool* out) {
  CUmemoryPool& pool = special_pools[kind];
  CUresult r = CUDA_SUCCESS;
  if (pool == nullptr) {
    const bool managed = kind.find("managed") != std::string::npos;
    CUmemPoolProps props{};
    props.allocType = managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = managed ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
    if (kind.starts_with("default-"))
      r = CU(cuMemGetDefaultMemPool)(&pool, &props.location, props.allocType);
    else if (kind.starts_with("current-"))
      r = CU(cuMemGetMemPool)(&pool, &props.location, props.allocType);
    else
      r = CU(cuMemPoolCreate)(&pool, &props);
  }
  *out = pool;
  return r;
}

CUresult take_special(const std::string& kind, uint64_t bytes, CUdeviceptr* out) {
  CUmemoryPool pool = nullptr;
  const CUresult r = special_pool(kind, &pool);
  return r != CUDA_SUCCESS ? r : CU(cuMemAllocFromPoolAsync)(out, bytes, pool, stream_here());
}

// Maps a handle and releases the handle: only the mapping holds the memory.
CUresult take_mapped(uint64_t bytes, CUdevice device, CUdeviceptr* out) {
  const CUmemAllocationProp prop = mete::abi::memory_on(device);
  CUmemGenericAllocationHandle handle{};
  CUresult r = CU(cuMemCreate)(&handle, bytes, &prop, 0);
  if (r != CUDA_SUCCESS) return r;
  r = CU(cuMemAddressReserve)(out, bytes, 0, 0, 0);
  if (r == CUDA_SUCCESS) r = CU(cuMemMap)(*out, bytes, 0, handle, 0);
  const CUresult released = CU(cuMemRelease)(handle);
  return r != CUDA_SUCCESS ? r : released;
}

std::string list_kinds_taken(const Words& w) {
  // take KIND BYTES [DEVICE]: the driver's code and an id.
  CUresult code = CUDA_SUCCESS;
  const int id =
      take(w[1], number(w[2]),
           static_cast<CUdevice>(number_or(w, 3, static_cast<uint64_t>(current_device()))), &code);
  return answer(code, id);
}

// fill KIND CHUNK [MOST]: until refused; the code of the refusal and how many bytes there are now.
std::string fill(const Words& w) {
  const uint64_t chunk = number(w[2]);
  const uint64_t most = number_or(w, 3, 1ull << 40);
  uint64_t got = 0;
  CUresult code = CUDA_SUCCESS;
  while (got + chunk <= most && take(w[1], chunk, current_device(), &code) >= 0) got += chunk;
  return answer(code, got);
}

std::string drop_all(const Words&) {
  CUresult code = CUDA_SUCCESS;
  for (const int id : pieces())
    if (const CUresult r = drop(id); r != CUDA_SUCCESS) code = r;
  (void)CU(cuCtxSynchronize)();
  return answer(code);
}

}  // namespace

// Kept, so that frees go where the allocation went.
CUstream stream_here() {
  CUstream& stream = streams[current_device()];
  if (stream == nullptr) (void)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

int keep(const Piece& piece) {
  kept[++last_id] = piece;
  return last_id;
}
Piece& piece(int id) { return kept.at(id); }
void forget(int id) { kept.erase(id); }
std::vector<int> pieces() {
  std::vector<int> ids;
  for (const auto& [id, piece] : kept) ids.push_back(id);
  return ids;
}

int take(const std::string& kind, uint64_t bytes, CUdevice device, CUresult* code) {
  Piece piece{kind, 0, bytes, nullptr, 0};
  CUdeviceptr* out = &piece.value;
  if (kind == "alloc") {
    *code = CU(cuMemAlloc_v2)(out, bytes);
  } else if (kind == "pitch") {  // rows of four bytes, padded to 512 by the card
    size_t pitch = 0;
    *code = CU(cuMemAllocPitch_v2)(out, &pitch, 4, bytes / 512, 4);
  } else if (kind == "managed") {
    *code = CU(cuMemAllocManaged)(out, bytes, CU_MEM_ATTACH_GLOBAL);
  } else if (kind == "create" || kind == "exportable") {
    const CUmemAllocationProp prop = mete::abi::memory_on(device, kind == "exportable");
    *code = CU(cuMemCreate)(out, bytes, &prop, 0);
  } else if (kind == "mapped") {
    *code = take_mapped(bytes, device, out);
  } else if (kind == "async") {
    *code = CU(cuMemAllocAsync)(out, bytes, piece.stream = stream_here());
  } else if (kind == "async-ptsz") {
    *code = CU(cuMemAllocAsync_ptsz)(out, bytes, piece.stream = stream_here());
  } else if (kind == "own-pool" || kind == "default-pool") {
    *code = take_from_pool(kind, bytes, device, out);
    piece.stream = stream_here();
  } else if (is_special(kind)) {
    *code = take_special(kind, bytes, out);
    piece.stream = stream_here();
  } else if (kind == "async-other") {  // on the stream of another device than the current one
    *code = CU(cuMemAllocAsync)(out, bytes, piece.stream = streams[device]);
  } else if (kind == "graph" || kind == "captured") {
    *code = take_graph(kind, bytes, device, &piece);
    piece.stream = stream_here();
  } else if (kind == "array" || kind == "array3d" || kind == "mipmap") {
    *code = take_array(kind, bytes, out);
  } else {
    throw std::runtime_error("no such kind: " + kind);
  }
  return *code == CUDA_SUCCESS ? keep(piece) : -1;
}

CUresult drop(int id) {
  const Piece piece = kept.at(id);
  CUresult r = CUDA_SUCCESS;
  if (piece.kind == "create" || piece.kind == "exportable" || piece.kind == "imported") {
    r = CU(cuMemRelease)(piece.value);
  } else if (piece.kind == "mapped") {
    r = CU(cuMemUnmap)(piece.value, piece.bytes);
    if (r == CUDA_SUCCESS) r = CU(cuMemAddressFree)(piece.value, piece.bytes);
  } else if (piece.stream != nullptr) {
    r = CU(cuMemFreeAsync)(piece.value, piece.stream);
    if (r == CUDA_SUCCESS && piece.exec != 0) {
      (void)CU(cuStreamSynchronize)(piece.stream);
      r = CU(cuGraphExecDestroy)(reinterpret_cast<CUgraphExec>(piece.exec));
    }
  } else if (piece.kind == "array" || piece.kind == "array3d") {
    r = CU(cuArrayDestroy)(reinterpret_cast<CUarray>(piece.value));
  } else if (piece.kind == "mipmap") {
    r = CU(cuMipmappedArrayDestroy)(reinterpret_cast<CUmipmappedArray>(piece.value));
  } else if (piece.kind == "opened") {
    r = CU(cuIpcCloseMemHandle)(piece.value);
  } else {
    r = CU(cuMemFree_v2)(piece.value);
  }
  if (r == CUDA_SUCCESS) kept.erase(id);
  return r;
}

void add_memory_commands() {
  auto& c = commands();
  c["take"] = list_kinds_taken;
  c["drop"] = [](const Words& w) { return answer(drop(static_cast<int>(number(w[1])))); };
  c["drop-all"] = drop_all;
  c["drop-last"] = [](const Words&) { return answer(drop(kept.rbegin()->first)); };
  c["drop-others"] = [](const Words& w) {  // drop-others ID: all but this one
    CUresult code = CUDA_SUCCESS;
    for (const int id : pieces())
      if (id != static_cast<int>(number(w[1])))
        if (const CUresult r = drop(id); r != CUDA_SUCCESS) code = r;
    return answer(code);
  };
  c["fill"] = fill;
  c["stream"] = [](const Words&) { return answer(stream_here() == nullptr ? 1 : 0); };
  c["sync"] = [](const Words&) { return answer(CU(cuStreamSynchronize)(stream_here())); };
  c["sync-another"] = [](const Words&) {
    CUstream stream = nullptr;
    (void)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    const CUresult r = CU(cuStreamSynchronize)(stream);
    (void)CU(cuStreamDestroy_v2)(stream);
    return answer(r);
  };
  c["free"] = [](const Words& w) { return answer(CU(cuMemFree_v2)(number(w[1]))); };
  c["trim"] = [](const Words&) { return answer(CU(cuDeviceGraphMemTrim)(current_device())); };
  c["keep-pool"] = [](const Words& w) {  // a release threshold for the default pool
    CUmemoryPool pool = nullptr;
    cuuint64_t bytes = number(w[1]);
    CUresult r = CU(cuDeviceGetDefaultMemPool)(&pool, current_device());
    if (r == CUDA_SUCCESS)
      r = CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
    return answer(r);
  };
  c["drop-plain"] = [](const Words& w) {  // cuMemFree, whatever it is
    const int id = static_cast<int>(number(w[1]));
    const CUresult r = CU(cuMemFree_v2)(piece(id).value);
    if (r == CUDA_SUCCESS) forget(id);
    return answer(r);
  };
  c["drop-async"] = [](const Words& w) {  // cuMemFreeAsync, whatever it is
    const int id = static_cast<int>(number(w[1]));
    const CUresult r = CU(cuMemFreeAsync)(piece(id).value, stream_here());
    if (r == CUDA_SUCCESS) forget(id);
    return answer(r);
  };
  c["pool-reserved"] = [](const Words&) {  // what the default pool holds, and held at most
    CUmemoryPool pool = nullptr;
    cuuint64_t now = 0;
    cuuint64_t high = 0;
    CUresult r = CU(cuDeviceGetDefaultMemPool)(&pool, current_device());
    if (r == CUDA_SUCCESS)
      r = CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now);
    if (r == CUDA_SUCCESS)
      r = CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &high);
    return answer(r, now, high);
  };
  c["set-pool"] = [](const Words& w) {
    const auto device = static_cast<CUdevice>(number_or(w, 1, 0));
    return answer(CU(cuDeviceSetMemPool)(device, own_pools[device]));
  };
  c["default-is-current"] = [](const Words&) {
    CUmemoryPool current = nullptr;
    CUmemoryPool standard = nullptr;
    (void)CU(cuDeviceGetMemPool)(&current, current_device());
    (void)CU(cuDeviceGetDefaultMemPool)(&standard, current_device());
    return answer(current == standard ? 0 : 1);
  };
  c["destroy-special"] = [](const Words& w) {
    const CUresult r = CU(cuMemPoolDestroy)(special_pools.at(w[1]));
    special_pools.erase(w[1]);
    return answer(r);
  };
  c["keep-special"] = [](const Words& w) {  // keep-special KIND BYTES: a release threshold
    CUmemoryPool pool = nullptr;
    CUresult r = special_pool(w[1], &pool);
    cuuint64_t bytes = number(w[2]);
    if (r == CUDA_SUCCESS)
      r = CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
    return answer(r);
  };
  c["reserved-special"] = [](const Words& w) {
    cuuint64_t bytes = 0;
    const CUresult r = CU(cuMemPoolGetAttribute)(special_pools.at(w[1]),
                                                 CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return answer(r, bytes);
  };
  c["destroy-pool"] = [](const Words& w) {
    const auto device = static_cast<CUdevice>(number_or(w, 1, 0));
    const CUresult r = CU(cuMemPoolDestroy)(own_pools[device]);
    own_pools.erase(device);
    return answer(r);
  };
  c["blocks"] = [](const Words& w) {  // blocks COUNT BYTES: that many live blocks
    CUresult code = CUDA_SUCCESS;
    uint64_t got = 0;
    while (got < number(w[1]) && take("alloc", number(w[2]), 0, &code) >= 0) ++got;
    return answer(code, got);
  };
  c["launch"] = [](const Words& w) {  // launch ID: the graph that made it, once more
    const auto exec = reinterpret_cast<CUgraphExec>(piece(static_cast<int>(number(w[1]))).exec);
    const CUresult r = CU(cuGraphLaunch)(exec, stream_here());
    return answer(r != CUDA_SUCCESS ? r : CU(cuStreamSynchronize)(stream_here()));
  };
  // Two allocation nodes, one on each of two devices, in one graph.
  c["two-card-graph"] = [](const Words& w) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUresult r = CU(cuGraphCreate)(&graph, 0);
    for (CUdevice device = 0; device < 2 && r == CUDA_SUCCESS; ++device) {
      CUDA_MEM_ALLOC_NODE_PARAMS params{};
      params.poolProps = mete::abi::pool_on(device);
      params.bytesize = number(w[1]);
      CUgraphNode node = nullptr;
      r = CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params);
    }
    if (r == CUDA_SUCCESS) r = CU(cuGraphInstantiateWithFlags)(&exec, graph, 0);
    if (r == CUDA_SUCCESS) r = CU(cuGraphLaunch)(exec, stream_here());
    if (r == CUDA_SUCCESS) r = CU(cuStreamSynchronize)(stream_here());
    return answer(r);
  };
}

}  // namespace actor
