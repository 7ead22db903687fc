// SPDX-License-Identifier: Apache-2.0
// See service.h: events, drained cards, quotas, reservations, statistics.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "serve/reply.h"
#include "serve/service.h"
#include "serve/submitter.h"
#include "wire/event.h"

namespace mete::serve {

namespace {

using core::JobState;

constexpr std::size_t kMostEvents = 1'000;  // in one answer
constexpr std::size_t kAhead = 64 << 10;    // bytes of a stream that wait for the socket

std::uint64_t number_or(const std::string* text, std::uint64_t otherwise) {
  if (text == nullptr) return otherwise;
  const Result<std::uint64_t> number = base::parse_uint(*text);
  return number ? *number : otherwise;
}

// What is set for a name that nobody has would be without effect, and nobody would notice.
Error no_such_user(const std::string& name) {
  return Error::not_found("there is no user " + base::quote(name) + " on this machine");
}

}  // namespace

bool Service::route_queue(const net::Request& request, const std::vector<std::string_view>& parts,
                          net::Responder& responder) {
  const std::string_view first = parts[2];
  const bool whole = parts.size() == 3;
  const bool get = request.method == "GET";
  const bool post = request.method == "POST";
  if (first == "events" && whole && get) {
    get_events(request, std::move(responder));
  } else if (first == "cards" && parts.size() == 5 && post &&
             (parts[4] == "drain" || parts[4] == "undrain")) {
    post_drain(std::string(parts[3]), parts[4] == "drain", request, std::move(responder));
  } else if (first == "quotas" && whole && get) {
    responder.reply(respond(200, wire::encode(quotas(request.peer))));
  } else if (first == "quotas" && whole && post) {
    post_quota(request, std::move(responder));
  } else if (first == "reservations" && whole && get) {
    responder.reply(respond(200, wire::encode(reservations())));
  } else if (first == "reservations" && whole && post) {
    post_reservation(request, std::move(responder));
  } else if (first == "reservations" && parts.size() == 4 && request.method == "DELETE") {
    const Result<std::uint64_t> id = base::parse_uint(parts[3]);
    if (!id) {
      responder.reply(refuse(Error::invalid(base::quote(parts[3]) + " is no reservation")));
      return true;
    }
    ask(core::Unreserve{*id, caller(request.peer)}, [this, responder](engine::Answer done) mutable {
      responder.reply(done.result ? respond(200, wire::encode(reservations()))
                                  : refuse(done.result.error()));
    });
  } else if (first == "stats" && whole && get) {
    responder.reply(respond(200, wire::encode(stats())));
  } else {
    return false;
  }
  return true;
}

// ---- events ------------------------------------------------------------------------------------

void Service::get_events(const net::Request& request, net::Responder responder) {
  std::uint64_t from = number_or(request.parameter("from"), 1);
  if (const std::string* last = request.parameter("last")) {
    const std::uint64_t seq = engine_.state().last_seq();
    from = seq - std::min(seq, number_or(last, 0)) + 1;
  }
  const std::size_t limit =
      std::clamp<std::size_t>(number_or(request.parameter("limit"), kMostEvents), 1, kMostEvents);
  const std::string* accept = request.header("accept");
  const bool stream = accept != nullptr && accept->find("text/event-stream") != std::string::npos;
  const bool wait = stream || request.parameter("wait") != nullptr;
  Reader reader{++last_ticket_, from == 0 ? 0 : from - 1, limit, request.peer, stream, wait,
                false,          std::move(responder)};
  // A browser that lost its stream says what it had.
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

bool Service::may_see(const seam::StoredEvent& event, const net::Peer& peer) const {
  if (event.job.empty() || is_admin(peer)) return true;
  const Result<core::JobId> id = core::parse_job_id(event.job);
  const core::Job* job = id ? engine_.state().first_of(*id) : nullptr;
  return job != nullptr && job->spec->uid == peer.uid;
}

// A page of the log: whoever may see nothing of a long one must not keep others waiting.
Service::Fed Service::feed(Reader& reader) {
  // Whoever reads slowly is told the rest when there is room for it: nothing piles up here.
  if (reader.stream && reader.responder.unsent() > kAhead) {
    reader.responder.on_sent([this, number = reader.number] {
      if (const auto known = find_reader(number); known != readers_.end()) feed_soon(*known);
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
    if (!may_see(event, reader.peer)) continue;
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
  response.held = place_;
  reader.responder.reply(response);
  return Fed::kDone;
}

std::list<Service::Reader>::iterator Service::find_reader(std::uint64_t number) {
  return std::find_if(readers_.begin(), readers_.end(),
                      [number](const Reader& known) { return known.number == number; });
}

void Service::feed_again(std::uint64_t number) {
  const auto reader = find_reader(number);
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

void Service::feed_soon(Reader& reader) {
  if (std::exchange(reader.queued, true)) return;
  queue_.add(reader.peer.uid,
             [this, number = reader.number](const WorkQueue::Place&) { feed_again(number); });
  schedule_work();
}

void Service::feed_readers() {
  if (readers_.empty() || !engine_.settled() || fed_seq_ == engine_.state().last_seq()) return;
  fed_seq_ = engine_.state().last_seq();
  for (Reader& reader : readers_) feed_soon(reader);
}

// ---- administration ----------------------------------------------------------------------------

void Service::post_drain(const std::string& card, bool drain, const net::Request& request,
                         net::Responder responder) {
  ask(core::Drain{card, caller(request.peer), drain},
      [this, responder, peer = request.peer](engine::Answer done) mutable {
        responder.reply(done.result ? respond(200, wire::encode(cards(&peer)))
                                    : refuse(done.result.error()));
      });
}

void Service::post_quota(const net::Request& request, net::Responder responder) {
  const Result<wire::QuotaRequest> wanted = wire::decode_quota_request(request.body);
  if (!wanted) return responder.reply(refuse_words(wanted.error()));
  // That of a user who is gone can be taken back.
  if (is_admin(request.peer) && !wanted->user.empty() && wanted->quota != core::Quota{} &&
      !is_user(wanted->user))
    return responder.reply(refuse(no_such_user(wanted->user)));
  ask(core::SetQuota{wanted->user, wanted->quota, caller(request.peer)},
      [this, responder, peer = request.peer](engine::Answer done) mutable {
        responder.reply(done.result ? respond(200, wire::encode(quotas(peer)))
                                    : refuse(done.result.error()));
      });
}

void Service::post_reservation(const net::Request& request, net::Responder responder) {
  Result<wire::ReserveRequest> wanted = wire::decode_reserve_request(request.body);
  if (!wanted) return responder.reply(refuse_words(wanted.error()));
  if (is_admin(request.peer) && !wanted->user.empty() && !is_user(wanted->user))
    return responder.reply(refuse(no_such_user(wanted->user)));
  ask(core::Reserve{wanted->user, std::move(wanted->request), wanted->from, wanted->until,
                    caller(request.peer)},
      [this, responder](engine::Answer done) mutable {
        responder.reply(done.result ? respond(201, wire::encode(reservations()))
                                    : refuse(explained(done.result.error())));
      });
}

wire::QuotaDocument Service::quotas(const net::Peer& peer) const {
  const core::State& state = engine_.state();
  wire::QuotaDocument document;
  document.at = clock_.wall();
  std::set<std::string> users{name_of_user(peer.uid)};
  if (const auto everybody = state.quotas().find(""); everybody != state.quotas().end())
    document.everybody = everybody->second;
  if (is_admin(peer)) {
    for (const auto& [user, quota] : state.quotas())
      if (!user.empty()) users.insert(user);
    for (const auto& [id, job] : state.jobs())
      if (job.state != JobState::kEnded) users.insert(job.spec->user);
  }
  for (const std::string& user : users) {
    const auto own = state.quotas().find(user);
    const core::Quota quota = own == state.quotas().end() ? core::Quota{} : own->second;
    document.users.push_back(
        {user, quota, core::with_defaults(quota, document.everybody), state.held_by(user),
         static_cast<std::uint32_t>(state.unfinished_of(user)), state.disk_of(user)});
  }
  return document;
}

wire::ReservationsDocument Service::reservations() const {
  return {clock_.wall(), engine_.state().reservations()};
}

wire::StatsDocument Service::stats() const {
  const core::State& state = engine_.state();
  wire::StatsDocument document;
  document.at = clock_.wall();
  std::map<std::string, wire::StatsDocument::User> users;
  std::vector<std::uint64_t> waits;
  for (const auto& [id, job] : state.jobs()) {
    ++document.states[std::string(to_string(job.state))];
    if (job.outcome && job.state == JobState::kEnded)
      ++document.outcomes[std::string(to_string(*job.outcome))];
    wire::StatsDocument::User& user = users[job.spec->user];
    ++(job.state == JobState::kEnded     ? user.ended
       : job.state == JobState::kPending ? user.pending
                                         : user.running);
    if (job.started && job.attempt == 1)
      waits.push_back(static_cast<std::uint64_t>(
          std::max<std::int64_t>(0, job.started->ms - job.submitted.ms) / 1000));
  }
  for (auto& [name, user] : users) {
    user.user = name;
    user.mib_seconds = state.fair_share().usage(name, document.at);
    document.users.push_back(user);
  }
  std::sort(waits.begin(), waits.end());
  document.waits.count = waits.size();
  if (!waits.empty()) {
    document.waits.median_s = waits[(waits.size() - 1) / 2];
    document.waits.p90_s = waits[(waits.size() - 1) * 9 / 10];
    document.waits.longest_s = waits.back();
  }
  const core::ForecastScore& score = state.score();
  document.forecasts = {score.given, score.held, score.factor_milli};
  return document;
}

}  // namespace mete::serve
