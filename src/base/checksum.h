// SPDX-License-Identifier: Apache-2.0
// 64 bits that detect damaged bytes: by a disk, a cable, a flipped bit. Fast, and no protection
// against an attacker (content_hash.h is). A change within one word of eight bytes is always
// detected; any other with a probability of 1 - 2^-64. Stored on disk, so it never changes.
#pragma once

#include <cstdint>
#include <string_view>

namespace mete::base {

// Chained by the seed: checksum(b, checksum(a)) depends on both, and on where `a` ends.
std::uint64_t checksum(std::string_view bytes, std::uint64_t seed = 0);

}  // namespace mete::base
