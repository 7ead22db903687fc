// SPDX-License-Identifier: Apache-2.0
// See resolve.h. check_words() finds contradictions between options; pick_devices() or pick_type()
// choose cards; option_on() computes the bytes on each, and leaves out cards that are too small.
// Cards are taken in index order, or as --devices says, so that a request always means the same
// cards.
#include "core/request/resolve.h"

#include <algorithm>

#include "base/text.h"

namespace mete::core {

namespace {

using base::quote;
using base::to_lower;
using Cards = std::span<const Card* const>;
using Kind = CardCount::Kind;

std::string name_of(const Card& card) {
  return "card " + std::to_string(card.index) + " (" + card.type + ", " + to_string(card.capacity) +
         ")";
}

std::string count_of_cards(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " card" : " cards");
}

std::string list_types(Cards cards) {
  std::vector<std::string> types;
  for (const Card* card : cards)
    if (std::find(types.begin(), types.end(), card->type) == types.end())
      types.push_back(card->type);
  return base::join(types, ", ");
}

// The bytes of a share on a card, or nullopt if the card is too small.
std::optional<CardOption> option_on(const Memory& memory, Bytes capacity, std::size_t at) {
  CardOption option{at, capacity, capacity};
  if (const auto* fraction = std::get_if<Fraction>(&memory)) {
    option.limit = capacity.checked_scale(fraction->milli, 1000)->round_down(kGranule);
    option.from = option.limit;
  } else if (const auto* size = std::get_if<Size>(&memory)) {
    option.from = option.limit = size->bytes.round_down(kGranule);
  } else if (const auto* growing = std::get_if<Growing>(&memory)) {
    option.from = growing->from.round_down(kGranule);
    option.limit = std::min(growing->to.value_or(capacity), capacity).round_down(kGranule);
  }
  if (option.from > capacity || option.from.is_zero()) return std::nullopt;
  return option;
}

Result<std::size_t> find_device(const std::string& name, Cards cards) {
  if (name.empty()) {
    return Error::invalid("--devices has an empty entry")
        .with_hint("write card numbers or UUIDs between commas: --devices 3,2");
  }
  std::vector<std::size_t> found;
  if (name.find_first_not_of("0123456789") == std::string::npos) {
    const Result<std::uint64_t> index = base::parse_uint(name);
    for (std::size_t at = 0; at < cards.size(); ++at)
      if (index && cards[at]->index == *index) found.push_back(at);
  } else if (name.starts_with("GPU-") || name.starts_with("MIG-")) {
    for (std::size_t at = 0; at < cards.size(); ++at)
      if (cards[at]->uuid.starts_with(name)) found.push_back(at);
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
    for (const Card* card : cards) numbers.push_back(std::to_string(card->index));
    return Error::infeasible("there is no card " + quote(name) + " here")
        .with_evidence("cards here: " + base::join(numbers, ", "));
  }
  return found.front();
}

// The positions of the cards that --devices names, in the order given.
Result<std::vector<std::size_t>> pick_devices(const Request& request, Cards cards) {
  std::vector<std::size_t> picked;
  for (const std::string& name : request.devices) {
    const Result<std::size_t> at = find_device(name, cards);
    if (!at) return at.error();
    const Card& card = *cards[*at];
    if (std::find(picked.begin(), picked.end(), *at) != picked.end()) {
      return Error::invalid("--devices names card " + std::to_string(card.index) + " twice")
          .with_hint("name each card once");
    }
    if (request.gpu_type && to_lower(card.type) != to_lower(*request.gpu_type)) {
      return Error::invalid("--devices and --gpu-type contradict each other: " + name_of(card) +
                            " is not of type " + quote(*request.gpu_type))
          .with_hint("leave one of the two out");
    }
    picked.push_back(*at);
  }
  return picked;
}

std::vector<std::size_t> pick_type(const std::optional<std::string>& type, Cards cards) {
  std::vector<std::size_t> picked;
  picked.reserve(cards.size());
  const std::string wanted = type ? to_lower(*type) : "";
  for (std::size_t at = 0; at < cards.size(); ++at)
    if (!type || to_lower(cards[at]->type) == wanted) picked.push_back(at);
  return picked;
}

// Options that contradict each other whatever the cards are.
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
    return Error::invalid("--gpu " + as_written(*request.gpu) +
                          " and --devices contradict each other")
        .with_hint(
            "--devices alone means those cards whole; with a share, such as --gpu 40%, that "
            "share on each");
  }
  if (count.kind == Kind::kNumber && count.number != request.devices.size()) {
    return Error::invalid("--gpu " + as_written(*request.gpu) + " asks for " +
                          count_of_cards(count.number) + ", and --devices names " +
                          std::to_string(request.devices.size()))
        .with_hint("name as many devices as cards, or write the share alone");
  }
  return {};
}

