// SPDX-License-Identifier: Apache-2.0
// See base/content_hash.h.
#include "base/content_hash.h"

#include <openssl/sha.h>

#include <array>

#include "base/assert.h"
#include "base/text.h"

namespace mete::base {

std::string content_hash(std::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  METE_ASSERT(SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(),
                     digest.data()) != nullptr);
  return hex_of(digest);
}

}  // namespace mete::base
