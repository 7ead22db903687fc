// SPDX-License-Identifier: Apache-2.0
// See potential.h. weigh_kinds() turns the mix into terms, grouped by equal cards and share
// (buckets), with weights scaled to a constant sum. set_wastes() tabulates what common sizes leave
// over of each amount; set_demands() prepares prices. of() then evaluates a shape with integers
// only: buckets and terms are sorted, so it stops at the first that is too large.
#include "core/cluster/potential.h"

#include <algorithm>
#include <map>

namespace mete::core::cluster {

namespace {

// The constants were found by search over thirteen public traces (docs/adr/0013).
// Weights of kinds in w1 and w2: shares up to half a card, larger ones, one card, several.
struct ClassWeights {
  double small, large, one, several;
};
constexpr ClassWeights kOnceWeights{11.3, 1.2, 1.0, 0.432};
constexpr ClassWeights kCopiesWeights{10.7, 3.53, 1.0, 0.712};
constexpr double kCopies = 1.209;  // sum of w2 relative to the sum of w1
constexpr double kStranded = 3.97;
constexpr double kStrandedNeed = 0.2;  // of the mean CPU per card
constexpr double kCpuOnly = 0.221;
constexpr double kCorePerCard = 12;   // cores that are worth a card in kCpuOnly
constexpr double kCommonCpu = 16000;  // the size at which w3 is unchanged
constexpr double kPrice = 600;
constexpr double kCpuWaste = 0.3;
constexpr double kCpuCommon = 0.03;  // the least part of CPU-only requests that makes a size common
constexpr double kCardWaste = 1.4;
constexpr double kCardCommon = 0.0356;

double weight_of(const ClassWeights& weights, const Ask& ask, std::int32_t share) {
  if (ask.cards > 1) return weights.several;
  if (share == kWholeCard) return weights.one;
  return share <= kWholeCard / 2 ? weights.small : weights.large;
}

// The share that a kind takes of a card of the first group that could hold it. 0: none could.
std::int32_t common_share(const Kind& kind) {
  for (const std::uint16_t share : kind.share_on)
    if (share != Kind::kNever) return share;
  return 0;
}

std::int64_t rounded(double value) {
  return static_cast<std::int64_t>(value * static_cast<double>(Potential::kOne) + 0.5);
}

// For every amount up to `most`: what is left over when the common sizes fill it as well as
// possible, each any number of times.
std::vector<std::int64_t> left_over(const std::map<std::int64_t, double>& counts, double common,
                                    std::size_t most) {
  double all = 0;
  for (const auto& [size, count] : counts) all += count;
  std::vector<std::size_t> sizes;
  for (const auto& [size, count] : counts)
    if (size > 0 && count >= common * all) sizes.push_back(static_cast<std::size_t>(size));
  std::vector<std::int64_t> filled(most + 1, 0);
  for (std::size_t amount = 1; amount <= most; ++amount)
    for (const std::size_t size : sizes)
      if (size <= amount)
        filled[amount] =
            std::max(filled[amount], filled[amount - size] + static_cast<std::int64_t>(size));
  for (std::size_t amount = 0; amount <= most; ++amount)
    filled[amount] = sizes.empty() ? 0 : static_cast<std::int64_t>(amount) - filled[amount];
  return filled;
}

const std::int64_t kStrandedFixed = rounded(kStranded);

template <typename T>
bool less_cpu(const T& a, const T& b) {
  return a.cpu != b.cpu ? a.cpu < b.cpu : a.ram < b.ram;
}

// How many copies CPU and memory allow, of at most `most`.
inline std::int64_t copies_in(const Shape& shape, std::int32_t cpu, std::int32_t ram,
                              std::uint32_t most) {
  if (static_cast<std::int64_t>(most) * cpu > shape.cpu)
    most = static_cast<std::uint32_t>(shape.cpu) / static_cast<std::uint32_t>(cpu);
  if (static_cast<std::int64_t>(most) * ram > shape.ram)
    most = static_cast<std::uint32_t>(shape.ram) / static_cast<std::uint32_t>(ram);
  return most;
}

}  // namespace

Potential::Potential(const Cluster& cluster, Mix mix) {
  // Floating-point sums are equal only in equal order.
  std::sort(mix.begin(), mix.end(), [&](const Expected& a, const Expected& b) {
    return cluster.kind(a.kind).ask < cluster.kind(b.kind).ask;
  });
  buckets_.resize(cluster.groups().size());
  weigh_kinds(cluster, mix);
  set_wastes(cluster, mix);
  for (std::vector<Bucket>& buckets : buckets_) {
    std::sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
      return a.share != b.share ? a.share < b.share : a.cards < b.cards;
    });
    for (Bucket& b : buckets) std::sort(b.terms.begin(), b.terms.end(), less_cpu<Term>);
  }
  std::sort(cpu_terms_.begin(), cpu_terms_.end(), less_cpu<CpuTerm>);
  set_demands(cluster, mix);
}

