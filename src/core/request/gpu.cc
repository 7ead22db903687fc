// SPDX-License-Identifier: Apache-2.0
// See gpu.h. One function per rule of the grammar; each error says what is wrong with the text and
// what to write instead. Nothing is guessed: text that could mean two things is refused. The other
// way round, to_string() writes the canonical text, and with_size() adds sizes in the unit in which
// users see them.
#include "core/request/gpu.h"

#include "base/text.h"

namespace mete::core {

namespace {

using base::Milli;
using base::parse_bytes;
using base::parse_milli;
using base::quote;

constexpr std::string_view kGrammarHint =
    "write a share of a card (0.4, 40%), a size (8G, 8GB), whole cards (1, 2, all), a share on "
    "several cards "
    "(4x40%, 2x8G, allx40%), a growing share (8G..20G, grow) or 0 for no GPU";

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNumberCharacters = "0123456789.";

Error refuse(std::string_view text, std::string_view why) {
  return Error::invalid("--gpu " + quote(text) + ": " + std::string(why))
      .with_hint(std::string(kGrammarHint));
}

bool only(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

Result<Size> parse_size(std::string_view whole, std::string_view text) {
  Result<Bytes> bytes = parse_bytes(text);
  if (!bytes) {
    return Error::invalid("--gpu " + quote(whole) + ": " + bytes.error().message)
        .with_hint(bytes.error().hint);
  }
  if (*bytes < kGranule) return refuse(whole, "a size must be at least 2 MiB");
  return Size{*bytes};
}

// "8G..20G", "8G..all"; dots is the position of "..".
Result<Memory> parse_growing(std::string_view whole, std::string_view text, std::size_t dots) {
  const Result<Size> from = parse_size(whole, text.substr(0, dots));
  if (!from) return from.error();
  const std::string_view upper = text.substr(dots + 2);
  if (upper == "all") return Memory(Growing{from->bytes, std::nullopt});
  const Result<Size> to = parse_size(whole, upper);
  if (!to) return to.error();
  if (to->bytes <= from->bytes) {
    return Error::invalid("--gpu " + quote(whole) +
                          ": the second size must be larger than the first")
        .with_hint("write the reserved size first, then how far it may grow: 8G..20G");
  }
  return Memory(Growing{from->bytes, to->bytes});
}

// "40%", "12.5%": one decimal at most, so that it is a whole number of thousandths.
Result<Memory> parse_percent(std::string_view whole, std::string_view number) {
  const Result<Milli> percent = parse_milli(number);
  if (!percent) return refuse(whole, "a percentage is a number from 1% to 100%");
  if (percent->thousandths % 100 != 0)
    return refuse(whole, "a percentage has at most one decimal (thousandths of a card)");
  if (percent->whole > 100 || (percent->whole == 100 && percent->thousandths != 0)) {
    return Error::invalid("--gpu " + quote(whole) +
                          ": a percentage goes from 1% to 100% of one card")
        .with_hint("write 2 for two whole cards, or 2x60% for a share of each of two");
  }
  if (percent->whole == 0) return refuse(whole, "a percentage goes from 1% to 100% of one card");
  return Memory(
      Fraction{static_cast<std::uint32_t>(percent->whole * 10 + percent->thousandths / 100)});
}

// "0.4": more than 0, less than 1.
Result<Memory> parse_fraction(std::string_view whole, std::string_view number) {
  const Result<Milli> value = parse_milli(number);
  if (!value) return refuse(whole, value.error().message);
  if (value->whole >= 1 && value->thousandths != 0) {
    return Error::invalid("--gpu " + quote(whole) +
                          ": a share above 1 must be a whole number of cards")
        .with_hint("write " + std::to_string(value->whole) +
                   " for whole cards, 2x75% for a share of each of two, or a size such as 8G");
  }
  if (value->whole >= 1) {
    return Error::invalid("--gpu " + quote(whole) + ": whole cards are written without a point")
        .with_hint("write " + std::to_string(value->whole) +
                   " for whole cards for oneself, or 100% for all the memory of a card, shared");
  }
  if (value->thousandths == 0) return refuse(whole, "a share must be more than 0");
  return Memory(Fraction{value->thousandths});
}

Result<Memory> parse_share(std::string_view whole, std::string_view text) {
  if (text.empty()) return refuse(whole, "the share is missing");
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos)
    return parse_growing(whole, text, dots);
  if (text.back() == '%') return parse_percent(whole, text.substr(0, text.size() - 1));
  if (only(text, kDigits)) {
    return Error::invalid("--gpu " + quote(whole) +
                          ": after x comes a share of a card, not a number of cards")
        .with_hint("write 2 for two whole cards, or 2x100% for all the memory of each, shared");
  }
  if (only(text, kNumberCharacters)) return parse_fraction(whole, text);
  const Result<Size> size = parse_size(whole, text);
  if (!size) return size.error();
  return Memory(*size);
}

Result<CardCount> parse_count(std::string_view whole, std::string_view text) {
  if (text == "all") return CardCount{CardCount::Kind::kAll, 0};
  if (text.empty()) return refuse(whole, "the number of cards before x is missing");
  if (!only(text, kDigits)) {
    return Error::invalid("--gpu " + quote(whole) + ": " + quote(text) +
                          " is not a number of cards")
        .with_hint("write the number of cards first: 2x8G, 4x40%, allx40%");
  }
  const Result<std::uint64_t> number = base::parse_uint(text);
  if (!number || *number > kMaxCards)
    return refuse(whole, "more than " + std::to_string(kMaxCards) + " cards cannot be asked for");
  if (*number == 0) {
    return Error::invalid("--gpu " + quote(whole) + ": the number of cards must be at least 1")
        .with_hint("write 0 alone for no GPU");
  }
  return CardCount{CardCount::Kind::kNumber, static_cast<std::uint32_t>(*number)};
}

std::string print_milli(std::uint32_t milli) {
  if (milli % 10 == 0) return std::to_string(milli / 10) + "%";
  std::string text = "0.";
  for (std::uint32_t place = 100; milli != 0; place /= 10) {
    text += static_cast<char>('0' + milli / place);
    milli %= place;
  }
  return text;
}

struct PrintMemory {
  std::string operator()(const WholeCard&) const { return ""; }
  std::string operator()(const Fraction& share) const { return print_milli(share.milli); }
  std::string operator()(const Size& share) const { return to_exact_string(share.bytes); }
  std::string operator()(const Growing& share) const {
    return to_exact_string(share.from) + ".." + (share.to ? to_exact_string(*share.to) : "all");
  }
};

// "8 GiB" is also written "8G" and "8GiB".
bool is_shown_as(std::string_view written, Bytes bytes) {
  std::string shown = base::to_lower(to_string(bytes));
  std::erase(shown, ' ');
  const std::string lower = base::to_lower(written);
  return lower == shown || lower + "ib" == shown;
}

// The sizes as they are shown, or "" if they are written that way, or there are none.
std::string sizes_of(const GpuRequest& request) {
  std::string_view share = request.written;
  if (const std::size_t x = share.find_first_of("xX"); x != std::string_view::npos)
    share = share.substr(x + 1);
  if (const auto* size = std::get_if<Size>(&request.memory))
    return is_shown_as(share, size->bytes) ? "" : to_string(size->bytes);
  const auto* growing = std::get_if<Growing>(&request.memory);
  const std::size_t dots = share.find("..");
  if (growing == nullptr || dots == std::string_view::npos) return "";
  const bool plain = is_shown_as(share.substr(0, dots), growing->from) &&
                     (!growing->to || is_shown_as(share.substr(dots + 2), *growing->to));
  return plain ? ""
               : to_string(growing->from) + ".." + (growing->to ? to_string(*growing->to) : "all");
}

Result<GpuRequest> parse_values(std::string_view text) {
  if (text.empty()) return refuse(text, "it is empty");
  if (text.front() == '-') return refuse(text, "it is negative");
  if (text == "0") return no_gpu();
  if (text == "all") return GpuRequest{{CardCount::Kind::kAll, 0}, WholeCard{}};
  if (text == "grow")
    return GpuRequest{{CardCount::Kind::kOne, 0}, Growing{Bytes::from_gib(1), std::nullopt}};
  if (const std::size_t x = text.find_first_of("xX"); x != std::string_view::npos) {
    const Result<CardCount> count = parse_count(text, text.substr(0, x));
    if (!count) return count.error();
    const Result<Memory> memory = parse_share(text, text.substr(x + 1));
    if (!memory) return memory.error();
    return GpuRequest{*count, *memory};
  }
  if (only(text, kDigits)) {
    const Result<CardCount> count = parse_count(text, text);
    if (!count) return count.error();
    return GpuRequest{*count, WholeCard{}};
  }
  const Result<Memory> memory = parse_share(text, text);
  if (!memory) return memory.error();
  return GpuRequest{{CardCount::Kind::kOne, 0}, *memory};
}

}  // namespace

GpuRequest no_gpu() { return {CardCount{}, WholeCard{}}; }

GpuRequest whole_cards(std::uint32_t number) {
  METE_ASSERT(number >= 1 && number <= kMaxCards);
  return {CardCount{CardCount::Kind::kNumber, number}, WholeCard{}};
}

Result<GpuRequest> parse_gpu(std::string_view text) {
  Result<GpuRequest> request = parse_values(text);
  // Zeros can make the text arbitrarily long.
  constexpr std::size_t kMost = 64;
  if (request && text.size() <= kMost) request->written = text;
  return request;
}

std::string as_written(const GpuRequest& request) {
  return request.written.empty() ? to_string(request) : request.written;
}

std::string with_size(const GpuRequest& request) {
  const std::string sizes = request.written.empty() ? "" : sizes_of(request);
  if (sizes.empty()) return as_written(request);
  const std::string count = request.cards.kind == CardCount::Kind::kNumber
                                ? std::to_string(request.cards.number) + "x "
                            : request.cards.kind == CardCount::Kind::kAll ? "all x "
                                                                          : "";
  return request.written + " = " + count + sizes;
}

std::string to_string(const GpuRequest& request) {
  std::string share = std::visit(PrintMemory{}, request.memory);
  const std::string_view times = share.empty() ? "" : "x";
  switch (request.cards.kind) {
    case CardCount::Kind::kNone:
      return "0";
    case CardCount::Kind::kOne:
      return share;
    case CardCount::Kind::kNumber:
      return std::to_string(request.cards.number).append(times).append(share);
    case CardCount::Kind::kAll:
      return std::string("all").append(times).append(share);
  }
  METE_ASSERT(false && "unknown card count");
}

}  // namespace mete::core
