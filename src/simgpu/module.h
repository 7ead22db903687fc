// SPDX-License-Identifier: Apache-2.0
// Modules of a context, libraries of the process, and the kernels in them. A module takes its
// globals' bytes at load and a kernel's code at its first launch (or at load, with
// CUDA_MODULE_LOADING=EAGER). Everything under the driver's lock.
#pragma once

#include "simgpu/driver.h"
#include "simgpu/module_text.h"

namespace simgpu {

struct Module;
struct Library;

enum class Builtin : uint8_t { kNone, kFill, kAdd, kSpin };

struct Function {
  static constexpr uint32_t kMagic = 0x46554e43;
  uint32_t magic = kMagic;
  Builtin builtin = Builtin::kNone;
  bool loaded = false;
  Module* module = nullptr;
  const KernelSpec* spec = nullptr;
};

struct Kernel {
  static constexpr uint32_t kMagic = 0x4b45524e;
  uint32_t magic = kMagic;
  Library* library = nullptr;
  size_t index = 0;
};

struct Module {
  static constexpr uint32_t kMagic = 0x4d4f4455;
  uint32_t magic = kMagic;
  Context* context = nullptr;
  Library* library = nullptr;  // owner of the spec, when loaded as a library
  ModuleSpec* spec = nullptr;
  List<Function*> functions;
  List<CUdeviceptr> global_addresses;
  Range globals = {};      // all globals of the module, one behind the other
  List<uint64_t> pieces;   // code
  uint64_t code_left = 0;  // in the last piece of code
  Module* next = nullptr;
};

struct Library {
  static constexpr uint32_t kMagic = 0x4c494252;
  uint32_t magic = kMagic;
  ModuleSpec spec;
  List<Kernel*> kernels;
  Library* next = nullptr;
};

// What a context has loaded, and the size of its local memory.
struct ContextCode {
  Module* modules = nullptr;
  uint64_t local_bytes = 0;  // per thread
  List<uint64_t> local_pieces;
};

bool loads_eagerly();
ContextCode* code_of(Context* context);
CUresult load_module(Context* context, ModuleSpec* spec, Library* library, Module** out);
void unload_module(Module* module);
// The library's module in the current context, loaded if necessary.
CUresult module_of_library(Library* library, Module** out);
CUresult load_code(Function* function);
// A CUfunction, or a CUkernel in its place. Null: neither.
Function* find_function(CUfunction handle, CUresult* result);
Module* find_module(CUmodule handle);

}  // namespace simgpu
