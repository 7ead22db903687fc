// SPDX-License-Identifier: Apache-2.0
// See paint.h.
#include "top/paint.h"

#include <array>
#include <cstdint>

namespace mete::top {

namespace {

// For each Colour, in its order: in 16 colours, in 256; 0: the terminal's own.
struct Codes {
  std::uint8_t of16;
  std::uint8_t of256;
};
constexpr std::array<Codes, 10> kCodes{{
    {0, 0},     // text
    {90, 243},  // faint
    {36, 109},  // title
    {36, 80},   // accent
    {32, 108},  // good
    {33, 179},  // warn
    {31, 167},  // hot
    {34, 74},   // one
    {35, 140},  // other
    {33, 173},  // foreign
}};

std::string move_to(At where) {
  return "\033[" + std::to_string(where.row + 1) + ";" + std::to_string(where.column + 1) + "H";
}

// Terminals disagree about the width of some characters: after such a character the cursor is
// positioned explicitly.
bool is_plain(const Cell& cell) {
  return cell.glyph.size() == 1 && static_cast<unsigned char>(cell.glyph[0]) < 0x80;
}
bool may_surprise(const Cell& cell) {
  // Lines, blocks and braille (U+2500 to U+28FF) are ours, and one column wide everywhere.
  const bool ours = cell.glyph.size() == 3 && cell.glyph[0] == '\xe2' &&
                    static_cast<unsigned char>(cell.glyph[1]) >= 0x94 &&
                    static_cast<unsigned char>(cell.glyph[1]) <= 0xa3;
  return !is_plain(cell) && !ours;
}

}  // namespace

std::string escape_of(const Style& style, Depth depth) {
  std::string text = "\033[0";
  if (style.bold) text += ";1";
  if (style.reverse) text += ";7";
  const Codes& codes = kCodes[static_cast<std::size_t>(style.colour)];
  if (depth == Depth::k256 && codes.of256 != 0) text += ";38;5;" + std::to_string(codes.of256);
  if (depth == Depth::k16 && codes.of16 != 0) text += ";" + std::to_string(codes.of16);
  if (depth == Depth::kNone && style.colour == Colour::kTitle) text += ";1";
  return text + "m";
}

std::string paint(const std::optional<Canvas>& before, const Canvas& after, Depth depth) {
  const bool anew = !before || before->size() != after.size();
  std::string out = anew ? "\033[0m\033[2J" : "";
  std::optional<Style> style;
  for (std::size_t row = 0; row < after.size().rows; ++row) {
    bool there = false;  // the cursor is at this cell
    for (std::size_t column = 0; column < after.size().columns; ++column) {
      const At where{row, column};
      const Cell& cell = after.at(where);
      const bool same = anew ? cell == Cell{} : cell == before->at(where);
      if (same || cell.glyph.empty()) {  // the right half comes with the left
        there = false;
        continue;
      }
      if (!there) out += move_to(where);
      if (style != cell.style) out += escape_of(*(style = cell.style), depth);
      out += cell.glyph;
      there = !may_surprise(cell);
    }
  }
  if (style) out += "\033[0m";
  return out;
}

std::string paint_lines(const Canvas& canvas, Depth depth) {
  std::string out;
  for (std::size_t row = 0; row < canvas.size().rows; ++row) {
    std::size_t end = canvas.size().columns;
    while (end > 0 && canvas.at({row, end - 1}).glyph == " " &&
           !canvas.at({row, end - 1}).style.reverse)
      --end;
    Style style;
    for (std::size_t column = 0; column < end; ++column) {
      const Cell& cell = canvas.at({row, column});
      if (style != cell.style && depth != Depth::kNone) out += escape_of(cell.style, depth);
      style = cell.style;
      out += cell.glyph;
    }
    if (style != Style{} && depth != Depth::kNone) out += "\033[0m";
    out += '\n';
  }
  return out;
}

}  // namespace mete::top
