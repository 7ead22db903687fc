// SPDX-License-Identifier: Apache-2.0
// Every path that an allocation can take, each written once: how one more piece is taken, what all
// of them hold, how they are given back. Functions are called through gpu::cu: ways.h decides how
// they were found, fill.h judges what was had. The paths of linear memory and of arrays are here,
// those of pools and graphs in paths_stream.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/gpu/gpu.h"

namespace gpu {

constexpr size_t kChunk = 16 * kMiB;

// One path. take() adds one piece; held() is the physical memory of all pieces.
struct Path {
  virtual ~Path() = default;
  virtual CUresult take() = 0;
  virtual std::string drop() = 0;  // gives all back; says what was wrong about it, or nothing
  virtual size_t held() const = 0;
  virtual size_t slack() const = 0;  // how much of what was free may be left over
};

// Pieces of a known physical size, each known by a handle or an address.
template <class Piece>
struct Pieces : Path {
  explicit Pieces(size_t unit) : unit_(unit) {}
  virtual CUresult make(Piece* piece) = 0;
  virtual CUresult destroy(Piece piece) = 0;
  CUresult take() override {
    Piece piece{};
    const CUresult r = make(&piece);
    if (r == CUDA_SUCCESS) pieces_.push_back(piece);
    return r;
  }
  std::string drop() override {
    for (const Piece& piece : pieces_) must(destroy(piece), "giving a piece back");
    pieces_.clear();
    return "";
  }
  size_t held() const override { return pieces_.size() * unit_; }
  size_t slack() const override { return unit_; }
  size_t unit_;
  std::vector<Piece> pieces_;
};

struct Plain : Pieces<CUdeviceptr> {
  explicit Plain(size_t request) : Pieces(round_up(request, kGranule)), request_(request) {}
  CUresult make(CUdeviceptr* p) override { return cu.cuMemAlloc_v2(p, request_); }
  CUresult destroy(CUdeviceptr p) override { return cu.cuMemFree_v2(p); }
  size_t request_;
};

// Narrow rows: four bytes wide, so that the pitch is 128 times what was asked for.
constexpr unsigned kRows = 65536;

struct Pitch : Plain {
  Pitch() : Plain(32 * kMiB) {}
  CUresult make(CUdeviceptr* p) override {
    size_t pitch = 0;
    const CUresult r = cu.cuMemAllocPitch_v2(p, &pitch, 4, kRows, 4);
    if (r == CUDA_SUCCESS) unit_ = round_up(pitch * kRows, kGranule);
    return r;
  }
};

struct Managed : Plain {
  Managed() : Plain(kChunk) {}
  CUresult make(CUdeviceptr* p) override {
    return cu.cuMemAllocManaged(p, kChunk, CU_MEM_ATTACH_GLOBAL);
  }
};

struct Create : Pieces<CUmemGenericAllocationHandle> {
  Create() : Pieces(kChunk) {}
  CUresult make(CUmemGenericAllocationHandle* h) override {
    const CUmemAllocationProp prop = on_card();
    return cu.cuMemCreate(h, kChunk, &prop, 0);
  }
  CUresult destroy(CUmemGenericAllocationHandle h) override { return cu.cuMemRelease(h); }
};

// Map, then release the handle at once: the memory lives until it is unmapped.
// kRetained: instead the mapping goes and a retained handle keeps the memory alive.
// kInParts: half of the mappings go first, in one call, and exactly half must be free then.
struct Mapped : Path {
  enum Kind { kReleased, kRetained, kInParts };
  explicit Mapped(Kind kind) : kind_(kind) {
    span_ = round_up(memory().free + 2 * kGiB, kChunk);
    must(cu.cuMemAddressReserve(&base_, span_, 0, 0, 0), "cuMemAddressReserve");
  }
  ~Mapped() override { (void)cu.cuMemAddressFree(base_, span_); }

