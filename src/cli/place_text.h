// SPDX-License-Identifier: Apache-2.0
// The output of `mete place`: a decision in, text or the document mete.place/1 out. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/change.h"
#include "core/cluster/reject.h"

namespace mete::cli {

struct PlaceReport {
  std::string policy;
  std::string request;     // "--gpu 2x30G --cpus 8"
  std::size_t copies = 1;  // requested
  // Without room for all: how many copies fit now, and in an empty pool.
  std::size_t fit_now = 0;
  std::size_t fit_empty = 0;
  enum class Decision { kPlaced, kWait, kNever } decision = Decision::kNever;
  struct Placed {
    std::string node;
    std::vector<std::uint32_t> cards;
    std::string card_type;
    std::int32_t share = 0;        // thousandths of each card
    std::int64_t share_bytes = 0;  // per card; 0: the size of the card is unknown
  };
  std::vector<Placed> placed;  // one per copy; empty: there is no room
  struct Moved {
    std::string job;  // its name, or its place in the file
    Placed from;
    Placed to;
  };
  std::vector<Moved> moves;  // needed first, in this order
  core::cluster::Rejection nodes;
  std::vector<core::cluster::Change> changes;  // that would help, without room
  struct OnNode {
    std::string name;
    core::cluster::Cause cause{};
  };
  std::vector<OnNode> on;  // with --explain
};

std::string place_json(const PlaceReport& report, const std::string& at);
std::string place_text(const PlaceReport& report);
// "too little CPU left".
std::string in_words(core::cluster::Cause cause);

}  // namespace mete::cli
