// SPDX-License-Identifier: Apache-2.0
// See ledger.h.
#include "selftest/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "abi/account.h"
#include "abi/cuda_card.h"
#include "abi/process.h"
#include "abi/reserve.h"
#include "base/fd.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr abi::AccountId kFirst{0, 0};

// Mapped for reading: the functions of abi/account.h used here only load.
abi::Grant* map_grant() {
  const char* path = std::getenv("METE_GRANT");
  if (path == nullptr) return nullptr;
  const base::Fd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return nullptr;
  void* memory = mmap(nullptr, sizeof(abi::Grant), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED || abi::check_grant(memory, sizeof(abi::Grant)) != abi::GrantCheck::kOk)
    return nullptr;
  return static_cast<abi::Grant*>(memory);
}

}  // namespace

const Ledger& Ledger::of_this_job() {
  static abi::Grant* const grant = map_grant();
  if (grant == nullptr) {
    { Check(kClosed, "METE_GRANT").that(false, "this job's grant file cannot be read"); }
    std::exit(1);
  }
  static const Ledger ledger(*grant);
  return ledger;
}

std::uint64_t Ledger::limit() const { return abi::account(grant_, kFirst).limit_bytes.load(); }
std::uint64_t Ledger::charged() const {
  std::uint64_t units = abi::total_units(grant_, kFirst);
  for (std::uint32_t s = 0; s < abi::slot_count(grant_); ++s)
    if (grant_.slots[s].owner.load() != 0) units += abi::lent_units(grant_.slots[s].cards[0]);
  return units * abi::kUnitBytes;
}
std::uint64_t Ledger::used() const { return abi::used_bytes(abi::account(grant_, kFirst)); }
std::uint64_t Ledger::free() const { return limit() - std::min(used(), limit()); }
std::uint64_t Ledger::refusals() const { return abi::account(grant_, kFirst).refusals.load(); }

std::optional<std::uint32_t> Ledger::slot_of(pid_t pid) const {
  for (std::uint32_t s = 0; s < abi::slot_count(grant_); ++s) {
    const std::uint64_t owner = grant_.slots[s].owner.load();
    if (owner != 0 && abi::OwnerWord::unpack(owner).pid == static_cast<std::uint32_t>(pid))
      return s;
  }
  return std::nullopt;
}

std::uint64_t Ledger::charged_to(pid_t pid) const {
  const std::optional<std::uint32_t> slot = slot_of(pid);
  return slot ? abi::charged_units(grant_, *slot, 0) * abi::kUnitBytes : 0;
}

std::optional<std::uint64_t> Ledger::nvml_of(pid_t pid) const {
  const std::optional<std::uint32_t> slot = slot_of(pid);
  if (!slot || grant_.slots[*slot].nvml_ns.load() == 0) return std::nullopt;
  const std::uint64_t bytes = grant_.slots[*slot].cards[0].nvml_bytes.load();
  return bytes == 0 ? std::nullopt : std::optional(bytes);
}

std::uint64_t Ledger::first_context() const {
  return abi::round_to_granule(grant_.header.cards[0].context_first_bytes) + abi::kReserveBytes +
         abi::kGranuleBytes;
}
std::uint64_t Ledger::next_context() const {
  return abi::round_to_granule(grant_.header.cards[0].context_more_bytes);
}
std::uint32_t Ledger::cards() const { return grant_.header.card_count; }

std::string Ledger::uuid() const { return abi::uuid_text(grant_.header.cards[0].uuid).text; }

}  // namespace mete::selftest
