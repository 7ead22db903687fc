// SPDX-License-Identifier: Apache-2.0
// Figures as pictures of one row: which job has how much of a card and uses how much of it, how
// full a grant is, the course of a figure. Each kind of thing has a sign of its own, so that colour
// is never needed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "top/canvas.h"
#include "wire/cards.h"
#include "wire/snapshot.h"

namespace mete::top {

// The signs of a screen: blocks and braille, or ASCII.
struct Signs {
  bool braille;
  std::string_view used;
  std::string_view granted;  // and not used
  std::string_view foreign;
  std::string_view over;  // held by a job beyond its grant
  std::string_view free;
  std::string_view line;
  std::string_view mark;    // of the selected row
  std::string_view branch;  // of a tree
  std::string_view last_branch;
  std::string_view stem;  // beside the rows below a branch
  std::string_view up;
  std::string_view down;
  std::string_view dot;  // between texts
  std::string_view degree;
};
const Signs& signs(bool unicode);

// A card: each job's grant in turn, used and unused, and what the job holds beyond it; memory used
// outside mete at the right end. However small, each of them has a cell.
void draw_card_bar(Canvas& canvas, At where, std::size_t width, const wire::CardView& card,
                   const Signs& signs);

// The used part of a grant. If that is unknown, all of it is drawn as unused.
void draw_grant_bar(Canvas& canvas, At where, std::size_t width, std::optional<Bytes> used,
                    Bytes grant, Colour colour, const Signs& signs);

// The last steps of a series, the newest at the right. Unknown is blank, zero is not.
void draw_history(Canvas& canvas, At where, std::size_t width, const wire::Series& series,
                  std::uint32_t most, Colour colour, const Signs& signs);

}  // namespace mete::top
