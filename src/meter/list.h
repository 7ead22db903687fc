// SPDX-License-Identifier: Apache-2.0
// A list that grows, for a library inside programs of users: its memory comes from mmap (never the
// host's malloc), and all-zero bytes are an empty list. The list has no order: the last item fills
// the place of a removed one. Callers hold the process's lock.
#pragma once

#include <cstddef>
#include <type_traits>

#include "meter/table.h"

namespace mete::meter {

template <class T>
class List {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // False when the kernel has no memory left: the item is then not kept. Moves all other items.
  bool add(const T& item) {
    if (!has_room()) return false;
    items_[size_++] = item;
    return true;
  }
  // True if the next item will find a place.
  bool has_room() { return size_ < capacity_ || grow(); }
  void remove(size_t at) { items_[at] = items_[--size_]; }
  void swap(size_t one, size_t other) {
    const T item = items_[one];
    items_[one] = items_[other];
    items_[other] = item;
  }
  T& operator[](size_t at) { return items_[at]; }
  size_t size() const { return size_; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }

 private:
  bool grow() {
    constexpr size_t kFirst = 4096 / sizeof(T) + 1;
    const size_t capacity = capacity_ == 0 ? kFirst : capacity_ * 2;
    auto* items = static_cast<T*>(map_pages(capacity * sizeof(T)));
    if (items == nullptr) return false;
    for (size_t i = 0; i < size_; ++i) items[i] = items_[i];
    if (items_ != nullptr) unmap_pages(items_, capacity_ * sizeof(T));
    items_ = items;
    capacity_ = capacity;
    return true;
  }

  T* items_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace mete::meter
