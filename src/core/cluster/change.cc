// SPDX-License-Identifier: Apache-2.0
// See change.h. For each class of nodes, Cut reduces the request to what the class has left, one
// aspect after another, with each possible number of cards. The best change with a single aspect is
// kept for each aspect; changes of several aspects count only if there is none.
#include "core/cluster/change.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace mete::core::cluster {

namespace {

constexpr std::int64_t kAll = 1'000'000;

std::int64_t lost(std::int64_t asked, std::int64_t left) {
  return asked > 0 ? (asked - left) * kAll / asked : 0;
}

// The minimum of a request: a thousandth of a core or of a card, a MiB.
constexpr std::int32_t kLeast = 1;

// The request, reduced to what a class of nodes could hold.
class Cut {
 public:
  Cut(const Ask& ask, const Group& group, const Shape& shape)
      : asked_(ask), group_(group), shape_(shape) {
    change_.ask = ask;
  }

  // With this many cards, whatever is left of them: as many as requested, or fewer.
  std::optional<Change> with_cards(std::uint32_t cards) && {
    if (!less(asked_.cpu_milli, shape_.cpu, change_.ask.cpu_milli, Aspect::kCpu) ||
        !less(asked_.ram_mib, shape_.ram, change_.ask.ram_mib, Aspect::kRam))
      return std::nullopt;
    if (cards > 0 && !cut_cards(cards)) return std::nullopt;
    if (change_.aspects.empty()) return std::nullopt;  // the request fits as it is
    return std::move(change_);
  }

 private:
  bool less(std::int32_t asked, std::int32_t left, std::int32_t& out, Aspect aspect) {
    if (asked <= left) return true;
    if (left < kLeast) return false;
    out = left;
    gave_up(aspect, lost(asked, left));
    return true;
  }

  void gave_up(Aspect aspect, std::int64_t loss) {
    change_.aspects.push_back(aspect);
    change_.loss += loss;
  }

  void another_type() {
    const std::vector<std::string>& types = asked_.types;
    if (types.empty() || std::binary_search(types.begin(), types.end(), group_.card_type)) return;
    change_.ask.types = {group_.card_type};
    gave_up(Aspect::kType, 0);
  }

  // Thousandths of each card here; more than a whole card if the card is too small.
  std::int64_t each() const {
    if (asked_.share_mib == 0) return asked_.share;
    if (group_.card_mib == 0) return kWholeCard + 1;
    return (asked_.share_mib * kWholeCard + group_.card_mib - 1) / group_.card_mib;
  }

  bool cut_cards(std::uint32_t cards) {
    if (shape_.cards < cards) return false;
    const std::int32_t left = shape_.free[cards - 1];
    if (left < kLeast) return false;
    if (each() > left) {
      if (asked_.share_mib == 0) {
        change_.ask.share = left;
        gave_up(Aspect::kShare, lost(asked_.share, left));
      } else {
        const std::int64_t mib = left * group_.card_mib / kWholeCard;
        if (mib < kLeast) return false;
        change_.ask.share_mib = mib;
        gave_up(Aspect::kShare, lost(asked_.share_mib, mib));
      }
    }
    if (cards < asked_.cards) {
      change_.ask.cards = cards;
      gave_up(Aspect::kCards, lost(asked_.cards, cards));
    }
    another_type();
    return true;
  }

  const Ask& asked_;
  const Group& group_;
  const Shape& shape_;
  Change change_;
};

// Smaller is better; the request itself breaks ties, so that the order of classes never does.
bool better(const Change& a, const Change& b) {
  return std::tuple(a.aspects.size(), a.loss, b.ask) < std::tuple(b.aspects.size(), b.loss, a.ask);
}

}  // namespace

std::string_view to_string(Aspect aspect) {
  switch (aspect) {
    case Aspect::kCpu:
      return "cpu";
    case Aspect::kRam:
      return "ram";
    case Aspect::kShare:
      return "share";
    case Aspect::kCards:
      return "cards";
    case Aspect::kType:
      return "type";
  }
  return "";
}

std::vector<Change> changes(const Cluster& cluster, KindId id) {
  const Kind& kind = cluster.kind(id);
  std::map<Aspect, Change> alone;
  std::optional<Change> several;
  const auto keep = [&](Change change) {
    if (change.aspects.size() > 1) {
      if (!several || better(change, *several)) several = std::move(change);
      return;
    }
    const auto [known, added] = alone.try_emplace(change.aspects.front(), change);
    if (!added && better(change, known->second)) known->second = std::move(change);
  };
  for (const ClassId cls : cluster.classes()) {
    const Shape& shape = cluster.shape(cls);
    if (kind.fits(shape)) return {};
    const Group& group = cluster.groups()[index_of(shape.group)];
    std::uint32_t cards = kind.ask.cards;
    do {  // down to one: without cards it would be another request
      if (std::optional<Change> change = Cut(kind.ask, group, shape).with_cards(cards))
        keep(*std::move(change));
    } while (cards-- > 1);
  }
  std::vector<Change> list;
  for (auto& [aspect, change] : alone) list.push_back(std::move(change));
  if (list.empty() && several) list.push_back(*std::move(several));
  std::sort(list.begin(), list.end(), better);
  return list;
}

}  // namespace mete::core::cluster
