// SPDX-License-Identifier: Apache-2.0
// See events.h. A reader gets one page at a time, in its user's turn, so that a long log does not
// delay other users. The unsent part of a stream is bounded: a slow client gets more when its
// socket has room.
#include "serve/events.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "serve/reply.h"
#include "wire/event.h"

namespace mete::serve {

namespace {

constexpr std::size_t kMostEvents = 1'000;  // in one answer
constexpr std::size_t kAhead = 64 << 10;    // bytes of a stream that wait for the socket

std::uint64_t number_or(const std::string* text, std::uint64_t otherwise) {
  if (text == nullptr) return otherwise;
  const Result<std::uint64_t> number = base::parse_uint(*text);
  return number ? *number : otherwise;
}

}  // namespace

void Events::get(Call& call) {
  const net::Request& request = call.request;
  std::uint64_t from = number_or(request.parameter("from"), 1);
  if (const std::string* last = request.parameter("last")) {
    const std::uint64_t seq = engine_.state().last_seq();
    from = seq - std::min(seq, number_or(last, 0)) + 1;
  }
  const std::size_t limit =
      std::clamp<std::size_t>(number_or(request.parameter("limit"), kMostEvents), 1, kMostEvents);
  const bool stream = call.accepts("text/event-stream");
  const bool wait = stream || request.parameter("wait") != nullptr;
  Reader reader{++last_number_, from == 0 ? 0 : from - 1, limit, request.peer, stream, wait, false,
                call.responder};
  // A browser that lost its stream sends the last event that it received.
  if (const std::string* last = request.header("last-event-id"); last != nullptr && stream)
    reader.after = number_or(last, reader.after);
  const std::uint64_t number = reader.number;
  reader.responder.on_gone([this, number] {
    readers_.remove_if([number](const Reader& known) { return known.number == number; });
  });
  if (reader.stream) {
    net::Response head;
    head.content_type = "text/event-stream";
    reader.responder.start_stream(head);
  }
  readers_.push_back(std::move(reader));
  feed_again(number);
}

bool Events::may_see_event(const seam::StoredEvent& event, const net::Peer& peer) const {
  if (is_admin(identity_, peer)) return true;
  if (event.type.starts_with("sweep.")) return owns_sweep(event, peer);
  if (event.job.empty()) return true;
  const Result<core::JobId> id = core::parse_job_id(event.job);
  const core::Job* job = id ? engine_.state().first_of(*id) : nullptr;
  return job != nullptr && job->spec->uid == peer.uid;
}

// A sweep that is forgotten is told of to administrators alone.
bool Events::owns_sweep(const seam::StoredEvent& event, const net::Peer& peer) const {
  const std::optional<std::uint64_t> number = wire::sweep_of(event.data);
  const core::sweep::Sweep* sweep = number ? engine_.state().sweeps().find(*number) : nullptr;
  return sweep != nullptr && sweep->plan().job.uid == peer.uid;
}

// Sends one page of the log.
Events::Fed Events::feed(Reader& reader) {
  // A slow client gets the rest when its socket has room.
  if (reader.stream && reader.responder.unsent() > kAhead) {
    reader.responder.on_sent([this, number = reader.number] {
      if (const auto known = find(number); known != readers_.end()) feed_soon(*known);
    });
    return Fed::kNothingYet;
  }
  const Result<std::vector<seam::StoredEvent>> events = engine_.events(reader.after, kMostEvents);
  if (!events) {
    if (reader.stream)
      reader.responder.close();
    else
      reader.responder.reply(refuse(events.error()));
    return Fed::kDone;
  }
  if (events->empty()) return Fed::kNothingYet;
  wire::EventsDocument document{clock_.wall(), {}, 0};
  for (const seam::StoredEvent& event : *events) {
    if (document.events.size() == reader.limit || reader.responder.unsent() > kAhead) break;
    reader.after = event.seq;
    if (!may_see_event(event, reader.peer)) continue;
    Result<wire::EventDocument> shown =
        wire::document_of({event.seq, {event.at_ms}, event.type, event.job, event.data});
    if (!shown) continue;
    if (!reader.stream)
      document.events.push_back(*std::move(shown));
    else if (!reader.responder.send("id: " + std::to_string(shown->seq) + "\nevent: " +
                                    shown->type + "\ndata: " + wire::encode(*shown) + "\n\n"))
      return Fed::kDone;
  }
  if (document.events.empty()) return Fed::kMore;
  document.next = reader.after + 1;
  net::Response response = respond(200, wire::encode(document));
  response.held = dispatcher_.place();
  reader.responder.reply(response);
  return Fed::kDone;
}

std::list<Events::Reader>::iterator Events::find(std::uint64_t number) {
  return std::find_if(readers_.begin(), readers_.end(),
                      [number](const Reader& known) { return known.number == number; });
}

void Events::feed_again(std::uint64_t number) {
  const auto reader = find(number);
  if (reader == readers_.end()) return;
  reader->queued = false;
  Fed fed = feed(*reader);
  if (fed == Fed::kMore) return feed_soon(*reader);
  if (fed == Fed::kNothingYet && !reader->wait) {
    reader->responder.reply(
        respond(200, wire::encode(wire::EventsDocument{clock_.wall(), {}, reader->after + 1})));
    fed = Fed::kDone;
  }
  if (fed == Fed::kDone) readers_.erase(reader);
}

void Events::feed_soon(Reader& reader) {
  if (std::exchange(reader.queued, true)) return;
  dispatcher_.add(reader.peer.uid, AnswerSize::kSmall,
                  [this, number = reader.number] { feed_again(number); });
}

void Events::feed_all() {
  if (readers_.empty() || !engine_.settled() || fed_seq_ == engine_.state().last_seq()) return;
  fed_seq_ = engine_.state().last_seq();
  for (Reader& reader : readers_) feed_soon(reader);
}

}  // namespace mete::serve
