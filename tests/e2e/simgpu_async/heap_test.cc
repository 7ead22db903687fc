// SPDX-License-Identifier: Apache-2.0
// The sub-allocator of pools against a plain model: random requests, frees, sightings, growth and
// shrinking; no two live blocks overlap, every byte is accounted for.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "simgpu/pool_heap.h"

namespace simgpu {
namespace {

constexpr uint64_t kStep = 32ull << 20;

bool always(const Mark&, void*) { return true; }
bool never(const Mark&, void*) { return false; }
bool up_to(const Mark& mark, void* sequence) {
  return mark.sequence <= *static_cast<uint64_t*>(sequence);
}

class HeapTest : public testing::Test {
 protected:
  void grow(uint64_t address, uint64_t bytes) {
    Slab* const slab = make<Slab>();
    slab->address = address;
    slab->bytes = bytes;
    ASSERT_TRUE(heap_.add(slab));
  }
  void shrink() {
    for (;;) {
      const PoolHeap::Idle idle = heap_.idle_slab();
      if (idle.slab == nullptr) return;
      ASSERT_TRUE(heap_.remove(idle));
      destroy(idle.slab);
    }
  }
  ~HeapTest() override {
    while (Slab* const slab = heap_.drop_one()) destroy(slab);
  }
  PoolHeap heap_;
};

TEST_F(HeapTest, BlocksLieAcrossAdjacentSlabs) {
  grow(kStep, kStep);
  ASSERT_NE(heap_.take(20 << 20, always, nullptr), nullptr);
  EXPECT_EQ(heap_.take(20 << 20, always, nullptr), nullptr);
  EXPECT_EQ(heap_.free_before(2 * kStep), 12ull << 20);
  grow(2 * kStep, kStep);
  const PoolBlock* const across = heap_.take(20 << 20, always, nullptr);
  ASSERT_NE(across, nullptr);
  EXPECT_EQ(across->address, kStep + (20ull << 20));
  EXPECT_EQ(heap_.reserved(), 2 * kStep);
}

TEST_F(HeapTest, AFreeThatNobodySawServesOnlyWhoMayUseIt) {
  grow(kStep, kStep);
  PoolBlock* const block = heap_.take(kStep, always, nullptr);
  heap_.give(block, {7, 1});
  EXPECT_EQ(heap_.take(kStep, never, nullptr), nullptr);
  EXPECT_EQ(heap_.idle_slab().slab, nullptr);
  uint64_t seen = 1;
  heap_.settle(up_to, &seen);
  EXPECT_NE(heap_.idle_slab().slab, nullptr);
}

TEST_F(HeapTest, RandomTrafficNeverOverlapsAndAllComesBack) {
  std::mt19937 random(20261115);
  std::map<uint64_t, PoolBlock*> live;  // by address
  uint64_t sequence = 0;
  uint64_t expected_used = 0;
  uint64_t next_address = kStep;
  for (int round = 0; round < 200000; round++) {
    const uint64_t action = random() % 100;
    if (action < 50 || live.empty()) {
      const uint64_t bytes = action < 3 ? 1 + random() % (80u << 20) : 1 + random() % (64u << 10);
      PoolBlock* block = heap_.take(bytes, always, nullptr);
      if (block == nullptr) {
        const uint64_t need = (bytes + kStep - 1) / kStep * kStep;
        if (random() % 8 == 0) next_address += kStep;  // now and then not adjacent
        grow(next_address, need);
        next_address += need;
        block = heap_.take(bytes, always, nullptr);
      }
      ASSERT_NE(block, nullptr);
      ASSERT_GE(block->bytes, bytes);
      ASSERT_EQ(block_at(block->address), block);
      const auto after = live.lower_bound(block->address);
      if (after != live.end()) {
        ASSERT_LE(block->address + block->bytes, after->first);
      }
      if (after != live.begin()) {
        const PoolBlock* const before = std::prev(after)->second;
        ASSERT_LE(before->address + before->bytes, block->address);
      }
      block->stamp = {};
      expected_used += bytes;
      live[block->address] = block;
    } else if (action < 97) {
      auto victim = live.lower_bound(kStep + random() % (next_address - kStep));
      if (victim == live.end()) victim = live.begin();
      expected_used -= victim->second->requested;
      heap_.give(victim->second, {1 + random() % 3, ++sequence});
      live.erase(victim);
    } else {
      uint64_t seen = sequence - (sequence > 10 ? random() % 10 : 0);
      heap_.settle(up_to, &seen);
      if (action == 99) shrink();
    }
    ASSERT_EQ(heap_.used(), expected_used);
    ASSERT_LE(heap_.used(), heap_.reserved());
  }
  for (const auto& [address, block] : live) heap_.give(block, {});
  heap_.settle(always, nullptr);
  shrink();
  EXPECT_EQ(heap_.used(), 0u);
  EXPECT_EQ(heap_.reserved(), 0u);
}

}  // namespace
}  // namespace simgpu
