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
  Block** buckets = nullptr;
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
  Block** const buckets = static_cast<Block**>(calloc(size, sizeof(Block*)));
  if (buckets == nullptr) return table.size != 0;  // a crowded table still works
  for (size_t i = 0; i < table.size; i++) {
    for (Block* block = table.buckets[i]; block != nullptr;) {
      Block* const next = block->hash_next;
      Block*& head = buckets[bucket_of(block->address, size)];
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

bool table_insert(Block* block) {
  if (table.count >= table.size && !table_grow()) return false;
  Block*& head = table.buckets[bucket_of(block->address, table.size)];
  block->hash_next = head;
  head = block;
  table.count++;
  return true;
}

void table_remove(Block* block) {
  Block** link = &table.buckets[bucket_of(block->address, table.size)];
  while (*link != block) link = &(*link)->hash_next;
  *link = block->hash_next;
  table.count--;
}

}  // namespace

Block* block_at(uint64_t address) {
  if (table.size == 0) return nullptr;
  Block* block = table.buckets[bucket_of(address, table.size)];
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

void PoolHeap::bin_insert(Block* block) {
  const int bin = bin_of(block->bytes);
  block->bin_before = nullptr;
  block->bin_after = bins_[bin];
  if (bins_[bin] != nullptr) bins_[bin]->bin_before = block;
  bins_[bin] = block;
  filled_[bin / 64] |= 1ull << (bin % 64);
}

void PoolHeap::bin_remove(Block* block) {
  const int bin = bin_of(block->bytes);
  if (block->bin_before != nullptr)
    block->bin_before->bin_after = block->bin_after;
  else
    bins_[bin] = block->bin_after;
  if (block->bin_after != nullptr) block->bin_after->bin_before = block->bin_before;
  if (bins_[bin] == nullptr) filled_[bin / 64] &= ~(1ull << (bin % 64));
}

void PoolHeap::pending_insert(Block* block) {
  block->pending_before = nullptr;
  block->pending_after = pending_;
  if (pending_ != nullptr) pending_->pending_before = block;
  pending_ = block;
  block->slab->pending_blocks++;
}

void PoolHeap::pending_remove(Block* block) {
  if (block->pending_before != nullptr)
    block->pending_before->pending_after = block->pending_after;
  else
    pending_ = block->pending_after;
  if (block->pending_after != nullptr) block->pending_after->pending_before = block->pending_before;
  block->slab->pending_blocks--;
}

Block* PoolHeap::scan(int bin, uint64_t bytes, Usable usable, void* asker) const {
  int looked = 0;
  for (Block* block = bins_[bin]; block != nullptr && looked < kScan; block = block->bin_after) {
    looked++;
    if (block->bytes >= bytes && (block->stamp.stream == 0 || usable(block->stamp, asker)))
      return block;
  }
  return nullptr;
}

Block* PoolHeap::take(uint64_t requested, Usable usable, void* asker) {
  const uint64_t bytes = (requested + kCell - 1) / kCell * kCell;
  Block* found = nullptr;
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
  Block* tail = nullptr;
  if (found->bytes > bytes) {
    tail = make<Block>();
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
    tail->slab = found->slab;
    tail->before = found;
    tail->after = found->after;
    if (tail->after != nullptr) tail->after->before = tail;
    found->after = tail;
    found->bytes = bytes;
    tail->is_free = true;
    tail->stamp = found->stamp;
    bin_insert(tail);
    if (tail->stamp.stream != 0) pending_insert(tail);
  }
  found->is_free = false;
  found->requested = requested;
  found->slab->live_blocks++;
  used_ += bytes;
  table_insert(found);
  return found;
}

// Two free neighbours become one when both are clean, or when both were freed in the same stream
// (the later of the two places then stands for both).
Block* PoolHeap::join_neighbours(Block* block) {
  for (;;) {
    Block* left = nullptr;
    if (block->before != nullptr && block->before->is_free &&
        block->before->stamp.stream == block->stamp.stream)
      left = block->before;
    else if (block->after != nullptr && block->after->is_free &&
             block->after->stamp.stream == block->stamp.stream)
      left = block;
    if (left == nullptr) return block;
    Block* const right = left->after;
    bin_remove(left);
    bin_remove(right);
    if (right->stamp.stream != 0) pending_remove(right);
    if (right->stamp.sequence > left->stamp.sequence) left->stamp.sequence = right->stamp.sequence;
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after != nullptr) left->after->before = left;
    bin_insert(left);
    destroy(right);
    block = left;
  }
}

void PoolHeap::give(Block* block, Stamp stamp) {
  table_remove(block);
  used_ -= block->bytes;
  block->slab->live_blocks--;
  block->is_free = true;
  block->stamp = stamp;
  bin_insert(block);
  if (stamp.stream != 0) pending_insert(block);
  join_neighbours(block);
}

bool PoolHeap::add(Slab* slab) {
  Block* const block = make<Block>();
  if (block == nullptr) return false;
  block->address = slab->address;
  block->bytes = slab->bytes;
  block->slab = slab;
  block->is_free = true;
  slab->first = block;
  slab->next = slabs_;
  slabs_ = slab;
  reserved_ += slab->bytes;
  bin_insert(block);
  return true;
}

void PoolHeap::remove(Slab* slab) {
  // The first block never moves: joining keeps the left one.
  for (Block* block = slab->first; block != nullptr;) {
    Block* const next = block->after;
    bin_remove(block);
    if (block->stamp.stream != 0) pending_remove(block);
    destroy(block);
    block = next;
  }
  Slab** link = &slabs_;
  while (*link != slab) link = &(*link)->next;
  *link = slab->next;
  reserved_ -= slab->bytes;
}

void PoolHeap::settle(Usable seen, void* asker) {
  for (Block* block = pending_; block != nullptr;) {
    Block* const next = block->pending_after;
    if (seen(block->stamp, asker)) {
      pending_remove(block);
      block->stamp = {};
      join_neighbours(block);  // destroys clean blocks only, so `next` stays valid
    }
    block = next;
  }
}

}  // namespace simgpu
