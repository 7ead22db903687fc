// SPDX-License-Identifier: Apache-2.0
// A daemon that answers anything. The first byte says whether HEAD was asked and into pieces of
// which size the rest is cut. The parser must not crash, must hold no more than its limit besides
// the body, must never hand out more body than came in, and must read the same however the bytes
// are cut; the messages for starters go through their parser too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "net/ready_pipe.h"
#include "net/response_parser.h"

namespace {

using namespace mete;

struct Seen {
  bool accepted = false;
  bool done = false;
  int status = 0;
  std::string body;
  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view bytes, bool head, std::size_t piece) {
  net::ResponseParser parser(head);
  Seen seen;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    const Result<void> fed = parser.feed(part);
    if (!fed) {
      METE_ASSERT(fed.error().code == ErrorCode::kCorrupt);
      return {};
    }
    METE_ASSERT(parser.head_done() || parser.body_waiting() == 0);
    seen.body += parser.take_body();
  }
  const Result<void> end = parser.end();
  METE_ASSERT(end.ok() == parser.done());
  METE_ASSERT(end.ok() || end.error().code == ErrorCode::kBusy);
  seen.accepted = true;
  seen.done = parser.done();
  seen.status = parser.status();
  METE_ASSERT(!seen.done || (seen.status >= 200 && seen.status <= 999));
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool head = (data[0] & 1) != 0;
  const Seen whole = read(bytes, head, std::max<std::size_t>(bytes.size(), 1));
  METE_ASSERT(whole.body.size() <= bytes.size());
  METE_ASSERT(read(bytes, head, 1 + data[0] / 2) == whole);
  (void)net::parse_ready(bytes);
  return 0;
}
