// SPDX-License-Identifier: Apache-2.0
// Sparse arrays: which memory is bound to which tile, in the order of the stream. A tile has 64
// KiB; there are no mip tails. An array with deferred mapping is one tile. Contents are not
// simulated.
#include <stddef.h>
#include <stdlib.h>

#include "simgpu/bound.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

constexpr size_t kTileBytes = 64 << 10;

constexpr int kMap = 1;
constexpr int kUnmap = 2;

struct Place {
  const Array* array;
  unsigned level, layer;
  unsigned at[3];  // in tiles
};

struct Tile {
  Place place;
  VmmHandle* memory;
  Tile* next;
};
Tile* tiles = nullptr;

struct Extent {
  unsigned side[3];
};

bool is_sparse(const Array* array) { return (array->shape.Flags & CUDA_ARRAY3D_SPARSE) != 0; }

Extent tile_of(const Array* array) {
  const bool volume = array->shape.Depth > 0 &&
                      (array->shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  switch (element_bytes(array->shape)) {
    case 1:
      return volume ? Extent{{64, 32, 32}} : Extent{{256, 256, 1}};
    case 2:
      return volume ? Extent{{32, 32, 32}} : Extent{{256, 128, 1}};
    case 4:
      return volume ? Extent{{32, 32, 16}} : Extent{{128, 128, 1}};
    case 8:
      return volume ? Extent{{32, 16, 16}} : Extent{{128, 64, 1}};
    default:
      return volume ? Extent{{16, 16, 16}} : Extent{{64, 64, 1}};
  }
}

// One entry of the list, checked: from tile `first` to below tile `end`.
struct Step {
  const Array* array;
  VmmHandle* memory;  // nullptr: unmap; else held until the step is done
  unsigned level, layer;
  unsigned first[3], end[3];
};

bool is_at(const Tile* tile, const Step& step) {
  if (tile->place.array != step.array || tile->place.level != step.level ||
      tile->place.layer != step.layer)
    return false;
  for (int i = 0; i < 3; ++i)
    if (tile->place.at[i] < step.first[i] || tile->place.at[i] >= step.end[i]) return false;
  return true;
}

template <class Which>
void drop_tiles(Which which) {
  for (Tile** link = &tiles; *link != nullptr;) {
    Tile* tile = *link;
    if (!which(tile)) {
      link = &tile->next;
      continue;
    }
    *link = tile->next;
    drop_memory(tile->memory);
    free(tile);
  }
}

CUresult run_step(void* arguments) {
  const Step& step = *static_cast<Step*>(arguments);
  const Guard guard;
  drop_tiles([&](const Tile* tile) { return is_at(tile, step); });
  if (step.memory == nullptr) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (unsigned z = step.first[2]; z < step.end[2]; ++z)
    for (unsigned y = step.first[1]; y < step.end[1]; ++y)
      for (unsigned x = step.first[0]; x < step.end[0]; ++x) {
        auto* tile = static_cast<Tile*>(calloc(1, sizeof(Tile)));
        if (tile == nullptr) {
          result = CUDA_ERROR_OUT_OF_MEMORY;
          continue;
        }
        *tile = {{step.array, step.level, step.layer, {x, y, z}}, step.memory, tiles};
        tiles = tile;
        hold_memory(step.memory);
      }
  drop_memory(step.memory);
  return result;
}

CUresult read_step(const CUarrayMapInfo& info, Step* step) {
  const auto& sparse = info.subresource.sparseLevel;
  const unsigned offset[3] = {sparse.offsetX, sparse.offsetY, sparse.offsetZ};
  const unsigned extent[3] = {sparse.extentWidth, sparse.extentHeight, sparse.extentDepth};
  const Array* array = find_array(info.resource.array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!array->deferred || info.subresourceType != 0 || sparse.level >= array->levels ||
      (info.memOperationType != kMap && info.memOperationType != kUnmap))
    return CUDA_ERROR_INVALID_VALUE;
  *step = {array, nullptr, sparse.level, sparse.layer, {}, {1, 1, 1}};
  size_t count = 1;
  if (is_sparse(array)) {
    const Extent tile = tile_of(array);
    for (int i = 0; i < 3; ++i) {
      if (extent[i] == 0 || offset[i] % tile.side[i] != 0) return CUDA_ERROR_INVALID_VALUE;
      step->first[i] = offset[i] / tile.side[i];
      step->end[i] = (offset[i] + extent[i] + tile.side[i] - 1) / tile.side[i];
      count *= step->end[i] - step->first[i];
    }
  }
  if (info.memOperationType == kUnmap) return CUDA_SUCCESS;
  VmmHandle* memory = vmm_find(info.memHandle.memHandle);
  const size_t bytes = is_sparse(array) ? count * kTileBytes : array->size;
  if (memory == nullptr || memory->group != nullptr || memory->references == 0 ||
      info.offset > memory->bytes || bytes > memory->bytes - info.offset)
    return CUDA_ERROR_INVALID_VALUE;
  if (info.deviceBitMask != 1u << memory->prop.location.id) return CUDA_ERROR_INVALID_DEVICE;
  step->memory = memory;
  return CUDA_SUCCESS;
}

CUresult map_arrays(const CUarrayMapInfo* list, unsigned count, CUstream stream, bool per_thread) {
  if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const Guard guard;
    Step step{};
    if (const CUresult wrong = read_step(list[i], &step); wrong != CUDA_SUCCESS) return wrong;
  }
  for (unsigned i = 0; i < count; ++i) {
    Step step{};
    {
      const Guard guard;
      (void)read_step(list[i], &step);
      if (step.memory != nullptr) hold_memory(step.memory);
    }
    const CUresult result = stream_submit(stream, per_thread, run_step, &step, sizeof step);
    if (result == CUDA_SUCCESS) continue;
    const Guard guard;
    if (step.memory != nullptr) drop_memory(step.memory);
    return result;
  }
  return CUDA_SUCCESS;
}

CUresult properties(CUDA_ARRAY_SPARSE_PROPERTIES* out, const Array* array) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!is_sparse(array)) return CUDA_ERROR_INVALID_VALUE;
  const Extent tile = tile_of(array);
  *out = {};
  out->tileExtent = {tile.side[0], tile.side[1], tile.side[2]};
  out->miptailFirstLevel = array->levels;
  return CUDA_SUCCESS;
}

}  // namespace

void sparse_end(const Array* array) {
  drop_tiles([array](const Tile* tile) { return tile->place.array == array; });
}

}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemMapArrayAsync);
  return map_arrays(list, count, stream, false);
}

extern "C" CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count,
                                            CUstream stream) {
  SIM_ENTRY_CONTEXT(cuMemMapArrayAsync_ptsz);
  return map_arrays(list, count, stream, true);
}

extern "C" CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* out, CUarray array) {
  SIM_ENTRY_CONTEXT(cuArrayGetSparseProperties);
  const Guard guard;
  return properties(out, find_array(array));
}
