// SPDX-License-Identifier: Apache-2.0
#include "core/order/estimate.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace mete::core {

namespace {

std::string key_of(const std::string& user, const std::string& name) { return user + "/" + name; }

std::string_view basename_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// FNV-1a of the command up to its first word that is not an option, in hexadecimal.
std::string program_of(const std::vector<std::string>& command) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    for (const char c : command[i]) add(c);
    add('\0');
    if (i > 0 && !command[i].starts_with('-')) break;
  }
  std::string digits;
  for (; hash != 0; hash >>= 4) digits += "0123456789abcdef"[hash & 0xf];
  return digits;
}

// The finest kind under which the job is learned.
std::string key_of(const JobSpec& spec) {
  const std::string key = key_of(spec.user, spec.name);
  if (spec.command.empty() || basename_of(spec.command.front()) != spec.name) return key;
  return key + "/" + program_of(spec.command);
}

}  // namespace

void Estimates::learn(const JobSpec& spec, std::uint64_t ran_ms) {
  // Rounded up: a job never counts as shorter than it was.
  const auto seconds = static_cast<std::uint32_t>(
      std::min<std::uint64_t>((ran_ms + 999) / 1000, std::numeric_limits<std::uint32_t>::max()));
  const std::string name = key_of(spec.user, spec.name);
  const std::string key = key_of(spec);
  if (key != name) learn(name, seconds);
  learn(key, seconds);
}

void Estimates::learn(const std::string& key, std::uint32_t seconds) {
  Kind& kind = kinds_[key];
  if (kind.turn != 0) by_turn_.erase(kind.turn);
  kind.turn = ++turn_;
  by_turn_[kind.turn] = key;
  if (kind.durations_s.size() == kDurations) kind.durations_s.erase(kind.durations_s.begin());
  kind.durations_s.push_back(seconds);
  if (kinds_.size() <= kKinds) return;
  kinds_.erase(by_turn_.begin()->second);
  by_turn_.erase(by_turn_.begin());
}

std::optional<std::uint64_t> Estimates::ends_by(const std::string& user, const std::string& name,
                                                std::uint64_t elapsed_s, unsigned pct,
                                                std::size_t least) const {
  return kinds_.empty() ? std::nullopt : ends_of_kind(key_of(user, name), elapsed_s, pct, least);
}

std::optional<std::uint64_t> Estimates::ends_by(const JobSpec& spec, std::uint64_t elapsed_s,
                                                unsigned pct, std::size_t least) const {
  return kinds_.empty() ? std::nullopt : ends_of_kind(key_of(spec), elapsed_s, pct, least);
}

std::optional<std::uint64_t> Estimates::ends_of_kind(const std::string& key,
                                                     std::uint64_t elapsed_s, unsigned pct,
                                                     std::size_t least) const {
  const auto found = kinds_.find(key);
  if (found == kinds_.end()) return std::nullopt;
  std::vector<std::uint32_t> longer;
  for (const std::uint32_t duration : found->second.durations_s)
    if (duration > elapsed_s) longer.push_back(duration);
  if (longer.empty() || longer.size() < least) return std::nullopt;
  std::sort(longer.begin(), longer.end());
  // The smallest duration that at least pct percent do not exceed.
  const std::size_t rank = (longer.size() * pct + 99) / 100;
  return longer[std::max<std::size_t>(rank, 1) - 1];
}

std::span<const std::uint32_t> Estimates::durations(const JobSpec& spec) const {
  const auto found = kinds_.find(key_of(spec));
  if (found == kinds_.end()) return {};
  return found->second.durations_s;
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
