// SPDX-License-Identifier: Apache-2.0
// What keys do. Pure: a key changes the view, or asks for something to be done, which is done only
// after somebody has said yes.
#pragma once

#include <optional>

#include "top/keys.h"
#include "top/view.h"

namespace mete::top {

struct Outcome {
  bool quit = false;
  bool redraw = false;            // everything anew
  std::optional<Deed> deed = {};  // said yes to
};

Outcome act(View& view, const Key& key, const Scene& scene, Size size);

}  // namespace mete::top
