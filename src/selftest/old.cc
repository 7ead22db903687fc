// SPDX-License-Identifier: Apache-2.0
// The interface of CUDA 3.1, which drivers still export: 32-bit sizes and addresses, and contexts
// made by its own cuCtxCreate. Drivers refuse most of it today. In that case a request past the cap
// still shows that the meter comes first: it is refused before the driver is called, and counted.
#include <algorithm>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

const Ledger& books() { return Ledger::of_this_job(); }

// Like Check::did, but a driver that has no memory below 4 GiB, or no such context, is not a
// failure of ours.
bool offered(Check& check, CUresult result, const char* call) {
  if (result != CUDA_ERROR_OUT_OF_MEMORY && result != CUDA_ERROR_INVALID_CONTEXT)
    return check.did(result, call);
  check.skip("this driver no longer offers it: answers " + describe(result));
  return false;
}

template <class Call>
void refused_past_the_cap(const char* entry, const char* asked, std::uint64_t bytes, Call call) {
  Check check(kOver, entry);
  if (books().free() >= bytes) return check.skip("it cannot ask for more than the cap");
  const std::uint64_t before = books().refusals();
  const CUresult result = call();
  if (result == CUDA_ERROR_NOT_FOUND) return check.skip("this driver does not have it");
  check.that(result == CUDA_ERROR_OUT_OF_MEMORY,
             std::string(asked) + " asked, answers " + describe(result));
  check.equal("refusals counted", books().refusals() - before, 1);
}

void plain() {
  constexpr unsigned kAsked = 3 << 20;
  constexpr std::uint64_t kTaken = 4 * kMiB;
  CUdeviceptr_v1 block = 0;
  const std::uint64_t before = books().charged();
  const CUresult allocated = CU(cuMemAlloc)(&block, kAsked);
  {
    Check check(kCharged, "cuMemAlloc");
    if (offered(check, allocated, "cuMemAlloc"))
      check.equal("3 MiB asked, charged", books().charged() - before, kTaken);
  }
  {
    Check check(kBack, "cuMemFree");
    if (offered(check, allocated, "cuMemAlloc") && check.did(CU(cuMemFree)(block)))
      check.equal("charged after the free", books().charged() - before, 0);
  }
  refused_past_the_cap("cuMemAlloc", "4 GiB", 0xffe00000u, [] {
    CUdeviceptr_v1 unused = 0;
    return CU(cuMemAlloc)(&unused, 0xffe00000u);
  });
}

void pitch() {
  constexpr unsigned kRows = 16384;
  {
    Check check(kCharged, "cuMemAllocPitch");
    CUdeviceptr_v1 block = 0;
    unsigned row = 0;
    const std::uint64_t before = books().charged();
    if (offered(check, CU(cuMemAllocPitch)(&block, &row, 4, kRows, 4), "cuMemAllocPitch")) {
      const std::uint64_t whole = (std::uint64_t{row} * kRows + kGranule - 1) / kGranule * kGranule;
      check.equal("16384 rows of 4 bytes, charged", books().charged() - before, whole);
      (void)CU(cuMemFree)(block);
    }
  }
  refused_past_the_cap("cuMemAllocPitch", "4 GiB", 0xffe00000u, [] {
    CUdeviceptr_v1 unused = 0;
    unsigned row = 0;
    return CU(cuMemAllocPitch)(&unused, &row, 65536, 65504, 4);
  });
}

template <class Shape, class Create>
void array(const char* entry, std::uint64_t texels, const Shape& shape, const Shape& huge,
           Create create) {
  {
    Check check(kCharged, entry);
    CUarray made = nullptr;
    const std::uint64_t before = books().charged();
    if (offered(check, create(&made, &shape), entry)) {
      check.between(std::to_string(texels) + " bytes of texels, charged",
                    books().charged() - before, texels, texels + texels / 2);
      (void)CU(cuArrayDestroy)(made);
    }
  }
  refused_past_the_cap(entry, "16 GiB", (16ull << 30) + 1, [&] {
    CUarray made = nullptr;
    const CUresult result = create(&made, &huge);
    if (result == CUDA_SUCCESS) (void)CU(cuArrayDestroy)(made);
    return result;
  });
}

void arrays() {
  array<CUDA_ARRAY_DESCRIPTOR_v1>("cuArrayCreate", 16 * kMiB, {1024, 1024, CU_AD_FORMAT_FLOAT, 4},
                                  {32768, 32768, CU_AD_FORMAT_FLOAT, 4}, CU(cuArrayCreate));
  array<CUDA_ARRAY3D_DESCRIPTOR_v1>(
      "cuArray3DCreate", 64 * kMiB, {256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0},
      {1024, 1024, 1024, CU_AD_FORMAT_FLOAT, 4, 0}, CU(cuArray3DCreate));
}

void query() {
  Check check(kHonest, "cuMemGetInfo");
  unsigned free = 0;
  unsigned total = 0;
  if (!offered(check, CU(cuMemGetInfo)(&free, &total), "cuMemGetInfo")) return;
  const auto narrow = [](std::uint64_t bytes) { return std::min<std::uint64_t>(bytes, ~0u); };
  check.equal("total", total, narrow(books().limit()));
  check.equal("free", free, narrow(books().free()));
}

}  // namespace

void check_old(const Task&) {
  const Card card = start_without_context();
  CUcontext context = nullptr;
  const CUresult result = CU(cuCtxCreate)(&context, 0, card.device);
  if (result != CUDA_SUCCESS) {
    Check(kUnasked, "cuCtxCreate").that(false, "answered " + describe(result));
    return;
  }
  plain();
  pitch();
  arrays();
  query();
}

}  // namespace mete::selftest
