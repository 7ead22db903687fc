// SPDX-License-Identifier: Apache-2.0
// One operation of a stream, as a value: a call, a captured operation, a graph node and an entry of
// a stream's queue all use this type.
#pragma once

#include "abi/cuda_api.h"
#include "simgpu/driver.h"
#include "simgpu/stream_list.h"

namespace simgpu {

struct Event;

// A copy of a kernel's arguments: the caller's may be gone when the kernel runs.
struct Arguments {
  int references;
  unsigned count;
  void* pointers[];  // count of them; the values lie behind
};

// The interface writes device addresses as integers and copy_bytes takes pointers.
inline void* pointer_of(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// A place in a stream's work.
struct Mark {
  uint64_t stream = 0;
  uint64_t sequence = 0;
  bool operator==(const Mark&) const = default;
};

enum class TaskKind : unsigned char {
  kNothing,
  kKernel,
  kMemset,
  kMemcpy,
  kOpaque,  // a copy or fill with its own function
  kHost,
  kCallback,
  kRecord,
  kWaitMark,   // until another stream reached it
  kWaitTime,   // until a time
  kWaitValue,  // until a word of memory has a value
  kWriteValue,
};

struct Task {
  TaskKind kind = TaskKind::kNothing;
  Context* context = nullptr;
  Task* next = nullptr;
  uint64_t sequence = 0;
  union {
    struct {
      CUDA_KERNEL_NODE_PARAMS params;
      Arguments* arguments;  // one reference is ours
    } kernel;
    CUDA_MEMSET_NODE_PARAMS memset;
    CUDA_MEMCPY3D memcpy;
    struct {
      Work function;
      Arguments* arguments;  // one reference is ours
    } opaque;
    CUDA_HOST_NODE_PARAMS host;
    struct {
      CUstreamCallback function;
      void* data;
      CUstream stream;
    } callback;
    struct {
      Event* event;  // one reference is ours
      uint64_t generation;
    } record;
    struct {
      uint64_t stream;
      uint64_t sequence;
    } mark;
    int64_t until_ns;
    struct {
      CUdeviceptr address;
      uint32_t value;
      unsigned flags;
    } value;
  };
  Task() : until_ns(0) {}
};

// Adds an owner of what a task refers to (arguments, event), or removes one.
void task_retain(const Task& task);
void task_release(const Task& task);

}  // namespace simgpu
