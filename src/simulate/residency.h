// SPDX-License-Identifier: Apache-2.0
// Requests arrive for models of which not all fit on a card: who waits how long under the policy of
// core/service/residency.h. A swap takes as long as the larger of what leaves and what comes takes
// to be copied; a request that is paused meanwhile waits too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace mete::simulate {

struct SimulatedModel {
  std::string name;
  std::vector<std::string> aliases = {};  // further values of "model" that mean it
  Bytes bytes;
  std::uint32_t concurrency = 16;
  std::int32_t priority = 0;
  bool always = false;
  std::int64_t max_wait_ms = 30'000;
};

struct ModelRequest {
  std::int64_t at_us = 0;
  std::size_t model = 0;
  std::int64_t answer_us = 0;
};

// The columns t_s, model and answer_s; sorted by time. invalid: a model that there is not (the
// nearest is named), a time that is none.
Result<std::vector<ModelRequest>> parse_model_requests(std::string_view text,
                                                       const std::string& path,
                                                       const std::vector<SimulatedModel>& models);

struct ResidencyFigures {
  std::uint64_t requests = 0;
  std::uint64_t swaps = 0;  // a model woke, and another had to leave for it
  double mean_wait_s = 0;
  double p99_wait_s = 0;
  double max_wait_s = 0;
};

// `swap_rate`: bytes a second. Everything is asleep at first, but for models that always stay.
// invalid: models that always stay do not fit together, or one model does not fit at all.
Result<ResidencyFigures> simulate_residency(const std::vector<SimulatedModel>& models, Bytes room,
                                            Bytes swap_rate,
                                            const std::vector<ModelRequest>& requests);

}  // namespace mete::simulate
