// SPDX-License-Identifier: Apache-2.0
// One fact about the CUDA driver interface: a size, an offset, a value, or the shape of a
// signature. Collected twice, in two translation units, because the names of both headers clash.
#pragma once

#include <map>
#include <string>

namespace cuda_abi {

using Facts = std::map<std::string, std::string>;
Facts our_facts();
Facts real_facts();

}  // namespace cuda_abi
