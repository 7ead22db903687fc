// SPDX-License-Identifier: Apache-2.0
// Contents are real: everything written by copies and fills is read back, byte for byte. Random
// operations are repeated on host memory, and both must stay equal; a budget of host memory bounds
// real data.
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using ContentsTest = SimTest;

struct Random {
  uint64_t state = 0x2545f4914f6cdd1dull;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
};

// Random copies and fills on a block, repeated on host memory; both must stay equal.
TEST_F(ContentsTest, RandomCopiesAndFillsMatchHostMemory) {
  in_child([] {
    begin();
    constexpr size_t kSize = 3 * kMiB + 1234;
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, kSize));
    std::vector<unsigned char> mirror(kSize, 0), buffer(kSize);
    Random random;
    for (int step = 0; step < 600; ++step) {
      const size_t at = random.below(kSize);
      const size_t bytes = 1 + random.below(std::min(kSize - at, step % 7 == 0 ? kSize : 9000));
      const size_t take = std::min(bytes, kSize - at);
      switch (random.below(5)) {
        case 0: {
          for (size_t i = 0; i < take; ++i) buffer[i] = static_cast<unsigned char>(random.next());
          OK(cuMemcpyHtoD_v2(block + at, buffer.data(), take));
          memcpy(mirror.data() + at, buffer.data(), take);
          break;
        }
        case 1: {
          const unsigned char value = static_cast<unsigned char>(random.next());
          OK(cuMemsetD8_v2(block + at, value, take));
          memset(mirror.data() + at, value, take);
          break;
        }
        case 2: {
          const size_t even = at & ~size_t{3};
          const size_t count = (kSize - even) / 4 < take ? (kSize - even) / 4 : take;
          const uint32_t value = static_cast<uint32_t>(random.next());
          OK(cuMemsetD32_v2(block + even, value, count));
          for (size_t i = 0; i < count; ++i) memcpy(mirror.data() + even + 4 * i, &value, 4);
          break;
        }
        case 3: {
          const size_t even = at & ~size_t{1};
          const size_t count = (kSize - even) / 2 < take ? (kSize - even) / 2 : take;
          const uint16_t value = static_cast<uint16_t>(random.next());
          OK(cuMemsetD16_v2(block + even, value, count));
          for (size_t i = 0; i < count; ++i) memcpy(mirror.data() + even + 2 * i, &value, 2);
          break;
        }
        default: {
          const size_t from = random.below(kSize - take + 1);
          OK(cuMemcpyDtoD_v2(block + at, block + from, take));
          memmove(mirror.data() + at, mirror.data() + from, take);
        }
      }
      if (step % 20 == 0) {
        OK(cuMemcpyDtoH_v2(buffer.data(), block, kSize));
        CHECK(memcmp(buffer.data(), mirror.data(), kSize) == 0);
      }
    }
    OK(cuMemcpyDtoH_v2(buffer.data(), block, kSize));
    CHECK(memcmp(buffer.data(), mirror.data(), kSize) == 0);
  });
}

TEST_F(ContentsTest, FillingAHundredGibibytesCostsNoHostMemory) {
  in_child([] {
    begin();
    CUdeviceptr block = 0, other = 0;
    OK(cuMemAlloc_v2(&block, 60 * kGiB));
    OK(cuMemAlloc_v2(&other, 60 * kGiB));
    OK(cuMemsetD32_v2(block, 0xdeadbeef, 15 * kGiB));
    OK(cuMemcpyDtoD_v2(other + 2, block, 60 * kGiB - 2));
    uint32_t got = 0;
    OK(cuMemcpyDtoH_v2(&got, other + 2 + 32 * kGiB, 4));
    CHECK_EQ(0xdeadbeefu, got);
    OK(cuMemcpyDtoH_v2(&got, other + 32 * kGiB, 4));
    CHECK_EQ(0xbeefdeadu, got);
  });
  const std::string dump = control("dump");
  EXPECT_NE(std::string::npos, dump.find("\"host_bytes\":0,")) << dump;
}

TEST_F(ContentsTest, HostMemoryIsBounded) {
  setenv("METE_SIM_HOST_MAX", "8M", 1);
  in_child([] {
    begin();
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 64 * kMiB));
    std::vector<unsigned char> data(4 * kMiB);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 251);
    OK(cuMemcpyHtoD_v2(block, data.data(), data.size()));
    OK(cuMemcpyHtoD_v2(block + 8 * kMiB, data.data(), data.size()));
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY,
             cuMemcpyHtoD_v2(block + 16 * kMiB, data.data(), data.size()));
    OK(cuMemsetD8_v2(block, 0, 64 * kMiB));  // patterns are free, and give back what data took
    OK(cuMemcpyHtoD_v2(block + 16 * kMiB, data.data(), data.size()));
  });
}

