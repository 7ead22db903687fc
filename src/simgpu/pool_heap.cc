// SPDX-License-Identifier: Apache-2.0
// See pool_heap.h. Free blocks hang in bins: four bins per power of two of 512-byte cells, a bitmap
// says which are filled. A request looks into its own bin, then into the next filled ones, a few
// blocks each, so the cost is bounded. Live blocks are found by address through one hash table.
#include "simgpu/pool_heap.h"

#include <cstdlib>
#include <cstring>

#include "simgpu/stream_list.h"

namespace simgpu {
namespace {

constexpr int kScan = 32;  // blocks looked at in one bin before the next one is tried

struct Table {
  PoolBlock** buckets = nullptr;
  size_t size = 0;  // a power of two
  size_t count = 0;
};
constinit Table table;

size_t bucket_of(uint64_t address, size_t size) {
  return static_cast<size_t>((address / PoolHeap::kCell) * 0x9e3779b97f4a7c15ull >> 17) &
         (size - 1);
}

bool table_grow() {
  const size_t size = table.size == 0 ? 1024 : table.size * 2;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is what is meant
  PoolBlock** const buckets = static_cast<PoolBlock**>(calloc(size, sizeof(PoolBlock*)));
  if (buckets == nullptr) return table.size != 0;  // a crowded table still works
  for (size_t i = 0; i < table.size; i++) {
    for (PoolBlock* block = table.buckets[i]; block != nullptr;) {
      PoolBlock* const next = block->hash_next;
      PoolBlock*& head = buckets[bucket_of(block->address, size)];
      block->hash_next = head;
      head = block;
      block = next;
    }
  }
  free(table.buckets);
  table.buckets = buckets;
  table.size = size;
  return true;
}

bool table_insert(PoolBlock* block) {
  if (table.count >= table.size && !table_grow()) return false;
  PoolBlock*& head = table.buckets[bucket_of(block->address, table.size)];
  block->hash_next = head;
  head = block;
  table.count++;
  return true;
}

void table_remove(PoolBlock* block) {
  PoolBlock** link = &table.buckets[bucket_of(block->address, table.size)];
  while (*link != block) link = &(*link)->hash_next;
  *link = block->hash_next;
  table.count--;
}

}  // namespace

PoolBlock* block_at(uint64_t address) {
  if (table.size == 0) return nullptr;
  PoolBlock* block = table.buckets[bucket_of(address, table.size)];
  while (block != nullptr && block->address != address) block = block->hash_next;
  return block;
}

// Cells 1, 2, 3 have bins 0..; from 4 on the two bits after the leading one choose among four:
// 4 -> 8, 5 -> 9, 6 -> 10, 7 -> 11, 8 and 9 -> 12, 10 and 11 -> 13, ...
int PoolHeap::bin_of(uint64_t bytes) {
  const uint64_t cells = bytes / kCell;
  if (cells < 4) return static_cast<int>(cells);
  const int top = 63 - __builtin_clzll(cells);
  const int bin = top * 4 + static_cast<int>((cells >> (top - 2)) & 3);
  return bin < kBins ? bin : kBins - 1;
}

void PoolHeap::bin_insert(PoolBlock* block) {
  const int bin = bin_of(block->bytes);
  block->bin_before = nullptr;
  block->bin_after = bins_[bin];
  if (bins_[bin] != nullptr) bins_[bin]->bin_before = block;
  bins_[bin] = block;
  filled_[bin / 64] |= 1ull << (bin % 64);
}

void PoolHeap::bin_remove(PoolBlock* block) {
  const int bin = bin_of(block->bytes);
  if (block->bin_before != nullptr)
    block->bin_before->bin_after = block->bin_after;
  else
    bins_[bin] = block->bin_after;
  if (block->bin_after != nullptr) block->bin_after->bin_before = block->bin_before;
  if (bins_[bin] == nullptr) filled_[bin / 64] &= ~(1ull << (bin % 64));
}

void PoolHeap::pending_insert(PoolBlock* block) {
  block->pending_before = nullptr;
  block->pending_after = pending_;
  if (pending_ != nullptr) pending_->pending_before = block;
  pending_ = block;
}

void PoolHeap::pending_remove(PoolBlock* block) {
  if (block->pending_before != nullptr)
    block->pending_before->pending_after = block->pending_after;
  else
    pending_ = block->pending_after;
  if (block->pending_after != nullptr) block->pending_after->pending_before = block->pending_before;
}

PoolBlock* PoolHeap::scan(int bin, uint64_t bytes, Usable usable, void* asker) const {
  int looked = 0;
  for (PoolBlock* block = bins_[bin]; block != nullptr && looked < kScan;
       block = block->bin_after) {
    looked++;
    if (block->bytes >= bytes && (block->stamp.stream == 0 || usable(block->stamp, asker)))
      return block;
  }
  return nullptr;
}

PoolBlock* PoolHeap::take(uint64_t requested, Usable usable, void* asker) {
  const uint64_t bytes = (requested + kCell - 1) / kCell * kCell;
  PoolBlock* found = nullptr;
  for (int bin = bin_of(bytes); bin < kBins && found == nullptr; bin++) {
    const uint64_t rest = filled_[bin / 64] >> (bin % 64);
    if (rest == 0) {
      bin = bin / 64 * 64 + 63;  // nothing more in this word
      continue;
    }
    bin += __builtin_ctzll(rest);
    found = scan(bin, bytes, usable, asker);
  }
  if (found == nullptr) return nullptr;
  PoolBlock* tail = nullptr;
  if (found->bytes > bytes) {
    tail = make<PoolBlock>();
    if (tail == nullptr) return nullptr;
  }
  if (table.count >= table.size && !table_grow()) {
    destroy(tail);
    return nullptr;
  }
  bin_remove(found);
  if (found->stamp.stream != 0) pending_remove(found);
  if (tail != nullptr) {
    tail->address = found->address + bytes;
    tail->bytes = found->bytes - bytes;
    tail->pool = found->pool;
    link_after(tail, found);
    found->bytes = bytes;
    tail->is_free = true;
    tail->stamp = found->stamp;
    bin_insert(tail);
    if (tail->stamp.stream != 0) pending_insert(tail);
  }
  found->is_free = false;
  found->requested = requested;
  used_ += requested;
  table_insert(found);
  return found;
}

void PoolHeap::link_after(PoolBlock* block, PoolBlock* before) {
  block->before = before;
  block->after = before == nullptr ? first_ : before->after;
  (before == nullptr ? first_ : before->after) = block;
  (block->after == nullptr ? last_ : block->after->before) = block;
}

void PoolHeap::unlink(PoolBlock* block) {
  (block->before == nullptr ? first_ : block->before->after) = block->after;
  (block->after == nullptr ? last_ : block->after->before) = block->before;
}

void PoolHeap::forget_free(PoolBlock* block) {
  bin_remove(block);
  if (block->stamp.stream != 0) pending_remove(block);
}

// Two free neighbours become one if they are adjacent and both are clean, or both were freed in one
// stream (the later of the two places then stands for both).
// NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyzer loses track of the list's two directions
PoolBlock* PoolHeap::join_neighbours(PoolBlock* block) {
  const auto joinable = [](const PoolBlock* left, const PoolBlock* right) {
    return left != nullptr && right != nullptr && left->is_free && right->is_free &&
           left->address + left->bytes == right->address &&
           left->stamp.stream == right->stamp.stream;
  };
  for (;;) {
    PoolBlock* left = nullptr;
    if (joinable(block->before, block))
      left = block->before;
    else if (joinable(block, block->after))
      left = block;
    if (left == nullptr) return block;
    PoolBlock* const right = left->after;
    bin_remove(left);
    forget_free(right);
    if (right->stamp.sequence > left->stamp.sequence) left->stamp.sequence = right->stamp.sequence;
    left->bytes += right->bytes;
    unlink(right);
    bin_insert(left);
    destroy(right);
    block = left;
  }
}

// NOLINTEND(clang-analyzer-unix.Malloc)

void PoolHeap::give(PoolBlock* block, Mark stamp) {
  table_remove(block);
  used_ -= block->requested;
  block->is_free = true;
  block->stamp = stamp;
  bin_insert(block);
  if (stamp.stream != 0) pending_insert(block);
  join_neighbours(block);
}

bool PoolHeap::add(Slab* slab) {
  PoolBlock* const block = make<PoolBlock>();
  if (block == nullptr) return false;
  block->address = slab->address;
  block->bytes = slab->bytes;
  block->pool = slab->pool;
  block->is_free = true;
  PoolBlock* before = last_;  // nearly always behind everything else
  while (before != nullptr && before->address > block->address) before = before->before;
  link_after(block, before);
  slab->next = slabs_;
  slabs_ = slab;
  reserved_ += slab->bytes;
  bin_insert(block);
  join_neighbours(block);
  return true;
}

// Free blocks as large as a step are few (they join), and the newest slab is the likeliest.
PoolHeap::Idle PoolHeap::idle_slab() const {
  uint64_t smallest = ~0ull;
  for (const Slab* slab = slabs_; slab != nullptr; slab = slab->next)
    if (slab->bytes < smallest) smallest = slab->bytes;
  for (int bin = slabs_ == nullptr ? kBins : bin_of(smallest); bin < kBins; bin++) {
    for (PoolBlock* block = bins_[bin]; block != nullptr; block = block->bin_after) {
      if (block->stamp.stream != 0) continue;
      for (Slab* slab = slabs_; slab != nullptr; slab = slab->next)
        if (block->address <= slab->address &&
            slab->address + slab->bytes <= block->address + block->bytes)
          return {slab, block};
    }
  }
  return {nullptr, nullptr};
}

// Cuts the slab out of the free block around it: the parts left and right of it stay free.
bool PoolHeap::remove(const Idle& idle) {
  Slab* const slab = idle.slab;
  PoolBlock* const block = idle.block;
  const uint64_t end = block->address + block->bytes;
  const uint64_t slab_end = slab->address + slab->bytes;
  PoolBlock* right = nullptr;
  if (end > slab_end) {
    right = make<PoolBlock>();
    if (right == nullptr) return false;
    right->address = slab_end;
    right->bytes = end - slab_end;
    right->pool = slab->pool;
    right->is_free = true;
    link_after(right, block);
  }
  forget_free(block);
  if (block->address < slab->address) {
    block->bytes = slab->address - block->address;
    block->stamp = {};
    bin_insert(block);
  } else {
    unlink(block);
    destroy(block);
  }
  if (right != nullptr) bin_insert(right);
  Slab** link = &slabs_;
  while (*link != slab) link = &(*link)->next;
  *link = slab->next;
  reserved_ -= slab->bytes;
  return true;
}

// NOLINTBEGIN(clang-analyzer-unix.Malloc): as above
Slab* PoolHeap::drop_one() {
  while (first_ != nullptr) {
    PoolBlock* const block = first_;
    if (block->is_free)
      forget_free(block);
    else
      table_remove(block);
    unlink(block);
    destroy(block);
  }
  used_ = 0;
  Slab* const slab = slabs_;
  if (slab == nullptr) return nullptr;
  slabs_ = slab->next;
  reserved_ -= slab->bytes;
  return slab;
}

// NOLINTEND(clang-analyzer-unix.Malloc)

uint64_t PoolHeap::free_before(uint64_t address) const {
  const PoolBlock* block = last_;
  while (block != nullptr && block->address >= address) block = block->before;
  if (block == nullptr || !block->is_free || block->address + block->bytes != address) return 0;
  // A new slab is clean: it joins its neighbour only if that is clean too.
  return block->stamp.stream == 0 ? block->bytes : 0;
}

const PoolBlock* PoolHeap::around(uint64_t address) const {
  const PoolBlock* block = block_at(address);
  if (block != nullptr) return block;
  block = first_;
  while (block != nullptr && block->address + block->bytes <= address) block = block->after;
  return block != nullptr && !block->is_free && block->address <= address ? block : nullptr;
}

void PoolHeap::settle(Usable seen, void* asker) {
  for (PoolBlock* block = pending_; block != nullptr;) {
    PoolBlock* const next = block->pending_after;
    if (seen(block->stamp, asker)) {
      pending_remove(block);
      block->stamp = {};
      join_neighbours(block);  // destroys clean blocks only, so `next` stays valid
    }
    block = next;
  }
}

}  // namespace simgpu
