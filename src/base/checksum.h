// SPDX-License-Identifier: Apache-2.0
// 64 bits that tell bytes from bytes that were damaged: by a disk, a cable, a flipped bit. Fast,
// and no protection against anybody who means it (content_hash.h is). A change within eight bytes
// that are read as one word is always found; any other with a probability of 1 - 2^-64. Kept on
// disk, so it never changes.
#pragma once

#include <cstdint>
#include <string_view>

namespace mete::base {

// Chained by the seed: checksum(b, checksum(a)) depends on both, and on where one ends.
std::uint64_t checksum(std::string_view bytes, std::uint64_t seed = 0);

}  // namespace mete::base
