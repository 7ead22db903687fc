// SPDX-License-Identifier: Apache-2.0
// The list of all allocation paths, and the judgement of one: fill() takes pieces until one is
// refused. All that was advertised must be had, to within one chunk (pools, graphs: one growth step
// more), not a byte more, the refusal must be CUDA_ERROR_OUT_OF_MEMORY, and afterwards the whole
// budget must be there again in one piece. Never takes more than 1 GiB above what was advertised:
// an uncapped run does no harm.
#pragma once

#include "tests/gpu/paths.h"
#include "tests/gpu/paths_stream.h"

namespace gpu {

struct Case {
  const char* name;
  std::function<std::unique_ptr<Path>()> make;
  bool old = false;  // needs a context of CUDA 3.1
};

template <class Kind, class... Arguments>
Case path(const char* name, Arguments... arguments) {
  return {name, [=]() -> std::unique_ptr<Path> { return std::make_unique<Kind>(arguments...); }};
}
template <class Kind, class... Arguments>
Case old_path(const char* name, Arguments... arguments) {
  Case c = path<Kind>(name, arguments...);
  c.old = true;
  return c;
}

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      path<Plain>("cuMemAlloc 16 MiB", kChunk),
      path<Plain>("cuMemAlloc 1 MiB+1", kMiB + 1),
      path<Plain>("cuMemAlloc 2 MiB+1", 2 * kMiB + 1),
      path<Plain>("cuMemAlloc 3 MiB", 3 * kMiB),
      path<Pitch>("cuMemAllocPitch, 4-byte rows"),
      path<Managed>("cuMemAllocManaged"),
      path<Create>("cuMemCreate"),
      path<Mapped>("map-then-release", Mapped::kReleased),
      path<Mapped>("map-then-release, unmapped in parts", Mapped::kInParts),
      path<Mapped>("retained handle", Mapped::kRetained),
      path<Async>("cuMemAllocAsync", Async::kDefault, false),
      path<Async>("cuMemAllocAsync_ptsz", Async::kDefault, true),
      path<Async>("cuMemAllocFromPoolAsync", Async::kOwn, false),
      path<Async>("cuMemAllocFromPoolAsync_ptsz", Async::kOwn, true),
      path<Async>("cuMemAllocAsync, kept by the pool", Async::kKept, false),
      path<Async>("cuMemAllocAsync, cuDeviceSetMemPool", Async::kSet, false),
      path<Graph>("cuGraphAddMemAllocNode", Graph::kNode),
      path<Graph>("cuGraphAddNode", Graph::kOldGeneric),
      path<Graph>("cuGraphAddNode_v2", Graph::kGeneric),
      path<Graph>("cuStreamBeginCapture", Graph::kOldCapture),
      path<Graph>("cuStreamBeginCapture_v2", Graph::kCapture),
      path<Graph>("cuStreamBeginCaptureToGraph", Graph::kCaptureToGraph),
      path<Graph>("captured cuMemAllocFromPoolAsync", Graph::kCapturePool),
      path<Graph>("cuGraphInstantiate", Graph::kNode, Graph::kFirst),
      path<Graph>("cuGraphInstantiate_v2, cuGraphUpload", Graph::kNode, Graph::kSecond),
      path<Graph>("cuGraphInstantiateWithParams", Graph::kNode, Graph::kParams),
      path<Graph>("cuGraphInstantiateWithParams, upload", Graph::kNode, Graph::kUploaded),
      path<Graph>("graph, all _ptsz", Graph::kNode, Graph::kPerThread),
      path<Array>("cuArrayCreate", false),
      path<Array>("cuArray3DCreate", true),
      path<Mipmap>("cuMipmappedArrayCreate"),
      old_path<OldPlain>("CUDA 3.1 cuMemAlloc", false),
      old_path<OldPlain>("CUDA 3.1 cuMemAllocPitch, 4-byte rows", true),
      old_path<OldArray>("CUDA 3.1 cuArrayCreate", false),
      old_path<OldArray>("CUDA 3.1 cuArray3DCreate", true),
  };
  return all;
}

// Managed memory beyond some hundred MiB is no test for a shared card, and CUDA 3.1 counts in 32
// bits: these paths are for a small grant.
inline bool fits(const Case& c, size_t granted) {
  return granted <= kGiB || (!c.old && !strstr(c.name, "Managed"));
}

// What is free, and one piece of all that, by the functions that the context accepts.
inline size_t advertised(bool old) {
  if (!old) return memory().free;
  unsigned free = 0, total = 0;
  must(cu.cuMemGetInfo(&free, &total), "cuMemGetInfo of CUDA 3.1");
  return free;
}
inline CUresult take_whole(bool old, size_t bytes) {
  CUdeviceptr p = 0;
  CUdeviceptr_v1 narrow = 0;
  const CUresult r =
      old ? cu.cuMemAlloc(&narrow, static_cast<unsigned>(bytes)) : cu.cuMemAlloc_v2(&p, bytes);
  if (r == CUDA_SUCCESS) must(old ? cu.cuMemFree(narrow) : cu.cuMemFree_v2(p), "cuMemFree");
  return r;
}

struct Verdict {
  bool good = false;
  bool had_some = false;
  std::string words;
};

inline Verdict fill(const Case& c) {
  const size_t before = advertised(c.old);
  CUresult result = CUDA_SUCCESS;
  size_t held = 0, left = 0, slack = 0;
  std::string wrong;
  {
    const std::unique_ptr<Path> path = c.make();
    while (result == CUDA_SUCCESS && path->held() < before + kGiB) result = path->take();
    held = path->held(), slack = path->slack();
    left = advertised(c.old);
    wrong = path->drop();
  }
  Verdict v;
  v.words = text("advertised %s, got %s, left %s, %s", mib(before).c_str(), mib(held).c_str(),
                 mib(left).c_str(),
                 result == CUDA_SUCCESS ? "NEVER REFUSED" : error_name(result).c_str());
  v.had_some = held > 0;
  v.good = result == CUDA_ERROR_OUT_OF_MEMORY && held <= before && before - held <= slack;
  // By another path: what pools and graphs kept is trimmed for it.
  const CUresult again = take_whole(c.old, before / kGranule * kGranule);
  if (again != CUDA_SUCCESS) wrong += " then the whole budget: " + error_name(again);
  if (wrong.empty()) return v;
  v.good = false;
  v.words += ", " + wrong;
  return v;
}

}  // namespace gpu
