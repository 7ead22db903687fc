// SPDX-License-Identifier: Apache-2.0
// The handlers of libmete.so, called as a program calls the driver: the bytes are reserved before
// the driver is called, a refusal does not reach it, a failure gives the bytes back, a free always
// reaches it, and nothing else of the program changes.
#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>

#include "abi/account.h"
#include "abi/reserve.h"
#include "meter/reserve.h"
#include "meter/test/fake_driver.h"

extern "C" {
CUresult hook_cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);
CUresult hook_cuCtxDestroy_v2(CUcontext);
CUresult hook_cuMemAlloc_v2(CUdeviceptr*, size_t);
CUresult hook_cuMemAllocPitch_v2(CUdeviceptr*, size_t*, size_t, size_t, unsigned int);
CUresult hook_cuMemAllocManaged(CUdeviceptr*, size_t, unsigned int);
CUresult hook_cuMemFree_v2(CUdeviceptr);
CUresult hook_cuMemCreate(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                          unsigned long long);
CUresult hook_cuMemRelease(CUmemGenericAllocationHandle);
CUresult hook_cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                       unsigned long long);
CUresult hook_cuMemUnmap(CUdeviceptr, size_t);
CUresult hook_cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*);
CUresult hook_cuArrayDestroy(CUarray);
CUresult hook_cuMemGetInfo_v2(size_t*, size_t*);
CUresult hook_cuDeviceTotalMem_v2(size_t*, CUdevice);
}

namespace mete::meter {
namespace {

constexpr std::uint64_t kMib = 1 << 20;
constexpr std::uint64_t kGib = 1 << 30;
constexpr std::uint64_t kLimit = 4 * kGib;
constexpr std::uint64_t kContextBytes = 500 * kMib;

class Handlers : public testing::Test {
 protected:
  Handlers() {
    char name[] = "/tmp/mete-handlers-XXXXXX";
    folder_ = mkdtemp(name);
    abi::GrantCard cards[1] = {};
    EXPECT_TRUE(launch::set_uuid(cards[0], test::kUuid));
    cards[0].guarantee_bytes = cards[0].ceiling_bytes = kLimit;
    cards[0].total_bytes = 80 * kGib;
    cards[0].context_first_bytes = cards[0].context_more_bytes = kContextBytes;
    Result<launch::GrantFile> file = launch::GrantFile::make(folder_, {"7"}, cards);
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    file_.emplace(*std::move(file));
    driver_.emplace(*file_);
    EXPECT_EQ(hook_cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
    base_ = driver_->charged();
    driver_->calls.clear();
    driver_->charged_at_call.clear();
  }
  ~Handlers() override {
    driver_.reset();
    file_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Bytes charged beyond the cost of the context.
  std::uint64_t charged() const { return driver_->charged() - base_; }
  std::uint64_t refusals() const { return abi::account(file_->grant(), {0, 0}).refusals.load(); }
  CUdeviceptr alloc(std::uint64_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }

  std::string folder_;
  std::optional<launch::GrantFile> file_;
  std::optional<test::FakeDriver> driver_;
  CUcontext context_ = nullptr;
  std::uint64_t base_ = 0;
};

using Calls = std::vector<std::string>;

TEST_F(Handlers, AContextIsChargedBeforeItIsMadeAndGivenBackWithAllThatLivedInIt) {
  EXPECT_GE(base_, kContextBytes);
  (void)alloc(100 * kMib);
  (void)alloc(4096);
  EXPECT_EQ(hook_cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), 0u);
}

TEST_F(Handlers, AContextThatTheDriverRefusesCostsNothing) {
  EXPECT_EQ(hook_cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  driver_->next = CUDA_ERROR_INVALID_DEVICE;
  EXPECT_EQ(hook_cuCtxCreate_v2(&context_, 0, 0), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(driver_->charged(), 0u);
}

// As the sampler does it, from a slot of its own.
class Lent : public Handlers {
 protected:
  Lent() {
    const abi::SlotCard& words = file_->grant().slots[0].cards[0];
    EXPECT_TRUE(abi::PendingWord::unpack(words.pending.load()).open);
    const std::uint64_t owner = file_->grant().slots[0].owner.load();
    EXPECT_TRUE(
        abi::lend_reserve({file_->grant(), 1000}, 0, owner, {0, 0}, abi::units_for(54 * kMib)));
    EXPECT_EQ(driver_->charged(), base_ - 54 * kMib);
  }
  // Memory that does not end with the context: if the end of the context gave back too much, it
  // would be missing here.
  void create_100_mib() {
    CUmemAllocationProp prop{};
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(hook_cuMemCreate(&handle, 100 * kMib, &prop, 0), CUDA_SUCCESS);
  }
  bool may_be_lent() {
    const abi::SlotCard& words = file_->grant().slots[0].cards[0];
    return abi::PendingWord::unpack(words.pending.load()).open;
  }
};

TEST_F(Lent, TheContextGivesBackWhatIsLeftAndTheNextOneIsChargedInFull) {
  create_100_mib();
  (void)alloc(10 * kMib);
  EXPECT_EQ(hook_cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), 100 * kMib);
  EXPECT_FALSE(may_be_lent());
  EXPECT_EQ(hook_cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), base_ + 100 * kMib);
  EXPECT_TRUE(may_be_lent());
}

TEST_F(Lent, WhatWasLentCanBeAllocatedToTheLastByte) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, kLimit - base_ + 54 * kMib + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, kLimit - base_ + 54 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), kLimit);
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), base_ - 54 * kMib);
}

