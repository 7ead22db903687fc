// SPDX-License-Identifier: Apache-2.0
// What a program sees of its card, and which functions it gets. The total is the grant; free is
// what the program can really have. Look-ups are answered by the driver first; the meter then
// recognises its hooked functions by the address that the driver returned.
#include "meter/query.h"

#include "abi/process.h"
#include "meter/budget.h"
#include "meter/grow.h"
#include "meter/place.h"
#include "meter/real.h"

namespace mete::meter {
namespace {

constexpr uint64_t kFreshNs = 1'000'000'000;  // the sampler publishes several times a second

// A failed kernel leaves an error that every later call in its context must report, cuMemGetInfo
// among them, and that only the driver knows. The driver is called when its last good answer is
// older than this, and at once after a hooked call has failed. So a program that asks now and then
// gets every answer from the driver, and a program that asks in a loop gets one in some thousand
// from it, which costs 4 ns a call.
constexpr uint64_t kTrustNs = 1'000'000;

// CardState::healthy: the time in steps of 1,024 ns, above 16 bits of the context's number.
uint64_t word_of(uint32_t context_id, uint64_t now) {
  return now >> 10 << 16 | (context_id & 0xffff);
}

void note_healthy(const Place& place, uint64_t now) {
  process.cards[place.card].healthy.store(word_of(place.context_id, now),
                                          std::memory_order_relaxed);
}

bool was_healthy(const Place& place, uint64_t now) {
  const uint64_t word = process.cards[place.card].healthy.load(std::memory_order_relaxed);
  return (word & 0xffff) == (place.context_id & 0xffff) && word >= word_of(0, now - kTrustNs);
}

// The card's free memory as published, if that is recent.
bool published_free(int card, uint64_t now, uint64_t* bytes) {
  const abi::GrantCard& granted = process.grant->header.cards[card];
  const uint64_t at = granted.published_ns.load(std::memory_order_relaxed);
  if (at == 0) return false;
  if (now > at && now - at > kFreshNs) return false;
  *bytes = granted.free_bytes.load(std::memory_order_relaxed);
  return true;
}

}  // namespace

void doubt_contexts() {
  for (CardState& card : process.cards) card.healthy.store(0, std::memory_order_relaxed);
}

uint64_t free_bytes(int card, uint64_t card_free) {
  notice_deaths(card);
  const uint64_t limit = shown_bytes(card);
  const uint64_t charged = charged_bytes(card);
  const uint64_t left = limit > charged ? limit - charged : 0;
  return left < card_free ? left : card_free;
}

namespace {

// The driver's own answer is needed when no sampler publishes, and in special cases: no context,
// null pointers.
CUresult ask_driver(size_t* free, size_t* total, const Place& place) {
  const CUresult result = heed(real.cuMemGetInfo_v2(free, total));
  if (result != CUDA_SUCCESS) return result;
  note_healthy(place, abi::monotonic_ns());
  if (total != nullptr) *total = shown_bytes(place.card);
  if (free != nullptr) *free = free_bytes(place.card, *free);
  return result;
}

CUresult get_info(size_t* free, size_t* total) {
  Place place;
  if (!find_place(&place)) return real.cuMemGetInfo_v2(free, total);
  if (place.card == kNoCard) {
    const CUresult result = real.cuMemGetInfo_v2(free, total);
    if (result == CUDA_SUCCESS && free != nullptr) *free = 0;
    return result;
  }
  uint64_t card_free = 0;
  const uint64_t now = abi::monotonic_ns();
  if (free == nullptr || total == nullptr || !was_healthy(place, now) ||
      !published_free(place.card, now, &card_free))
    return ask_driver(free, total, place);
  *total = shown_bytes(place.card);
  *free = free_bytes(place.card, card_free);
  // If the card's free memory is the bound, the driver's own figure is needed: the published one
  // lacks what this process has freed since.
  return *free == card_free ? ask_driver(free, total, place) : CUDA_SUCCESS;
}

// The functions that a program asks for by name. `out` holds the driver's answer.
void substitute(void** out) {
  if (out == nullptr || *out == nullptr) return;
  if (void* hook = hook_for(*out)) *out = hook;
}

// The card's free memory as published, or no bound.
uint64_t free_on(int card) {
  uint64_t bytes = ~0ull;
  (void)published_free(card, abi::monotonic_ns(), &bytes);
  return bytes;
}

unsigned int narrow(size_t bytes) {
  return bytes > 0xffffffffu ? 0xffffffffu : static_cast<unsigned int>(bytes);
}

}  // namespace
}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuMemGetInfo_v2(size_t* free, size_t* total) { return get_info(free, total); }

// The function of CUDA 3.1, and the only one in a context of that version: cuMemGetInfo_v2 returns
// 201 there. The driver's own figure is not used: 32 bits do not hold a card's free memory.
CUresult hook_cuMemGetInfo(unsigned int* free, unsigned int* total) {
  const CUresult result = heed(real.cuMemGetInfo(free, total));
  Place place;
  if (result != CUDA_SUCCESS || !find_place(&place)) return result;
  const bool granted = place.card != kNoCard;
  if (total != nullptr && granted) *total = narrow(shown_bytes(place.card));
  if (free != nullptr) *free = granted ? narrow(free_bytes(place.card, free_on(place.card))) : 0;
  return result;
}

CUresult hook_cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const CUresult result = real.cuDeviceTotalMem_v2(bytes, device);
  if (result == CUDA_SUCCESS && attach()) {
    const int card = card_of(device);
    *bytes = card == kNoCard ? 0 : shown_bytes(card);
  }
  return result;
}

CUresult hook_cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  const CUresult result = real.cuDeviceTotalMem(bytes, device);
  if (result == CUDA_SUCCESS && attach()) {
    const int card = card_of(device);
    *bytes = card == kNoCard ? 0 : narrow(shown_bytes(card));
  }
  return result;
}

CUresult hook_cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  const CUresult result = real.cuGetProcAddress(name, out, version, flags);
  if (result == CUDA_SUCCESS) substitute(out);
  return result;
}

CUresult hook_cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  const CUresult result = real.cuGetProcAddress_v2(name, out, version, flags, status);
  if (result == CUDA_SUCCESS) substitute(out);
  return result;
}
}
