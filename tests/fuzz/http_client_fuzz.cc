// SPDX-License-Identifier: Apache-2.0
// A daemon that answers anything. The first byte says whether HEAD was asked and into pieces of
// which size the rest is cut. The parser must not crash, must hold no more than its limit besides
// the body, must never hand out more body than came in, and must read the same however the bytes
// are cut. So must whoever follows a stream of events; the messages for starters go through their
// parser too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "net/event_stream.h"
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

std::vector<std::string> events(std::string_view bytes, std::size_t piece) {
  net::EventStream stream;
  std::vector<std::string> all;
  std::size_t length = 0;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    METE_ASSERT(stream.feed(bytes.substr(at, piece)).ok());
    while (std::optional<std::string> event = stream.next()) {
      length += event->size();
      all.push_back(*std::move(event));
    }
  }
  METE_ASSERT(length <= bytes.size());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool head = (data[0] & 1) != 0;
  const Seen whole = read(bytes, head, std::max<std::size_t>(bytes.size(), 1));
  METE_ASSERT(whole.body.size() <= bytes.size());
  METE_ASSERT(read(bytes, head, 1 + data[0] / 2) == whole);
  METE_ASSERT(events(bytes, 1 + data[0] / 2) == events(bytes, bytes.size() + 1));
  (void)net::parse_ready(bytes);
  return 0;
}