  CUresult take() override {
    const CUmemAllocationProp prop = on_card();
    CUmemGenericAllocationHandle h{};
    const CUresult r = cu.cuMemCreate(&h, kChunk, &prop, 0);
    if (r != CUDA_SUCCESS) return r;
    const CUdeviceptr at = base_ + count_ * kChunk;
    const CUmemAccessDesc access = read_write();
    must(cu.cuMemMap(at, kChunk, 0, h, 0), "cuMemMap");
    must(cu.cuMemSetAccess(at, kChunk, &access, 1), "cuMemSetAccess");
    must(cu.cuMemRelease(h), "cuMemRelease");
    if (kind_ == kRetained) {
      CUmemGenericAllocationHandle again{};
      must(cu.cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)),
           "cuMemRetainAllocationHandle");
      must(cu.cuMemUnmap(at, kChunk), "cuMemUnmap");
      handles_.push_back(again);
    }
    count_++;
    return r;
  }
  std::string drop() override {
    for (const CUmemGenericAllocationHandle h : handles_) must(cu.cuMemRelease(h), "cuMemRelease");
    std::string wrong;
    size_t gone = kind_ == kRetained ? count_ : 0;
    if (kind_ == kInParts && count_ > 1) {
      gone = count_ / 2;
      const size_t before = memory().free;
      must(cu.cuMemUnmap(base_, gone * kChunk), "cuMemUnmap of half");
      const size_t back = memory().free - before;
      if (back != gone * kChunk) wrong = "unmapping half gave back " + mib(back);
    }
    if (count_ > gone)
      must(cu.cuMemUnmap(base_ + gone * kChunk, (count_ - gone) * kChunk), "cuMemUnmap");
    handles_.clear();
    count_ = 0;
    return wrong;
  }
  size_t held() const override { return count_ * kChunk; }
  size_t slack() const override { return kChunk; }
  Kind kind_;
  CUdeviceptr base_ = 0;
  size_t span_ = 0, count_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

struct Array : Pieces<CUarray> {
  explicit Array(bool deep) : Pieces(deep ? 64 * kMiB : 16 * kMiB), deep_(deep) {}
  CUresult make(CUarray* array) override {
    const CUDA_ARRAY_DESCRIPTOR flat{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    const CUDA_ARRAY3D_DESCRIPTOR deep{256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0};
    return deep_ ? cu.cuArray3DCreate_v2(array, &deep) : cu.cuArrayCreate_v2(array, &flat);
  }
  CUresult destroy(CUarray array) override { return cu.cuArrayDestroy(array); }
  bool deep_;
};

struct Mipmap : Pieces<CUmipmappedArray> {
  Mipmap() : Pieces(22 * kMiB) {}
  CUresult make(CUmipmappedArray* array) override {
    const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    return cu.cuMipmappedArrayCreate(array, &shape, 11);
  }
  CUresult destroy(CUmipmappedArray array) override { return cu.cuMipmappedArrayDestroy(array); }
};

// ---- CUDA 3.1: 32-bit sizes and addresses, in a context of its own kind ----
struct OldPlain : Pieces<CUdeviceptr_v1> {
  explicit OldPlain(bool rows) : Pieces(rows ? 32 * kMiB : kChunk), rows_(rows) {}
  CUresult make(CUdeviceptr_v1* p) override {
    if (!rows_) return cu.cuMemAlloc(p, kChunk);
    unsigned pitch = 0;
    const CUresult r = cu.cuMemAllocPitch(p, &pitch, 4, kRows, 4);
    if (r == CUDA_SUCCESS) unit_ = round_up(size_t{pitch} * kRows, kGranule);
    return r;
  }
  CUresult destroy(CUdeviceptr_v1 p) override { return cu.cuMemFree(p); }
  bool rows_;
};

struct OldArray : Array {
  explicit OldArray(bool deep) : Array(deep) {}
  CUresult make(CUarray* array) override {
    const CUDA_ARRAY_DESCRIPTOR_v1 flat{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    const CUDA_ARRAY3D_DESCRIPTOR_v1 deep{256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0};
    return deep_ ? cu.cuArray3DCreate(array, &deep) : cu.cuArrayCreate(array, &flat);
  }
};

}  // namespace gpu
