// SPDX-License-Identifier: Apache-2.0
// Virtual memory that the program creates itself, in every state that it can be in when the process
// is parked: mapped, mapped twice, unmapped, released, exported. Afterwards it is as before, and
// all of it can be given back.
#include <chrono>
#include <thread>

#include "tests/e2e/park/program.h"

namespace park_program {
namespace {

constexpr size_t kMiB = 1 << 20;

CUmemGenericAllocationHandle make(size_t bytes, bool exportable = false) {
  const CUmemAllocationProp prop = mete::abi::memory_on(0, exportable);
  CUmemGenericAllocationHandle handle = 0;
  CALL(cuMemCreate, &handle, bytes, &prop, 0);
  CUmemAllocationProp told{};
  CALL(cuMemGetAllocationPropertiesFromHandle, &told, handle);
  expect(told.requestedHandleTypes == prop.requestedHandleTypes && told.location.id == 0,
         "the properties are those that were asked for");
  return handle;
}

CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes, CUmemAccess_flags flags) {
  CUdeviceptr address = 0;
  CALL(cuMemAddressReserve, &address, bytes, 0, 0, 0);
  CALL(cuMemMap, address, bytes, 0, handle, 0);
  const CUmemAccessDesc access = mete::abi::access_on(0, flags);
  CALL(cuMemSetAccess, address, bytes, &access, 1);
  return address;
}

void unmap(CUdeviceptr address, size_t bytes) {
  CALL(cuMemUnmap, address, bytes);
  CALL(cuMemAddressFree, address, bytes);
}

Block filled(CUdeviceptr address, size_t bytes, std::uint32_t value) {
  CALL(cuMemsetD32_v2, address, value, bytes / 4);
  return {address, bytes, value};
}

void expect_range(CUdeviceptr address, size_t bytes) {
  CUdeviceptr base = 0;
  size_t size = 0;
  CALL(cuMemGetAddressRange_v2, &base, &size, address + 100);
  expect(base == address && size == bytes, "the range of a mapping");
  unsigned long long flags = 0;
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CALL(cuMemGetAccess, &flags, &location, address);
  expect(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "the access of a mapping");
}

// Creates, maps, releases, checks, unmaps, over and over; some stay mapped for a while.
void work_on(CUcontext context, std::uint32_t value, std::chrono::steady_clock::time_point end) {
  CALL(cuCtxSetCurrent, context);
  std::vector<Block> kept;
  for (size_t i = 0; std::chrono::steady_clock::now() < end; ++i) {
    const size_t bytes = (1 + i % 3) * 2 * kMiB;
    const CUmemGenericAllocationHandle handle = make(bytes);
    const CUdeviceptr address = map(handle, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    kept.push_back(filled(address, bytes, ++value));
    if (i % 2 == 0) {
      CUmemGenericAllocationHandle again = 0;
      CALL(cuMemRetainAllocationHandle, &again, reinterpret_cast<void*>(address));
      expect(again == handle, "the handle of mapped memory");
      CALL(cuMemRelease, again);
    }
    CALL(cuMemRelease, handle);
    if (kept.size() < 6) continue;
    look_at(kept.front());
    unmap(kept.front().address, kept.front().bytes);
    kept.erase(kept.begin());
  }
  for (const Block& block : kept) {
    look_at(block);
    unmap(block.address, block.bytes);
  }
}

}  // namespace

int vmm_work(int ms, int threads) {
  const CUcontext context = begin();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back(work_on, context, static_cast<std::uint32_t>(t) << 24, end);
  say_up();
  for (std::thread& one : all) one.join();
  return 0;
}

int vmm(const char* file) {
  begin();
  size_t free_before = 0;
  size_t total = 0;
  CALL(cuMemGetInfo_v2, &free_before, &total);
  constexpr auto kBoth = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

  // Mapped twice, once read-only; and released while it is mapped.
  const CUmemGenericAllocationHandle twice = make(4 * kMiB);
  const Block first = filled(map(twice, 4 * kMiB, kBoth), 4 * kMiB, 11);
  const CUdeviceptr second = map(twice, 4 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READ);
  CALL(cuMemRelease, twice);
  expect(ANSWER(cuMemRelease, twice) == CUDA_ERROR_INVALID_VALUE, "released twice");
  expect(ANSWER(cuMemMap, second, 4 * kMiB, 0, twice, 0) == CUDA_ERROR_INVALID_VALUE,
         "mapped after its release");

  // Not mapped now, with content.
  const CUmemGenericAllocationHandle loose = make(20 * kMiB);
  const Block once = filled(map(loose, 20 * kMiB, kBoth), 20 * kMiB, 12);
  unmap(once.address, once.bytes);

  // Many, side by side in one range, as a growing segment is made.
  constexpr size_t kParts = 40;
  CUdeviceptr segment = 0;
  CALL(cuMemAddressReserve, &segment, kParts * 2 * kMiB, 0, 0, 0);
  std::vector<CUmemGenericAllocationHandle> parts;
  for (size_t i = 0; i < kParts; ++i) {
    parts.push_back(make(2 * kMiB));
    CALL(cuMemMap, segment + i * 2 * kMiB, 2 * kMiB, 0, parts.back(), 0);
  }
  const CUmemAccessDesc access = mete::abi::access_on(0, kBoth);
  CALL(cuMemSetAccess, segment, kParts * 2 * kMiB, &access, 1);
  const Block whole = filled(segment, kParts * 2 * kMiB, 13);

  // Exported to another process: it stays.
  const CUmemGenericAllocationHandle shared = make(8 * kMiB, true);
  const Block given = filled(map(shared, 8 * kMiB, kBoth), 8 * kMiB, 14);
  int descriptor = -1;
  CALL(cuMemExportToShareableHandle, &descriptor, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
       0);
  expect(ANSWER(cuMemExportToShareableHandle, &descriptor, loose,
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS,
         "what was not made to be exported");
  CUmemGenericAllocationHandle again = 0;
  CALL(cuMemImportFromShareableHandle, &again,
       reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  (void)close(descriptor);

  say_up();
  wait_for(file);
  look_at(first);
  look_at({second, first.bytes, first.last});
  expect(ANSWER(cuMemsetD32_v2, second, 1, 1) != CUDA_SUCCESS, "written where one may read");
  filled(first.address, first.bytes, 21);
  look_at({second, first.bytes, 21});
  look_at(whole);
  look_at(given);
  expect_range(first.address, first.bytes);
  expect_range(given.address, given.bytes);
  const CUdeviceptr elsewhere = map(loose, 20 * kMiB, kBoth);
  look_at({elsewhere, once.bytes, once.last});
  CUmemGenericAllocationHandle retained = 0;
  CALL(cuMemRetainAllocationHandle, &retained, reinterpret_cast<void*>(elsewhere + 5000));
  expect(retained == loose, "the handle of mapped memory");

  unmap(elsewhere, 20 * kMiB);
  CALL(cuMemRelease, retained);
  CALL(cuMemRelease, loose);
  expect(ANSWER(cuMemRelease, loose) == CUDA_ERROR_INVALID_VALUE, "released once too often");
  unmap(first.address, first.bytes);
  unmap(second, first.bytes);
  CALL(cuMemUnmap, segment, kParts * 2 * kMiB);
  CALL(cuMemAddressFree, segment, kParts * 2 * kMiB);
  for (const CUmemGenericAllocationHandle part : parts) CALL(cuMemRelease, part);
  unmap(given.address, given.bytes);
  CALL(cuMemRelease, again);
  CALL(cuMemRelease, shared);
  size_t free_after = 0;
  CALL(cuMemGetInfo_v2, &free_after, &total);
  expect(free_after == free_before, "everything is given back");
  return 0;
}

}  // namespace park_program
