// SPDX-License-Identifier: Apache-2.0
// Batches of copies: all of a batch or, with a mistake in it, nothing; and when sources are read:
// at the call, in stream order, or any time, as their attributes say. Boxes of 3D batches are
// compared with loops on the host.
#include <semaphore.h>
#include <string.h>

#include <cstddef>
#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using BatchTest = SimTest;

constexpr size_t kNone = ~size_t{0};

CUmemcpyAttributes in_order(CUmemcpySrcAccessOrder order) {
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = order;
  return attributes;
}

CUdeviceptr bits(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

CUmemcpy3DOperand at(CUdeviceptr p, size_t row = 0, size_t rows = 0) {
  CUmemcpy3DOperand side{};
  side.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  side.op.ptr.ptr = p;
  side.op.ptr.rowLength = row;
  side.op.ptr.layerHeight = rows;
  return side;
}

CUmemcpy3DOperand in(CUarray array, CUoffset3D offset) {
  CUmemcpy3DOperand side{};
  side.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  side.op.array.array = array;
  side.op.array.offset = offset;
  return side;
}

TEST_F(BatchTest, CopiesWhatEachLineSays) {
  in_child([] {
    begin();
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 4096));
    char text[] = "abcdefghij", back[11] = {};
    CUmemcpyAttributes attributes[2] = {in_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
                                        in_order(CU_MEMCPY_SRC_ACCESS_ORDER_ANY)};
    size_t starts[2] = {0, 2};
    CUdeviceptr to[] = {block, block + 100, block + 200};
    CUdeviceptr from[] = {bits(text), bits(text + 3), bits(text + 6)};
    size_t bytes[] = {3, 3, 4};
    size_t failed = 77;
    OK(cuMemcpyBatchAsync(to, from, bytes, 3, attributes, starts, 2, &failed, stream));
    CHECK_EQ(77, failed);
    CUdeviceptr home[] = {bits(back + 7), bits(back + 4), bits(back)};
    CUdeviceptr out[] = {block, block + 100, block + 200};
    OK(cuMemcpyBatchAsync_v2_ptsz(home, out, bytes, 3, attributes, starts, 1, nullptr));
    OK(cuStreamSynchronize_ptsz(nullptr));
    CHECK_EQ(0, memcmp(back, "ghijdefabc", 10));
  });
}

TEST_F(BatchTest, AMistakeAnywhereMeansThatNothingIsCopied) {
  in_child([] {
    begin();
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 2 * kMiB));
    CUmemcpyAttributes good = in_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM), bad{};
    size_t first = 0, second = 1, failed = 0;
    char byte = 'x';
    CUdeviceptr to[] = {block, block + 2 * kMiB - 1}, from[] = {bits(&byte), block};
    size_t bytes[] = {1, 2};
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemcpyBatchAsync(to, from, bytes, 2, &good, &first, 1, &failed, stream));
    CHECK_EQ(1, failed);
    OK(cuMemcpyDtoH_v2(&byte, block, 1));
    CHECK_EQ(0, byte);
    // Mistakes that belong to no single copy.
    bytes[1] = 1;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemcpyBatchAsync(to, from, bytes, 2, &good, &second, 1, &failed, stream));
    CHECK_EQ(static_cast<ptrdiff_t>(kNone), static_cast<ptrdiff_t>(failed));
    failed = 0;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemcpyBatchAsync(to, from, bytes, 2, &good, &first, 1, &failed, nullptr));
    CHECK_EQ(static_cast<ptrdiff_t>(kNone), static_cast<ptrdiff_t>(failed));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemcpyBatchAsync(to, from, bytes, 2, &bad, &first, 1, &failed, stream));
    CHECK_EQ(0, failed);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemcpyBatchAsync_v2(to, from, bytes, 0, &good, &first, 1, stream));
    OK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &good, &first, 1, stream));
  });
}

