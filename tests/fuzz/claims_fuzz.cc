// SPDX-License-Identifier: Apache-2.0
// Any bytes as another daemon's claims: refused, or understood so that writing them says the same.
// The checksum would keep a fuzzer out, so the last line is also put right.
#include <cstddef>
#include <cstdint>
#include <string>

#include "abi/grant.h"
#include "base/assert.h"
#include "node/claims_file.h"

namespace {

void read(const std::string& bytes) {
  using namespace mete;
  const Result<node::ClaimsText> text = node::parse_claims(bytes);
  if (!text) return;
  METE_ASSERT(text->claims.size() <= node::kMaxClaims);
  const Result<std::string> again = node::format_claims(*text);
  METE_ASSERT(again.ok());
  const Result<node::ClaimsText> same = node::parse_claims(*again);
  METE_ASSERT(same.ok() && *same == *text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  const auto owner = mete::node::parse_claims_name(bytes);
  if (owner) METE_ASSERT(mete::node::claims_name(*owner) == bytes);
  const std::string body = bytes.substr(0, bytes.find("\nend")) + "\n";
  std::uint64_t sum = mete::abi::fnv1a(body.data(), body.size());
  std::string hex(16, '0');
  for (std::size_t i = 16; i > 0; --i, sum >>= 4) hex[i - 1] = "0123456789abcdef"[sum & 15];
  read(body + "end" + hex + "\n");
  return 0;
}
