// SPDX-License-Identifier: Apache-2.0
// While a stream is being captured, many driver calls are forbidden and would break the capture,
// even from another thread. Calls that the program did not make must not break it: this lifts the
// rule for the calling thread, in the way that the driver offers.
#pragma once

#include "meter/real.h"

namespace mete::meter {

class Relaxed {
 public:
  Relaxed() { exchange(); }
  ~Relaxed() { exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  void exchange() {
    if (real.cuThreadExchangeStreamCaptureMode != nullptr)
      real.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace mete::meter
