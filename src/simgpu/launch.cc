// SPDX-License-Identifier: Apache-2.0
// The entry points that launch kernels. A launch may take memory that nobody asked for: code on its
// first time, local memory when the kernel needs more than any before it, the malloc heap.
#include "simgpu/launch.h"

#include <cstring>

#include "simgpu/capture.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

constexpr size_t kDefaultHeap = 8 << 20;  // part of what a context costs
constexpr unsigned kMaxShared = 232448;

CUresult grow_local(Context* context, uint64_t bytes) {
  ContextCode* const code = code_of(context);
  if (code == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t have = context->limits[CU_LIMIT_STACK_SIZE];
  if (have < code->local_bytes) have = code->local_bytes;
  if (bytes <= have) return CUDA_SUCCESS;
  const uint64_t threads = static_cast<uint64_t>(device_of(context)->info.sms) * kThreadsPerSm;
  uint64_t piece = 0;
  const CUresult result =
      phys_take(context->device, threads * (bytes - have), MemoryClass::kContext, &piece);
  if (result != CUDA_SUCCESS) return result;
  code->local_pieces.push(piece);
  code->local_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult take_heap(Context* context) {
  const size_t limit = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  if (context->heap_piece != 0 || limit <= kDefaultHeap) return CUDA_SUCCESS;
  return phys_take(context->device, limit, MemoryClass::kContext, &context->heap_piece);
}

// Where each argument lies: in the caller's array, or in one packed buffer.
const void* source_of(const KernelSpec& spec, unsigned i, void** arguments, const char* packed) {
  return arguments != nullptr ? arguments[i] : packed + spec.parameters[i].offset;
}

CUresult packed_buffer(void** extra, const char** buffer, size_t* bytes) {
  *buffer = nullptr;
  *bytes = 0;
  for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      *buffer = static_cast<const char*>(extra[1]);
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      *bytes = *static_cast<const size_t*>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, const Shape& shape, CUstream stream_handle, void** arguments,
                void** extra, bool per_thread) {
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  Stream* stream = nullptr;
  result = check_shape(function, shape);
  if (result == CUDA_SUCCESS) result = find_stream(stream_handle, per_thread, &stream);
  if (result == CUDA_SUCCESS) result = refuse_legacy(stream);
  Task task;
  if (result == CUDA_SUCCESS) result = kernel_task(function, shape, arguments, extra, &task);
  if (result != CUDA_SUCCESS) return result;
  if (is_capturing(stream)) return capture_task(stream, task, CU_GRAPH_NODE_TYPE_KERNEL);
  result = prepare_launch(function);
  if (result != CUDA_SUCCESS) {
    task_release(task);
    return result;
  }
  return submit(stream, task);
}

CUresult launch_config(const CUlaunchConfig* config, CUfunction function, void** arguments,
                       void** extra, bool per_thread) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                       {config->blockDimX, config->blockDimY, config->blockDimZ},
                       config->sharedMemBytes};
  return launch(function, shape, config->hStream, arguments, extra, per_thread);
}

// CUDA 3's way: block shape and arguments were set on the function beforehand.
CUresult launch_old(CUfunction handle, int width, int height, CUstream stream) {
  Shape shape = {};
  void* arguments[kMaxParameters] = {};
  bool any = false;
  {
    const Guard guard;
    CUresult result = CUDA_SUCCESS;
    Function* const function = find_function(handle, &result);
    if (function == nullptr) return result;
    shape = {{static_cast<unsigned>(width), static_cast<unsigned>(height), 1},
             {function->block[0], function->block[1], function->block[2]},
             function->dynamic_shared};
    for (unsigned i = 0; i < function->spec->parameter_count; i++) {
      arguments[i] = function->parameters + function->spec->parameters[i].offset;
      any = true;
    }
  }
  return launch(handle, shape, stream, any ? arguments : nullptr, nullptr, false);
}

