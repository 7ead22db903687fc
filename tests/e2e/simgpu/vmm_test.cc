// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: a handle, a mapping and the right to use it are three things. Memory
// lives as long as a reference, a mapping or a copy of a descriptor; a copy without access rights,
// and wrong arguments, are refused.
#include <unistd.h>

#include <vector>

#include "tests/e2e/simgpu/support.h"

namespace simgpu_test {
namespace {

using mete::abi::access_on;
using mete::abi::memory_on;
using VmmTest = SimTest;

TEST_F(VmmTest, MappingWithoutAccessCannotBeCopiedThrough) {
  in_child([] {
    begin();
    const CUmemAllocationProp prop = memory_on(0, true);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr p = 0;
    size_t step = 0;
    OK(cuMemGetAllocationGranularity(&step, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK_EQ(2 * kMiB, step);
    OK(cuMemCreate(&handle, 4 * step, &prop, 0));
    OK(cuMemAddressReserve(&p, 32 * kMiB, 0, 0, 0));
    char byte = 5;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, &byte, 1));
    OK(cuMemMap(p, 8 * kMiB, 0, handle, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, &byte, 1));
    const CUmemAccessDesc write = access_on(0);
    const CUmemAccessDesc read = access_on(0, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 4 * kMiB, &write, 1));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 16 * kMiB, &write, 1));
    OK(cuMemSetAccess(p, 8 * kMiB, &write, 1));
    OK(cuMemcpyHtoD_v2(p + 8 * kMiB - 1, &byte, 1));
    OK(cuMemSetAccess(p, 8 * kMiB, &read, 1));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, &byte, 1));
    byte = 0;
    OK(cuMemcpyDtoH_v2(&byte, p + 8 * kMiB - 1, 1));
    CHECK_EQ(5, byte);
    unsigned long long flags = 0;
    OK(cuMemGetAccess(&flags, &prop.location, p));
    CHECK_EQ(CU_MEM_ACCESS_FLAGS_PROT_READ, flags);
  });
}

TEST_F(VmmTest, MemoryLivesWhileAHandleOrAMappingDoes) {
  in_child([] {
    begin();
    const size_t before = used_here();
    const CUmemAllocationProp prop = memory_on(0, true);
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUdeviceptr p = 0;
    OK(cuMemCreate(&handle, 8 * kMiB, &prop, 0));
    CHECK_EQ(8 * kMiB, used_here() - before);
    OK(cuMemAddressReserve(&p, 32 * kMiB, 0, 0, 0));
    CHECK_EQ(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 4 * kMiB, 0, handle, 0));
    CHECK_EQ(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(p, 8 * kMiB, 2 * kMiB, handle, 0));
    OK(cuMemMap(p, 8 * kMiB, 0, handle, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 8 * kMiB, 0, handle, 0));
    OK(cuMemMap(p + 8 * kMiB, 8 * kMiB, 0, handle, 0));
    OK(cuMemRelease(handle));
    CHECK_EQ(8 * kMiB, used_here() - before);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(p + 5)));
    CHECK(again == handle);
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, 4 * kMiB));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 32 * kMiB));
    OK(cuMemUnmap(p, 16 * kMiB));
    CHECK_EQ(8 * kMiB, used_here() - before);
    OK(cuMemUnmap(p, 16 * kMiB));
    OK(cuMemRelease(again));
    CHECK_EQ(before, used_here());
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRelease(again));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 16 * kMiB));
    OK(cuMemAddressFree(p, 32 * kMiB));
  });
}

TEST_F(VmmTest, ACopyMayCrossMappings) {
  in_child([] {
    begin();
    const CUmemAllocationProp prop = memory_on(0, true);
    const CUmemAccessDesc write = access_on(0);
    CUdeviceptr p = 0;
    OK(cuMemAddressReserve(&p, 16 * kMiB, 0, 0, 0));
    for (size_t at = 0; at < 16 * kMiB; at += 2 * kMiB) {
      CUmemGenericAllocationHandle handle = 0;
      OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
      OK(cuMemMap(p + at, 2 * kMiB, 0, handle, 0));
      OK(cuMemRelease(handle));
    }
    OK(cuMemSetAccess(p, 16 * kMiB, &write, 1));
    std::vector<unsigned> in(3 * kMiB), out(3 * kMiB);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned>(i * 2654435761u);
    OK(cuMemcpyHtoD_v2(p + kMiB, in.data(), in.size() * 4));
    OK(cuMemcpyDtoH_v2(out.data(), p + kMiB, out.size() * 4));
    CHECK(in == out);
    OK(cuMemsetD32_v2(p, 7, 4 * kMiB));
    OK(cuMemcpyDtoH_v2(out.data(), p + 4, out.size() * 4));
    CHECK(out.front() == 7 && out.back() == 7);
    OK(cuMemUnmap(p + 8 * kMiB, 2 * kMiB));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p + kMiB, in.data(), in.size() * 4));
  });
}

