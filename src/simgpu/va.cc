// SPDX-License-Identifier: Apache-2.0
// Device addresses. One region of the process's address space is reserved without access at the
// first use, and one below 4 GiB when a context of CUDA 3.1 first needs it; free spans of each are
// kept in a treap by address, each node knowing the longest span below it, so that first fit costs
// O(log n); a table with one word per 2 MiB granule leads from a pointer to its Range in one step.
// Every caller holds the Guard.
#include <stdlib.h>
#include <sys/mman.h>

#include "simgpu/driver.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

struct Span {
  CUdeviceptr base;
  size_t bytes;
  size_t longest;  // in this subtree
  uint64_t weight;
  Span* left;
  Span* right;
};

struct Region {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  Range** table = nullptr;
  Span* free_spans = nullptr;
  uint64_t random = 0x2545f4914f6cdd1dull;
};
constinit Region main_region;
constinit Region low_region;

Region& region_of(CUdeviceptr p) {
  return p - low_region.base < low_region.bytes ? low_region : main_region;
}

size_t longest_of(const Span* span) { return span == nullptr ? 0 : span->longest; }

void update(Span* span) {
  size_t most = span->bytes;
  if (longest_of(span->left) > most) most = longest_of(span->left);
  if (longest_of(span->right) > most) most = longest_of(span->right);
  span->longest = most;
}

// Into spans below `base` and the others.
void split(Span* tree, CUdeviceptr base, Span** below, Span** rest) {
  if (tree == nullptr) {
    *below = nullptr;
    *rest = nullptr;
  } else if (tree->base < base) {
    split(tree->right, base, &tree->right, rest);
    *below = tree;
    update(tree);
  } else {
    split(tree->left, base, below, &tree->left);
    *rest = tree;
    update(tree);
  }
}

Span* join(Span* low, Span* high) {
  if (low == nullptr) return high;
  if (high == nullptr) return low;
  if (low->weight > high->weight) {
    low->right = join(low->right, high);
    update(low);
    return low;
  }
  high->left = join(low, high->left);
  update(high);
  return high;
}

Span* last_of(Span* tree) {
  while (tree != nullptr && tree->right != nullptr) tree = tree->right;
  return tree;
}

Span* first_of(Span* tree) {
  while (tree != nullptr && tree->left != nullptr) tree = tree->left;
  return tree;
}

void insert_span(Region& region, CUdeviceptr base, size_t bytes) {
  Span* made = static_cast<Span*>(malloc(sizeof(Span)));
  if (made == nullptr) return;  // these addresses are lost, nothing else
  region.random ^= region.random << 13;
  region.random ^= region.random >> 7;
  region.random ^= region.random << 17;
  *made = {base, bytes, bytes, region.random, nullptr, nullptr};
  Span *below, *rest;
  split(region.free_spans, base, &below, &rest);
  region.free_spans = join(join(below, made), rest);
}

void remove_span(Region& region, CUdeviceptr base) {
  Span *below, *rest, *self;
  split(region.free_spans, base, &below, &rest);
  split(rest, base + 1, &self, &rest);
  free(self);
  region.free_spans = join(below, rest);
}

bool reserve(Region& region, CUdeviceptr at, size_t bytes) {
  // A fixed place replaces no other mapping (MAP_FIXED_NOREPLACE) and is aligned already: no slack.
  const size_t slack = at == 0 ? kGranule : 0;
  void* got = mmap(
      reinterpret_cast<void*>(at), bytes + slack, PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == 0 ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  if (got == MAP_FAILED) return false;
  const size_t table_bytes = bytes / kGranule * sizeof(Range*);
  void* table = mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED || (at != 0 && reinterpret_cast<CUdeviceptr>(got) != at)) {
    munmap(got, bytes + slack);
    if (table != MAP_FAILED) munmap(table, table_bytes);
    return false;
  }
  // Neither belongs into a core file.
  madvise(got, bytes, MADV_DONTDUMP);
  madvise(table, table_bytes, MADV_DONTDUMP);
  region.base = (reinterpret_cast<CUdeviceptr>(got) + kGranule - 1) & ~(kGranule - 1);
  region.bytes = bytes;
  region.table = static_cast<Range**>(table);
  insert_span(region, region.base, bytes);
  return true;
}

bool open_main() {
  for (size_t bytes = 32ull << 40; main_region.base == 0 && bytes >= (1ull << 30); bytes /= 2) {
    (void)reserve(main_region, 0, bytes);
  }
  return main_region.base != 0;
}

// Programs that are not position-independent, and sanitizers, may use that region themselves.
bool open_low() {
  struct Place {
    CUdeviceptr base;
    size_t bytes;
  };
  constexpr Place kPlaces[] = {{1ull << 30, 3ull << 30},
                               {2ull << 30, 2ull << 30},
                               {3ull << 30, 1ull << 30},
                               {1ull << 30, 1022ull << 20}};
  for (const Place& place : kPlaces) {
    if (low_region.base == 0) (void)reserve(low_region, place.base, place.bytes);
  }
  return low_region.base != 0;
}

