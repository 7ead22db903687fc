// SPDX-License-Identifier: Apache-2.0
// A hash table from 64-bit keys to two words, for a library inside programs of users: its memory
// comes from mmap (never the host's malloc), the time of an operation does not depend on the number
// of entries, and all-zero bytes are an empty table. Key 0 is not a key. Callers hold the process's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mete::meter {

struct TableValue {
  uint64_t a = 0;
  uint64_t b = 0;
};

// Zeroed pages from the kernel, or nullptr.
void* map_pages(size_t bytes);
void unmap_pages(void* memory, size_t bytes);

class Table {
 public:
  // Inserts or replaces. False when the kernel has no memory left: the entry is then not kept.
  bool put(uint64_t key, TableValue value);
  // The value, or nullptr. Valid until the next put or remove.
  TableValue* find(uint64_t key);
  // Takes the entry out. False when there was none.
  bool remove(uint64_t key, TableValue* value);
  size_t size() const { return size_; }
  // Forgets everything, without giving the memory back (after fork it is shared with the parent).
  void abandon() {
    entries_ = nullptr;
    capacity_ = size_ = 0;
  }
  // Calls visit(key, value&) for every entry. The visitor must not change the table.
  template <class Visit>
  void each(Visit visit) {
    for (size_t i = 0; i < capacity_; ++i)
      if (entries_[i].key != 0) visit(entries_[i].key, entries_[i].value);
  }

 private:
  struct Entry {
    uint64_t key;
    TableValue value;
  };
  size_t home(uint64_t key) const;
  bool grow();

  Entry* entries_ = nullptr;
  size_t capacity_ = 0;  // a power of two, at most 5/8 full
  size_t size_ = 0;
};

}  // namespace mete::meter
