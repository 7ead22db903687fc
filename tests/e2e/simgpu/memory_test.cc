// SPDX-License-Identifier: Apache-2.0
// What memory costs, in bytes, as measured on a real H200: contexts, stack limits, blocks of every
// size, pitches, managed memory. Each test compares the card's used bytes before and after in a
// child process.
#include <signal.h>
#include <sys/wait.h>

#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using MemoryTest = SimTest;

// Physical bytes of `count` blocks of `bytes`; all of it must be back after freeing them.
size_t cost(size_t bytes, int count) {
  const size_t before = used_here();
  std::vector<CUdeviceptr> blocks(static_cast<size_t>(count));
  for (CUdeviceptr& block : blocks) OK(cuMemAlloc_v2(&block, bytes));
  const size_t taken = used_here() - before;
  for (const CUdeviceptr block : blocks) OK(cuMemFree_v2(block));
  CHECK_EQ(before, used_here());
  return taken;
}

TEST_F(MemoryTest, BlocksCostWhatTheRealDriverTakes) {
  in_child([] {
    begin();
    CHECK_EQ(6 * kMiB, cost(512, 10000));
    CHECK_EQ(2 * kMiB, cost(1, 1));
    CHECK_EQ(40 * kMiB, cost(4096, 10240));
    CHECK_EQ(64 * kMiB, cost(65536, 1024));
    CHECK_EQ(10 * kMiB, cost(kMiB, 10));
    CHECK_EQ(2 * kMiB, cost(kMiB + 1, 1));
    CHECK_EQ(4 * kMiB, cost(2 * kMiB + 1, 1));
    CHECK_EQ(4 * kMiB, cost(3 * kMiB, 1));
    CHECK_EQ(kGiB, cost(kGiB, 1));
  });
}

TEST_F(MemoryTest, ContextsCostWhatTheRealDriverTakes) {
  in_child([] {
    const CUcontext primary = begin();
    CHECK_EQ(518 * kMiB, used_here());
    CUcontext second = nullptr;
    OK(cuCtxCreate_v2(&second, 0, 0));
    CHECK_EQ((518 + 524) * kMiB, used_here());
    OK(cuCtxDestroy_v2(second));
    CUcontext current = nullptr;
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    CHECK_EQ(518 * kMiB, used_here());
    CUcontext again = nullptr;
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == primary);
    CHECK_EQ(518 * kMiB, used_here());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_EQ(518 * kMiB, used_here());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    size_t free_bytes = 0, total = 0;
    CHECK_EQ(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemGetInfo_v2(&free_bytes, &total));
    CHECK_EQ(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
  });
  EXPECT_EQ(0u, used());
}

TEST_F(MemoryTest, AContextsMemoryEndsWithIt) {
  in_child([] {
    begin();
    CUcontext context = nullptr;
    OK(cuCtxCreate_v2(&context, 0, 0));
    const size_t before = used_here();
    CUdeviceptr small = 0, large = 0;
    OK(cuMemAlloc_v2(&small, 100));
    OK(cuMemAlloc_v2(&large, 100 * kMiB));
    CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    CUarray array = nullptr;
    OK(cuArrayCreate_v2(&array, &shape));
    CHECK_EQ(118 * kMiB, used_here() - before);
    OK(cuCtxDestroy_v2(context));
    CHECK_EQ(518 * kMiB, used_here());
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(large));
  });
}

TEST_F(MemoryTest, TheStackLimitTakesLocalMemoryAtOnce) {
  in_child([] {
    begin();
    const size_t before = used_here();
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384));
    CHECK_EQ(3960 * kMiB, used_here() - before);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 512));
    CHECK_EQ(132 * kMiB, before - used_here());
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    size_t limit = 0;
    OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    CHECK_EQ(1008, limit);
    CHECK_EQ(4 * kMiB, before - used_here());
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * kMiB));
    CHECK_EQ(4 * kMiB, before - used_here());
    CUdeviceptr most = 0;
    OK(cuMemAlloc_v2(&most, 139 * kGiB));
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536));
    OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    CHECK_EQ(1008, limit);
  });
}