TEST_F(Lent, WhatReliesOnTheReserveTakesItBackOrDoesWithout) {
  CUdeviceptr all = 0;
  EXPECT_EQ(hook_cuMemAlloc_v2(&all, kLimit - driver_->charged()), CUDA_SUCCESS);
  EXPECT_FALSE(keep_reserve(0));
  EXPECT_FALSE(may_be_lent()) << "but no more of it is lent";
  EXPECT_EQ(driver_->charged(), kLimit);
  EXPECT_EQ(hook_cuMemFree_v2(all), CUDA_SUCCESS);
  EXPECT_TRUE(keep_reserve(0));
  EXPECT_TRUE(keep_reserve(0));
  EXPECT_EQ(driver_->charged(), base_);
  create_100_mib();
  EXPECT_EQ(hook_cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), 100 * kMib);
}

TEST_F(Lent, AClosedReserveGivesBackWhatIsLeft) {
  close_reserve(0);
  EXPECT_FALSE(may_be_lent());
  EXPECT_EQ(driver_->charged(), base_ - 54 * kMib);
  create_100_mib();
  EXPECT_EQ(hook_cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), 100 * kMib);
}

TEST_F(Handlers, BytesAreReservedBeforeTheDriverIsAsked) {
  (void)alloc(100 * kMib);
  ASSERT_EQ(driver_->calls, Calls{"alloc"});
  EXPECT_EQ(driver_->charged_at_call[0], base_ + 100 * kMib);
  EXPECT_EQ(charged(), 100 * kMib);
}

TEST_F(Handlers, LargeBlocksAreChargedInGranulesOfTheDriver) {
  (void)alloc(100 * kMib + 1);
  EXPECT_EQ(charged(), 102 * kMib);
  EXPECT_EQ(charged(), driver_->holds());
}

TEST_F(Handlers, TheByteBeyondTheCapIsRefusedAndTheDriverIsNotAsked) {
  const std::uint64_t room = kLimit - driver_->charged();
  CUdeviceptr pointer = 0;
  EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, room + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver_->calls, Calls{});
  EXPECT_EQ(refusals(), 1u);
  EXPECT_EQ(charged(), 0u);
  EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, room), CUDA_SUCCESS);
  EXPECT_EQ(driver_->charged(), kLimit);
}

TEST_F(Handlers, SizesThatOverflowAreRefused) {
  CUdeviceptr pointer = 0;
  for (const std::uint64_t bytes : {~0ull, ~0ull - kMib, 1ull << 63, 1ull << 46})
    EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, bytes), CUDA_ERROR_OUT_OF_MEMORY) << bytes;
  size_t pitch = 0;
  EXPECT_EQ(hook_cuMemAllocPitch_v2(&pointer, &pitch, ~0ull / 2, ~0ull / 2, 4),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver_->calls, Calls{});
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, AFailureOfTheDriverGivesTheBytesBack) {
  CUdeviceptr pointer = 0;
  for (const std::uint64_t bytes : {100 * kMib, 4 * kMib / 1024}) {
    driver_->next = CUDA_ERROR_ILLEGAL_ADDRESS;
    EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, bytes), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(charged(), 0u) << bytes;
  }
}

