// SPDX-License-Identifier: Apache-2.0
// What `mete cap` is asked for, as a value: words in, a plan out. Making a plan changes nothing; it
// may read the cards.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/cards_reader.h"
#include "cli/options.h"
#include "core/request/resolve.h"
#include "launch/parts.h"

namespace mete::cli {

struct CapPlan {
  core::Request request;
  std::vector<core::CardShare> shares;  // empty: no GPU
  std::vector<MachineCard> cards;       // for each share, its card
  std::string driver;
  launch::Parts parts;     // empty without a GPU
  bool simulated = false;  // METE_SIM
  bool visible_by_index = false;
  std::vector<std::pair<std::string, std::string>> extra_environment;
  std::string folder;
  std::vector<std::string> command;
};

// The options of `mete cap`, those that are not built included.
std::span<const OptionSpec> cap_options();

Result<CapPlan> make_cap_plan(const Parsed& parsed);

// "8 GiB (8589934592 bytes) on card 0 (NVIDIA H200)", "no GPU".
std::string describe(const CapPlan& plan);
// The document mete.cap/1.
std::string to_json(const CapPlan& plan);

}  // namespace mete::cli
