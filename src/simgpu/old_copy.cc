// SPDX-License-Identifier: Apache-2.0
// Copies and fills of CUDA 3.1.
#include "simgpu/old.h"

namespace simgpu {
namespace {

CUDA_MEMCPY2D widen(const CUDA_MEMCPY2D_v1& what) {
  CUDA_MEMCPY2D wide = {};
  wide.srcXInBytes = what.srcXInBytes;
  wide.srcY = what.srcY;
  wide.srcMemoryType = what.srcMemoryType;
  wide.srcHost = what.srcHost;
  wide.srcDevice = what.srcDevice;
  wide.srcArray = what.srcArray;
  wide.srcPitch = what.srcPitch;
  wide.dstXInBytes = what.dstXInBytes;
  wide.dstY = what.dstY;
  wide.dstMemoryType = what.dstMemoryType;
  wide.dstHost = what.dstHost;
  wide.dstDevice = what.dstDevice;
  wide.dstArray = what.dstArray;
  wide.dstPitch = what.dstPitch;
  wide.WidthInBytes = what.WidthInBytes;
  wide.Height = what.Height;
  return wide;
}

CUDA_MEMCPY3D widen(const CUDA_MEMCPY3D_v1& what) {
  CUDA_MEMCPY3D wide = {};
  wide.srcXInBytes = what.srcXInBytes;
  wide.srcY = what.srcY;
  wide.srcZ = what.srcZ;
  wide.srcMemoryType = what.srcMemoryType;
  wide.srcHost = what.srcHost;
  wide.srcDevice = what.srcDevice;
  wide.srcArray = what.srcArray;
  wide.srcPitch = what.srcPitch;
  wide.srcHeight = what.srcHeight;
  wide.dstXInBytes = what.dstXInBytes;
  wide.dstY = what.dstY;
  wide.dstZ = what.dstZ;
  wide.dstMemoryType = what.dstMemoryType;
  wide.dstHost = what.dstHost;
  wide.dstDevice = what.dstDevice;
  wide.dstArray = what.dstArray;
  wide.dstPitch = what.dstPitch;
  wide.dstHeight = what.dstHeight;
  wide.WidthInBytes = what.WidthInBytes;
  wide.Height = what.Height;
  wide.Depth = what.Depth;
  return wide;
}

template <class Old, class Call>
CUresult wide_copy(const Old* what, Call call) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto wide = widen(*what);
  return call(&wide);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIM_OLD(cuMemcpyHtoD, (CUdeviceptr_v1 to, const void* from, unsigned int bytes),
        cuMemcpyHtoD_v2(to, from, bytes));
SIM_OLD(cuMemcpyDtoH, (void* to, CUdeviceptr_v1 from, unsigned int bytes),
        cuMemcpyDtoH_v2(to, from, bytes));
SIM_OLD(cuMemcpyDtoD, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes),
        cuMemcpyDtoD_v2(to, from, bytes));
SIM_OLD(cuMemcpyHtoDAsync,
        (CUdeviceptr_v1 to, const void* from, unsigned int bytes, CUstream stream),
        cuMemcpyHtoDAsync_v2(to, from, bytes, stream));
SIM_OLD(cuMemcpyDtoHAsync, (void* to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream),
        cuMemcpyDtoHAsync_v2(to, from, bytes, stream));
SIM_OLD(cuMemcpyDtoDAsync,
        (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream),
        cuMemcpyDtoDAsync_v2(to, from, bytes, stream));

SIM_OLD(cuMemcpyHtoA, (CUarray to, unsigned int offset, const void* from, unsigned int bytes),
        cuMemcpyHtoA_v2(to, offset, from, bytes));
SIM_OLD(cuMemcpyAtoH, (void* to, CUarray from, unsigned int offset, unsigned int bytes),
        cuMemcpyAtoH_v2(to, from, offset, bytes));
SIM_OLD(cuMemcpyDtoA, (CUarray to, unsigned int offset, CUdeviceptr_v1 from, unsigned int bytes),
        cuMemcpyDtoA_v2(to, offset, from, bytes));
SIM_OLD(cuMemcpyAtoD, (CUdeviceptr_v1 to, CUarray from, unsigned int offset, unsigned int bytes),
        cuMemcpyAtoD_v2(to, from, offset, bytes));
SIM_OLD(cuMemcpyAtoA,
        (CUarray to, unsigned int to_offset, CUarray from, unsigned int from_offset,
         unsigned int bytes),
        cuMemcpyAtoA_v2(to, to_offset, from, from_offset, bytes));
SIM_OLD(cuMemcpyHtoAAsync,
        (CUarray to, unsigned int offset, const void* from, unsigned int bytes, CUstream stream),
        cuMemcpyHtoAAsync_v2(to, offset, from, bytes, stream));
SIM_OLD(cuMemcpyAtoHAsync,
        (void* to, CUarray from, unsigned int offset, unsigned int bytes, CUstream stream),
        cuMemcpyAtoHAsync_v2(to, from, offset, bytes, stream));

SIM_OLD(cuMemcpy2D, (const CUDA_MEMCPY2D_v1* what), wide_copy(what, cuMemcpy2D_v2));
SIM_OLD(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1* what),
        wide_copy(what, cuMemcpy2DUnaligned_v2));
SIM_OLD(cuMemcpy3D, (const CUDA_MEMCPY3D_v1* what), wide_copy(what, cuMemcpy3D_v2));
SIM_OLD(cuMemcpy2DAsync, (const CUDA_MEMCPY2D_v1* what, CUstream stream),
        wide_copy(what, [stream](const CUDA_MEMCPY2D* wide) {
          return cuMemcpy2DAsync_v2(wide, stream);
        }));
SIM_OLD(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1* what, CUstream stream),
        wide_copy(what, [stream](const CUDA_MEMCPY3D* wide) {
          return cuMemcpy3DAsync_v2(wide, stream);
        }));

SIM_OLD(cuMemsetD8, (CUdeviceptr_v1 to, unsigned char value, unsigned int count),
        cuMemsetD8_v2(to, value, count));
SIM_OLD(cuMemsetD16, (CUdeviceptr_v1 to, unsigned short value, unsigned int count),
        cuMemsetD16_v2(to, value, count));
SIM_OLD(cuMemsetD32, (CUdeviceptr_v1 to, unsigned int value, unsigned int count),
        cuMemsetD32_v2(to, value, count));
SIM_OLD(cuMemsetD2D8,
        (CUdeviceptr_v1 to, unsigned int pitch, unsigned char value, unsigned int width,
         unsigned int rows),
        cuMemsetD2D8_v2(to, pitch, value, width, rows));
SIM_OLD(cuMemsetD2D16,
        (CUdeviceptr_v1 to, unsigned int pitch, unsigned short value, unsigned int width,
         unsigned int rows),
        cuMemsetD2D16_v2(to, pitch, value, width, rows));
SIM_OLD(cuMemsetD2D32,
        (CUdeviceptr_v1 to, unsigned int pitch, unsigned int value, unsigned int width,
         unsigned int rows),
        cuMemsetD2D32_v2(to, pitch, value, width, rows));
