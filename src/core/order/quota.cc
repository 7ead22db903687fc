// SPDX-License-Identifier: Apache-2.0
#include "core/order/quota.h"

namespace mete::core {

Quota with_defaults(Quota own, const Quota& everybody) {
  if (!own.cards) own.cards = everybody.cards;
  if (!own.bytes) own.bytes = everybody.bytes;
  if (!own.running) own.running = everybody.running;
  if (!own.jobs) own.jobs = everybody.jobs;
  if (!own.disk) own.disk = everybody.disk;
  return own;
}

std::string_view to_string(OverQuota::Limit limit) {
  switch (limit) {
    case OverQuota::Limit::kRunning:
      return "running";
    case OverQuota::Limit::kCards:
      return "cards";
    case OverQuota::Limit::kBytes:
      break;
  }
  return "bytes";
}

std::optional<OverQuota::Limit> parse_quota_limit(std::string_view text) {
  for (const auto limit :
       {OverQuota::Limit::kRunning, OverQuota::Limit::kCards, OverQuota::Limit::kBytes})
    if (to_string(limit) == text) return limit;
  return std::nullopt;
}

std::string to_string(const OverQuota& over) {
  const bool bytes = over.limit == OverQuota::Limit::kBytes;
  const auto amount = [bytes](std::uint64_t number) {
    return bytes ? to_string(Bytes::from_bytes(number)) : std::to_string(number);
  };
  std::string text = amount(over.now) + " of " + amount(over.most);
  if (over.limit == OverQuota::Limit::kRunning) text += " running jobs";
  if (over.limit == OverQuota::Limit::kCards) text += " cards";
  if (bytes || over.more > 1) text += ", and this takes " + amount(over.more);
  return text;
}

std::optional<OverQuota> over(const Quota& quota, const Held& now, const Held& more) {
  using Limit = OverQuota::Limit;
  if (quota.running && now.running + std::uint64_t{more.running} > *quota.running)
    return OverQuota{Limit::kRunning, now.running, *quota.running, more.running};
  if (quota.cards && more.cards > 0 && now.cards + std::uint64_t{more.cards} > *quota.cards)
    return OverQuota{Limit::kCards, now.cards, *quota.cards, more.cards};
  if (quota.bytes && !more.bytes.is_zero() && now.bytes.plus(more.bytes) > *quota.bytes)
    return OverQuota{Limit::kBytes, now.bytes.count(), quota.bytes->count(), more.bytes.count()};
  return std::nullopt;
}

std::optional<std::string> never_within(const Quota& quota, const Held& more) {
  const std::optional<OverQuota> never = over(quota, Held{}, more);
  return never ? std::optional(to_string(*never)) : std::nullopt;
}

}  // namespace mete::core