Potential::Bucket& Potential::bucket(GroupId group, std::uint32_t cards, std::uint16_t share) {
  for (Bucket& known : buckets_[index_of(group)])
    if (known.cards == cards && known.share == share) return known;
  buckets_[index_of(group)].push_back({cards, share, {}});
  return buckets_[index_of(group)].back();
}

void Potential::weigh_kinds(const Cluster& cluster, const Mix& mix) {
  double once_sum = 0;
  double copies_sum = 0;
  double cards = 0;
  double cpu = 0;
  double cpu_only_count = 0;
  for (const Expected& e : mix) {
    const Kind& kind = cluster.kind(e.kind);
    const auto count = static_cast<double>(e.count);
    if (kind.ask.cards == 0) {
      cpu_only_count += count;
      continue;
    }
    const std::int32_t share = common_share(kind);
    if (share == 0) continue;
    const double size = kind.ask.cards * static_cast<double>(share) / kWholeCard;
    once_sum += count * weight_of(kOnceWeights, kind.ask, share) / size;
    copies_sum += count * weight_of(kCopiesWeights, kind.ask, share);
    cards += count * size;
    cpu += count * kind.ask.cpu_milli;
  }
  if (cards > 0) need_ = static_cast<std::int64_t>(cpu / cards * kStrandedNeed);
  for (const Expected& e : mix) {
    const Kind& kind = cluster.kind(e.kind);
    const Ask& ask = kind.ask;
    const auto count = static_cast<double>(e.count);
    if (ask.cards == 0) {
      if (ask.cpu_milli == 0) continue;
      const double rarity = kCommonCpu / ask.cpu_milli;
      cpu_terms_.push_back({ask.cpu_milli, ask.ram_mib,
                            ask.cpu_milli * rounded(kCpuOnly / kCorePerCard * count /
                                                    cpu_only_count * rarity * rarity)});
      continue;
    }
    const std::int32_t common = common_share(kind);
    if (common == 0) continue;
    const double size = ask.cards * static_cast<double>(common) / kWholeCard;
    const std::int64_t once =
        rounded(count * weight_of(kOnceWeights, ask, common) / size / once_sum);
    const std::int64_t copies =
        rounded(kCopies * count * weight_of(kCopiesWeights, ask, common) / copies_sum);
    idle_weight_ += once + copies;
    for (std::uint32_t g = 0; g < buckets_.size(); ++g) {
      const std::uint16_t share = kind.share_on[g];
      if (share == Kind::kNever) continue;
      bucket(GroupId{g}, ask.cards, share)
          .terms.push_back({ask.cpu_milli, ask.ram_mib, once, copies * ask.cards * share});
    }
  }
}

void Potential::set_wastes(const Cluster& cluster, const Mix& mix) {
  std::map<std::int64_t, double> cpu;
  std::map<std::int64_t, double> shares;
  for (const Expected& e : mix) {
    const Kind& kind = cluster.kind(e.kind);
    const auto count = static_cast<double>(e.count);
    const std::int32_t share = common_share(kind);
    if (kind.ask.cards == 0)
      cpu[kind.ask.cpu_milli / kCpuStep] += count;
    else if (kind.ask.cards == 1 && share > 0 && share < kWholeCard)
      shares[share] += count;
  }
  std::int32_t most = 0;
  for (const Group& group : cluster.groups()) most = std::max(most, group.empty.cpu);
  // Beyond a few of the largest sizes every amount can be filled.
  constexpr std::int32_t kFarEnough = 200'000;
  cpu_waste_ =
      left_over(cpu, kCpuCommon, static_cast<std::size_t>(std::min(most, kFarEnough) / kCpuStep));
  const std::int64_t each = rounded(kCpuWaste / kCorePerCard * kCpuStep);
  for (std::int64_t& waste : cpu_waste_) waste *= each;
  card_waste_ = left_over(shares, kCardCommon, kWholeCard);
  card_waste_[kWholeCard] = 0;
  for (std::int64_t& waste : card_waste_) waste *= rounded(kCardWaste);
}

