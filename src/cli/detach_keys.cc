// SPDX-License-Identifier: Apache-2.0
#include "cli/detach_keys.h"

#include <utility>

namespace mete::cli {

std::string DetachKeys::typed(std::string_view bytes) {
  std::string out;
  for (const char key : bytes) {
    if (detached_) break;
    if (key == kKey && held_) {
      detached_ = true;
      held_ = false;
    } else if (key == kKey) {
      held_ = true;
    } else {
      out += flush();
      out += key;
    }
  }
  return out;
}

std::string DetachKeys::flush() {
  return std::exchange(held_, false) ? std::string(1, kKey) : std::string();
}

}  // namespace mete::cli
