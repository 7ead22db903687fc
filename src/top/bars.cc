// SPDX-License-Identifier: Apache-2.0
// See bars.h.
#include "top/bars.h"

#include <algorithm>
#include <array>
#include <string>

namespace mete::top {

namespace {

constexpr Signs kUnicode{true, "█",  "░", "▚", "▓", "·", "─", "▸",
                         "├─", "└─", "│", "▲", "▼", "·", "°"};
constexpr Signs kAscii{false, "#",  "-", "x", "!", ".", "-", ">",
                       "|-",  "`-", "|", "^", "v", "-", " "};

// The cells out of `cells` for `part` of `whole`, rounded to the nearest; a part above zero has at
// least one.
std::size_t share(std::size_t cells, Bytes part, Bytes whole) {
  if (part.is_zero() || whole.is_zero()) return 0;
  const std::optional<Bytes> twice = part.checked_scale(2 * cells, whole.count());
  const std::size_t nearest = twice ? (twice->count() + 1) / 2 : cells;
  return std::clamp<std::size_t>(nearest, 1, cells);
}

void draw_run(Canvas& canvas, At& where, std::size_t cells, std::string_view sign, Colour colour) {
  for (std::size_t i = 0; i < cells; ++i, ++where.column) canvas.set(where, sign, {colour});
}

// 0: unknown; 1: zero; up to `levels`.
std::size_t level_of(const std::optional<std::uint32_t>& value, std::uint32_t most,
                     std::size_t levels) {
  if (!value) return 0;
  if (*value == 0 || most == 0) return 1;
  const std::uint64_t steps = levels - 1;
  return 1 + std::min<std::uint64_t>(steps, (*value * steps + most - 1) / most);
}

// Two columns of up to four dots.
std::string braille(std::size_t left, std::size_t right) {
  constexpr std::array<unsigned, 5> kLeft{0, 0x40, 0x44, 0x46, 0x47};
  constexpr std::array<unsigned, 5> kRight{0, 0x80, 0xa0, 0xb0, 0xb8};
  const unsigned dots = kLeft[left] | kRight[right];
  if (dots == 0) return " ";
  return {'\xe2', static_cast<char>(0xa0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3f))};
}

}  // namespace

const Signs& signs(bool unicode) { return unicode ? kUnicode : kAscii; }

void draw_card_bar(Canvas& canvas, At where, std::size_t width, const wire::CardView& card,
                   const Signs& signs) {
  const Bytes total = card.total.value_or(card.capacity.value_or(Bytes()));
  const At begin = where;
  draw_run(canvas, where, width, signs.free, Colour::kFaint);
  std::size_t left = width;
  const std::size_t outside = share(width, card.foreign.value_or(Bytes()), total);
  At right{begin.row, begin.column + width - outside};
  draw_run(canvas, right, outside, signs.foreign, Colour::kForeign);
  left -= outside;
  where = begin;
  bool odd = false;
  for (const wire::CardView::JobShare& job : card.jobs) {
    const std::size_t cells = std::min(left, share(width, job.bytes, total));
    draw_grant_bar(canvas, where, cells, job.used, job.bytes, odd ? Colour::kOther : Colour::kOne,
                   signs);
    where.column += cells;
    left -= cells;
    const std::size_t over = std::min(left, share(width, job.over, total));
    draw_run(canvas, where, over, signs.over, Colour::kHot);
    left -= over;
    odd = !odd;
  }
}

void draw_grant_bar(Canvas& canvas, At where, std::size_t width, std::optional<Bytes> used,
                    Bytes grant, Colour colour, const Signs& signs) {
  std::size_t full = share(width, std::min(used.value_or(Bytes()), grant), grant);
  // A bar that is not full does not look full, if there is room to show that.
  if (full == width && used && *used < grant && width > 1) --full;
  draw_run(canvas, where, full, signs.used, colour);
  draw_run(canvas, where, width - full, signs.granted, colour);
}

void draw_history(Canvas& canvas, At where, std::size_t width, const wire::Series& series,
                  std::uint32_t most, Colour colour, const Signs& signs) {
  constexpr std::string_view kRamp = " _.-=+*#";
  const std::size_t each = signs.braille ? 2 : 1;
  const std::size_t levels = signs.braille ? 4 : kRamp.size() - 1;
  const std::vector<std::optional<std::uint32_t>>& values = series.values;
  const auto level_at = [&](std::size_t from_the_end) -> std::size_t {
    if (from_the_end >= values.size()) return 0;
    return level_of(values[values.size() - 1 - from_the_end], most, levels);
  };
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t newest = (width - 1 - i) * each;
    const std::string sign = signs.braille ? braille(level_at(newest + 1), level_at(newest))
                                           : std::string(1, kRamp[level_at(newest)]);
    canvas.set({where.row, where.column + i}, sign, {colour});
  }
}

}  // namespace mete::top
