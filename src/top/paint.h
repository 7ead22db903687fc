// SPDX-License-Identifier: Apache-2.0
// A canvas as the bytes for a terminal. Pure: the current and the wanted screen in, bytes out; only
// cells that differ are sent. Only ECMA-48 that every terminal since the VT100 supports, so no
// terminal database is needed.
#pragma once

#include <optional>
#include <string>

#include "top/canvas.h"

namespace mete::top {

enum class Depth { kNone, k16, k256 };

// "\033[0;1;38;5;74m": all of a style, whatever was before.
std::string escape_of(const Style& style, Depth depth);

// From the current screen to the wanted one. nullopt, or one of another size: draws everything.
std::string paint(const std::optional<Canvas>& before, const Canvas& after, Depth depth);

// paint() as lines that can be printed anywhere: the cursor is not moved.
std::string paint_lines(const Canvas& canvas, Depth depth);

}  // namespace mete::top
