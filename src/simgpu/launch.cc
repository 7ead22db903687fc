// SPDX-License-Identifier: Apache-2.0
// The entry points that launch kernels. A launch may take memory unasked: code on its first time,
// local memory when the kernel needs more than any before it, the malloc heap. The arguments are
// copied into a task, which is submitted to the stream or captured.
#include "simgpu/launch.h"

#include <cstring>

#include "simgpu/capture.h"
#include "simgpu/stream_pair.h"

namespace simgpu {
namespace {

constexpr size_t kDefaultHeap = 8 << 20;  // part of a context's cost

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
  return shape.shared > kMaxDynamicShared ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
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
SIM_PAIR(cuLaunchKernelEx,
         (const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra),
         launch_config(config, function, arguments, extra, per_thread));

}  // extern "C"
