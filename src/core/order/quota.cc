// SPDX-License-Identifier: Apache-2.0
#include "core/order/quota.h"

#include "core/place/room.h"

namespace mete::core {

namespace {

std::string of(std::uint64_t now, std::uint64_t most, const char* what, std::uint64_t more) {
  std::string text = std::to_string(now) + " of " + std::to_string(most) + " " + what;
  if (more > 1) text += ", and this takes " + std::to_string(more);
  return text;
}

}  // namespace

Quota with_defaults(Quota own, const Quota& everybody) {
  if (!own.cards) own.cards = everybody.cards;
  if (!own.bytes) own.bytes = everybody.bytes;
  if (!own.running) own.running = everybody.running;
  if (!own.jobs) own.jobs = everybody.jobs;
  if (!own.disk) own.disk = everybody.disk;
  return own;
}

std::optional<std::string> over(const Quota& quota, const Held& now, const Held& more) {
  if (quota.running && now.running + std::uint64_t{more.running} > *quota.running)
    return of(now.running, *quota.running, "running jobs", more.running);
  if (quota.cards && more.cards > 0 && now.cards + std::uint64_t{more.cards} > *quota.cards)
    return of(now.cards, *quota.cards, "cards", more.cards);
  if (quota.bytes && !more.bytes.is_zero() && now.bytes.plus(more.bytes) > *quota.bytes)
    return to_string(now.bytes) + " of " + to_string(*quota.bytes) + ", and this takes " +
           to_string(more.bytes);
  return std::nullopt;
}

std::optional<std::string> never_within(const Quota& quota, const Held& more) {
  return over(quota, Held{}, more);
}

}  // namespace mete::core
