// SPDX-License-Identifier: Apache-2.0
// Any bytes through everything that reads a request or an answer about the queue: no crash, and
// what is accepted is written as text that is read back as the same text again. The first byte
// chooses the reader; the rest is the document.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "wire/event.h"
#include "wire/explain.h"
#include "wire/ps_lines.h"
#include "wire/queue.h"
#include "wire/show.h"
#include "wire/snapshot.h"
#include "wire/submit.h"

namespace {

using namespace mete;

template <typename Decode, typename Encode>
void there_and_back(std::string_view text, Decode decode, Encode encode) {
  const auto value = decode(text);
  if (!value) {
    METE_ASSERT(!value.error().message.empty());
    return;
  }
  const std::string written = encode(*value);
  const auto again = decode(std::string_view(written));
  METE_ASSERT(again.ok());
  METE_ASSERT(encode(*again) == written);
}

// What a request may never say, whoever sends it.
void submit(std::string_view text) {
  there_and_back(text, wire::decode_submit_request,
                 [](const auto& request) { return wire::encode(request); });
  const Result<wire::JobRequest> either = wire::decode_job_request(text);
  const Result<wire::SubmitRequest> request = wire::decode_submit_request(text);
  if (!request) return;
  METE_ASSERT(either.ok() && std::holds_alternative<wire::SubmitRequest>(*either));
  const core::JobSpec& spec = request->spec;
  METE_ASSERT(spec.uid == 0 && spec.user.empty() && !spec.command.empty());
  METE_ASSERT(spec.detached && spec.detached->gid == 0 && spec.detached->groups.empty());
  METE_ASSERT(spec.detached->environment.empty() && spec.detached->script.empty());
  for (const std::string& entry : request->environment)
    METE_ASSERT(entry.find('\0') == std::string::npos && entry.find('=') != std::string::npos);
}

// Nothing of a line may end up in another column or line of a table.
void lines(std::string_view text) {
  const Result<std::vector<wire::JobView>> views = wire::decode_ps_lines(text);
  if (!views) return;
  const std::string written = wire::encode_ps_lines(*views, {0});
  METE_ASSERT(static_cast<std::size_t>(std::count(written.begin(), written.end(), '\n')) ==
              views->size() + 1);
  const Result<std::vector<wire::JobView>> again = wire::decode_ps_lines(written);
  METE_ASSERT(again.ok() && again->size() == views->size());
  // Bytes of a wait that are no UTF-8 are replaced, once.
  const std::string clean = wire::encode_ps_lines(*again, {0});
  const Result<std::vector<wire::JobView>> last = wire::decode_ps_lines(clean);
  METE_ASSERT(last.ok() && wire::encode_ps_lines(*last, {0}) == clean);
}

// What the log has becomes a document that can be read.
void log_line(std::string_view text) {
  const Result<wire::EventDocument> document =
      wire::document_of({1, {0}, "job.submitted", "1", text});
  if (document) METE_ASSERT(wire::decode_event_document(wire::encode(*document)).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto encode = [](const auto& value) { return wire::encode(value); };
  switch (data[0]) {
    case 's':
      submit(text);
      break;
    case 'a':
      there_and_back(text, wire::decode_submit_reply,
                     [](const wire::SubmitReply& reply) { return wire::encode(reply, {0}); });
      break;
    case 'l':
      lines(text);
      break;
    case 'w':
      there_and_back(text, wire::decode_show, encode);
      break;
    case 'x':
      there_and_back(text, wire::decode_explain, encode);
      break;
    case 'e':
      there_and_back(text, wire::decode_events, encode);
      break;
    case 'E':
      log_line(text);
      break;
    case 'c':
      there_and_back(text, wire::decode_changed, encode);
      break;
    case 'W':
      there_and_back(text, wire::decode_wait, encode);
      break;
    case 'p':
      there_and_back(text, wire::decode_priority, wire::encode_priority);
      break;
    case 'q':
      there_and_back(text, wire::decode_quota_request, encode);
      break;
    case 'Q':
      there_and_back(text, wire::decode_quota, encode);
      break;
    case 'r':
      there_and_back(text, wire::decode_reserve_request, encode);
      break;
    case 'R':
      there_and_back(text, wire::decode_reservations, encode);
      break;
    case 't':
      there_and_back(text, wire::decode_stats, encode);
      break;
    case 'S':
      there_and_back(text, wire::decode_snapshot, encode);
      break;
    case 'v':
      (void)wire::environment_names(text);
      break;
    default:
      break;
  }
  return 0;
}
