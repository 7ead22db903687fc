// SPDX-License-Identifier: Apache-2.0
// What keys do. Pure: a key changes the view, or asks for a deed. A deed that ends a job or a
// process is returned only after the user has confirmed it.
#pragma once

#include <optional>

#include "top/keys.h"
#include "top/view.h"

namespace mete::top {

struct Outcome {
  bool quit = false;
  bool redraw = false;            // draw everything anew
  std::optional<Deed> deed = {};  // to be done now
};

Outcome act(View& view, const Key& key, const Scene& scene, Size size);

}  // namespace mete::top
