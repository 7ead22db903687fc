// SPDX-License-Identifier: Apache-2.0
// Sub-allocation inside a pool: pure arithmetic on addresses, no server, no clock. Slabs with
// adjacent addresses are one space: a block may cross them, so that odd sizes waste nothing.
// Finding, splitting and giving back cost as much with ten blocks as with a hundred thousand. The
// caller holds the driver's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/driver.h"
#include "simgpu/stream_work.h"

namespace simgpu {

struct Pool;
struct Slab;

struct PoolBlock {
  uint64_t address = 0;
  uint64_t bytes = 0;
  Pool* pool = nullptr;
  PoolBlock* before = nullptr;  // neighbours in the pool, by address (not always adjacent)
  PoolBlock* after = nullptr;
  PoolBlock* bin_before = nullptr;  // free blocks: neighbours in the bin
  PoolBlock* bin_after = nullptr;
  PoolBlock* pending_before = nullptr;  // free blocks with a stamp: neighbours in the pending list
  PoolBlock* pending_after = nullptr;
  PoolBlock* hash_next = nullptr;  // live blocks: the next one in the bucket
  uint64_t requested = 0;
  bool is_free = false;
  Mark stamp;  // free blocks: where in which stream's work; stream 0: seen complete
};

// One piece of physical memory of a pool, a multiple of the growth step.
struct Slab {
  Range range = {};  // addresses and backing
  Pool* pool = nullptr;
  void* host = nullptr;  // memory of a pool on the host
  uint64_t address = 0;
  uint64_t bytes = 0;
  Slab* next = nullptr;
};

class PoolHeap {
 public:
  static constexpr uint64_t kCell = 512;
  static constexpr int kBins = 160;

  // Whether a block freed at `stamp` may be used now by the asker.
  using Usable = bool (*)(const Mark& stamp, void* asker);

  // A live block of at least `bytes`, or nullptr when no free block that `usable` allows fits.
  PoolBlock* take(uint64_t bytes, Usable usable, void* asker);
  // The block is free from `stamp` on (stream 0: from now on).
  void give(PoolBlock* block, Mark stamp);
  // Takes over `slab`, all of it free. False without host memory.
  bool add(Slab* slab);
  // A slab that lies in a free block seen complete, and that block; both null: none.
  struct Idle {
    Slab* slab;
    PoolBlock* block;
  };
  Idle idle_slab() const;
  // Forgets an idle slab; the caller owns it again. False without host memory.
  bool remove(const Idle& idle);
  // Forgets everything; the slabs, now unlinked, are handed back one by one.
  Slab* drop_one();
  // Free bytes, seen complete, that end at `address`: what a new slab there would join.
  uint64_t free_before(uint64_t address) const;
  // The live block around an address (a walk: for queries, not for the fast path).
  const PoolBlock* around(uint64_t address) const;
  // Drops the stamp of every free block for which `seen` returns true, and joins neighbours.
  void settle(Usable seen, void* asker);

  Slab* slabs() const { return slabs_; }
  uint64_t used() const { return used_; }
  uint64_t reserved() const { return reserved_; }

 private:
  static int bin_of(uint64_t bytes);
  void bin_insert(PoolBlock* block);
  void bin_remove(PoolBlock* block);
  void pending_insert(PoolBlock* block);
  void pending_remove(PoolBlock* block);
  void link_after(PoolBlock* block, PoolBlock* before);
  void unlink(PoolBlock* block);
  void forget_free(PoolBlock* block);
  PoolBlock* join_neighbours(PoolBlock* block);
  PoolBlock* scan(int bin, uint64_t bytes, Usable usable, void* asker) const;

  PoolBlock* bins_[kBins] = {};
  uint64_t filled_[(kBins + 63) / 64] = {};
  PoolBlock* pending_ = nullptr;
  PoolBlock* first_ = nullptr;  // all blocks, by address
  PoolBlock* last_ = nullptr;
  Slab* slabs_ = nullptr;
  uint64_t used_ = 0;
  uint64_t reserved_ = 0;
};

// The live block that starts at this address, in any pool; nullptr when there is none.
PoolBlock* block_at(uint64_t address);

}  // namespace simgpu
