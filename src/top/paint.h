// SPDX-License-Identifier: Apache-2.0
// A canvas as the bytes that a terminal draws it from. Pure: what is on the screen and what shall
// be there in, bytes out; only cells that differ are sent. Nothing but ECMA-48 that every terminal
// since the VT100 obeys, so no description of terminals is needed.
#pragma once

#include <optional>
#include <string>

#include "top/canvas.h"

namespace mete::top {

enum class Depth { kNone, k16, k256 };

// "\033[0;1;38;5;74m": all of a style, whatever was before.
std::string escape_of(const Style& style, Depth depth);

// From what is on the screen to what shall be there. nullopt, or one of another size: draws all.
std::string paint(const std::optional<Canvas>& before, const Canvas& after, Depth depth);

// The same as lines that one after the other can be printed anywhere: no cursor is moved.
std::string paint_lines(const Canvas& canvas, Depth depth);

}  // namespace mete::top
