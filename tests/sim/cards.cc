// SPDX-License-Identifier: Apache-2.0
// See cards.h. The cards get random types and modes at the start; change() picks one and changes
// its foreign memory, a claim or its state. Requests are drawn from usual sizes, so that many jobs
// compete for equal amounts.
#include "tests/sim/cards.h"

#include <algorithm>

#include "core/request/gpu.h"

namespace mete::sim {

using core::GpuRequest;
using core::PoolCard;
using Kind = core::CardCount::Kind;

Bytes sum(const std::vector<core::Outside>& list) {
  Bytes bytes;
  for (const core::Outside& outside : list) bytes += outside.bytes;
  return bytes;
}

OnCard on_card(const Reserved& held, const std::string& uuid) {
  OnCard on;
  for (const auto& [job, cards] : held)
    for (const core::GrantedCard& card : cards) {
      if (card.uuid != uuid) continue;
      on.bytes += card.bytes;
      ++on.holders;
      on.whole += card.whole ? 1 : 0;
    }
  return on;
}

Cards::Cards(Dice& dice) : dice_(dice) {
  const std::uint64_t count = dice.percent(20) ? 1 : dice.between(2, dice.percent(80) ? 4 : 8);
  for (std::uint32_t i = 0; i < count; ++i) {
    PoolCard card;
    const bool large = dice.percent(60);
    card.card = {i, "GPU-0000000" + std::to_string(i), large ? "H200" : "A40",
                 Bytes::from_gib(large ? 140 : 44)};
    const bool special = i + 1 < count;  // at least one can be shared
    card.one_process = special && dice.percent(5);
    card.context = Bytes::from_mib(500);
    if (special && dice.percent(3)) card.unusable = "split into MIG slices";
    pool_.cards.push_back(card);
  }
  for (int i = 0; i < 4; ++i)
    usual_.push_back(
        core::Size{Bytes::from_mib(2 * dice.between(500, dice.percent(50) ? 8'000 : 22'000))});
}

void Cards::change(const Reserved& ours) {
  PoolCard& card = dice_.pick(pool_.cards);
  switch (dice_.below(8)) {
    case 0:
    case 1:
      card.lost = dice_.percent(12);
      break;
    case 2:
      card.stale = dice_.percent(10);
      break;
    case 3:
    case 4:
      card.foreign.clear();
      if (dice_.percent(50))
        card.foreign.push_back({"process 7 of carol", Bytes::from_mib(dice_.between(
                                                          1, card.card.capacity.count() >>
                                                                 (dice_.percent(70) ? 23 : 20)))});
      break;
    case 5:
    case 6:
      if (!card.claimed.empty()) card.claimed.pop_back();
      break;
    default: {
      const OnCard on = on_card(ours, card.card.uuid);
      if (on.whole != 0) break;
      const Bytes claim = Bytes::from_mib(dice_.between(1, 40'000));
      if (on.bytes + sum(card.claimed) + claim <= card.card.capacity)
        card.claimed.push_back({"dave's mete", claim});
    }
  }
}

void Cards::become_quiet() {
  for (PoolCard& card : pool_.cards) {
    card.lost = card.stale = false;
    card.foreign.clear();
    card.claimed.clear();
  }
}

bool Cards::others_agree(const Reserved& ours, const std::vector<core::GrantedCard>& wanted) const {
  for (const core::GrantedCard& want : wanted)
    for (const PoolCard& card : pool_.cards) {
      // Other daemons have nothing there: they agree.
      if (card.card.uuid != want.uuid || card.claimed.empty()) continue;
      if (want.whole) return false;
      const Bytes used = on_card(ours, want.uuid).bytes + sum(card.claimed);
      if (used + want.bytes > card.card.capacity) return false;
    }
  return true;
}

std::string Cards::name() {
  if (dice_.percent(3)) return "99";
  const core::Card& card = dice_.pick(pool_.cards).card;
  return dice_.percent(50) ? std::to_string(card.index) : card.uuid;
}

core::GpuRequest Cards::gpu_of_size() {
  const core::Size any{Bytes::from_mib(2 * dice_.between(1, 36'000))};
  return GpuRequest{{Kind::kOne, 0}, dice_.percent(70) ? dice_.pick(usual_) : any};
}

// 8G..20G, or as much as there is.
core::GpuRequest Cards::gpu_that_grows() {
  const Bytes least = Bytes::from_mib(2 * dice_.between(100, 12'000));
  core::Growing grows{least, std::nullopt};
  if (dice_.percent(60)) grows.to = least + Bytes::from_mib(2 * dice_.between(100, 24'000));
  return GpuRequest{{Kind::kOne, 0}, grows};
}

core::Request Cards::request() {
  core::Request request;
  const std::uint64_t count = pool_.cards.size();
  const auto some =
      static_cast<std::uint32_t>(dice_.between(1, count + (dice_.percent(5) ? 1 : 0)));
  request.gpu = gpu_of_size();
  switch (dice_.below(40)) {
    case 0:
    case 1:
    case 2:
      request.gpu = core::no_gpu();
      break;
    case 3:
    case 4:
      request.gpu = core::whole_cards(some);
      break;
    case 5:
      request.gpu->cards = {Kind::kAll, 0};
      break;
    case 6:
      request.gpu->cards = {Kind::kNumber, some};
      request.procs = some * dice_.small(1, 3);
      break;
    case 7:
      request.gpu = GpuRequest{{Kind::kAll, 0}, core::WholeCard{}};
      break;
    case 8:
      for (std::uint64_t i = 0; i < some && i < count; ++i)
        request.devices.push_back(std::to_string(dice_.percent(3) ? 99 : count - 1 - i));
      if (dice_.percent(50)) request.gpu.reset();
      break;
    case 9:
      request.gpu_type = dice_.percent(90) ? "H200" : "B300";
      break;
    case 10:
      request.or_cpu = true;
      break;
    case 11:
      request.gpu = *core::parse_gpu(dice_.percent(20) ? "grow" : "500G");
      break;
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
    case 20:
      request.gpu = gpu_that_grows();
      if (dice_.percent(10)) request.gpu->cards = {Kind::kNumber, some};
      break;
    case 12:
    case 13:
    case 14:
      request.gpu = GpuRequest{{Kind::kOne, 0}, core::Fraction{dice_.small(1, 10) * 100}};
      break;
    default:
      break;
  }
  if (dice_.percent(10)) request.cpus = dice_.small(1, 6);
  return request;
}

}  // namespace mete::sim
