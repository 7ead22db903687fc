// SPDX-License-Identifier: Apache-2.0
// Figures as pictures of one row: who has what of a card and uses how much of it, how full a grant
// is, how a figure went. Each kind of thing has a sign of its own, so that colour is never needed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "top/canvas.h"
#include "wire/cards.h"
#include "wire/snapshot.h"

namespace mete::top {

// The signs of a screen: blocks and braille, or what ASCII has.
struct Signs {
  bool braille;
  std::string_view used;
  std::string_view granted;  // and not used
  std::string_view foreign;
  std::string_view over;  // held by a job beyond its grant
  std::string_view free;
  std::string_view line;
  std::string_view mark;    // of the row that is selected
  std::string_view branch;  // of a tree
  std::string_view last_branch;
  std::string_view stem;  // beside what is below a branch
  std::string_view up;
  std::string_view down;
  std::string_view dot;  // between words
  std::string_view degree;
};
const Signs& signs(bool unicode);

// A card: each job's grant in turn, used and not, and what the job holds beyond it; what is used
// outside mete at the right end. However small, each of them has a cell.
void draw_card_bar(Canvas& canvas, At where, std::size_t width, const wire::CardView& card,
                   const Signs& signs);

// What is used of a grant. Nothing is known of it: all of it is drawn as not used.
void draw_grant_bar(Canvas& canvas, At where, std::size_t width, std::optional<Bytes> used,
                    Bytes grant, Colour colour, const Signs& signs);

// The last steps of a series, the newest at the right. What is not known is blank, zero is not.
void draw_history(Canvas& canvas, At where, std::size_t width, const wire::Series& series,
                  std::uint32_t most, Colour colour, const Signs& signs);

}  // namespace mete::top
