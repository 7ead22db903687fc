// SPDX-License-Identifier: Apache-2.0
// The allocating interface of CUDA 3.1: its functions work only in its own contexts.
#include <string.h>

#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using OldTest = SimTest;

CUcontext begin_old() {
  OK(cuInit(0));
  CUcontext context = nullptr;
  OK(cuCtxCreate(&context, 0, 0));
  return context;
}

TEST_F(OldTest, OldFunctionsWantAnOldContext) {
  in_child([] {
    begin();
    CUdeviceptr_v1 p = 0;
    unsigned number = 0, other = 0;
    CUarray array = nullptr;
    const CUDA_ARRAY_DESCRIPTOR_v1 shape{16, 16, CU_AD_FORMAT_FLOAT, 1};
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 4096));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocPitch(&p, &number, 4, 4, 4));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemFree(4096));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemGetInfo(&number, &other));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuArrayCreate(&array, &shape));
    unsigned version = 0;
    OK(cuCtxGetApiVersion(nullptr, &version));
    CHECK_EQ(3020, version);
  });
}

TEST_F(OldTest, MemoryLiesBelow4GiBAndIsCountedAsAnyOther) {
  in_child([] {
    CUcontext context = begin_old();
    unsigned version = 0;
    OK(cuCtxGetApiVersion(context, &version));
    CHECK_EQ(3010, version);
    unsigned before = 0, after = 0, total = 0, pitch = 0;
    OK(cuMemGetInfo(&before, &total));
    CHECK_EQ(0xffffffffu, total);
    CUdeviceptr_v1 p[3] = {};
    CUdeviceptr base = 0;
    size_t bytes = 0;
    for (CUdeviceptr_v1& one : p) OK(cuMemAlloc(&one, 256u << 20));
    OK(cuMemGetAddressRange_v2(&base, &bytes, p[1] + 4097));
    CHECK_EQ(p[1], base);
    CHECK_EQ(256u << 20, bytes);
    std::vector<char> text(5000, 'x'), back(5000);
    OK(cuMemcpyHtoD_v2(p[1], text.data(), 5000));
    OK(cuMemcpyDtoD_v2(p[2], p[1], 5000));
    OK(cuMemcpyDtoH_v2(back.data(), p[2], 5000));
    CHECK(memcmp(text.data(), back.data(), 5000) == 0);
    for (const CUdeviceptr_v1 one : p) OK(cuMemFree(one));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree(p[0]));
    CUdeviceptr_v1 rows = 0, small = 0;
    OK(cuMemAllocPitch(&rows, &pitch, 4, 100, 4));
    CHECK_EQ(512, pitch);
    OK(cuMemsetD2D32_v2(rows, pitch, 7, 1, 100));
    unsigned word = 0;
    OK(cuMemcpyDtoH_v2(&word, rows + 99 * pitch, 4));
    CHECK_EQ(7, word);
    OK(cuMemAlloc(&small, 100));
    CHECK(small != 0 && small != rows);
    // More than there are addresses is refused, not wrapped around.
    CUdeviceptr_v1 huge = 0;
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&huge, 0xffffffffu));
    OK(cuMemGetInfo(&after, &total));
    OK(cuCtxDestroy(context));
  });
  EXPECT_TRUE(eventually([&] { return used() == 0; }));
}

TEST_F(OldTest, ArraysAreDescribedAndCopied) {
  in_child([] {
    begin_old();
    const CUDA_ARRAY_DESCRIPTOR_v1 flat{64, 32, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const CUDA_ARRAY3D_DESCRIPTOR_v1 deep{16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    CUarray a = nullptr, b = nullptr;
    OK(cuArrayCreate(&a, &flat));
    OK(cuArray3DCreate(&b, &deep));
    CUDA_ARRAY_DESCRIPTOR said{};
    CUDA_ARRAY3D_DESCRIPTOR said_deep{};
    OK(cuArrayGetDescriptor_v2(&said, a));
    CHECK_EQ(64, said.Width);
    CHECK_EQ(32, said.Height);
    OK(cuArray3DGetDescriptor_v2(&said_deep, b));
    CHECK_EQ(4, said_deep.Depth);
    std::vector<char> text(64 * 32), back(64 * 32);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
    CUDA_MEMCPY2D whole{};
    whole.srcMemoryType = CU_MEMORYTYPE_HOST, whole.srcHost = text.data(), whole.srcPitch = 64;
    whole.dstMemoryType = CU_MEMORYTYPE_ARRAY, whole.dstArray = a;
    whole.WidthInBytes = 64, whole.Height = 32;
    OK(cuMemcpy2D_v2(&whole));
    CUDA_MEMCPY3D corner{};
    corner.srcMemoryType = CU_MEMORYTYPE_ARRAY, corner.srcArray = a;
    corner.srcXInBytes = 3, corner.srcY = 5;
    corner.dstMemoryType = CU_MEMORYTYPE_ARRAY, corner.dstArray = b, corner.dstZ = 2;
    corner.WidthInBytes = 10, corner.Height = 6, corner.Depth = 1;
    OK(cuMemcpy3D_v2(&corner));
    CUDA_MEMCPY3D out{};
    out.srcMemoryType = CU_MEMORYTYPE_ARRAY, out.srcArray = b, out.srcZ = 2;
    out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = back.data(), out.dstPitch = 10;
    out.WidthInBytes = 10, out.Height = 6, out.Depth = 1;
    OK(cuMemcpy3D_v2(&out));
    for (size_t y = 0; y < 6; ++y)
      for (size_t x = 0; x < 10; ++x) CHECK_EQ(text[(y + 5) * 64 + x + 3], back[y * 10 + x]);
    // The first row of an array, by the functions that only know rows.
    CUdeviceptr_v1 p = 0;
    OK(cuMemAlloc(&p, 64));
    OK(cuMemcpyAtoD_v2(p, a, 8, 40));
    OK(cuMemcpyDtoA_v2(a, 0, p, 40));
    OK(cuMemcpyAtoA_v2(a, 48, a, 0, 16));
    OK(cuMemcpyAtoH_v2(back.data(), a, 0, 64));
    for (size_t x = 0; x < 40; ++x) CHECK_EQ(text[x + 8], back[x]);
    for (size_t x = 0; x < 16; ++x) CHECK_EQ(text[x + 8], back[x + 48]);
    OK(cuMemcpyHtoA_v2(a, 0, text.data(), 64));
    OK(cuMemcpyAtoH_v2(back.data(), a, 0, 64));
    CHECK(memcmp(text.data(), back.data(), 64) == 0);
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
  });
}

}  // namespace
}  // namespace simgpu_test
