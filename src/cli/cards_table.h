// SPDX-License-Identifier: Apache-2.0
// Cards for people. Pure: a document in, text out. On a narrow terminal the jobs with their users
// stay; temperature, load and total size are left out first.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/table.h"
#include "wire/cards.h"

namespace mete::cli {

inline constexpr std::array kCardColumns{
    Column{"CARD", Align::kRight},
    Column{"NAME", Align::kLeft, 28, false, 4},
    Column{"STATE"},
    Column{"TOTAL", Align::kRight, 0, false, 0, 1},
    Column{"GRANTED", Align::kRight},
    Column{"USED", Align::kRight},
    Column{"GRANTABLE", Align::kRight},
    Column{"UTIL", Align::kRight, 0, false, 0, 2},
    Column{"TEMP", Align::kRight, 0, false, 0, 3},
    Column{"JOBS", Align::kLeft, 0, false, 16},
    Column{"NOTE", Align::kLeft, 0, false, 12},
    Column{"TYPE", Align::kLeft, 0, true},
    Column{"UUID", Align::kLeft, 0, true},
    Column{"CAPACITY", Align::kRight, 0, true},
    Column{"FOREIGN", Align::kRight, 0, true},
    Column{"POWER", Align::kRight, 0, true},
    Column{"NUMA", Align::kRight, 0, true},
    Column{"LINKS", Align::kLeft, 0, true},
};

// Of --columns; nullopt: as usual.
using Columns = std::optional<std::vector<std::size_t>>;

std::string cards_table(const wire::CardsDocument& document, const Columns& columns,
                        std::optional<std::size_t> width);

// One card on a line, to be pasted into a chat. What is not known is "?" or left out.
//   [0] NVIDIA H200 | 61°C, 96 % | 65.1 / 139.8 GiB | alice/train#12(55.9G of 55.9G)
// Processes outside mete are user:pid(bytes). With columns these and no others.
std::string card_line(const wire::CardView& card, const Columns& columns, WallTime now);

// What helps with what the driver says; "" when we do not know. Also for `mete doctor`. `sim` is
// METE_SIM: nullptr or "" for the real driver.
std::string driver_advice(std::string_view trouble, const char* sim);

}  // namespace mete::cli