TEST_F(MemoryTest, FillsTheCardToTheLastGranuleAndOutOfMemoryIsNotSticky) {
  in_child([] {
    begin();
    std::vector<CUdeviceptr> blocks;
    CUdeviceptr block = 0;
    CUresult result = CUDA_SUCCESS;
    while ((result = cuMemAlloc_v2(&block, 512 * kMiB)) == CUDA_SUCCESS) blocks.push_back(block);
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY, result);
    while (cuMemAlloc_v2(&block, 2 * kMiB) == CUDA_SUCCESS) blocks.push_back(block);
    size_t free_bytes = 0, total = 0;
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    CHECK_EQ(150109880320, total);
    CHECK(free_bytes < 2 * kMiB);
    OK(cuMemFree_v2(blocks.back()));
    OK(cuMemAlloc_v2(&block, 2 * kMiB));
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&block, 1ull << 50));
  });
}

TEST_F(MemoryTest, PitchIsFiveHundredAndTwelve) {
  in_child([] {
    begin();
    const size_t before = used_here();
    CUdeviceptr block = 0;
    size_t pitch = 0;
    OK(cuMemAllocPitch_v2(&block, &pitch, 4, 1 << 20, 4));
    CHECK_EQ(512, pitch);
    CHECK_EQ(512 * kMiB, used_here() - before);
    OK(cuMemAllocPitch_v2(&block, &pitch, 513, 1, 16));
    CHECK_EQ(1024, pitch);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&block, &pitch, 4, 4, 3));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&block, &pitch, 0, 4, 4));
  });
}

TEST_F(MemoryTest, AddressRangesAreThoseAskedFor) {
  in_child([] {
    begin();
    CUdeviceptr small = 0, large = 0, base = 0;
    size_t bytes = 0;
    OK(cuMemAlloc_v2(&small, 1000));
    OK(cuMemAlloc_v2(&large, 3 * kMiB));
    OK(cuMemGetAddressRange_v2(&base, &bytes, small + 999));
    CHECK(base == small && bytes == 1000);
    CHECK_EQ(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, small + 1000));
    OK(cuMemGetAddressRange_v2(nullptr, &bytes, large + 5));
    CHECK_EQ(3 * kMiB, bytes);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(small + 512));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(large + 512));
    OK(cuMemFree_v2(0));
  });
}

TEST_F(MemoryTest, ManagedMemoryRemembersAdviceAndWhereItWasSentTo) {
  in_child([] {
    begin();
    CUdeviceptr block = 0;
    OK(cuMemAllocManaged(&block, 64 * kMiB, CU_MEM_ATTACH_GLOBAL));
    int read_mostly = 9, preferred = 9, prefetched = 9, accessed[3] = {9, 9, 9};
    void* data[] = {&read_mostly, &preferred, accessed, &prefetched};
    size_t sizes[] = {4, 4, 12, 4};
    CUmem_range_attribute which[] = {1, 2, 3, 4};
    OK(cuMemRangeGetAttributes(data, sizes, which, 4, block, 64 * kMiB));
    CHECK(read_mostly == 0 && preferred == CU_DEVICE_INVALID && prefetched == CU_DEVICE_INVALID);
    CHECK(accessed[0] == CU_DEVICE_INVALID && accessed[2] == CU_DEVICE_INVALID);
    OK(cuMemAdvise(block, kMiB, 1, 0));
    OK(cuMemAdvise(block, kMiB, 3, CU_DEVICE_CPU));
    OK(cuMemAdvise(block, kMiB, 5, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise(block, kMiB, 5, 7));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(block, kMiB, 7, 0));
    // Two halves, each to its own place, the card's last.
    CUdeviceptr parts[] = {block, block + 32 * kMiB};
    size_t bytes[] = {32 * kMiB, 32 * kMiB}, starts[] = {0, 1};
    CUmemLocation places[2] = {};
    places[0].type = CU_MEM_LOCATION_TYPE_HOST;
    places[1].type = CU_MEM_LOCATION_TYPE_DEVICE;
    OK(cuMemPrefetchBatchAsync(parts, bytes, 2, places, starts, 2, 0, nullptr));
    CHECK_EQ(kContext + 64 * kMiB, used_here());
    OK(cuMemRangeGetAttributes(data, sizes, which, 4, block + 4096, kMiB));
    CHECK(read_mostly == 1 && preferred == CU_DEVICE_CPU && prefetched == 0);
    CHECK(accessed[0] == 0 && accessed[1] == CU_DEVICE_INVALID);
    int type = 0;
    OK(cuMemRangeGetAttribute(&type, 4, 5, block, 1));
    CHECK_EQ(CU_MEM_LOCATION_TYPE_HOST, type);
    OK(cuMemDiscardBatchAsync(parts, bytes, 2, 0, nullptr));
    OK(cuMemDiscardAndPrefetchBatchAsync(parts, bytes, 2, places, starts, 1, 0, nullptr));
    CHECK_EQ(kContext, used_here());
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&type, 8, 5, block, 1));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&type, 4, 9, block, 1));
    bytes[1] += 1;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(parts, bytes, 2, 0, nullptr));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemPrefetchBatchAsync(parts, bytes, 2, places, starts, 2, 0, nullptr));
  });
}

