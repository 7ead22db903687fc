// SPDX-License-Identifier: Apache-2.0
// The cost of a CUDA context on a card: measured once per card, driver version and MPS state by a
// program of its own (mete-probe), and cached in a small text file. The meter reserves this much
// before a context is created, so that a context that does not fit is refused beforehand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "seam/clock.h"

namespace mete::node {

struct ContextCost {
  Bytes first;  // the first context of a process on the card: what the process then holds
  Bytes more;   // each further one
  bool operator==(const ContextCost&) const = default;
};

// What a measurement is valid for.
struct ContextKey {
  std::string uuid;    // of the card
  std::string type;    // "H200": simulated cards of different machines may share a UUID
  std::string driver;  // "580.159.04"
  bool mps = false;    // an MPS server answers: contexts then live there
  bool operator==(const ContextKey&) const = default;
};

struct ProbeRequest {
  ContextKey key;
  std::string program;                // path of mete-probe
  std::string cuda = "libcuda.so.1";  // libraries to open, by path or name
  std::string nvml = "libnvidia-ml.so.1";
  std::string cache;  // path of the text file; empty: neither read nor written
  std::vector<std::string>
      environment;  // of the caller; LD_PRELOAD and card visibility are replaced
  seam::Milliseconds timeout{10000};
};

// From the cache, or measured and put there. A cache that cannot be read is replaced, one that
// cannot be written is ignored: the next caller measures again. busy: the driver did not answer in
// time.
Result<ContextCost> context_cost(const ProbeRequest& request, seam::Clock& clock);

// Measures now, without the cache.
Result<ContextCost> measure_context_cost(const ProbeRequest& request, seam::Clock& clock);

// Whether an MPS server takes connections here. `pipe_directory` is CUDA_MPS_PIPE_DIRECTORY, empty
// if not set.
bool mps_is_active(const std::string& pipe_directory);

// "mete-probe 1 FIRST MORE DRIVER": the output of the program, in bytes.
std::string format_probe_line(const ContextCost& cost, std::string_view driver);
struct ProbeLine {
  ContextCost cost;
  std::string driver;
};
Result<ProbeLine> parse_probe_line(std::string_view text);

}  // namespace mete::node