// Behind a host function that waits, a source in stream order is read late, one "during the call"
// is read at once.
TEST_F(BatchTest, SourcesAreReadWhenTheirAttributesSay) {
  in_child([] {
    begin();
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 4096));
    static sem_t go;
    sem_init(&go, 0, 0);
    OK(cuLaunchHostFunc(
        stream, [](void*) { sem_wait(&go); }, nullptr));
    char late = 'a', early = 'a', box = 'a';
    CUmemcpyAttributes attributes[2] = {in_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
                                        in_order(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)};
    size_t starts[2] = {0, 1};
    CUdeviceptr to[] = {block, block + 1}, from[] = {bits(&late), bits(&early)};
    size_t bytes[] = {1, 1};
    OK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, attributes, starts, 2, stream));
    CUDA_MEMCPY3D_BATCH_OP op{};
    op.src = at(bits(&box));
    op.dst = at(block + 2);
    op.extent = {1, 1, 1};
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, stream));
    late = early = box = 'b';
    sem_post(&go);
    OK(cuStreamSynchronize(stream));
    char back[4] = {};
    OK(cuMemcpyDtoH_v2(back, block, 3));
    CHECK_EQ(0, memcmp(back, "baa", 3));
  });
}

TEST_F(BatchTest, BoxesCountInElementsOfTheArrayThatTakesPart) {
  in_child([] {
    begin();
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    const CUDA_ARRAY3D_DESCRIPTOR shape{16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
    const CUDA_ARRAY3D_DESCRIPTOR narrow{16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    CUarray array = nullptr, other = nullptr;
    OK(cuArray3DCreate_v2(&array, &shape));
    OK(cuArray3DCreate_v2(&other, &narrow));
    // 3 x 2 x 2 words out of a host block whose rows have 5 words and whose layers have 4 rows.
    std::vector<uint32_t> words(5 * 4 * 2);
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(1000 + i);
    CUDA_MEMCPY3D_BATCH_OP ops[2] = {};
    ops[0].src = at(bits(words.data()), 5, 4);
    ops[0].dst = in(array, {4, 1, 2});
    ops[0].extent = {3, 2, 2};
    ops[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    size_t failed = 0;
    OK(cuMemcpy3DBatchAsync(1, ops, &failed, 0, stream));
    std::vector<uint32_t> back(3 * 2 * 2);
    ops[0].src = in(array, {4, 1, 2});
    ops[0].dst = at(bits(back.data()));
    OK(cuMemcpy3DBatchAsync_ptsz(1, ops, &failed, 0, stream));
    OK(cuStreamSynchronize(stream));
    for (size_t z = 0; z < 2; ++z)
      for (size_t y = 0; y < 2; ++y)
        for (size_t x = 0; x < 3; ++x)
          CHECK_EQ(words[(z * 4 + y) * 5 + x], back[(z * 2 + y) * 3 + x]);
    // Two arrays need elements of one size; a box needs all three sides; it must lie inside.
    ops[1] = ops[0];
    ops[1].dst = in(other, {0, 0, 0});
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, ops, &failed, 0, stream));
    CHECK_EQ(1, failed);
    ops[1] = ops[0];
    ops[1].extent.depth = 0;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, ops, &failed, 0, stream));
    ops[1].extent = {3, 2, 3};
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, ops, 0, stream));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, ops, 1, stream));
  });
}

TEST_F(BatchTest, AWrongBoxIsRefusedWhenItIsAskedFor) {
  in_child([] {
    begin();
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, 0));
    static sem_t go;
    sem_init(&go, 0, 0);
    OK(cuLaunchHostFunc(
        stream, [](void*) { sem_wait(&go); }, nullptr));
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 2 * kMiB));
    char row[64] = {};
    CUDA_MEMCPY2D what{};
    what.srcMemoryType = CU_MEMORYTYPE_HOST, what.srcHost = row, what.srcPitch = 8;
    what.dstMemoryType = CU_MEMORYTYPE_DEVICE, what.dstDevice = block + 2 * kMiB - 63;
    what.dstPitch = 8, what.WidthInBytes = 8, what.Height = 8;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(&what, stream));
    what.dstDevice -= 1;
    OK(cuMemcpy2DAsync_v2(&what, stream));
    sem_post(&go);
    OK(cuStreamSynchronize(stream));
  });
}

}  // namespace
}  // namespace simgpu_test