void Potential::set_demands(const Cluster& cluster, const Mix& mix) {
  double asked = 0;
  for (const Expected& e : mix) {
    const Kind& kind = cluster.kind(e.kind);
    asked += static_cast<double>(e.count) * kind.ask.cards * common_share(kind);
  }
  std::map<std::vector<std::uint32_t>, double> by_groups;
  for (const Expected& e : mix) {
    const Kind& kind = cluster.kind(e.kind);
    if (kind.ask.cards == 0) continue;
    std::vector<std::uint32_t> groups;
    for (std::uint32_t g = 0; g < kind.share_on.size(); ++g)
      if (kind.share_on[g] != Kind::kNever) groups.push_back(g);
    if (groups.empty()) continue;
    by_groups[groups] += static_cast<double>(e.count) * kind.ask.cards * common_share(kind) / asked;
  }
  for (const auto& [groups, part] : by_groups) demands_.push_back({groups, rounded(kPrice * part)});
}

// A demand of a tenth of the total, on groups with a hundredth of all idle cards, adds ten times
// what it would add if all groups were equally idle. A thousandth of the cards counts as idle
// everywhere, so that no divisor is nearly zero.
void Potential::price(const Cluster& cluster, std::vector<std::int64_t>& prices) const {
  constexpr std::int64_t kRatio = 1024;
  prices.assign(cluster.groups().size(), 0);
  const std::int64_t some = cluster.capacity() / 1000 + 1;
  for (const Demand& demand : demands_) {
    std::int64_t idle = some;
    for (const std::uint32_t g : demand.groups) idle += cluster.idle(GroupId{g});
    const std::int64_t scarce = (cluster.idle() + some) * kRatio / idle;
    const std::int64_t price = demand.part * scarce / kRatio;
    for (const std::uint32_t g : demand.groups) prices[g] += price;
  }
}

std::int64_t Potential::of(const Shape& shape) const {
  std::int64_t of_use = 0;
  for (const CpuTerm& t : cpu_terms_) {
    if (t.cpu > shape.cpu) break;
    of_use += t.weight * copies_in(shape, t.cpu, t.ram, kMaxCpuMilli);
  }
  const auto steps = static_cast<std::size_t>(shape.cpu / kCpuStep);
  if (steps < cpu_waste_.size()) of_use -= cpu_waste_[steps];
  if (shape.idle == 0 || buckets_.empty()) return -of_use;
  for (std::size_t i = 0; i < shape.cards; ++i) of_use -= card_waste_[shape.free[i]];
  for (const Bucket& bucket : buckets_[index_of(shape.group)]) {
    if (bucket.share > shape.free[0]) break;
    std::uint32_t n = 0;  // cards with room
    std::uint32_t copies = 0;
    std::int64_t left = 0;
    for (; n < shape.cards && shape.free[n] >= bucket.share; ++n) left += shape.free[n];
    if (n < bucket.cards) continue;
    if (bucket.cards > 1 || 2 * bucket.share > kWholeCard) {
      copies = n / bucket.cards;
    } else {
      for (std::uint32_t i = 0; i < n; ++i) copies += shape.free[i] / bucket.share;
    }
    std::int64_t once = 0;
    for (const Term& t : bucket.terms) {
      if (t.cpu > shape.cpu) break;
      if (t.ram > shape.ram) continue;
      once += t.once;
      of_use += t.copies * copies_in(shape, t.cpu, t.ram, copies);
    }
    of_use += once * left;
  }
  std::int64_t potential = idle_weight_ * shape.idle - of_use;
  if (need_ > 0) {
    const std::int64_t served = static_cast<std::int64_t>(shape.cpu) * kWholeCard / need_;
    if (served < shape.idle) potential += kStrandedFixed * (shape.idle - served);
  }
  return potential;
}

}  // namespace mete::core::cluster
