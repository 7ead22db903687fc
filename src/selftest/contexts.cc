// SPDX-License-Identifier: Apache-2.0
// Contexts, and what the driver takes with them: the cost that was measured for this card is
// charged before one is made and given back with it; a larger stack is charged at once; NVML's
// figure for this process is within its charge.
#include <time.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "abi/grant.h"
#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

const Ledger& books() { return Ledger::of_this_job(); }
std::uint64_t mine() { return books().charged_to(getpid()); }

using Make = std::function<CUresult(CUcontext*)>;
using End = std::function<CUresult(CUcontext)>;

// One context from creation to end: the charge is checked before another call could have charged
// it.
void life(const char* make_name, const Make& make, const char* end_name, const End& end) {
  CUcontext context = nullptr;
  CUresult made = CUDA_SUCCESS;
  {
    Check check(kUnasked, make_name);
    made = make(&context);
    if (check.did(made)) check.equal("charged", mine(), books().first_context());
  }
  if (made != CUDA_SUCCESS) {
    Check check(kBack, end_name);
    (void)check.did(made, make_name);
    return;
  }
  // Charged now at the latest.
  (void)CU(cuCtxSetCurrent)(context);
  std::size_t free = 0;
  std::size_t total = 0;
  (void)CU(cuMemGetInfo_v2)(&free, &total);
  Check check(kBack, end_name);
  const CUresult ended = end(context);
  if (check.did(ended)) check.equal("charged after its end", mine(), 0);
  if (ended != CUDA_SUCCESS) (void)CU(cuCtxDestroy_v2)(context);
}

void primary(CUdevice device) {
  const Make retain = [device](CUcontext* out) {
    return CU(cuDevicePrimaryCtxRetain)(out, device);
  };
  life("cuDevicePrimaryCtxRetain", retain, "cuDevicePrimaryCtxRelease_v2",
       [device](CUcontext) { return CU(cuDevicePrimaryCtxRelease_v2)(device); });
  life("cuDevicePrimaryCtxRetain", retain, "cuDevicePrimaryCtxRelease",
       [device](CUcontext) { return CU(cuDevicePrimaryCtxRelease)(device); });
  life("cuDevicePrimaryCtxRetain", retain, "cuDevicePrimaryCtxReset_v2",
       [device](CUcontext) { return CU(cuDevicePrimaryCtxReset_v2)(device); });
  (void)CU(cuDevicePrimaryCtxRelease_v2)(device);  // a reset leaves the reference
  life("cuDevicePrimaryCtxRetain", retain, "cuDevicePrimaryCtxReset",
       [device](CUcontext) { return CU(cuDevicePrimaryCtxReset)(device); });
  (void)CU(cuDevicePrimaryCtxRelease_v2)(device);
}

void created(CUdevice device) {
  const End destroy_v2 = [](CUcontext context) { return CU(cuCtxDestroy_v2)(context); };
  life(
      "cuCtxCreate", [device](CUcontext* out) { return CU(cuCtxCreate)(out, 0, device); },
      "cuCtxDestroy", [](CUcontext context) { return CU(cuCtxDestroy)(context); });
  life(
      "cuCtxCreate_v2", [device](CUcontext* out) { return CU(cuCtxCreate_v2)(out, 0, device); },
      "cuCtxDestroy_v2", destroy_v2);
  life(
      "cuCtxCreate_v3",
      [device](CUcontext* out) { return CU(cuCtxCreate_v3)(out, nullptr, 0, 0, device); },
      "cuCtxDetach", [](CUcontext context) { return CU(cuCtxDetach)(context); });
  life(
      "cuCtxCreate_v4",
      [device](CUcontext* out) { return CU(cuCtxCreate_v4)(out, nullptr, 0, device); },
      "cuCtxDestroy_v2", destroy_v2);
}

// A context that was attached to lives on when one of its users detaches.
void attached(CUdevice device) {
  Check check(kUnasked, "cuCtxAttach");
  CUcontext context = nullptr;
  CUcontext same = nullptr;
  if (!check.did(CU(cuCtxCreate_v2)(&context, 0, device), "cuCtxCreate_v2")) return;
  const std::uint64_t before = mine();
  if (check.did(CU(cuCtxAttach)(&same, 0)) && check.did(CU(cuCtxDetach)(context), "cuCtxDetach"))
    check.equal("attached and detached, charged", mine(), before);
  (void)CU(cuCtxDestroy_v2)(context);
}

