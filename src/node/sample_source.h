// SPDX-License-Identifier: Apache-2.0
// Where the runner of a job gets its readings: from the file that the daemon's helper publishes,
// and, if that is too old (no daemon, or its driver hangs), from the driver itself. Used in a
// helper process of the runner, since a call of the driver may block.
#pragma once

#include <memory>
#include <string>

#include "node/card_helper.h"
#include "node/sampler.h"

namespace mete::node {

class SampleSource {
 public:
  // A published reading older than this is not used.
  static constexpr seam::Milliseconds kStale{1500};
  // Between two readings of our own.
  static constexpr seam::Milliseconds kOwnPeriod{250};

  // `readings`: path of the readings file; "": only the driver is used.
  SampleSource(std::string readings, OpenDriver open, seam::Clock& clock)
      : readings_(std::move(readings)), open_(std::move(open)), clock_(clock) {}

  // A reading that began at `since` or later (memory freed before is not in it). busy: not yet,
  // retry in a moment; every other error is the driver's own.
  Result<Sample> next(seam::Nanoseconds since);

 private:
  Result<Sample> ask_driver();

  std::string readings_;
  OpenDriver open_;
  seam::Clock& clock_;
  std::unique_ptr<seam::Driver> driver_;
  seam::Nanoseconds asked_{seam::Nanoseconds::min() / 2};
};

}  // namespace mete::node
