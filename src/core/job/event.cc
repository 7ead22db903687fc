// SPDX-License-Identifier: Apache-2.0
#include "core/job/event.h"

#include <array>

namespace mete::core {

std::string_view type_of(const Happened& what) {
  static constexpr std::array<std::string_view, std::variant_size_v<Happened>> kTypes = {
      "job.submitted", "job.granted", "job.started", "job.stopping",
      "job.ended",     "card.lost",   "card.back"};
  return kTypes[what.index()];
}

}  // namespace mete::core
