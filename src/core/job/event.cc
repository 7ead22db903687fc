// SPDX-License-Identifier: Apache-2.0
#include "core/job/event.h"

#include <array>

namespace mete::core {

std::string_view type_of(const Happened& what) {
  static constexpr std::array<std::string_view, std::variant_size_v<Happened>> kTypes = {
      "job.submitted", "job.granted",   "job.started",     "job.stopping",   "job.ended",
      "job.requeued",  "job.ungranted", "job.held",        "job.released",   "job.priority",
      "job.forecast",  "card.lost",     "card.back",       "card.drained",   "card.undrained",
      "quota.set",     "card.reserved", "card.unreserved", "machine.booted", "job.parked",
      "job.unparked",  "job.grown",     "escape.seen",     "job.idle",       "job.active"};
  return kTypes[what.index()];
}

}  // namespace mete::core