std::string cards_in_words(const GpuRequest& gpu, std::size_t wanted) {
  const bool whole = std::holds_alternative<WholeCard>(gpu.memory);
  return as_written(gpu) + (wanted > 1 && !whole ? " (" + count_of_cards(wanted) + ")" : "");
}

Error too_small(const GpuRequest& gpu, Cards cards, const std::vector<std::size_t>& among,
                std::size_t wanted, std::size_t suitable) {
  METE_ASSERT(!among.empty());
  Error error = Error::infeasible("--gpu " + cards_in_words(gpu, wanted) + " can never fit here");
  const Card& most =
      *cards[*std::max_element(among.begin(), among.end(), [cards](std::size_t a, std::size_t b) {
        return cards[a]->capacity < cards[b]->capacity;
      })];
  if (suitable == among.size()) {  // too few cards, not too small ones
    error.evidence = count_of_cards(suitable) + " can be used";
  } else {
    error.evidence = with_size(gpu) == as_written(gpu) ? "" : with_size(gpu) + "; ";
    error.evidence += "the largest card is " + name_of(most);
    if (wanted > 1)
      error.evidence += "; " + count_of_cards(suitable) + " of " + std::to_string(among.size()) +
                        (suitable == 1 ? " is" : " are") + " large enough";
  }
  if (suitable > 0) {
    GpuRequest fits{gpu.cards, gpu.memory};
    fits.cards = {Kind::kNumber, static_cast<std::uint32_t>(suitable)};
    error.hint = "--gpu " + to_string(fits) + " would fit";
  } else {
    error.hint =
        "--gpu " + to_short_size(most.capacity.round_down(Bytes::from_mib(2))) + " would fit";
  }
  return error;
}

Result<CardOptions> options_among(const GpuRequest& gpu, Cards cards,
                                  const std::vector<std::size_t>& among, std::size_t wanted) {
  CardOptions options{gpu, wanted, {}};
  options.cards.reserve(among.size());
  for (const std::size_t at : among) {
    const std::optional<CardOption> option = option_on(gpu.memory, cards[at]->capacity, at);
    if (option) options.cards.push_back(*option);
  }
  if (options.cards.size() < wanted)
    return too_small(gpu, cards, among, wanted, options.cards.size());
  return options;
}

}  // namespace

Result<CardOptions> options_for(const Request& request, Cards cards) {
  if (Result<void> r = check_words(request); !r) return std::move(r).error();
  if (request.gpu && request.gpu->cards.kind == Kind::kNone)
    return CardOptions{*request.gpu, 0, {}};
  if (cards.empty()) {
    return Error::infeasible("this machine has no usable GPU")
        .with_hint("--gpu 0 runs the program without one; METE_SIM=1xH200 simulates one");
  }
  if (!request.devices.empty()) {
    const Result<std::vector<std::size_t>> picked = pick_devices(request, cards);
    if (!picked) return picked.error();
    const auto number = static_cast<std::uint32_t>(picked->size());
    return options_among(request.gpu.value_or(whole_cards(number)), cards, *picked, number);
  }
  const std::vector<std::size_t> picked = pick_type(request.gpu_type, cards);
  if (picked.empty()) {
    return Error::infeasible("there is no card of type " + quote(*request.gpu_type) + " here")
        .with_evidence("cards here: " + list_types(cards));
  }
  const CardCount& count = request.gpu->cards;
  if (count.kind == Kind::kAll) return options_among(*request.gpu, cards, picked, picked.size());
  return options_among(*request.gpu, cards, picked, count.kind == Kind::kNumber ? count.number : 1);
}

Result<std::vector<CardShare>> resolve(const Request& request, const std::vector<Card>& cards) {
  std::vector<const Card*> pointers;
  pointers.reserve(cards.size());
  for (const Card& card : cards) pointers.push_back(&card);
  const Result<CardOptions> options = options_for(request, pointers);
  if (!options) return options.error();
  std::vector<CardShare> shares;
  for (const CardOption& option : std::span(options->cards).first(options->wanted))
    shares.push_back({cards[option.at], option.from, option.limit});
  return shares;
}

}  // namespace mete::core
