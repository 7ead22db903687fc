// SPDX-License-Identifier: Apache-2.0
#include "meter/table.h"

#include <sys/mman.h>

namespace mete::meter {

void* map_pages(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_pages(void* memory, size_t bytes) { munmap(memory, bytes); }

size_t Table::home(uint64_t key) const {
  // Multiplication spreads keys that share their low bits, as all device pointers do.
  return static_cast<size_t>((key * 0x9e3779b97f4a7c15ull) >> 20) & (capacity_ - 1);
}

bool Table::grow() {
  const size_t capacity = capacity_ == 0 ? 1024 : capacity_ * 2;
  void* memory = map_pages(capacity * sizeof(Entry));
  if (memory == nullptr) return false;
  Entry* old = entries_;
  const size_t old_capacity = capacity_;
  entries_ = static_cast<Entry*>(memory);
  capacity_ = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].key == 0) continue;
    size_t at = home(old[i].key);
    while (entries_[at].key != 0) at = (at + 1) & (capacity_ - 1);
    entries_[at] = old[i];
  }
  if (old != nullptr) unmap_pages(old, old_capacity * sizeof(Entry));
  return true;
}

TableValue* Table::find(uint64_t key) {
  if (capacity_ == 0) return nullptr;
  for (size_t at = home(key); entries_[at].key != 0; at = (at + 1) & (capacity_ - 1))
    if (entries_[at].key == key) return &entries_[at].value;
  return nullptr;
}

bool Table::put(uint64_t key, TableValue value) {
  if (TableValue* found = find(key)) {
    *found = value;
    return true;
  }
  if ((size_ + 1) * 8 > capacity_ * 5 && !grow()) {
    if (size_ + 1 >= capacity_) return false;
  }
  size_t at = home(key);
  while (entries_[at].key != 0) at = (at + 1) & (capacity_ - 1);
  entries_[at] = {key, value};
  ++size_;
  return true;
}

bool Table::remove(uint64_t key, TableValue* value) {
  if (capacity_ == 0) return false;
  size_t at = home(key);
  while (entries_[at].key != key) {
    if (entries_[at].key == 0) return false;
    at = (at + 1) & (capacity_ - 1);
  }
  *value = entries_[at].value;
  // Close the gap: move back every follower that may be nearer to its home. There are no
  // tombstones, so look-ups do not get longer with age.
  for (size_t next = (at + 1) & (capacity_ - 1); entries_[next].key != 0;
       next = (next + 1) & (capacity_ - 1)) {
    const size_t wanted = home(entries_[next].key);
    if (((next - wanted) & (capacity_ - 1)) >= ((next - at) & (capacity_ - 1))) {
      entries_[at] = entries_[next];
      at = next;
    }
  }
  entries_[at].key = 0;
  --size_;
  return true;
}

}  // namespace mete::meter
