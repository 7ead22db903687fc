// SPDX-License-Identifier: Apache-2.0
// Which memory is bound to which part of a sparse array or a multicast object. A part is a box. A
// box that is bound again or unbound in pieces is cut, so that memory is known to be free exactly
// when nothing of its box is left. Callers hold the process's lock.
//
// Example: 4 × 4 tiles are bound at once, the left half is unbound: one binding of 2 × 4 tiles is
// left.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"
#include "meter/list.h"

namespace mete::meter {

struct Region {
  enum Kind : uint32_t { kArray, kMipTail, kMulticast };
  uint64_t object;  // array, or multicast handle
  Kind kind;
  uint32_t level;  // of a mipmap; the card of a multicast object
  uint32_t layer;
  uint64_t from[3];  // texels, or bytes in [0] only; from each `from` to below its `to`
  uint64_t to[3];

  bool overlaps(const Region& other) const {
    if (object != other.object || kind != other.kind || level != other.level ||
        layer != other.layer)
      return false;
    for (int i = 0; i < 3; ++i)
      if (from[i] >= other.to[i] || other.from[i] >= to[i]) return false;
    return true;
  }
};

// What is left of `whole` without `hole`, which overlaps it: at most six boxes. Returns how many.
inline int cut_out(const Region& whole, const Region& hole, Region* left) {
  int count = 0;
  Region rest = whole;
  for (int i = 0; i < 3; ++i) {
    if (rest.from[i] < hole.from[i]) {
      left[count] = rest;
      left[count++].to[i] = hole.from[i];
      rest.from[i] = hole.from[i];
    }
    if (hole.to[i] < rest.to[i]) {
      left[count] = rest;
      left[count++].from[i] = hole.to[i];
      rest.to[i] = hole.to[i];
    }
  }
  return count;
}

struct Binding {
  Region region;
  CUmemGenericAllocationHandle handle;
};

class Bindings {
 public:
  bool add(const Binding& binding) { return list_.add(binding); }
  size_t size() const { return list_.size(); }

  // Cuts one binding that overlaps the hole. `pieces`: how many bindings of its handle are left
  // there, 0 when it was covered. False: nothing overlaps.
  bool cut_one(const Region& hole, CUmemGenericAllocationHandle* handle, int* pieces) {
    for (size_t at = 0; at < list_.size(); ++at) {
      if (!list_[at].region.overlaps(hole)) continue;
      const Binding old = list_[at];
      Region left[6];
      const int count = cut_out(old.region, hole, left);
      list_.remove(at);
      *handle = old.handle;
      *pieces = 0;
      for (; *pieces < count; ++*pieces) {
        if (list_.add({left[*pieces], old.handle})) continue;
        // No memory for the second piece: the first, which has the place of the old one, stands for
        // all. Too much is then held, never too little.
        list_[list_.size() - 1].region = old.region;
        break;
      }
      return true;
    }
    return false;
  }

  // Removes one binding of the object, whatever its place. False: there is none.
  bool take_one(uint64_t object, bool multicast, CUmemGenericAllocationHandle* handle) {
    for (size_t at = 0; at < list_.size(); ++at) {
      const Binding& binding = list_[at];
      if (binding.region.object != object ||
          (binding.region.kind == Region::kMulticast) != multicast)
        continue;
      *handle = binding.handle;
      list_.remove(at);
      return true;
    }
    return false;
  }

 private:
  List<Binding> list_;
};

}  // namespace mete::meter
