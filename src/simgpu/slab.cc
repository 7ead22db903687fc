// SPDX-License-Identifier: Apache-2.0
// Slabs of one context hang in lists by the length of their longest free run (an upper bound, made
// exact when a search fails), so that finding room does not depend on how many slabs are full. A
// slab has a bitmap of its 512-byte cells and the size of each block at its first cell.
#include "simgpu/slab.h"

#include <stdlib.h>
#include <string.h>

#include "simgpu/state.h"

namespace simgpu {

namespace {

constexpr unsigned kCells = kGranule / kCell;  // 4096
constexpr unsigned kWords = kCells / 64;
constexpr int kLists = 14;  // by floor(log2(longest run)) + 1; list 0: full

struct Slab {
  Range range;  // must be first: a Range* of kind kSlab is a Slab*
  uint64_t used[kWords];
  uint32_t asked[kCells];  // bytes asked for, at the first cell of a block; 0: none
  unsigned used_cells;
  unsigned longest;  // no free run is longer
  int list;
  Slab* next;
  Slab** link;
};

int list_for(unsigned run) { return run == 0 ? 0 : 32 - __builtin_clz(run); }

bool cell_used(const Slab* slab, unsigned cell) {
  return (slab->used[cell / 64] >> (cell % 64) & 1) != 0;
}

void mark(Slab* slab, unsigned first, unsigned count, bool used) {
  while (count > 0) {
    const unsigned bit = first % 64;
    const unsigned some = count < 64 - bit ? count : 64 - bit;
    const uint64_t mask = (some == 64 ? ~0ull : (1ull << some) - 1) << bit;
    if (used) {
      slab->used[first / 64] |= mask;
    } else {
      slab->used[first / 64] &= ~mask;
    }
    first += some;
    count -= some;
  }
}

// The next free cell at or after `cell`, or kCells.
unsigned next_free(const Slab* slab, unsigned cell) {
  while (cell < kCells) {
    const uint64_t open = ~slab->used[cell / 64] >> (cell % 64);
    if (open != 0) return cell + static_cast<unsigned>(__builtin_ctzll(open));
    cell = (cell / 64 + 1) * 64;
  }
  return kCells;
}

unsigned next_used(const Slab* slab, unsigned cell) {
  while (cell < kCells) {
    const uint64_t full = slab->used[cell / 64] >> (cell % 64);
    if (full != 0) return cell + static_cast<unsigned>(__builtin_ctzll(full));
    cell = (cell / 64 + 1) * 64;
  }
  return kCells;
}

// The lowest aligned run of `count` free cells, or kCells; `longest` becomes exact if there is
// none.
unsigned find_run(Slab* slab, unsigned count, unsigned align) {
  unsigned longest = 0;
  for (unsigned from = next_free(slab, 0); from < kCells;) {
    const unsigned to = next_used(slab, from);
    const unsigned aligned = (from + align - 1) / align * align;
    if (aligned + count <= to) return aligned;
    if (to - from > longest) longest = to - from;
    from = next_free(slab, to);
  }
  slab->longest = longest;
  return kCells;
}

}  // namespace

struct SlabPool {
  Slab* lists[kLists];
};

namespace {

void unlink_slab(Slab* slab) {
  *slab->link = slab->next;
  if (slab->next != nullptr) slab->next->link = slab->link;
}

void link_slab(SlabPool* pool, Slab* slab) {
  slab->list = list_for(slab->longest);
  Slab** head = &pool->lists[slab->list];
  slab->next = *head;
  slab->link = head;
  if (slab->next != nullptr) slab->next->link = &slab->next;
  *head = slab;
}

void relink(SlabPool* pool, Slab* slab) {
  if (slab->list == list_for(slab->longest)) return;
  unlink_slab(slab);
  link_slab(pool, slab);
}

CUresult add_slab(Context* context, Slab** made) {
  Slab* slab = static_cast<Slab*>(calloc(1, sizeof(Slab)));
  if (slab == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Range* range = &slab->range;
  const CUresult result = phys_take(context->device, kGranule, MemoryClass::kPlain, &range->piece);
  range->base = result == CUDA_SUCCESS ? va_take_in(context, kGranule) : 0;
  if (range->base == 0) {
    phys_give(range->piece);
    free(slab);
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
  }
  range->bytes = range->asked = kGranule;
  range->kind = RangeKind::kSlab;
  range->legacy_ipc = true;
  range->device = context->device;
  range->context = context;
  range->readable = range->writable = ~0u;
  range->ops = &kSlabOps;
  range_add(range);
  slab->longest = kCells;
  link_slab(context->slabs, slab);
  *made = slab;
  return CUDA_SUCCESS;
}

void remove_slab(Slab* slab) {
  unlink_slab(slab);
  range_remove(&slab->range);
  va_give(slab->range.base, kGranule);
  phys_give(slab->range.piece);
  free(slab);
}

bool find_block(Range* range, CUdeviceptr p, Block* block) {
  const Slab* slab = reinterpret_cast<Slab*>(range);
  unsigned cell = static_cast<unsigned>((p - range->base) / kCell);
  if (!cell_used(slab, cell)) return false;
  while (slab->asked[cell] == 0) --cell;
  *block = {range->base + cell * kCell, slab->asked[cell]};
  return p - block->base < block->bytes;
}

CUresult take_from(Slab* slab, unsigned at, unsigned cells, size_t bytes, CUdeviceptr* p) {
  mark(slab, at, cells, true);
  slab->asked[at] = static_cast<uint32_t>(bytes);
  slab->used_cells += cells;
  *p = slab->range.base + at * kCell;
  return CUDA_SUCCESS;
}

}  // namespace

const RangeOps kSlabOps = {find_block, slab_give};

CUresult slab_take(Context* context, size_t bytes, size_t align_cells, CUdeviceptr* p) {
  if (context->slabs == nullptr) {
    context->slabs = static_cast<SlabPool*>(calloc(1, sizeof(SlabPool)));
    if (context->slabs == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  SlabPool* pool = context->slabs;
  const unsigned cells = static_cast<unsigned>((bytes + kCell - 1) / kCell);
  const unsigned align = static_cast<unsigned>(align_cells);
  for (int list = list_for(cells); list < kLists; ++list) {
    for (Slab* slab = pool->lists[list]; slab != nullptr;) {
      Slab* next = slab->next;
      const unsigned at = slab->longest >= cells ? find_run(slab, cells, align) : kCells;
      if (at < kCells) return take_from(slab, at, cells, bytes, p);
      relink(pool, slab);  // its bound was too high; it now hangs where it belongs
      slab = next;
    }
  }
  Slab* made = nullptr;
  const CUresult result = add_slab(context, &made);
  if (result != CUDA_SUCCESS) return result;
  return take_from(made, 0, cells, bytes, p);
}

CUresult slab_give(Range* range, CUdeviceptr p) {
  Slab* slab = reinterpret_cast<Slab*>(range);
  const unsigned cell = static_cast<unsigned>((p - range->base) / kCell);
  if ((p - range->base) % kCell != 0 || slab->asked[cell] == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned cells = static_cast<unsigned>((slab->asked[cell] + kCell - 1) / kCell);
  slab->asked[cell] = 0;
  mark(slab, cell, cells, false);
  slab->used_cells -= cells;
  if (slab->used_cells == 0) {
    remove_slab(slab);
    return CUDA_SUCCESS;
  }
  // The run that the freed cells now belong to.
  unsigned from = cell;
  while (from > 0 && !cell_used(slab, from - 1)) {
    if (from % 64 == 0 && slab->used[from / 64 - 1] == 0) {
      from -= 64;
    } else {
      --from;
    }
  }
  const unsigned run = next_used(slab, cell) - from;
  if (run > slab->longest) slab->longest = run;
  relink(range->context->slabs, slab);
  return CUDA_SUCCESS;
}

void slabs_end(Context* context) {
  if (context->slabs == nullptr) return;
  for (Slab*& list : context->slabs->lists) {
    while (list != nullptr) remove_slab(list);
  }
  free(context->slabs);
  context->slabs = nullptr;
}

}  // namespace simgpu
