// SPDX-License-Identifier: Apache-2.0
// Any bytes through the decoder of the NVML helper's frames: it must not crash or grow beyond them,
// an error stays one, and what it accepts encodes to something that decodes to the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "node/card_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  node::CardDecoder decoder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decoder.feed(bytes.substr(0, size / 2));
  decoder.feed(bytes.substr(size / 2));
  for (;;) {
    const Result<std::optional<node::CardMessage>> message = decoder.next();
    if (!message) {
      decoder.feed(bytes);
      METE_ASSERT(!decoder.next());
      return 0;
    }
    if (!*message) return 0;
    const Result<std::string> again = node::encode(**message);
    METE_ASSERT(again.ok());
    node::CardDecoder second;
    second.feed(*again);
    const Result<std::optional<node::CardMessage>> same = second.next();
    METE_ASSERT(same.ok() && same->has_value() && **same == **message);
  }
}
