// SPDX-License-Identifier: Apache-2.0
// See base/content_hash.h.
#include "base/content_hash.h"

// The plain functions: SHA256() of OpenSSL 3 brings all of its providers into a static program.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>

#include "base/assert.h"
#include "base/text.h"

namespace mete::base {

std::string content_hash(std::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_CTX context;
  METE_ASSERT(SHA256_Init(&context) == 1 &&
              SHA256_Update(&context, content.data(), content.size()) == 1 &&
              SHA256_Final(digest.data(), &context) == 1);
  return hex_of(digest);
}

}  // namespace mete::base
