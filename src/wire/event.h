// SPDX-License-Identifier: Apache-2.0
// Events as the log has them (everything that replay needs) and as readers of `mete events` get
// them: {"schema":"mete.event/1",...}, see docs/formats/event.schema.json. A line of the log stays
// readable forever: tests/data/events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/job/event.h"

namespace mete::wire {

// The log: the data of an event, by its type. The attempt (0: none) is for readers; replay ignores
// it.
std::string encode(const core::Happened& what, std::uint32_t attempt = 0);
Result<core::Happened> decode_event(std::string_view type, std::string_view json);
// The job of an event; empty: none.
std::string job_of(const core::Happened& what);
// The sweep that an event of the log is about, by its data; nullopt: about none.
std::optional<std::uint64_t> sweep_of(std::string_view data);

struct EventDocument {
  std::uint64_t seq = 0;
  WallTime at;
  std::string type;
  std::string job;  // "12", "12_3"; empty: none
  std::optional<std::uint32_t> attempt;
  std::string data = "{}";  // a JSON object
  bool operator==(const EventDocument&) const = default;
};
std::string encode(const EventDocument& document);
Result<EventDocument> decode_event_document(std::string_view json);

// From the log. Hashes of contents, groups and limits of the owner are left out.
struct LogLine {
  std::uint64_t seq = 0;
  WallTime at;
  std::string_view type;
  std::string_view job;
  std::string_view data;
};
Result<EventDocument> document_of(const LogLine& line);

// The event, as far as readers see it: for display, never for replay.
Result<core::Happened> decode_event(const EventDocument& document);

// {"schema":"mete.events/1","at":T,"events":[EVENT],"next":SEQ}: continue at `next`.
struct EventsDocument {
  WallTime at;
  std::vector<EventDocument> events;
  std::uint64_t next = 1;
};
std::string encode(const EventsDocument& document);
Result<EventsDocument> decode_events(std::string_view json);

}  // namespace mete::wire
