// SPDX-License-Identifier: Apache-2.0
// The cards of this machine, for a verb that has no daemon to ask. NVML is opened in a helper
// process: it leaves descriptors behind, and a wedged driver must not wedge us.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/request/resolve.h"

namespace mete::cli {

struct CardsRead {
  std::string driver;  // "580.159.04"; "" when the driver does not say
  std::vector<core::Card> cards;
  std::string left_out;  // why cards are missing from the list: "card 2 is lost"; "" when none is
};

// `nvml` is the library to open, by name or path. infeasible: there is no driver; busy: it did not
// answer in time.
Result<CardsRead> read_cards(const std::string& nvml);

}  // namespace mete::cli