TEST_F(MemoryTest, ManagedMemoryComesToTheCardWhenTouched) {
  in_child([] {
    begin();
    const size_t before = used_here();
    CUdeviceptr block = 0;
    OK(cuMemAllocManaged(&block, kGiB, CU_MEM_ATTACH_GLOBAL));
    CHECK_EQ(before, used_here());
    OK(cuMemsetD8_v2(block, 7, 4096));
    CHECK_EQ(kGiB, used_here() - before);
    CHECK_EQ(7, reinterpret_cast<unsigned char*>(block)[4095]);
    OK(cuMemPrefetchAsync(block, kGiB, CU_DEVICE_CPU, nullptr));
    OK(cuCtxSynchronize());
    CHECK_EQ(before, used_here());
    OK(cuMemFree_v2(block));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&block, kGiB, 0));
  });
}

TEST_F(MemoryTest, SmallBlocksDoNotAskTheServer) {
  in_child([this] {
    begin();
    CUdeviceptr first = 0, second = 0;
    OK(cuMemAlloc_v2(&first, 512));
    (void)control("stop");
    // The server is gone; the slab is still ours.
    for (int i = 0; i < 1000; ++i) {
      OK(cuMemAlloc_v2(&second, 4096));
      OK(cuMemFree_v2(second));
    }
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemAlloc_v2(&second, 64 * kMiB));
    CHECK_EQ(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemAlloc_v2(&second, 512));  // sticky from then on
  });
}

TEST_F(MemoryTest, ManyLiveBlocksOfManySizesStayApart) {
  in_child([] {
    begin();
    const size_t before = used_here();
    std::vector<std::pair<CUdeviceptr, size_t>> blocks;
    uint64_t random = 88172645463325252ull;
    for (int i = 0; i < 20000; ++i) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      if (!blocks.empty() && random % 3 == 0) {
        const size_t victim = (random >> 8) % blocks.size();
        OK(cuMemFree_v2(blocks[victim].first));
        blocks[victim] = blocks.back();
        blocks.pop_back();
        continue;
      }
      const size_t bytes = 1 + (random >> 20) % (random % 50 == 1 ? 5 * kMiB : 20000);
      CUdeviceptr block = 0;
      OK(cuMemAlloc_v2(&block, bytes));
      blocks.emplace_back(block, bytes);
    }
    size_t asked = 0;
    for (const auto& [block, bytes] : blocks) {
      CUdeviceptr base = 0;
      size_t size = 0;
      OK(cuMemGetAddressRange_v2(&base, &size, block + bytes - 1));
      CHECK(base == block && size == bytes);
      asked += bytes;
    }
    CHECK(used_here() - before >= asked);
    for (const auto& [block, bytes] : blocks) OK(cuMemFree_v2(block));
    CHECK_EQ(before, used_here());
  });
}

}  // namespace
}  // namespace simgpu_test