// The lowest span of at least `bytes`.
const Span* first_fit(const Span* tree, size_t bytes) {
  if (longest_of(tree) < bytes) return nullptr;
  for (;;) {
    if (longest_of(tree->left) >= bytes) {
      tree = tree->left;
    } else if (tree->bytes >= bytes) {
      return tree;
    } else {
      tree = tree->right;
    }
  }
}

const Span* span_holding(const Region& region, CUdeviceptr p, size_t bytes) {
  const Span* best = nullptr;
  for (const Span* at = region.free_spans; at != nullptr;) {
    if (at->base <= p) {
      best = at;
      at = at->right;
    } else {
      at = at->left;
    }
  }
  if (best == nullptr || p - best->base > best->bytes) return nullptr;
  return bytes <= best->bytes - (p - best->base) ? best : nullptr;
}

CUdeviceptr cut(Region& region, const Span* span, CUdeviceptr at, size_t bytes) {
  const CUdeviceptr base = span->base;
  const CUdeviceptr end = base + span->bytes;
  remove_span(region, base);
  if (at > base) insert_span(region, base, at - base);
  if (at + bytes < end) insert_span(region, at + bytes, end - (at + bytes));
  return at;
}

CUdeviceptr take(Region& region, size_t bytes, size_t align) {
  const Span* span = first_fit(region.free_spans, bytes + (align - kGranule));
  if (span == nullptr) return 0;
  return cut(region, span, (span->base + align - 1) & ~(align - 1), bytes);
}

}  // namespace

CUdeviceptr va_take(size_t bytes, size_t align, CUdeviceptr hint) {
  if (!open_main() || bytes == 0 || bytes > main_region.bytes) return 0;
  bytes = round_granule(bytes);
  if (align < kGranule) align = kGranule;
  if (hint != 0 && hint % align == 0) {
    const Span* span = span_holding(main_region, hint, bytes);
    if (span != nullptr) return cut(main_region, span, hint, bytes);
  }
  return take(main_region, bytes, align);
}

CUdeviceptr va_take_in(const Context* context, size_t bytes) {
  if (!is_old(context)) return va_take(bytes, 0, 0);
  if (!open_low() || bytes == 0 || bytes > low_region.bytes) return 0;
  return take(low_region, round_granule(bytes), kGranule);
}

void va_give(CUdeviceptr base, size_t bytes) {
  Region& region = region_of(base);
  bytes = round_granule(bytes);
  Span *below, *rest;
  split(region.free_spans, base, &below, &rest);
  const Span* before = last_of(below);
  const Span* after = first_of(rest);
  const bool joins_before = before != nullptr && before->base + before->bytes == base;
  const bool joins_after = after != nullptr && base + bytes == after->base;
  const CUdeviceptr from = joins_before ? before->base : base;
  const CUdeviceptr to = joins_after ? after->base + after->bytes : base + bytes;
  const CUdeviceptr after_base = joins_after ? after->base : 0;
  region.free_spans = join(below, rest);
  if (joins_before) remove_span(region, from);
  if (joins_after) remove_span(region, after_base);
  insert_span(region, from, to - from);
}

bool va_ours(CUdeviceptr p) {
  return p - main_region.base < main_region.bytes || p - low_region.base < low_region.bytes;
}

void range_add(Range* range) {
  if (range->buffer_id == 0) range->buffer_id = ++driver.next_id;
  range_cover(range, range->base, range->bytes);
}

void range_remove(Range* range) {
  const Region& region = region_of(range->base);
  const size_t first = (range->base - region.base) / kGranule;
  const size_t count = range->bytes / kGranule;
  for (size_t i = 0; i < count; ++i) {
    if (region.table[first + i] == range) region.table[first + i] = nullptr;
  }
}

void range_cover(Range* range, CUdeviceptr base, size_t bytes) {
  const Region& region = region_of(base);
  const size_t first = (base - region.base) / kGranule;
  for (size_t i = 0; i < bytes / kGranule; ++i) region.table[first + i] = range;
}

Range* range_find(CUdeviceptr p) {
  if (!va_ours(p)) return nullptr;
  const Region& region = region_of(p);
  return region.table[(p - region.base) / kGranule];
}

bool block_find(CUdeviceptr p, Range** range, Block* block) {
  Range* found = range_find(p);
  if (found == nullptr) return false;
  *range = found;
  if (found->ops != nullptr && found->ops->find_block != nullptr) {
    return found->ops->find_block(found, p, block);
  }
  *block = {found->base, found->asked};
  return p - found->base < found->asked;
}

void range_link(Range* range) {
  if (range->context == nullptr || range->link != nullptr) return;
  range->next = range->context->ranges;
  range->link = &range->context->ranges;
  if (range->next != nullptr) range->next->link = &range->next;
  range->context->ranges = range;
}

void range_unlink(Range* range) {
  if (range->link == nullptr) return;
  *range->link = range->next;
  if (range->next != nullptr) range->next->link = range->link;
  range->link = nullptr;
  range->next = nullptr;
}

}  // namespace simgpu
