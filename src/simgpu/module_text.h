// SPDX-License-Identifier: Apache-2.0
// The content of a module image: kernels and globals. Reads our own small text form, PTX text and
// the section names of a cubin (docs/formats/simgpu-module.md). Text in, values out; no card, no
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/stream_list.h"

namespace simgpu {

inline constexpr size_t kMaxName = 255;
inline constexpr size_t kMaxParameters = 64;

struct ParameterSpec {
  uint32_t offset;
  uint32_t bytes;
};

struct KernelSpec {
  char name[kMaxName + 1] = {};
  uint64_t local_bytes = 0;  // per thread
  uint64_t code_bytes = 0;
  uint32_t shared_bytes = 0;
  uint32_t registers = 32;
  uint32_t max_threads = 1024;
  uint32_t parameter_count = 0;
  ParameterSpec parameters[kMaxParameters] = {};
};

struct GlobalSpec {
  char name[kMaxName + 1] = {};
  uint64_t bytes = 0;
  bool managed = false;
};

struct ModuleSpec {
  List<KernelSpec> kernels;
  List<GlobalSpec> globals;
};

enum class ModuleVerdict { kOk, kNotAModule, kBadText, kNoMemory };

// `image` is text that ends with a zero byte, or an ELF image.
ModuleVerdict read_module(const void* image, ModuleSpec* out);

}  // namespace simgpu
