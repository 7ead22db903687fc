// SPDX-License-Identifier: Apache-2.0
// A growable array of plain values, for a library that must not need libstdc++ at run time. Memory
// comes from malloc; if there is none, push() returns false.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace simgpu {

template <class T>
class List {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr List() = default;
  ~List() { free(data_); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  bool push(const T& value) {
    if (size_ == capacity_) {
      const size_t more = capacity_ == 0 ? 8 : capacity_ * 2;
      // NOLINTNEXTLINE(bugprone-sizeof-expression): T may well be a pointer
      T* const moved = static_cast<T*>(realloc(data_, more * sizeof(T)));
      if (moved == nullptr) return false;
      data_ = moved;
      capacity_ = more;
    }
    data_[size_++] = value;
    return true;
  }
  bool assign(const T* values, size_t count) {
    clear();
    for (size_t i = 0; i < count; i++)
      if (!push(values[i])) return false;
    return true;
  }
  // Removes element i; the last one takes its place.
  void drop(size_t i) { data_[i] = data_[--size_]; }
  // Removes every element equal to `value`; the order of the others stays.
  void remove(const T& value) {
    size_t kept = 0;
    for (size_t i = 0; i < size_; i++)
      if (!(data_[i] == value)) data_[kept++] = data_[i];
    size_ = kept;
  }
  bool contains(const T& value) const {
    for (const T& element : *this)
      if (element == value) return true;
    return false;
  }
  void clear() { size_ = 0; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Objects of this library: zeroed by their own initialisers, created without operator new.
template <class T, class... Arguments>
T* make(Arguments&&... arguments) {
  void* const memory = malloc(sizeof(T));
  if (memory == nullptr) return nullptr;
  return ::new (memory) T{static_cast<Arguments&&>(arguments)...};
}
template <class T>
void destroy(T* object) {
  if (object == nullptr) return;
  object->~T();
  free(object);
}

}  // namespace simgpu
