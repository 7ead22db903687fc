// SPDX-License-Identifier: Apache-2.0
#include "core/order/estimate.h"

#include <algorithm>
#include <limits>

namespace mete::core {

namespace {

std::string key_of(const std::string& user, const std::string& name) { return user + "/" + name; }
std::string key_of(const JobSpec& spec) { return key_of(spec.user, spec.name); }

}  // namespace

void Estimates::learn(const JobSpec& spec, std::uint64_t ran_ms) {
  const std::string key = key_of(spec);
  Kind& kind = kinds_[key];
  if (kind.turn != 0) by_turn_.erase(kind.turn);
  kind.turn = ++turn_;
  by_turn_[kind.turn] = key;
  if (kind.durations_s.size() == kDurations) kind.durations_s.erase(kind.durations_s.begin());
  // Rounded up: a job is never believed to have been over sooner than it was.
  kind.durations_s.push_back(static_cast<std::uint32_t>(
      std::min<std::uint64_t>((ran_ms + 999) / 1000, std::numeric_limits<std::uint32_t>::max())));
  if (kinds_.size() <= kKinds) return;
  kinds_.erase(by_turn_.begin()->second);
  by_turn_.erase(by_turn_.begin());
}

std::optional<std::uint64_t> Estimates::ends_by(const std::string& user, const std::string& name,
                                                std::uint64_t elapsed_s, unsigned pct,
                                                std::size_t least) const {
  if (kinds_.empty()) return std::nullopt;
  const auto found = kinds_.find(key_of(user, name));
  if (found == kinds_.end()) return std::nullopt;
  std::vector<std::uint32_t> longer;
  for (const std::uint32_t duration : found->second.durations_s)
    if (duration > elapsed_s) longer.push_back(duration);
  if (longer.empty() || longer.size() < least) return std::nullopt;
  std::sort(longer.begin(), longer.end());
  // The smallest that at least pct percent do not exceed.
  const std::size_t rank = (longer.size() * pct + 99) / 100;
  return longer[std::max<std::size_t>(rank, 1) - 1];
}

std::span<const std::uint32_t> Estimates::durations(const JobSpec& spec) const {
  const auto found = kinds_.find(key_of(spec));
  if (found == kinds_.end()) return {};
  return found->second.durations_s;
}

std::vector<std::uint32_t> Estimates::of_all(std::size_t most) const {
  std::vector<std::uint32_t> all;
  for (auto turn = by_turn_.rbegin(); turn != by_turn_.rend() && all.size() < most; ++turn) {
    const std::vector<std::uint32_t>& kind = kinds_.at(turn->second).durations_s;
    const std::size_t count = std::min(kind.size(), most - all.size());
    all.insert(all.end(), kind.end() - static_cast<std::ptrdiff_t>(count), kind.end());
  }
  return all;
}

std::vector<Estimates::Entry> Estimates::entries() const {
  std::vector<Entry> list;
  for (const auto& [turn, key] : by_turn_) list.push_back({key, kinds_.at(key).durations_s});
  return list;
}

void Estimates::set(std::vector<Entry> entries) {
  *this = Estimates();
  for (Entry& entry : entries) {
    kinds_[entry.key] = {++turn_, std::move(entry.durations_s)};
    by_turn_[turn_] = entry.key;
  }
}

}  // namespace mete::core
