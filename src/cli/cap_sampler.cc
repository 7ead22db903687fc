// SPDX-License-Identifier: Apache-2.0
// See cap_sampler.h. When to sample is launch/sampler_loop; what the cards say is node/sampler;
// what that means for the grant is node/reconcile.
#include "cli/cap_sampler.h"

#include <unistd.h>

#include <memory>
#include <set>

#include "launch/process_tree.h"
#include "launch/sampler_loop.h"
#include "node/nvml_driver.h"
#include "node/reconcile.h"
#include "node/sampler.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr seam::Milliseconds kLimit{1000};

}  // namespace

Result<launch::HelperProcess> start_sampler(abi::Grant& grant, const std::string& path,
                                            const std::string& nvml) {
  const pid_t launcher = getpid();
  return launch::HelperProcess::start("mete-sampler", [&](launch::HelperProcess::Pipes pipes) {
    seam::Clock& clock = seam::system_clock();
    node::Reconciler reconciler(grant, path);
    Result<std::unique_ptr<node::NvmlDriver>> driver = node::NvmlDriver::open(nvml, clock);
    if (!driver) return;
    const launch::Outsiders outsiders{{getpid()}, ""};
    launch::run_sampler_loop(pipes.alive, [&] {
      reconciler.before_sample();
      const Result<node::Sample> sample = node::take_sample(**driver, clock, kLimit);
      if (!sample) return;
      const std::vector<pid_t> job = launch::descendants(launcher, outsiders);
      (void)reconciler.apply(*sample,
                             {job.begin(), job.end()});  // what escaped stands in the grant
    });
  });
}

}  // namespace mete::cli
