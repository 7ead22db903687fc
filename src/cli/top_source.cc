// SPDX-License-Identifier: Apache-2.0
// See top_source.h.
#include "cli/top_source.h"

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace mete::cli {

namespace {

using net::Milliseconds;
using std::chrono::duration_cast;

const std::string kSnapshot = "/v1/snapshot?others=1";
constexpr Milliseconds kPatience{5'000};  // for an answer, before the silence is reported
constexpr Milliseconds kTryAgain{500};    // before asking again whether the daemon is back
constexpr std::int64_t kStreamLeastMs = 250;
constexpr std::int64_t kStreamMostMs = 3'600'000;

seam::Nanoseconds now() { return seam::system_clock().monotonic(); }

// "0.250"
std::string stream_seconds(Milliseconds every) {
  const std::int64_t ms = std::clamp<std::int64_t>(every.count(), kStreamLeastMs, kStreamMostMs);
  const std::string rest = std::to_string(1000 + ms % 1000);
  return std::to_string(ms / 1000) + "." + rest.substr(1);
}

// The error may pass: the last snapshot stays, and the next one is requested.
bool may_pass(const Error& error) {
  return error.code == ErrorCode::kBusy || error.code == ErrorCode::kExhausted;
}

}  // namespace

Result<std::string> TopSource::document() { return client_->call("GET", kSnapshot); }

// As one document: a daemon that has no snapshot now answers with the reason.
Result<void> TopSource::begin(Milliseconds most) {
  ask(false);
  if (hear_whole(most)) return {};
  if (refusal_) return *refusal_;
  return Error::busy(away_.empty() ? "the daemon does not answer" : away_);
}

void TopSource::ask(bool stream) {
  if (!client_) {
    Result<runner::DaemonClient> again =
        runner::DaemonClient::open_again({socket_}, runner::DaemonClient::Start::kNever);
    if (!again) return lost();
    client_ = *std::move(again);
  }
  client_->http().abandon();
  client_->accept(stream ? "text/event-stream" : "");
  const Result<void> sent =
      client_->send("GET", stream ? kSnapshot + ("&every=" + stream_seconds(every_)) : kSnapshot);
  if (!sent) return lost();
  events_ = {};
  fed_ = false;
  state_ = stream ? State::kAsked : State::kWhole;
}

void TopSource::tend() {
  if (state_ == State::kRests && now() >= due_at_) {
    ask(true);
    if (awaits()) late_at_ = now() + kPatience;
  } else if (state_ == State::kStream && now() >= late_at_) {
    ask(false);  // the daemon is there and silent: ask for the reason
  }
}

Milliseconds TopSource::until_due() const {
  const seam::Nanoseconds due = awaits() ? late_at_ : due_at_;
  // The age of the snapshot is shown anew each second.
  const Milliseconds most = trouble().empty() ? Milliseconds(60'000) : Milliseconds(1'000);
  const Milliseconds left = duration_cast<Milliseconds>(due - now()) + Milliseconds(1);
  return left.count() <= 0 && awaits() ? most : std::clamp(left, Milliseconds(0), most);
}

bool TopSource::hear() {
  switch (state_) {
    case State::kRests:
      return false;
    case State::kAsked:
      return hear_head();
    case State::kStream:
      return hear_events();
    case State::kWhole:
      return hear_whole(Milliseconds(0));
  }
  return false;
}

bool TopSource::hear_head() {
  net::HttpClient& http = client_->http();
  const Result<net::HttpClient::Reply> head = http.receive_head({Milliseconds(0), -1});
  if (!head) {
    if (http.stopped() == net::HttpClient::Stopped::kNo) lost();
    return false;
  }
  const bool stream = head->status == 200 && head->content_type.starts_with("text/event-stream");
  state_ = stream ? State::kStream : State::kWhole;
  return hear();
}

bool TopSource::hear_events() {
  net::HttpClient& http = client_->http();
  bool any = false;
  for (;;) {
    const Result<std::optional<std::string>> piece = http.next_chunk({Milliseconds(0), -1});
    if (!piece && http.stopped() != net::HttpClient::Stopped::kNo) return any;
    if (!piece || !*piece || !events_.feed(**piece)) {
      lost();
      return any;
    }
    while (const std::optional<std::string> event = events_.next()) {
      any = take(*event) || any;
      fed_ = true;
      late_at_ = now() + every_ + kPatience;
    }
  }
}

bool TopSource::hear_whole(Milliseconds most) {
  if (!awaits()) return false;
  const Result<std::string> body = client_->receive({most, -1});
  if (!body && client_->http().stopped() != net::HttpClient::Stopped::kNo) return false;
  if (!body && client_->went_away()) {
    lost();
    return false;
  }
  // After the first snapshot, and after one that was requested because of a silence, a stream is
  // next.
  rest(late_at_ == seam::Nanoseconds(0) ? Milliseconds(0) : every_);
  if (body) return take(*body);
  if (!snapshot_ || !may_pass(body.error()))
    refusal_ = body.error();
  else
    away_ = body.error().message;
  return false;
}

bool TopSource::take(const std::string& document) {
  Result<wire::Snapshot> next = wire::decode_snapshot(document);
  if (!next) {
    refusal_ = next.error();
    return false;
  }
  if (snapshot_) wire::carry_history(*next, *std::move(snapshot_));
  snapshot_ = *std::move(next);
  heard_at_ = now();
  away_.clear();
  return true;
}

void TopSource::rest(Milliseconds pause) {
  state_ = State::kRests;
  due_at_ = now() + pause;
}

// A stream that was cut is requested again at once: a daemon cuts the stream of a client that was
// stopped for long. If nothing listens any more, the daemon has ended.
void TopSource::lost() {
  client_.reset();
  if (!fed_) away_ = "the daemon has gone";
  rest(std::exchange(fed_, false) ? Milliseconds(0) : kTryAgain);
}

std::string TopSource::trouble() const {
  std::string why = away_;
  if (why.empty() && awaits() && now() >= late_at_) why = "the daemon does not answer";
  if (why.empty() || !heard_at_) return why;
  const auto age = duration_cast<std::chrono::seconds>(now() - *heard_at_).count();
  return why + "; this is what was " + base::duration_in_words(age) + " ago";
}

}  // namespace mete::cli
