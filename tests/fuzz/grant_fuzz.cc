// SPDX-License-Identifier: Apache-2.0
// A grant file into which its user wrote anything. The input is a flag byte that may cut the file
// short or leave the checksum wrong, then patches on a valid file: {region, offset, length, bytes}.
// Checking must not read beyond the file, and what passes the check must be safe to work with,
// whatever the other words say.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "abi/account.h"
#include "abi/grant.h"
#include "abi/process.h"
#include "base/assert.h"

namespace {

using namespace mete::abi;

struct Input {
  const std::uint8_t* data;
  std::size_t size;
  std::uint32_t take(std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes && size > 0; ++i, ++data, --size) value = value << 8 | *data;
    return value;
  }
};

// Exactly so many bytes, so that reading one more is noticed.
using Memory = std::unique_ptr<char, decltype(&std::free)>;
Memory zeroed(std::size_t bytes) {
  return Memory(static_cast<char*>(std::calloc(1, bytes)), &std::free);
}

void work_with(Grant& grant) {
  METE_ASSERT(grant.header.card_count <= kMaxCards && grant.header.part_count >= 1 &&
              grant.header.part_count <= kMaxParts);
  const Self self = read_self();
  const std::uint64_t me = owner_of(grant, self);
  const int slot = claim_slot(grant, self, 0);
  if (slot < 0) return;
  const Actor actor{grant, static_cast<std::uint32_t>(slot)};
  (void)reap_all(actor, {me});
  for (std::uint32_t c = 0; c < grant.header.card_count; ++c) {
    (void)settled_total(grant, {0, c});
    (void)set_limit(actor, {0, c}, 1ull << 30);
    recompute_excess(grant, {0, c});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  GrantCard cards[2] = {};
  GrantSpec spec;
  spec.job = "fuzz";
  spec.cards = cards;
  spec.card_count = 2;
  for (GrantCard& card : cards) card.ceiling_bytes = card.total_bytes = 1ull << 33;
  Memory whole = zeroed(sizeof(Grant));
  METE_ASSERT(init_grant(whole.get(), spec));

  const std::uint32_t flags = input.take(1);
  const std::size_t bytes = (flags & 1) != 0 ? input.take(3) % (sizeof(Grant) + 1) : sizeof(Grant);
  // Where something is decided: the header, and the first accounts, exports and slots.
  constexpr std::size_t kRegions[] = {0, offsetof(Grant, accounts), offsetof(Grant, exports),
                                      offsetof(Grant, slots)};
  while (input.size > 4) {
    const std::size_t region = kRegions[input.take(1) % 4];
    const std::size_t offset = region + input.take(2) % 4096;
    const std::size_t length = 1 + input.take(1) % 16;
    for (std::size_t i = 0; i < length; ++i)
      whole.get()[offset + i] = static_cast<char>(input.take(1));
  }
  auto& grant = *reinterpret_cast<Grant*>(whole.get());
  if ((flags & 2) == 0) grant.header.header_check = grant_header_check(grant.header);

  if (bytes < sizeof(Grant)) {
    Memory file = zeroed(bytes == 0 ? 1 : bytes);
    std::memcpy(file.get(), whole.get(), bytes);
    METE_ASSERT(check_grant(file.get(), bytes) != GrantCheck::kOk);
  } else if (check_grant(whole.get(), bytes) == GrantCheck::kOk) {
    work_with(grant);
  }
  return 0;
}