CUresult set_parameter(CUfunction handle, int offset, const void* data, size_t bytes) {
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  if (offset < 0 || data == nullptr ||
      static_cast<size_t>(offset) + bytes > sizeof function->parameters)
    return CUDA_ERROR_INVALID_VALUE;
  memcpy(function->parameters + offset, data, bytes);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult check_shape(const Function* function, const Shape& shape) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (shape.grid[i] == 0 || shape.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    threads *= shape.block[i];
  }
  if (threads > function->spec->max_threads || shape.block[2] > 64) return CUDA_ERROR_INVALID_VALUE;
  if (shape.grid[0] > 0x7fffffffu || shape.grid[1] > 65535 || shape.grid[2] > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  return shape.shared > kMaxShared ||
                 shape.shared > static_cast<unsigned>(function->max_dynamic_shared)
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}

CUresult prepare_launch(Function* function) {
  CUresult result = load_code(function);
  Context* const context = function->module->context;
  if (result == CUDA_SUCCESS) result = grow_local(context, function->spec->local_bytes);
  if (result == CUDA_SUCCESS) result = take_heap(context);
  return result;
}

CUresult kernel_task(Function* function, const Shape& shape, void** arguments, void** extra,
                     Task* out) {
  const char* packed = nullptr;
  size_t packed_bytes = 0;
  const CUresult result = packed_buffer(extra, &packed, &packed_bytes);
  if (result != CUDA_SUCCESS) return result;
  const KernelSpec& spec = *function->spec;
  Arguments* copy = nullptr;
  if (spec.parameter_count != 0) {
    const ParameterSpec& last = spec.parameters[spec.parameter_count - 1];
    const size_t bytes = last.offset + last.bytes;
    if (arguments == nullptr && (packed == nullptr || packed_bytes < bytes))
      return CUDA_ERROR_INVALID_VALUE;
    copy = static_cast<Arguments*>(
        malloc(sizeof(Arguments) + spec.parameter_count * sizeof(void*) + bytes));
    if (copy == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    copy->references = 1;
    copy->count = spec.parameter_count;
    char* const values = reinterpret_cast<char*>(copy->pointers + spec.parameter_count);
    for (unsigned i = 0; i < spec.parameter_count; i++) {
      copy->pointers[i] = values + spec.parameters[i].offset;
      memcpy(copy->pointers[i], source_of(spec, i, arguments, packed), spec.parameters[i].bytes);
    }
  }
  out->kind = TaskKind::kKernel;
  out->context = function->module->context;
  CUDA_KERNEL_NODE_PARAMS& params = out->kernel.params;
  params = {};
  params.func = reinterpret_cast<CUfunction>(function);
  params.gridDimX = shape.grid[0];
  params.gridDimY = shape.grid[1];
  params.gridDimZ = shape.grid[2];
  params.blockDimX = shape.block[0];
  params.blockDimY = shape.block[1];
  params.blockDimZ = shape.block[2];
  params.sharedMemBytes = shape.shared;
  params.kernelParams = copy == nullptr ? nullptr : copy->pointers;
  params.ctx = handle_of(function->module->context);
  out->kernel.arguments = copy;
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

extern "C" {

SIM_PAIR(cuLaunchKernel,
         (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
          unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** arguments,
          void** extra),
         launch(function, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, arguments, extra,
                per_thread));
SIM_PAIR(cuLaunchCooperativeKernel,
         (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
          unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** arguments),
         launch(function, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, arguments, nullptr,
                per_thread));
SIM_PAIR(cuLaunchKernelEx,
         (const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra),
         launch_config(config, function, arguments, extra, per_thread));

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned int count,
                                              unsigned int) {
  SIM_ENTRY_CONTEXT(cuLaunchCooperativeKernelMultiDevice);
  if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
    const CUDA_LAUNCH_PARAMS& p = list[i];
    result = launch(p.function,
                    {{p.gridDimX, p.gridDimY, p.gridDimZ},
                     {p.blockDimX, p.blockDimY, p.blockDimZ},
                     p.sharedMemBytes},
                    p.hStream, p.kernelParams, nullptr, false);
  }
  return result;
}

CUresult cuLaunch(CUfunction function) {
  SIM_ENTRY_CONTEXT(cuLaunch);
  return launch_old(function, 1, 1, nullptr);
}
CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  SIM_ENTRY_CONTEXT(cuLaunchGrid);
  return launch_old(function, width, height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  SIM_ENTRY_CONTEXT(cuLaunchGridAsync);
  return launch_old(function, width, height, stream);
}

CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
  SIM_ENTRY_CONTEXT(cuFuncSetBlockShape);
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  Function* const function = find_function(handle, &result);
  if (function == nullptr) return result;
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  function->block[0] = static_cast<unsigned>(x);
  function->block[1] = static_cast<unsigned>(y);
  function->block[2] = static_cast<unsigned>(z);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes) {
  SIM_ENTRY_CONTEXT(cuFuncSetSharedSize);
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  Function* const function = find_function(handle, &result);
  if (function != nullptr) function->dynamic_shared = bytes;
  return result;
}
CUresult cuParamSetSize(CUfunction, unsigned int bytes) {
  SIM_ENTRY_CONTEXT(cuParamSetSize);
  return bytes <= sizeof(Function::parameters) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
  SIM_ENTRY_CONTEXT(cuParamSeti);
  return set_parameter(function, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction function, int offset, float value) {
  SIM_ENTRY_CONTEXT(cuParamSetf);
  return set_parameter(function, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction function, int offset, void* data, unsigned int bytes) {
  SIM_ENTRY_CONTEXT(cuParamSetv);
  return set_parameter(function, offset, data, bytes);
}

}  // extern "C"
