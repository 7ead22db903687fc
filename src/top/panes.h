// SPDX-License-Identifier: Apache-2.0
// The parts of a screen, each drawn into its place. Pure.
#pragma once

#include <string>
#include <vector>

#include "top/bars.h"
#include "top/canvas.h"
#include "top/view.h"

namespace mete::top {

// ---- cards (cards_pane.cc)
void draw_cards(Canvas& canvas, const Scene& scene, const View& view, const Geometry& geometry);
// The shortest steps that are known of a card or job; nullptr: none.
const wire::Series* utilisation_of(const wire::Snapshot& snapshot, const std::string& uuid);
const wire::Series* used_of(const wire::Snapshot& snapshot, const std::string& uuid);
const wire::Series* utilisation_of(const wire::Snapshot& snapshot, core::JobId job);
const wire::Series* used_of(const wire::Snapshot& snapshot, core::JobId job);

// ---- jobs (list_pane.cc)
void draw_list(Canvas& canvas, const Scene& scene, const View& view, const Geometry& geometry,
               const std::vector<Row>& rows);
// The order that a click on the titles means; nullopt: none is there.
std::optional<Sort> sort_at(const Scene& scene, const View& view, Size size, std::size_t column);
// The text at the end of a row: the command; the forecast of its start and why it waits; where its
// bytes are. It is written for this width, but not cut to it.
std::string last_words(const Row& row, WallTime now, std::size_t width);

// ---- pages (pages.cc): as many rows as they need
Canvas help_page(const Scene& scene, std::size_t columns);
Canvas detail_page(const Scene& scene, const Row& row, std::size_t columns);
// Text over the middle of the screen.
void draw_question(Canvas& canvas, const Deed& deed, const Signs& signs);

// The colour of a percentage.
Colour colour_of_load(unsigned percent);
Colour colour_of_state(core::JobState state);

}  // namespace mete::top
