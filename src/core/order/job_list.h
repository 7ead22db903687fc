// SPDX-License-Identifier: Apache-2.0
// A map from job number to a value, in blocks of a few hundred that lie close together: reading a
// hundred thousand jobs is not one cache miss for each, and inserting or erasing one moves at most
// a block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "core/job/job.h"

namespace mete::core {

template <class Value>
class JobList {
 public:
  using Item = std::pair<JobId, Value>;

  class const_iterator {
   public:
    const_iterator() = default;
    const Item& operator*() const { return (*blocks_)[block_][at_]; }
    const Item* operator->() const { return &**this; }
    const_iterator& operator++() {
      if (++at_ == (*blocks_)[block_].size()) {
        ++block_;
        at_ = 0;
      }
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const {
      return block_ == other.block_ && at_ == other.at_;
    }

   private:
    friend class JobList;
    using Blocks = std::vector<std::vector<Item>>;
    const_iterator(const Blocks& blocks, std::size_t block, std::size_t at)
        : blocks_(&blocks), block_(block), at_(at) {}
    const Blocks* blocks_ = nullptr;
    std::size_t block_ = 0;
    std::size_t at_ = 0;
  };

  const_iterator begin() const { return {blocks_, 0, 0}; }
  const_iterator end() const { return {blocks_, blocks_.size(), 0}; }
  bool empty() const { return blocks_.empty(); }
  bool contains(JobId id) const { return find(id) != end(); }
  const_iterator find(JobId id) const {
    if (blocks_.empty()) return end();
    const Place place = place_of(id);
    const std::vector<Item>& block = blocks_[place.block];
    if (place.at == block.size() || block[place.at].first != id) return end();
    return {blocks_, place.block, place.at};
  }
  // The job must be in the list.
  const Value& at(JobId id) const {
    const const_iterator found = find(id);
    METE_ASSERT(found != end());
    return found->second;
  }

  // False: the job is in the list already.
  bool insert(JobId id, const Value& value) {
    if (blocks_.empty()) {
      blocks_.push_back({Item{id, value}});
      return true;
    }
    const Place place = place_of(id);
    std::vector<Item>& block = blocks_[place.block];
    if (place.at < block.size() && block[place.at].first == id) return false;
    block.insert(block.begin() + static_cast<std::ptrdiff_t>(place.at), Item{id, value});
    if (block.size() > kBlock) split(place.block);
    return true;
  }

  // The job must be in the list.
  void erase(JobId id) {
    METE_ASSERT(contains(id));
    const Place place = place_of(id);
    std::vector<Item>& block = blocks_[place.block];
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(place.at));
    if (block.empty()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(place.block));
  }

 private:
  static constexpr std::size_t kBlock = 512;
  struct Place {
    std::size_t block = 0;
    std::size_t at = 0;
  };

  // Where the job is or belongs; there must be a block.
  Place place_of(JobId id) const {
    auto block = std::upper_bound(
        blocks_.begin(), blocks_.end(), id,
        [](JobId wanted, const std::vector<Item>& one) { return wanted < one.front().first; });
    if (block != blocks_.begin()) --block;
    const auto item =
        std::lower_bound(block->begin(), block->end(), id,
                         [](const Item& one, JobId wanted) { return one.first < wanted; });
    return {static_cast<std::size_t>(block - blocks_.begin()),
            static_cast<std::size_t>(item - block->begin())};
  }

  // Jobs mostly come with growing numbers: the last block stays full.
  void split(std::size_t at) {
    const std::size_t kept = at + 1 == blocks_.size() ? kBlock : kBlock / 2;
    std::vector<Item> rest(blocks_[at].begin() + static_cast<std::ptrdiff_t>(kept),
                           blocks_[at].end());
    blocks_[at].resize(kept);
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(rest));
  }

  std::vector<std::vector<Item>> blocks_;  // none is empty
};

}  // namespace mete::core
