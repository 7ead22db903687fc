// SPDX-License-Identifier: Apache-2.0
// See resolve.h. Cards are taken in index order, or as --devices says; ties break by index, so that
// the same words always mean the same cards.
#include "core/request/resolve.h"

#include <algorithm>

#include "base/text.h"

namespace mete::core {

namespace {

using base::quote;
using base::to_lower;
using Kind = CardCount::Kind;

std::string name_of(const Card& card) {
  return "card " + std::to_string(card.index) + " (" + card.type + ", " + to_string(card.capacity) +
         ")";
}

const Card& largest(const std::vector<Card>& cards) {
  METE_ASSERT(!cards.empty());
  return *std::max_element(cards.begin(), cards.end(),
                           [](const Card& a, const Card& b) { return a.capacity < b.capacity; });
}

std::string count_of_cards(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " card" : " cards");
}

std::string list_types(const std::vector<Card>& cards) {
  std::vector<std::string> types;
  for (const Card& card : cards)
    if (std::find(types.begin(), types.end(), card.type) == types.end()) types.push_back(card.type);
  return base::join(types, ", ");
}

// The bytes of a share on one card, or nullopt when the card is too small for it.
std::optional<CardShare> share_on(const Memory& memory, const Card& card) {
  CardShare share{card, card.capacity, card.capacity};
  if (const auto* fraction = std::get_if<Fraction>(&memory)) {
    share.limit = card.capacity.checked_scale(fraction->milli, 1000)->round_down(kGranule);
    share.from = share.limit;
  } else if (const auto* size = std::get_if<Size>(&memory)) {
    share.from = share.limit = size->bytes.round_down(kGranule);
  } else if (const auto* growing = std::get_if<Growing>(&memory)) {
    share.from = growing->from.round_down(kGranule);
    share.limit = std::min(growing->to.value_or(card.capacity), card.capacity).round_down(kGranule);
  }
  if (share.from > card.capacity || share.from.is_zero()) return std::nullopt;
  return share;
}

Result<const Card*> find_device(const std::string& name, const std::vector<Card>& cards) {
  if (name.empty()) {
    return Error::invalid("--devices has an empty entry")
        .with_hint("write card numbers or UUIDs between commas: --devices 3,2");
  }
  std::vector<const Card*> found;
  if (name.find_first_not_of("0123456789") == std::string::npos) {
    const Result<std::uint64_t> index = base::parse_uint(name);
    for (const Card& card : cards)
      if (index && card.index == *index) found.push_back(&card);
  } else if (name.starts_with("GPU-") || name.starts_with("MIG-")) {
    for (const Card& card : cards)
      if (card.uuid.starts_with(name)) found.push_back(&card);
  } else {
    return Error::invalid("--devices: " + quote(name) + " is neither a card number nor a UUID")
        .with_hint("write card numbers or UUIDs between commas: --devices 3,2");
  }
  if (found.size() > 1) {
    return Error::invalid("--devices: " + quote(name) + " could be " + count_of_cards(found.size()))
        .with_hint("write more of the UUID");
  }
  if (found.empty()) {
    std::vector<std::string> numbers;
    numbers.reserve(cards.size());
    for (const Card& card : cards) numbers.push_back(std::to_string(card.index));
    return Error::infeasible("there is no card " + quote(name) + " here")
        .with_evidence("cards here: " + base::join(numbers, ", "));
  }
  return found.front();
}

Result<std::vector<Card>> pick_devices(const Request& request, const std::vector<Card>& cards) {
  std::vector<Card> picked;
  for (const std::string& name : request.devices) {
    const Result<const Card*> card = find_device(name, cards);
    if (!card) return card.error();
    if (std::find(picked.begin(), picked.end(), **card) != picked.end()) {
      return Error::invalid("--devices names card " + std::to_string((*card)->index) + " twice")
          .with_hint("name each card once");
    }
    if (request.gpu_type && to_lower((*card)->type) != to_lower(*request.gpu_type)) {
      return Error::invalid("--devices and --gpu-type contradict each other: " + name_of(**card) +
                            " is not of type " + quote(*request.gpu_type))
          .with_hint("leave one of the two out");
    }
    picked.push_back(**card);
  }
  return picked;
}

// Words that contradict each other whatever the cards are.
Result<void> check_words(const Request& request) {
  if (!request.gpu && request.devices.empty()) {
    return Error::invalid("how much of a card is not said")
        .with_hint("add --gpu, for example --gpu 8G, --gpu 40% or --gpu 1");
  }
  if (!request.gpu) return {};
  const CardCount& count = request.gpu->cards;
  if (count.kind == Kind::kNone && (!request.devices.empty() || request.gpu_type)) {
    return Error::invalid("--gpu 0 asks for no card, and " +
                          std::string(request.devices.empty() ? "--gpu-type" : "--devices") +
                          " names some")
        .with_hint("leave one of the two out");
  }
  if (request.devices.empty()) return {};
  if (count.kind == Kind::kAll) {
    return Error::invalid("--gpu " + to_string(*request.gpu) +
                          " and --devices contradict each other")
        .with_hint(
            "--devices alone means those cards whole; with a share, such as --gpu 40%, that "
            "share on each");
  }
  if (count.kind == Kind::kNumber && count.number != request.devices.size()) {
    return Error::invalid("--gpu " + to_string(*request.gpu) + " asks for " +
                          count_of_cards(count.number) + ", and --devices names " +
                          std::to_string(request.devices.size()))
        .with_hint("name as many devices as cards, or write the share alone");
  }
  return {};
}

std::string cards_in_words(const GpuRequest& gpu, std::size_t wanted) {
  if (std::holds_alternative<WholeCard>(gpu.memory)) return count_of_cards(wanted);
  return to_string(gpu) + (wanted > 1 ? " (" + count_of_cards(wanted) + ")" : "");
}

Error too_small(const GpuRequest& gpu, const std::vector<Card>& cards, std::size_t wanted,
                std::size_t suitable) {
  const Card& most = largest(cards);
  Error error = Error::infeasible("--gpu " + cards_in_words(gpu, wanted) + " can never fit here");
  error.evidence = "the largest card is " + name_of(most);
  if (wanted > 1)
    error.evidence += "; " + count_of_cards(suitable) + " of " + std::to_string(cards.size()) +
                      (suitable == 1 ? " is" : " are") + " large enough";
  if (wanted > 1 && suitable > 0 && !std::holds_alternative<WholeCard>(gpu.memory)) {
    GpuRequest fits = gpu;
    fits.cards = {Kind::kNumber, static_cast<std::uint32_t>(suitable)};
    error.hint = "--gpu " + to_string(fits) + " would fit";
  } else if (wanted > 1 && std::holds_alternative<WholeCard>(gpu.memory)) {
    error.hint = "--gpu " + std::to_string(suitable) + " would fit";
  } else {
    error.hint =
        "--gpu " + to_exact_string(most.capacity.round_down(Bytes::from_mib(2))) + " would fit";
  }
  return error;
}

Result<std::vector<CardShare>> take(const GpuRequest& gpu, const std::vector<Card>& candidates,
                                    std::size_t wanted) {
  std::vector<CardShare> shares;
  for (const Card& card : candidates)
    if (const std::optional<CardShare> share = share_on(gpu.memory, card); share)
      shares.push_back(*share);
  if (shares.size() < wanted) return too_small(gpu, candidates, wanted, shares.size());
  shares.resize(wanted);
  return shares;
}

}  // namespace