// These need a display or a decoder of another driver, which a self-test does not start.
void graphics() {
  for (const char* entry :
       {"cuGLCtxCreate", "cuGLCtxCreate_v2", "cuVDPAUCtxCreate", "cuVDPAUCtxCreate_v2"})
    Check(kUnasked, entry).skip("needs a graphics driver; charged as cuCtxCreate_v2 is");
}

// A green context is a context of its own; its ordinary view costs nothing more.
void green(CUdevice device) {
  alignas(16) unsigned char resource[1024] = {};  // CUdevResource: 144 bytes today
  auto* sms = reinterpret_cast<CUdevResource*>(resource);
  CUdevResourceDesc desc{};
  CUgreenCtx made = nullptr;
  CUcontext view = nullptr;
  constexpr auto kSms = static_cast<CUdevResourceType>(1);
  CUresult result = CU(cuDeviceGetDevResource)(device, sms, kSms);
  if (result == CUDA_SUCCESS) result = CU(cuDevResourceGenerateDesc)(&desc, sms, 1);
  if (result == CUDA_SUCCESS) result = CU(cuGreenCtxCreate)(&made, desc, device, 1);
  {
    Check check(kUnasked, "cuGreenCtxCreate");
    if (check.did(result)) check.equal("charged", mine(), books().first_context());
  }
  {
    Check check(kUnasked, "cuCtxFromGreenCtx");
    if (check.did(result, "cuGreenCtxCreate") && check.did(CU(cuCtxFromGreenCtx)(&view, made)) &&
        check.did(CU(cuCtxSetCurrent)(view), "cuCtxSetCurrent")) {
      CUdeviceptr block = 0;
      const std::uint64_t before = mine();
      if (check.did(CU(cuMemAlloc_v2)(&block, kGranule), "cuMemAlloc_v2")) {
        check.equal("2 MiB in it, charged", mine() - before, kGranule);
        (void)CU(cuMemFree_v2)(block);
      }
    }
  }
  Check check(kBack, "cuGreenCtxDestroy");
  if (check.did(result, "cuGreenCtxCreate") && check.did(CU(cuGreenCtxDestroy)(made)))
    check.equal("charged after its end", mine(), 0);
}

// The stack of every thread that the card can run: 1 KiB more each is a quarter of a GiB on a large
// card.
void stack_limit(CUdevice device) {
  Check check(kUnasked, "cuCtxSetLimit");
  std::size_t now = 0;
  int processors = 0;
  int threads = 0;
  if (!check.did(CU(cuCtxGetLimit)(&now, CU_LIMIT_STACK_SIZE), "cuCtxGetLimit") ||
      !check.did(
          CU(cuDeviceGetAttribute)(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
          "cuDeviceGetAttribute") ||
      !check.did(CU(cuDeviceGetAttribute)(
                     &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device),
                 "cuDeviceGetAttribute"))
    return;
  constexpr std::size_t kMore = 512;
  const std::uint64_t cost =
      static_cast<std::uint64_t>(processors) * static_cast<std::uint64_t>(threads) * kMore;
  const std::uint64_t before = mine();
  if (!check.did(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, now + kMore))) return;
  check.equal("512 bytes of stack more for every thread, charged", mine() - before,
              abi::units_for(cost) * abi::kUnitBytes);
  if (check.did(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, now)))
    check.equal("back to what it was, charged", mine() - before, 0);
}

// What `mete cap` reads from NVML, outside the meter: no more than is charged here.
void reading() {
  Check check(kUnasked, "NVML, from outside");
  CUdeviceptr block = 0;
  if (!check.did(CU(cuMemAlloc_v2)(&block, 256 * kMiB), "cuMemAlloc_v2")) return;
  // The sampler reads about four times a second: wait for a reading, and a little for one that has
  // seen this block.
  std::optional<std::uint64_t> seen;
  for (int tries = 0; tries < (seen ? 200 : 1000); ++tries) {
    seen = books().nvml_of(getpid());
    if (seen && *seen + 2 * abi::kReserveBytes >= mine()) break;
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  if (seen)
    check.between("charged " + std::to_string(mine()) + ", NVML says", *seen, 1, mine());
  else
    check.skip("NVML knows this process by another pid (a container), or does not report it");
  (void)CU(cuMemFree_v2)(block);
}

}  // namespace

void check_contexts(const Task&) {
  const Card card = start_without_context();
  created(card.device);
  attached(card.device);
  graphics();
  green(card.device);
  primary(card.device);
  (void)start();
  stack_limit(card.device);
  reading();
}

}  // namespace mete::selftest
