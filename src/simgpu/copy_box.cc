// SPDX-License-Identifier: Apache-2.0
// 2D and 3D copies: both sides become a first byte, a pitch and a slice; adjacent rows are moved
// together. Arrays are kept row by row, without padding.
#include "simgpu/copy.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

struct Box {
  CUdeviceptr first;
  size_t pitch;  // between rows
  size_t slice;  // between slices
  Side side;
};

struct Corner {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z;
  size_t pitch, height;
};

struct Extent {
  size_t width, height, depth;
};

CUresult array_box(const Corner& corner, const Extent& extent, Box* box) {
  const Array* array = find_array(corner.array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (array->block == 0) return CUDA_ERROR_INVALID_VALUE;  // deferred: no memory behind it
  const size_t width = array->shape.Width * element_bytes(array->shape);
  const size_t height = array->shape.Height == 0 ? 1 : array->shape.Height;
  const size_t depth = array->shape.Depth == 0 ? 1 : array->shape.Depth;
  if (corner.x + extent.width > width || corner.y + extent.height > height ||
      corner.z + extent.depth > depth) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *box = {array->block + array->level_offset, width, width * height, Side::kKnown};
  return CUDA_SUCCESS;
}

CUresult make_box(const Corner& corner, const Extent& extent, Box* box) {
  if (corner.type == CU_MEMORYTYPE_ARRAY) {
    const CUresult result = array_box(corner, extent, box);
    if (result != CUDA_SUCCESS) return result;
  } else {
    const size_t pitch = corner.pitch != 0 ? corner.pitch : corner.x + extent.width;
    const size_t height = corner.height != 0 ? corner.height : corner.y + extent.height;
    if (pitch < extent.width) return CUDA_ERROR_INVALID_VALUE;
    box->pitch = pitch;
    box->slice = pitch * height;
    switch (corner.type) {
      case CU_MEMORYTYPE_HOST:
        box->first = reinterpret_cast<CUdeviceptr>(corner.host);
        box->side = Side::kHost;
        break;
      case CU_MEMORYTYPE_DEVICE:
        box->first = corner.device;
        box->side = Side::kKnown;
        break;
      case CU_MEMORYTYPE_UNIFIED:
        box->first = corner.device;
        box->side = Side::kAny;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  box->first += corner.x + corner.y * box->pitch + corner.z * box->slice;
  return CUDA_SUCCESS;
}

enum class Pass : uint8_t { kCheck, kMove };

CUresult pass_over(const Box& to, const Box& from, const Extent& extent, Pass pass) {
  const bool rows_touch = to.pitch == extent.width && from.pitch == extent.width;
  const size_t run = rows_touch ? extent.width * extent.height : extent.width;
  const size_t runs = rows_touch ? 1 : extent.height;
  for (size_t z = 0; z < extent.depth; ++z) {
    for (size_t y = 0; y < runs; ++y) {
      const Copy copy{to.first + z * to.slice + y * to.pitch,
                      from.first + z * from.slice + y * from.pitch, run, to.side, from.side};
      CUresult result = CUDA_SUCCESS;
      if (pass == Pass::kMove) {
        result = copy_checked(copy);
      } else {
        result = check_span(copy.to, run, true, copy.to_side);
        if (result == CUDA_SUCCESS) result = check_span(copy.from, run, false, copy.from_side);
      }
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

// First checks that all of it is valid, then (if asked) moves the bytes.
CUresult go_over(const CUDA_MEMCPY3D& what, Pass last) {
  const Extent extent{what.WidthInBytes, what.Height, what.Depth};
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_SUCCESS;
  const Corner from{what.srcMemoryType, what.srcHost,     what.srcDevice,
                    what.srcArray,      what.srcXInBytes, what.srcY,
                    what.srcZ,          what.srcPitch,    what.srcHeight};
  const Corner to{what.dstMemoryType, what.dstHost, what.dstDevice, what.dstArray, what.dstXInBytes,
                  what.dstY,          what.dstZ,    what.dstPitch,  what.dstHeight};
  Box from_box{}, to_box{};
  const Guard guard;
  CUresult result = make_box(from, extent, &from_box);
  if (result == CUDA_SUCCESS) result = make_box(to, extent, &to_box);
  if (result == CUDA_SUCCESS) result = pass_over(to_box, from_box, extent, Pass::kCheck);
  if (result == CUDA_SUCCESS && last == Pass::kMove) {
    result = pass_over(to_box, from_box, extent, Pass::kMove);
  }
  return result;
}

}  // namespace

CUresult copy_3d(const CUDA_MEMCPY3D* what) {
  return what == nullptr ? CUDA_ERROR_INVALID_VALUE : go_over(*what, Pass::kMove);
}

CUresult check_3d(const CUDA_MEMCPY3D& what) { return go_over(what, Pass::kCheck); }

CUDA_MEMCPY3D one_slice(const CUDA_MEMCPY2D& what) {
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = what.srcXInBytes;
  box.srcY = what.srcY;
  box.srcMemoryType = what.srcMemoryType;
  box.srcHost = what.srcHost;
  box.srcDevice = what.srcDevice;
  box.srcArray = what.srcArray;
  box.srcPitch = what.srcPitch;
  box.dstXInBytes = what.dstXInBytes;
  box.dstY = what.dstY;
  box.dstMemoryType = what.dstMemoryType;
  box.dstHost = what.dstHost;
  box.dstDevice = what.dstDevice;
  box.dstArray = what.dstArray;
  box.dstPitch = what.dstPitch;
  box.WidthInBytes = what.WidthInBytes;
  box.Height = what.Height;
  box.Depth = 1;
  return box;
}

}  // namespace simgpu
