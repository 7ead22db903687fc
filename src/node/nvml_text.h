// SPDX-License-Identifier: Apache-2.0
// NVML's names translated into ours: card types and errors. Pure.
#pragma once

#include <string>
#include <string_view>

#include "abi/nvml_api.h"
#include "base/result.h"

namespace mete::node {

// The short type that users write in --gpu-type, from the driver's name for the card: "NVIDIA H100
// 80GB HBM3" -> "H100", "Tesla V100-SXM2-16GB" -> "V100", "NVIDIA GeForce RTX 4090" -> "RTX4090".
// Never empty for a name that is not.
std::string card_type(std::string_view name);

// "nvmlInit_v2: Driver Not Loaded (9)". The codes that matter to callers: no driver is not_found,
// no permission is denied, a temporary failure is busy, a missing feature of the card is
// unsupported, everything else is io.
Error nvml_error(std::string_view function, nvmlReturn_t result);

}  // namespace mete::node
