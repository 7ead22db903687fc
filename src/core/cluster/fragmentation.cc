// SPDX-License-Identifier: Apache-2.0
// See fragmentation.h.
#include "core/cluster/fragmentation.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

namespace mete::core::cluster {

namespace {

// CPU, share, cards, types, share in MiB: what distinguishes typical requests.
using Key = std::tuple<std::int32_t, std::int32_t, std::uint32_t, std::string, std::int64_t>;

std::string types_text(const Ask& ask) {
  std::string text;
  for (const std::string& type : ask.types) text += (text.empty() ? "" : "|") + type;
  return text;
}

// Kind::share_on, for a node that is large enough.
std::uint16_t share_on(const Ask& ask, const Group& group) {
  if (!ask.types.empty() &&
      !std::binary_search(ask.types.begin(), ask.types.end(), group.card_type))
    return Kind::kNever;
  if (ask.share_mib == 0) return static_cast<std::uint16_t>(ask.share);
  if (group.card_mib < ask.share_mib) return Kind::kNever;
  return static_cast<std::uint16_t>((ask.share_mib * kWholeCard + group.card_mib - 1) /
                                    group.card_mib);
}

}  // namespace

Fragmentation::Fragmentation(const Cluster& cluster, const Mix& mix) {
  std::map<Key, std::pair<std::uint64_t, KindId>> specs;
  std::uint64_t total = 0;
  for (const Expected& e : mix) {
    const Ask& ask = cluster.kind(e.kind).ask;
    auto& spec = specs[{ask.cpu_milli, ask.share, ask.cards, types_text(ask), ask.share_mib}];
    spec.first += e.count;
    spec.second = e.kind;
    total += e.count;
  }
  std::vector<std::tuple<std::uint64_t, Key, KindId>> by_count;
  for (const auto& [key, spec] : specs) by_count.emplace_back(spec.first, key, spec.second);
  std::sort(by_count.rbegin(), by_count.rend());
  const double enough = 95.0 * static_cast<double>(total) / 100.0;
  std::uint64_t sum = 0;
  std::size_t n = 0;
  while (n < by_count.size() && static_cast<double>(sum) < enough)
    sum += std::get<0>(by_count[n++]);
  for (std::size_t i = 0; i < n; ++i) {
    const auto count = static_cast<double>(std::get<0>(by_count[i]));
    const Ask& ask = cluster.kind(std::get<2>(by_count[i])).ask;
    Typical t;
    t.frequency = count / static_cast<double>(total) /
                  (static_cast<double>(sum) / static_cast<double>(total));
    t.cpu = ask.cpu_milli;
    t.cards = ask.cards;
    for (const Group& group : cluster.groups()) t.share_on.push_back(share_on(ask, group));
    typical_.push_back(std::move(t));
  }
}

double Fragmentation::of(const Shape& shape) const {
  enum { kLackBoth, kLackCards, kLackCpu, kCpuOnly, kCpuOnlyLacks, kWrongType, kCauses };
  std::array<double, kCauses> sums{};
  const double idle = shape.idle;
  for (const Typical& t : typical_) {
    const bool cpu = shape.cpu >= t.cpu;
    if (t.cards == 0) {
      sums[cpu ? kCpuOnly : kCpuOnlyLacks] += t.frequency * idle;
      continue;
    }
    const std::uint16_t each = t.share_on[index_of(shape.group)];
    if (each == Kind::kNever) {
      sums[kWrongType] += t.frequency * idle;
      continue;
    }
    const std::uint32_t with = shape.with(each);
    if (with < t.cards) {
      sums[cpu ? kLackCards : kLackBoth] += t.frequency * idle;
    } else if (!cpu) {
      sums[kLackCpu] += t.frequency * idle;
    } else {
      std::int32_t small = 0;
      for (std::size_t i = with; i < shape.cards; ++i) small += shape.free[i];
      sums[kLackCards] += t.frequency * static_cast<double>(small);
    }
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace mete::core::cluster
