// SPDX-License-Identifier: Apache-2.0
// Any bytes through the request parser: it must not crash, must refuse with a hint, and whatever it
// accepts must print as text that it reads back as the same request, and resolve within the card.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "core/request/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<core::GpuRequest> request = core::parse_gpu(text);
  if (!request) {
    METE_ASSERT(!request.error().hint.empty());
    return 0;
  }
  const Result<core::GpuRequest> again = core::parse_gpu(core::to_string(*request));
  METE_ASSERT(again.ok() && *again == *request);
  const core::Card card{0, "GPU-0", "H200", Bytes::from_mib(143771)};
  core::Request words;
  words.gpu = *request;
  const Result<std::vector<core::CardShare>> shares = core::resolve(words, {card});
  if (!shares) return 0;
  for (const core::CardShare& share : *shares)
    METE_ASSERT(share.from <= share.limit && share.limit <= card.capacity);
  return 0;
}
