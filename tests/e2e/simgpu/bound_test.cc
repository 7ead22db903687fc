// SPDX-License-Identifier: Apache-2.0
// Memory bound to multicast objects and sparse arrays lives as long as the binding; contexts end
// with their last use.
#include <cstddef>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using BoundTest = SimTest;

CUmemGenericAllocationHandle memory(size_t bytes) {
  const CUmemAllocationProp prop = mete::abi::memory_on(0);
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMemCreate(&handle, bytes, &prop, 0));
  return handle;
}

CUmemGenericAllocationHandle multicast(size_t bytes) {
  CUmulticastObjectProp prop = {};
  prop.numDevices = 1;
  prop.size = bytes;
  CUmemGenericAllocationHandle handle = 0;
  OK(cuMulticastCreate(&handle, &prop));
  OK(cuMulticastAddDevice(handle, 0));
  return handle;
}

TEST_F(BoundTest, MulticastHoldsWhatIsBoundToIt) {
  in_child([] {
    begin();
    const size_t before = used_here();
    const CUmemGenericAllocationHandle group = multicast(8 * kMiB);
    CHECK_EQ(0, used_here() - before);
    const CUmemGenericAllocationHandle handle = memory(8 * kMiB);
    OK(cuMulticastBindMem(group, 0, handle, 0, 8 * kMiB, 0));
    OK(cuMemRelease(handle));
    CHECK_EQ(8 * kMiB, used_here() - before);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(group, 0, 0, 4 * kMiB));
    OK(cuMulticastUnbind(group, 0, 0, 8 * kMiB));
    CHECK_EQ(0, used_here() - before);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(group, 0, 0, 8 * kMiB));
    const CUmemGenericAllocationHandle other = memory(4 * kMiB);
    OK(cuMulticastBindMem(group, 4 * kMiB, other, 0, 4 * kMiB, 0));
    OK(cuMemRelease(other));
    OK(cuMemRelease(group));
    CHECK_EQ(0, used_here() - before);
  });
}

TEST_F(BoundTest, MulticastChecksWhatItIsGiven) {
  machine_ = "2xH200";
  in_child([] {
    begin();
    CUmulticastObjectProp prop = {};
    prop.numDevices = 2;
    prop.size = 4 * kMiB;
    CUmemGenericAllocationHandle group = 0;
    const CUmemGenericAllocationHandle handle = memory(4 * kMiB);
    OK(cuMulticastCreate(&group, &prop));
    OK(cuMulticastAddDevice(group, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(group, 0));
    CHECK_EQ(CUDA_ERROR_NOT_PERMITTED, cuMulticastBindMem(group, 0, handle, 0, 4 * kMiB, 0));
    OK(cuMulticastAddDevice(group, 1));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(group, 0, handle, 0, 8 * kMiB, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(handle, 0, handle, 0, 4 * kMiB, 0));
    OK(cuMulticastBindMem(group, 0, handle, 0, 4 * kMiB, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(group, 0, handle, 0, 4 * kMiB, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(group, 1, 0, 4 * kMiB));
    prop.size = 3;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMulticastCreate(&group, &prop));
  });
}

CUresult map(CUarrayMapInfo info) { return cuMemMapArrayAsync(&info, 1, nullptr); }

TEST_F(BoundTest, SparseArraysHoldTheMemoryOfTheirTiles) {
  in_child([] {
    begin();
    const size_t before = used_here();
    const CUDA_ARRAY3D_DESCRIPTOR shape = {256, 256, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
    CUarray array = nullptr;
    CUDA_ARRAY_SPARSE_PROPERTIES tiles = {};
    OK(cuArray3DCreate_v2(&array, &shape));
    OK(cuArrayGetSparseProperties(&tiles, array));
    CHECK_EQ(64 << 10, tiles.tileExtent.width * tiles.tileExtent.height * 16);
    const CUmemGenericAllocationHandle handle = memory(2 * kMiB);
    CUarrayMapInfo info = {};
    auto& sparse = info.subresource.sparseLevel;
    info.resource.array = array;
    sparse.extentWidth = sparse.extentHeight = 256;
    sparse.extentDepth = 1;
    info.memOperationType = 1;
    info.memHandle.memHandle = handle;
    info.deviceBitMask = 1;
    OK(map(info));
    sparse.extentWidth = 256 + 64 * 32;  // more tiles than the memory has
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, map(info));
    OK(cuMemRelease(handle));
    OK(cuCtxSynchronize());
    CHECK_EQ(2 * kMiB, used_here() - before);
    info.memOperationType = 2;
    sparse.extentWidth = 128;
    OK(map(info));
    OK(cuCtxSynchronize());
    CHECK_EQ(2 * kMiB, used_here() - before);
    sparse.offsetX = 128;
    OK(map(info));
    OK(cuCtxSynchronize());
    CHECK_EQ(0, used_here() - before);
    OK(cuArrayDestroy(array));
  });
}

TEST_F(BoundTest, ContextsEndWithTheirLastUse) {
  in_child([] {
    OK(cuInit(0));
    CUcontext context = nullptr, again = nullptr;
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuCtxAttach(&again, 0));
    CHECK(again == context);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&again, 1));
    OK(cuCtxDetach(context));
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, kMiB));
    OK(cuCtxDetach(context));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, kMiB));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(context));
    OK(cuGLCtxCreate_v2(&context, 0, 0));
    OK(cuMemAlloc_v2(&p, kMiB));
  });
}

}  // namespace
}  // namespace simgpu_test
