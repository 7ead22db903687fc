// SPDX-License-Identifier: Apache-2.0
// The helper process of a capped job that asks NVML and writes what it says into the grant file.
// The meter itself never calls NVML. Without it the cap still holds; only what the driver takes
// unasked is then seen late.
#pragma once

#include <string>

#include "abi/grant.h"
#include "base/result.h"
#include "launch/helper_process.h"

namespace mete::runner {

inline constexpr const char* kSamplerName = "mete-sampler";

// `grant` must stay mapped (shared) while the helper lives; `path` is its file. `nvml` is the
// library to open. `readings` is the daemon's readings file: while that is fresh the driver is not
// asked here; "" without a daemon.
Result<launch::HelperProcess> start_sampler(abi::Grant& grant, const std::string& path,
                                            const std::string& nvml,
                                            const std::string& readings = "");

}  // namespace mete::runner