Result<std::vector<CardShare>> resolve(const Request& request, const std::vector<Card>& cards) {
  if (Result<void> r = check_words(request); !r) return std::move(r).error();
  if (request.gpu && request.gpu->cards.kind == Kind::kNone) return std::vector<CardShare>{};
  if (cards.empty()) {
    return Error::infeasible("this machine has no usable GPU")
        .with_hint("--gpu 0 runs the program without one; METE_SIM=1xH200 simulates one");
  }
  if (!request.devices.empty()) {
    const Result<std::vector<Card>> picked = pick_devices(request, cards);
    if (!picked) return picked.error();
    const auto number = static_cast<std::uint32_t>(picked->size());
    const GpuRequest gpu = request.gpu.value_or(whole_cards(number));
    return take(gpu, *picked, picked->size());
  }
  std::vector<Card> candidates;
  for (const Card& card : cards)
    if (!request.gpu_type || to_lower(card.type) == to_lower(*request.gpu_type))
      candidates.push_back(card);
  if (candidates.empty()) {
    return Error::infeasible("there is no card of type " + quote(*request.gpu_type) + " here")
        .with_evidence("cards here: " + list_types(cards));
  }
  const CardCount& count = request.gpu->cards;
  if (count.kind == Kind::kAll) return take(*request.gpu, candidates, candidates.size());
  return take(*request.gpu, candidates, count.kind == Kind::kNumber ? count.number : 1);
}

}  // namespace mete::core
