// SPDX-License-Identifier: Apache-2.0
// The helper process of a capped job that asks NVML and writes the readings into the grant file.
// The meter itself never calls NVML. The cap holds without the helper; only memory that the driver
// takes by itself is then seen late.
#pragma once

#include <string>

#include "abi/grant.h"
#include "base/result.h"
#include "launch/helper_process.h"

namespace mete::runner {

inline constexpr const char* kSamplerName = "mete-sampler";

// `grant` must stay mapped (shared) while the helper lives; `path` is its file. `nvml` is the
// library to open. `readings` is the daemon's readings file: while it is fresh the helper does not
// ask the driver; "" without a daemon.
Result<launch::HelperProcess> start_sampler(abi::Grant& grant, const std::string& path,
                                            const std::string& nvml,
                                            const std::string& readings = "");

}  // namespace mete::runner
