// SPDX-License-Identifier: Apache-2.0
// Sizes of arrays, as a real H200 reported them for arrays with deferred mapping.
#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using ArrayTest = SimTest;

struct Measured {
  size_t width, height, depth;
  unsigned format, channels, flags;
  size_t bytes;
};

// Formats: 1 = 8 bit, 2 = 16 bit, 32 = float. Flags: 1 layered, 4 cubemap.
constexpr Measured kMeasured[] = {
    {1, 0, 0, 1, 1, 0, 65536},           {1000, 0, 0, 32, 4, 0, 131072},
    {4096, 0, 0, 2, 2, 0, 131072},       {131072, 0, 0, 1, 1, 0, 1048576},
    {131072, 0, 0, 32, 4, 0, 16777216},  {17, 1000, 0, 32, 1, 0, 131072},
    {64, 256, 0, 32, 1, 0, 65536},       {65, 129, 0, 32, 1, 0, 131072},
    {65, 1024, 0, 32, 1, 0, 327680},     {100, 1000, 0, 32, 1, 0, 458752},
    {1000, 17, 0, 32, 1, 0, 131072},     {1000, 33, 0, 32, 1, 0, 262144},
    {1000, 65, 0, 32, 1, 0, 524288},     {1000, 129, 0, 32, 1, 0, 1048576},
    {1000, 1000, 0, 32, 1, 0, 4128768},  {4096, 1, 0, 32, 4, 0, 524288},
    {4096, 9, 0, 32, 1, 0, 262144},      {4096, 129, 0, 32, 1, 0, 4194304},
    {1000, 1000, 0, 32, 4, 0, 16384000}, {100, 1000, 0, 32, 2, 0, 851968},
    {64, 64, 8, 32, 1, 0, 131072},       {64, 64, 17, 32, 1, 0, 524288},
    {64, 64, 33, 32, 1, 0, 786432},      {64, 64, 100, 32, 1, 0, 1835008},
    {1000, 100, 1, 32, 4, 0, 1703936},   {1000, 100, 3, 32, 4, 0, 6684672},
    {1000, 100, 16, 32, 4, 0, 26673152}, {1000, 100, 100, 32, 4, 0, 186384384},
    {1000, 10, 33, 32, 1, 0, 3145728},   {200, 300, 17, 1, 4, 0, 8126464},
    {7, 5, 100, 1, 1, 0, 65536},         {64, 64, 17, 32, 1, 1, 327680},
    {64, 64, 100, 32, 1, 1, 1638400},    {100, 0, 100, 32, 1, 1, 393216},
    {100, 100, 6, 32, 1, 4, 393216},     {64, 64, 12, 32, 1, 5, 196608},
};

TEST_F(ArrayTest, DeferredTwinsTellTheMeasuredSizeAndTakeNothing) {
  in_child([] {
    begin();
    const size_t before = used_here();
    for (const Measured& m : kMeasured) {
      const CUDA_ARRAY3D_DESCRIPTOR shape{m.width,    m.height,
                                          m.depth,    static_cast<CUarray_format>(m.format),
                                          m.channels, m.flags | CUDA_ARRAY3D_DEFERRED_MAPPING};
      CUarray array = nullptr;
      OK(cuArray3DCreate_v2(&array, &shape));
      CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
      OK(cuArrayGetMemoryRequirements(&needs, array, 0));
      CHECK_EQ(m.bytes, needs.size);
      CHECK_EQ(65536, needs.alignment);
      CHECK_EQ(before, used_here());
      OK(cuArrayDestroy(array));
    }
  });
}

TEST_F(ArrayTest, ArraysTakeTheirTwinsSizeAsAnAllocationWould) {
  in_child([] {
    begin();
    const size_t before = used_here();
    CUarray large = nullptr, small = nullptr;
    const CUDA_ARRAY_DESCRIPTOR large_shape{1000, 1000, CU_AD_FORMAT_FLOAT, 4};
    OK(cuArrayCreate_v2(&large, &large_shape));
    CHECK_EQ(16 * kMiB, used_here() - before);  // 16,384,000 in granules
    const CUDA_ARRAY_DESCRIPTOR small_shape{4096, 1, CU_AD_FORMAT_FLOAT, 4};
    OK(cuArrayCreate_v2(&small, &small_shape));
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&needs, small, 0));
    CHECK_EQ(18 * kMiB, used_here() - before);
    CUarray more[3];
    for (CUarray& array : more) OK(cuArrayCreate_v2(&array, &small_shape));
    CHECK_EQ(18 * kMiB, used_here() - before);  // four of 512 KiB fill one slab
    for (CUarray array : more) OK(cuArrayDestroy(array));
    OK(cuArrayDestroy(small));
    OK(cuArrayDestroy(large));
    CHECK_EQ(before, used_here());
    const CUDA_ARRAY_DESCRIPTOR three{64, 64, CU_AD_FORMAT_FLOAT, 3};
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(&small, &three));
  });
}

TEST_F(ArrayTest, Mipmaps) {
  struct Mip {
    size_t side, depth;
    unsigned channels, levels;
    size_t bytes;
  };
  static constexpr Mip kMips[] = {
      {1024, 0, 4, 1, 16777216}, {1024, 0, 4, 5, 22347776},  {1024, 0, 4, 11, 22413312},
      {100, 0, 1, 2, 131072},    {1000, 0, 1, 11, 5570560},  {100, 16, 1, 2, 917504},
      {256, 16, 1, 5, 4849664},  {1000, 16, 1, 2, 72810496}, {1000, 16, 1, 11, 73990144},
      {1, 0, 1, 11, 65536},
  };
  in_child([] {
    begin();
    const size_t before = used_here();
    for (const Mip& m : kMips) {
      CUDA_ARRAY3D_DESCRIPTOR shape{
          m.side, m.side, m.depth, CU_AD_FORMAT_FLOAT, m.channels, CUDA_ARRAY3D_DEFERRED_MAPPING};
      CUmipmappedArray mipmap = nullptr;
      OK(cuMipmappedArrayCreate(&mipmap, &shape, m.levels));
      CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
      OK(cuMipmappedArrayGetMemoryRequirements(&needs, mipmap, 0));
      CHECK_EQ(m.bytes, needs.size);
      OK(cuMipmappedArrayDestroy(mipmap));
    }
    CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    CUmipmappedArray mipmap = nullptr;
    OK(cuMipmappedArrayCreate(&mipmap, &shape, 11));
    CHECK_EQ(22 * kMiB, used_here() - before);
    CUarray level = nullptr;
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 3));
    CUDA_ARRAY_DESCRIPTOR small = {};
    OK(cuArrayGetDescriptor_v2(&small, level));
    CHECK_EQ(128, small.Width);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mipmap, 11));
    OK(cuMipmappedArrayDestroy(mipmap));
    CHECK_EQ(before, used_here());
  });
}

}  // namespace
}  // namespace simgpu_test