TEST_F(ContentsTest, RowsAndBoxes) {
  in_child([] {
    begin();
    CUdeviceptr block = 0;
    size_t pitch = 0;
    OK(cuMemAllocPitch_v2(&block, &pitch, 300, 20, 4));
    OK(cuMemsetD2D8_v2(block, pitch, 9, pitch, 20));
    std::vector<unsigned char> in(300 * 20), out(300 * 20, 0);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 31);
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in.data();
    copy.srcPitch = 300;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = block;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 300;
    copy.Height = 20;
    OK(cuMemcpy2D_v2(&copy));
    unsigned char gap = 0;
    OK(cuMemcpyDtoH_v2(&gap, block + 300, 1));
    CHECK_EQ(9, gap);
    CUDA_MEMCPY3D back = {};
    back.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    back.srcDevice = block;
    back.srcPitch = pitch;
    back.srcHeight = 10;
    back.dstMemoryType = CU_MEMORYTYPE_HOST;
    back.dstHost = out.data();
    back.dstPitch = 300;
    back.dstHeight = 10;
    back.WidthInBytes = 300;
    back.Height = 10;
    back.Depth = 2;
    OK(cuMemcpy3D_v2(&back));
    CHECK(in == out);
    copy.Height = 21;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&copy));
  });
}

TEST_F(ContentsTest, ArraysKeepWhatIsCopiedIntoThem) {
  in_child([] {
    begin();
    CUDA_ARRAY3D_DESCRIPTOR shape{100, 50, 4, CU_AD_FORMAT_FLOAT, 2, 0};
    CUarray array = nullptr;
    OK(cuArray3DCreate_v2(&array, &shape));
    std::vector<unsigned char> in(800 * 50 * 4), out(in.size(), 0);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 13 + i / 256);
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 800;
    copy.Height = 50;
    copy.Depth = 4;
    OK(cuMemcpy3D_v2(&copy));
    CUDA_MEMCPY3D back = {};
    back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    back.srcArray = array;
    back.dstMemoryType = CU_MEMORYTYPE_HOST;
    back.dstHost = out.data();
    back.WidthInBytes = 800;
    back.Height = 50;
    back.Depth = 4;
    OK(cuMemcpy3D_v2(&back));
    CHECK(in == out);
    back.Depth = 5;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&back));
    // The first row by the old entry points, through linear memory and back.
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 800));
    OK(cuMemcpyHtoA_v2(array, 16, "row", 3));
    OK(cuMemcpyAtoD_v2(block, array, 16, 3));
    OK(cuMemcpyDtoA_v2(array, 100, block, 3));
    OK(cuMemcpyAtoA_v2(array, 200, array, 100, 3));
    char text[4] = {};
    OK(cuMemcpyAtoH_v2(text, array, 200, 3));
    CHECK(strcmp(text, "row") == 0);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(text, array, 798, 3));
    OK(cuArrayDestroy(array));
  });
}

TEST_F(ContentsTest, PinnedMemoryIsCopiedInTheOrderOfAStream) {
  in_child([] {
    begin();
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 4096));
    char *out = nullptr, *back = nullptr;
    OK(cuMemAllocHost_v2(reinterpret_cast<void**>(&out), 4096));
    OK(cuMemAllocHost_v2(reinterpret_cast<void**>(&back), 4096));
    memset(out, 'p', 4096);
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemcpyAsync(block, reinterpret_cast<CUdeviceptr>(out), 4096, stream));
    OK(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(back), block, 4096, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(memcmp(out, back, 4096) == 0);
    OK(cuMemFreeHost(out));
    OK(cuMemFreeHost(back));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(out));
  });
}

TEST_F(ContentsTest, WrongPointersAreRefusedBeforeAnythingMoves) {
  in_child([] {
    begin();
    CUdeviceptr block = 0, small = 0;
    OK(cuMemAlloc_v2(&block, 3 * kMiB));
    OK(cuMemAlloc_v2(&small, 1000));
    char bytes[64] = {1};
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(block + 3 * kMiB - 10, bytes, 11));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(12345, bytes, 10));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(bytes, small + 1000, 8));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(block + 2, 0, 1));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(bytes), 0, 2));
    char last = 1;
    OK(cuMemcpyDtoH_v2(&last, block + 3 * kMiB - 1, 1));
    CHECK_EQ(0, last);
    OK(cuMemcpyHtoD_v2(block, bytes, 0));
    OK(cuMemcpy(block, reinterpret_cast<CUdeviceptr>(bytes), 64));
  });
}

TEST_F(ContentsTest, TwoCardsExchangeBytes) {
  machine_ = "2xA100-40G";
  in_child([] {
    const CUcontext first = begin(0);
    CUdeviceptr here = 0, there = 0;
    OK(cuMemAlloc_v2(&here, 4096));
    OK(cuMemsetD8_v2(here, 42, 4096));
    CUcontext second = nullptr;
    OK(cuCtxCreate_v2(&second, 0, 1));
    OK(cuMemAlloc_v2(&there, 4096));
    int can = 0;
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK_EQ(1, can);
    OK(cuCtxEnablePeerAccess(first, 0));
    CHECK_EQ(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(first, 0));
    OK(cuMemcpyPeer(there, second, here, first, 4096));
    unsigned char byte = 0;
    OK(cuMemcpyDtoH_v2(&byte, there + 4095, 1));
    CHECK_EQ(42, byte);
    int device = -1;
    OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    CHECK_EQ(1, device);
  });
}

}  // namespace
}  // namespace simgpu_test
