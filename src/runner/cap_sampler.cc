// SPDX-License-Identifier: Apache-2.0
// See cap_sampler.h. launch/sampler_loop decides when to sample, node/sample_source reads the
// cards, and node/reconcile applies a reading to the grant.
#include "runner/cap_sampler.h"

#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "launch/process_tree.h"
#include "launch/sampler_loop.h"
#include "node/reconcile.h"
#include "node/sample_source.h"
#include "seam/clock.h"

namespace mete::runner {

namespace {

// How often to look for a published reading: the sooner it is applied, the less has changed.
constexpr int kLookPeriodMs = 50;

// Charges are noted before a reading begins, and applied when it has arrived.
class Sampling {
 public:
  Sampling(abi::Grant& grant, const std::string& path, node::SampleSource source, pid_t launcher)
      : reconciler_(grant, path), source_(std::move(source)), launcher_(launcher) {}

  void look() {
    if (!since_) {
      reconciler_.before_sample();
      since_ = seam::system_clock().monotonic();
    } else {
      reconciler_.during_sample();
    }
    const Result<node::Sample> sample = source_.next(*since_);
    if (!sample) return;
    const std::vector<pid_t> job = launch::descendants(launcher_, {{getpid()}, ""});
    (void)reconciler_.apply(*sample, {job.begin(), job.end()});  // escapes go into the grant
    since_.reset();
  }

 private:
  node::Reconciler reconciler_;
  node::SampleSource source_;
  pid_t launcher_;
  std::optional<seam::Nanoseconds> since_;
};

}  // namespace

Result<launch::HelperProcess> start_sampler(abi::Grant& grant, const std::string& path,
                                            const std::string& nvml, const std::string& readings) {
  const pid_t launcher = getpid();
  return launch::HelperProcess::start(kSamplerName, [&](launch::HelperProcess::Pipes pipes) {
    Sampling sampling(grant, path,
                      node::SampleSource(readings, node::open_nvml(nvml), seam::system_clock()),
                      launcher);
    launch::run_sampler_loop(
        pipes.alive, [&] { sampling.look(); },
        readings.empty() ? launch::kSamplePeriodMs : kLookPeriodMs);
  });
}

}  // namespace mete::runner
