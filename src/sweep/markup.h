// SPDX-License-Identifier: Apache-2.0
// Text for the report of a sweep: escaped for HTML, SVG and JSON inside a script, numbers as a
// reader wants them. Names, values and messages come from other users: control characters and
// marks that change the direction of writing are shown as \xNN, and no text ends its element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace mete::sweep {

// & < > " ' escaped; also for attributes.
std::string html_text(std::string_view text);
// A JSON string, with quotes, that may stand inside <script>.
std::string script_text(std::string_view text);
// Cut to `columns` of a terminal, with "…" where something is missing. Not escaped yet.
std::string clipped(std::string_view text, std::size_t columns);

// "0.0123457", "1.2e-7", "120000", "NaN", "inf": at most `digits` significant digits.
std::string number_text(double value, int digits = 6);
std::string count_text(std::uint64_t count);  // "12,345"
std::string moment_text(WallTime time);       // "2026-11-15 05:50:43 UTC"
// For coordinates: one decimal, none if it is 0.
std::string place_text(double value);
void append_place(std::string& out, double value);

// A command that a POSIX shell reads as these words; a word with control characters is written as
// $'…', which bash and zsh read.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace mete::sweep
