// SPDX-License-Identifier: Apache-2.0
// See sample_source.h.
#include "node/sample_source.h"

#include <utility>

#include "node/readings_file.h"

namespace mete::node {

namespace {
constexpr seam::Milliseconds kLimit{1000};
}  // namespace

Result<Sample> SampleSource::next(seam::Nanoseconds since) {
  if (!readings_.empty()) {
    Result<Sample> published = read_readings(readings_);
    const seam::Nanoseconds now = clock_.monotonic();
    // A reading from the future comes from another clock.
    if (published && published->at <= now && now - published->at <= kStale) {
      driver_.reset();
      if (published->at >= since) return published;
      return Error::busy("no newer reading yet");
    }
  }
  return ask_driver();
}

Result<Sample> SampleSource::ask_driver() {
  if (clock_.monotonic() - asked_ < kOwnPeriod) return Error::busy("asked a moment ago");
  asked_ = clock_.monotonic();
  if (!driver_) {
    Result<std::unique_ptr<seam::Driver>> opened = open_();
    if (!opened) return std::move(opened).error();
    driver_ = *std::move(opened);
  }
  Result<Sample> sample = take_sample(*driver_, clock_, kLimit);
  if (!sample) driver_.reset();  // opened anew next time
  return sample;
}

}  // namespace mete::node
