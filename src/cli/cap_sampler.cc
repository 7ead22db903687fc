// SPDX-License-Identifier: Apache-2.0
// See cap_sampler.h. When to sample is launch/sampler_loop; what the cards say is node/sampler;
// here the two meet the grant file.
#include "cli/cap_sampler.h"

#include <algorithm>
#include <memory>

#include "launch/sampler_loop.h"
#include "node/nvml_driver.h"
#include "node/sampler.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr seam::Milliseconds kLimit{1000};

void publish(abi::Grant& grant, const node::Sample& sample) {
  for (std::uint32_t c = 0; c < grant.header.card_count && c < abi::kMaxCards; ++c) {
    abi::GrantCard& to = grant.header.cards[c];
    for (const node::CardSample& card : sample.cards) {
      if (!card.uuid_bytes || !card.free) continue;
      if (!std::equal(card.uuid_bytes->begin(), card.uuid_bytes->end(), to.uuid)) continue;
      to.free_bytes.store(card.free->count());
      to.published_ns.store(static_cast<std::uint64_t>(sample.at.count()));
    }
  }
}

}  // namespace

Result<launch::HelperProcess> start_sampler(abi::Grant& grant, const std::string& nvml) {
  return launch::HelperProcess::start("mete-sampler", [&](launch::HelperProcess::Pipes pipes) {
    seam::Clock& clock = seam::system_clock();
    Result<std::unique_ptr<node::NvmlDriver>> driver = node::NvmlDriver::open(nvml, clock);
    if (!driver) return;
    launch::run_sampler_loop(pipes.alive, [&] {
      const Result<node::Sample> sample = node::take_sample(**driver, clock, kLimit);
      if (sample) publish(grant, *sample);
    });
  });
}

}  // namespace mete::cli