TEST_F(Handlers, AFreeReachesTheDriverAndGivesBack) {
  const CUdeviceptr pointer = alloc(100 * kMib);
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(driver_->calls, (Calls{"alloc", "free"}));
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, AFreeThatFailsKeepsTheCharge) {
  const CUdeviceptr pointer = alloc(100 * kMib);
  driver_->next = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(charged(), 100 * kMib);
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, FreesOfWhatIsNotOursAreTheDriversToAnswer) {
  EXPECT_EQ(hook_cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr pointer = alloc(100 * kMib);
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(charged(), 0u) << "a double free gives back once";
}

TEST_F(Handlers, SmallBlocksCostTheSlabsThatTheyFill) {
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(alloc(512));
  // 5,120,000 bytes fill three slabs of 2 MiB; the spare slab is part of the reserve.
  EXPECT_EQ(driver_->holds(), 3 * 2 * kMib);
  EXPECT_EQ(charged(), 3 * 2 * kMib);
  for (const CUdeviceptr block : blocks) EXPECT_EQ(hook_cuMemFree_v2(block), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, APitchIsChargedAsTheDriverChoseIt) {
  CUdeviceptr pointer = 0;
  size_t pitch = 0;
  EXPECT_EQ(hook_cuMemAllocPitch_v2(&pointer, &pitch, 1000, 10'000, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024u);
  EXPECT_EQ(charged(), driver_->holds());
  EXPECT_EQ(hook_cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, ManagedMemoryIsChargedWhole) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(hook_cuMemAllocManaged(&pointer, 64 * kMib, 1), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 64 * kMib);
  EXPECT_EQ(hook_cuMemAllocManaged(&pointer, kLimit, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(charged(), 64 * kMib);
}

TEST_F(Handlers, MapThenReleaseKeepsTheCharge) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(hook_cuMemCreate(&handle, 32 * kMib, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(hook_cuMemMap(0x40000000, 32 * kMib, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(hook_cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 32 * kMib);
  EXPECT_EQ(charged(), driver_->holds());
  EXPECT_EQ(hook_cuMemUnmap(0x40000000, 32 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
  EXPECT_EQ(driver_->holds(), 0u);
}

TEST_F(Handlers, AHandleThatTheDriverDoesNotReleaseStaysCharged) {
  CUmemAllocationProp prop{};
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(hook_cuMemCreate(&handle, 32 * kMib, &prop, 0), CUDA_SUCCESS);
  driver_->next = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(hook_cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(charged(), 32 * kMib);
  EXPECT_EQ(hook_cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, HostMemoryAndOtherCardsAreNotThisCards) {
  CUmemAllocationProp prop{};
  prop.location = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(hook_cuMemCreate(&handle, 32 * kMib, &prop, 0), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, AnArrayIsChargedAndGivenBack) {
  CUDA_ARRAY3D_DESCRIPTOR desc{};
  desc.Width = desc.Height = 1024;
  desc.Format = CU_AD_FORMAT_FLOAT;
  desc.NumChannels = 1;
  CUarray array = nullptr;
  EXPECT_EQ(hook_cuArray3DCreate_v2(&array, &desc), CUDA_SUCCESS);
  EXPECT_GE(driver_->charged_at_call.back(), base_ + 4 * kMib);
  EXPECT_GE(charged(), 4 * kMib);
  driver_->next = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(hook_cuArrayDestroy(array), CUDA_ERROR_INVALID_VALUE);
  EXPECT_GE(charged(), 4 * kMib);
  EXPECT_EQ(hook_cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(charged(), 0u);
}

TEST_F(Handlers, TheCardHasTheSizeOfTheGrant) {
  size_t free = 0, total = 0;
  EXPECT_EQ(hook_cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, kLimit);
  EXPECT_EQ(free, kLimit - driver_->charged());
  (void)alloc(kGib);
  EXPECT_EQ(hook_cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, kLimit - driver_->charged());
  EXPECT_EQ(hook_cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, kLimit);
}

TEST_F(Handlers, ARefusalLeavesErrnoAsItWas) {
  CUdeviceptr pointer = 0;
  errno = EXDEV;
  EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, 8 * kGib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(Handlers, WrongArgumentsAreTheDriversToAnswer) {
  driver_->next = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(hook_cuMemAlloc_v2(nullptr, 4096), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr pointer = 0;
  driver_->next = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(hook_cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver_->calls, (Calls{"alloc", "alloc"}));
  EXPECT_EQ(charged(), 0u);
}

}  // namespace
}  // namespace mete::meter