TEST_F(VmmTest, DescriptorsCarryMemoryToAnotherProcess) {
  FdPipe fds;
  Pipe done, read_it;
  const pid_t owner = start([&] {
    begin();
    const CUmemAllocationProp prop = memory_on(0, true);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr p = 0;
    OK(cuMemCreate(&handle, 32 * kMiB, &prop, 0));
    OK(cuMemAddressReserve(&p, 32 * kMiB, 0, 0, 0));
    OK(cuMemMap(p, 32 * kMiB, 0, handle, 0));
    const CUmemAccessDesc write = access_on(0);
    OK(cuMemSetAccess(p, 32 * kMiB, &write, 1));
    OK(cuMemsetD8_v2(p, 0x5a, 32 * kMiB));
    int fd = -1;
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CHECK(fd >= 0);
    fds.send(fd);
    read_it.wait();
  });
  const pid_t reader = start([&] {
    begin();
    const int fd = fds.receive();
    CUmemGenericAllocationHandle handle = 0;
    void* number = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
    OK(cuMemImportFromShareableHandle(&handle, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    void* null_device = reinterpret_cast<void*>(static_cast<intptr_t>(0));
    CUmemGenericAllocationHandle none = 0;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE,
             cuMemImportFromShareableHandle(&none, null_device,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUmemAllocationProp prop = {};
    OK(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
    CHECK_EQ(CU_MEM_LOCATION_TYPE_DEVICE, prop.location.type);
    read_it.signal();
    done.wait();  // the owner is gone by now
    CUdeviceptr p = 0;
    OK(cuMemAddressReserve(&p, 32 * kMiB, 0, 0, 0));
    OK(cuMemMap(p, 32 * kMiB, 0, handle, 0));
    const CUmemAccessDesc write = access_on(0);
    OK(cuMemSetAccess(p, 32 * kMiB, &write, 1));
    unsigned char byte = 0;
    OK(cuMemcpyDtoH_v2(&byte, p + 31 * kMiB, 1));
    CHECK_EQ(0x5a, byte);
    CHECK_EQ(kContext + 32 * kMiB, used_here());
  });
  EXPECT_EQ(0, finish(owner));
  done.signal();
  EXPECT_EQ(0, finish(reader));
  EXPECT_TRUE(eventually([this] { return used() == 0; }));
}

TEST_F(VmmTest, AnOpenDescriptorAloneKeepsMemory) {
  int kept = -1;
  FdPipe fds;
  const pid_t owner = start([&] {
    begin();
    const CUmemAllocationProp prop = memory_on(0, true);
    CUmemGenericAllocationHandle handle = 0;
    OK(cuMemCreate(&handle, 64 * kMiB, &prop, 0));
    int fd = -1;
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    fds.send(fd);
  });
  kept = fds.receive();
  EXPECT_EQ(0, finish(owner));
  EXPECT_EQ(64 * kMiB, used());
  close(kept);
  EXPECT_TRUE(eventually([this] { return used() == 0; }));
}

TEST_F(VmmTest, WrongArguments) {
  in_child([] {
    begin();
    CUmemAllocationProp prop = memory_on(0, true);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr p = 0;
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kMiB, &prop, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 2 * kMiB, &prop, 1));
    CHECK_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, 1ull << 45, &prop, 0));
    prop.location.id = 9;
    CHECK_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, kMiB, 0, 0, 0));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRelease(12345));
    CUdeviceptr block = 0;
    OK(cuMemAlloc_v2(&block, 4 * kMiB));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(block, 4 * kMiB));
    CHECK_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(block, 4 * kMiB));
    OK(cuMemFree_v2(block));
    prop = memory_on(0, true);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    int fd = -1;
    CHECK_EQ(
        CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  });
}

}  // namespace
}  // namespace simgpu_test
