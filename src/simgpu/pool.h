// SPDX-License-Identifier: Apache-2.0
// Pools of stream-ordered memory. Physical memory comes in steps of 32 MiB and is returned only
// when a synchronise (or a trim) finds an unused step whose frees the host has seen. Sub-allocation
// does not call the server. Everything under the driver's lock.
#pragma once

#include "simgpu/pool_heap.h"
#include "simgpu/stream.h"

namespace simgpu {

inline constexpr uint64_t kGrowthStep = 32ull << 20;

enum class PoolPlace : uint8_t { kCard, kHost, kManaged };

struct Pool {
  static constexpr uint32_t kMagic = 0x504f4f4c;
  uint32_t magic = kMagic;
  PoolPlace place = PoolPlace::kCard;
  int device = 0;  // whose card; host pools: 0
  bool standard = false;
  bool destroyed = false;
  bool imported = false;
  bool follow_events = true;
  bool opportunistic = true;
  bool internal_dependencies = true;
  CUmemPoolProps props = {};
  uint64_t max_bytes = 0;  // 0: no limit
  uint64_t threshold = 0;
  uint64_t reserved_high = 0;
  uint64_t used_high = 0;
  uint32_t readable = 0;
  uint32_t writable = 0;
  uint64_t window = 0;  // addresses that slabs on the card come from, one behind the other
  uint64_t window_bytes = 0;
  PoolHeap heap;
  Pool* next = nullptr;
};

inline CUmemoryPool handle_of(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }
Pool* find_pool(CUmemoryPool handle);
Pool* make_pool(const CUmemPoolProps& props, PoolPlace place, int device);
void destroy_pool(Pool* pool);
Pool* default_pool(PoolPlace place, int device);
Pool* current_pool(PoolPlace place, int device);
void set_current_pool(PoolPlace place, int device, Pool* pool);

CUresult pool_alloc(Pool* pool, uint64_t bytes, Stream* stream, CUdeviceptr* out);
// The live block of a pool that begins at `address` is free from here on in the stream's work.
CUresult pool_free(PoolBlock* block, Stream* stream);
// Gives back unused steps. A trim leaves at least `bytes` reserved; a synchronise goes on while
// more than `bytes` (the release threshold) are.
enum class Floor : uint8_t { kKeep, kThreshold };
void pool_shrink(Pool* pool, uint64_t bytes, Floor floor);
// After any synchronise: pools above their release threshold shrink.
void pools_after_synchronize(int device);

// pool_share.cc: memory imported by pointer.
bool free_imported(CUdeviceptr address);

}  // namespace simgpu
