// SPDX-License-Identifier: Apache-2.0
// See module.h: loading and unloading, and the memory that they take. An image becomes a ModuleSpec
// (module_text.h); its globals get one range at load, and each kernel's code is taken from pieces
// that small kernels share. A library is loaded into a context at its first use there.
#include "simgpu/module.h"

#include <cstdlib>
#include <cstring>

#include "simgpu/state.h"

namespace simgpu {
namespace {

constexpr uint64_t kCell = 512;
constexpr uint64_t kSmall = 1 << 20;  // code up to this size shares 2 MiB pieces

Builtin builtin_of(const char* name) {
  if (strcmp(name, "fill") == 0) return Builtin::kFill;
  if (strcmp(name, "add") == 0) return Builtin::kAdd;
  if (strcmp(name, "spin") == 0) return Builtin::kSpin;
  return Builtin::kNone;
}

bool find_global(Range* range, CUdeviceptr p, Block* out) {
  const Module* const module = static_cast<const Module*>(range->owner);
  for (size_t i = 0; i < module->global_addresses.size(); i++) {
    const CUdeviceptr base = module->global_addresses[i];
    const uint64_t bytes = module->spec->globals[i].bytes;
    if (p < base || p >= base + bytes) continue;
    *out = {base, bytes};
    return true;
  }
  return false;
}

CUresult refuse_release(Range*, CUdeviceptr) { return CUDA_ERROR_INVALID_VALUE; }

constexpr RangeOps kGlobalOps = {find_global, refuse_release};

CUresult load_globals(Module* module) {
  uint64_t total = 0;
  for (const GlobalSpec& global : module->spec->globals) {
    if (__builtin_add_overflow(total, global.bytes, &total) || total > 1ull << 46)
      return CUDA_ERROR_OUT_OF_MEMORY;
    total = (total + kCell - 1) / kCell * kCell;
  }
  if (total == 0) return CUDA_SUCCESS;
  Range& range = module->globals;
  const CUresult result =
      phys_take(module->context->device, total, MemoryClass::kModule, &range.piece);
  if (result != CUDA_SUCCESS) return result;
  range.bytes = round_granule(total);
  range.base = va_take_in(module->context, range.bytes);
  if (range.base == 0) {
    phys_give(range.piece);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  range.asked = total;
  range.kind = RangeKind::kGlobal;
  range.device = module->context->device;
  range.context = module->context;
  range.readable = range.writable = 1u << module->context->device;
  range.ops = &kGlobalOps;
  range.owner = module;
  CUdeviceptr at = range.base;
  for (const GlobalSpec& global : module->spec->globals) {
    module->global_addresses.push(at);
    at += (global.bytes + kCell - 1) / kCell * kCell;
  }
  range_add(&range);
  return CUDA_SUCCESS;
}

}  // namespace

bool loads_eagerly() {
  const char* const mode = getenv("CUDA_MODULE_LOADING");
  return mode != nullptr && strcmp(mode, "EAGER") == 0;
}

ContextCode* code_of(Context* context) {
  if (context->modules == nullptr) context->modules = make<ContextCode>();
  return static_cast<ContextCode*>(context->modules);
}

CUresult load_code(Function* function) {
  if (function->loaded) return CUDA_SUCCESS;
  Module* const module = function->module;
  const uint64_t bytes = function->spec->code_bytes;
  if (bytes > kSmall || bytes > module->code_left) {
    uint64_t piece = 0;
    const CUresult result = phys_take(module->context->device, bytes, MemoryClass::kModule, &piece);
    if (result != CUDA_SUCCESS) return result;
    module->pieces.push(piece);
    if (bytes <= kSmall) module->code_left = kGranule;
  }
  if (bytes <= kSmall) module->code_left -= bytes;
  function->loaded = true;
  return CUDA_SUCCESS;
}

CUresult load_module(Context* context, ModuleSpec* spec, Library* library, Module** out) {
  ContextCode* const code = code_of(context);
  Module* const module = make<Module>();
  if (code == nullptr || module == nullptr) {
    destroy(module);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  module->context = context;
  module->library = library;
  module->spec = spec;
  module->next = code->modules;
  code->modules = module;
  CUresult result = load_globals(module);
  for (size_t i = 0; i < spec->kernels.size() && result == CUDA_SUCCESS; i++) {
    Function* const function = make<Function>();
    if (function == nullptr || !module->functions.push(function)) {
      destroy(function);
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    function->module = module;
    function->spec = &spec->kernels[i];
    function->builtin = builtin_of(function->spec->name);
    if (loads_eagerly()) result = load_code(function);
  }
  if (result != CUDA_SUCCESS) {
    module->library = library;
    if (library == nullptr) module->spec = nullptr;  // stays the caller's
    unload_module(module);
    return result;
  }
  *out = module;
  return CUDA_SUCCESS;
}

void unload_module(Module* module) {
  Module** link = &code_of(module->context)->modules;
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a module is always in its context's list
  while (*link != module) link = &(*link)->next;
  *link = module->next;
  for (Function* const function : module->functions) {
    function->magic = 0;
    destroy(function);
  }
  for (const uint64_t piece : module->pieces) phys_give(piece);
  if (module->globals.owner != nullptr) {
    range_remove(&module->globals);
    va_give(module->globals.base, module->globals.bytes);
    phys_give(module->globals.piece);
  }
  if (module->library == nullptr) destroy(module->spec);
  module->magic = 0;
  destroy(module);
}

CUresult module_of_library(Library* library, Module** out) {
  Context* const context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextCode* const code = code_of(context);
  if (code == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (Module* module = code->modules; module != nullptr; module = module->next) {
    if (module->library != library) continue;
    *out = module;
    return CUDA_SUCCESS;
  }
  return load_module(context, &library->spec, library, out);
}

Module* find_module(CUmodule handle) {
  Module* const module = reinterpret_cast<Module*>(handle);
  return module != nullptr && module->magic == Module::kMagic ? module : nullptr;
}

Function* find_function(CUfunction handle, CUresult* result) {
  *result = CUDA_ERROR_INVALID_HANDLE;
  if (handle == nullptr) return nullptr;
  Function* const function = reinterpret_cast<Function*>(handle);
  if (function->magic == Function::kMagic) {
    *result = CUDA_SUCCESS;
    return function;
  }
  const Kernel* const kernel = reinterpret_cast<const Kernel*>(handle);
  if (kernel->magic != Kernel::kMagic) return nullptr;
  Module* module = nullptr;
  *result = module_of_library(kernel->library, &module);
  return *result == CUDA_SUCCESS ? module->functions[kernel->index] : nullptr;
}

void modules_end(Context* context) {
  ContextCode* const code = static_cast<ContextCode*>(context->modules);
  if (code == nullptr) return;
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): unloading takes it off the list
  while (code->modules != nullptr) unload_module(code->modules);
  for (const uint64_t piece : code->local_pieces) phys_give(piece);
  destroy(code);
  context->modules = nullptr;
}

}  // namespace simgpu
