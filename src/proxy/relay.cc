// SPDX-License-Identifier: Apache-2.0
// See relay.h. from_client() and from_replica() append to a buffer and then go on as far as the
// state allows: read_head(), pass_request_body(), read_answer_head(), pass_answer_body(). Heads are
// written anew, without the fields of one hop; bodies keep their framing, so that only their end is
// looked for.
#include "proxy/relay.h"

#include <algorithm>

#include "base/assert.h"
#include "net/http.h"

namespace mete::proxy {

namespace {

void put_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

// ---- the client's side -------------------------------------------------------------------------

void Relay::from_client(std::string_view bytes) {
  if (state_ == State::kClosing) return;
  if (state_ == State::kTunnel) {
    to_replica_.append(bytes);
    return;
  }
  in_.append(bytes);
  if (state_ == State::kHead) read_head();
  if (state_ == State::kCollecting) collect_body();
  if (state_ == State::kForwarding) pass_request_body();
}

void Relay::client_ended() {
  client_ended_ = true;
  // Without its whole body a request has no answer; within a head, or between requests, it is over.
  if (state_ == State::kHead || state_ == State::kCollecting) state_ = State::kClosing;
  if (state_ == State::kForwarding && !body_done_) break_off();
}

bool Relay::wants_client() const {
  if (client_ended_ || broken_ || in_.size() >= kHighMark) return false;
  switch (state_) {
    case State::kHead:
    case State::kCollecting:
      return collected_.size() < kHighMark;
    case State::kForwarding:
      return to_replica().size() < kHighMark;
    case State::kTunnel:
      return to_replica().size() < kHighMark;
    case State::kAsked:
    case State::kAnswered:
    case State::kClosing:
      return false;
  }
  return false;
}

std::string_view Relay::to_client() const {
  return std::string_view(to_client_).substr(to_client_sent_);
}

void Relay::sent_to_client(std::size_t bytes) {
  to_client_sent_ += bytes;
  METE_ASSERT(to_client_sent_ <= to_client_.size());
  if (to_client_sent_ == to_client_.size()) {
    to_client_.clear();
    to_client_sent_ = 0;
  } else if (to_client_sent_ >= kHighMark) {
    to_client_.erase(0, std::exchange(to_client_sent_, 0));
  }
}

void Relay::read_head() {
  const std::optional<std::size_t> size = head_size(in_, searched_);
  if (!size && in_.size() <= kMaxHead) return;
  if (!size || *size > kMaxHead) return refuse(431, "the head of the request is too large");
  head_ = in_.substr(0, *size);
  in_.erase(0, *size);
  searched_ = 0;
  request_ = {};
  if (const std::optional<Refusal> refusal = parse_request(head_, request_))
    return refuse(refusal->status, refusal->why);
  body_done_ =
      request_.body == Body::kNone || (request_.body == Body::kLength && request_.length == 0);
  body_left_ = request_.length;
  body_chunks_ = {};
  is_collected_ = false;
  collected_.clear();
  collected_bytes_ = 0;
  written_ = 0;
  answer_in_.clear();
  answer_searched_ = 0;
  has_head_ = false;
  answer_chunks_ = {};
  unchunk_ = reusable_ = close_client_ = deaf_ = false;
  answer_status_ = 0;
  answer_type_.clear();
  is_event_stream_ = false;
  stream_end_ = "\n\n";
  timing_.clear();
  state_ = State::kAsked;
}

// The boundaries of what follows are not known any more.
void Relay::refuse(int status, std::string_view why) {
  in_.clear();
  request_ = {};
  body_done_ = true;
  has_head_ = false;
  timing_.clear();
  close_client_ = true;
  state_ = State::kAsked;
  reply(status, "text/plain; charset=utf-8", std::string(why) + "\n");
}

bool Relay::keeps_client() const {
  return request_.keep_alive && !close_client_ && (!client_ended_ || !in_.empty()) && body_done_;
}

void Relay::reply(int status, std::string_view type, std::string_view body, const Pairs& fields) {
  METE_ASSERT(state_ == State::kAsked || state_ == State::kCollecting ||
              state_ == State::kForwarding);
  METE_ASSERT(!has_head_);
  const bool keep = keeps_client();
  to_client_.append("HTTP/1.1 ").append(std::to_string(status)).append(" ");
  to_client_.append(net::reason_phrase(status)).append("\r\n");
  put_field(to_client_, "Content-Type", type);
  put_field(to_client_, "Content-Length", std::to_string(body.size()));
  for (const auto& [name, value] : fields) put_field(to_client_, name, value);
  if (!timing_.empty()) put_field(to_client_, "Server-Timing", timing_);
  put_field(to_client_, "Connection", keep ? "keep-alive" : "close");
  to_client_.append("\r\n");
  if (request_.method != "HEAD") to_client_.append(body);
  to_replica_.clear();
  to_replica_sent_ = 0;
  reusable_ = false;
  answer_status_ = status;
  state_ = keep ? State::kAnswered : State::kClosing;
}

void Relay::next() {
  METE_ASSERT(state_ == State::kAnswered);
  state_ = State::kHead;
  read_head();
  if (state_ == State::kHead && client_ended_) state_ = State::kClosing;
}

// ---- the body of the request -------------------------------------------------------------------

void Relay::collect(std::uint64_t most) {
  METE_ASSERT(state_ == State::kAsked && !is_collected_);
  if (request_.body == Body::kLength && request_.length > most) {
    close_client_ = true;
    return reply(413, "text/plain; charset=utf-8",
                 "the body has more than " + std::to_string(most) + " bytes\n");
  }
  collect_most_ = most;
  state_ = State::kCollecting;
  if (request_.expects_continue && in_.empty() && !body_done_)
    to_client_.append("HTTP/1.1 100 Continue\r\n\r\n");
  collect_body();
}

void Relay::collect_body() {
  if (!body_done_ && request_.body == Body::kLength) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, in_.size()));
    collected_.append(in_, 0, part);
    collected_bytes_ += part;
    body_left_ -= part;
    in_.erase(0, part);
    body_done_ = body_left_ == 0;
  } else if (!body_done_) {
    const std::size_t before = collected_.size();
    in_.erase(0, body_chunks_.feed(in_, &collected_));
    collected_bytes_ += collected_.size() - before;
    body_done_ = body_chunks_.done();
  }
  if (collected_bytes_ > collect_most_) {
    close_client_ = true;
    state_ = State::kAsked;
    return reply(413, "text/plain; charset=utf-8",
                 "the body has more than " + std::to_string(collect_most_) + " bytes\n");
  }
  if (body_chunks_.failed()) return refuse(400, "the chunks of the body are wrong");
  if (!body_done_) return;
  is_collected_ = true;
  state_ = State::kAsked;
}

void Relay::forward(std::string_view path, const Pairs& added, std::uint64_t length) {
  METE_ASSERT(state_ == State::kAsked);
  to_replica_.append(request_.method).append(" ").append(path).append(" HTTP/1.1\r\n");
  for (const Field& field : request_.fields) {
    if (is_for_one_hop(field.name, request_.connection)) continue;
    if (is_collected_ && equals_ignoring_case(field.name, "content-length")) continue;
    if (is_collected_ && equals_ignoring_case(field.name, "expect")) continue;
    if (equals_ignoring_case(field.name, "trailer") && is_collected_) continue;
    put_field(to_replica_, field.name, field.value);
  }
  for (const auto& [name, value] : added) put_field(to_replica_, name, value);
  if (is_collected_)
    put_field(to_replica_, "Content-Length", std::to_string(length));
  else if (request_.body == Body::kChunked)
    put_field(to_replica_, "Transfer-Encoding", "chunked");
  if (request_.upgrade) {
    put_field(to_replica_, "Connection", "Upgrade");
    put_field(to_replica_, "Upgrade", request_.find("upgrade")->value);
  }
  if (request_.find("host") == nullptr) put_field(to_replica_, "Host", "localhost");
  to_replica_.append("\r\n");
  state_ = State::kForwarding;
  pass_request_body();
}

void Relay::push_body(std::string_view bytes) {
  METE_ASSERT(state_ == State::kForwarding && is_collected_);
  to_replica_.append(bytes);
}

void Relay::pass_request_body() {
  if (body_done_ || in_.empty()) return;
  std::size_t part = 0;
  if (request_.body == Body::kLength) {
    part = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, in_.size()));
    body_left_ -= part;
    body_done_ = body_left_ == 0;
  } else {
    part = body_chunks_.feed(in_);
    body_done_ = body_chunks_.done();
    if (body_chunks_.failed()) {
      if (has_head_) return break_off();
      return refuse(400, "the chunks of the body are wrong");
    }
  }
  if (!deaf_) to_replica_.append(in_, 0, part);
  in_.erase(0, part);
}

bool Relay::waits_for_body() const {
  if (body_done_) return false;
  return state_ == State::kCollecting || (state_ == State::kForwarding && to_replica().empty());
}

// ---- the replica's side ------------------------------------------------------------------------

std::string_view Relay::to_replica() const {
  return std::string_view(to_replica_).substr(to_replica_sent_);
}

void Relay::sent_to_replica(std::size_t bytes) {
  to_replica_sent_ += bytes;
  written_ += bytes;
  METE_ASSERT(to_replica_sent_ <= to_replica_.size());
  if (to_replica_sent_ == to_replica_.size()) {
    to_replica_.clear();
    to_replica_sent_ = 0;
  } else if (to_replica_sent_ >= kHighMark) {
    to_replica_.erase(0, std::exchange(to_replica_sent_, 0));
  }
}

bool Relay::wants_replica() const {
  return (state_ == State::kForwarding || state_ == State::kTunnel) && !broken_ &&
         to_client().size() < kHighMark;
}

void Relay::from_replica(std::string_view bytes) {
  if (state_ == State::kTunnel) {
    to_client_.append(bytes);
    return;
  }
  if (state_ != State::kForwarding) return;
  answer_in_.append(bytes);
  while (state_ == State::kForwarding && !has_head_ && !broken_) {
    const std::size_t before = answer_in_.size();
    read_answer_head();
    if (answer_in_.size() == before) break;
  }
  if (state_ == State::kForwarding && has_head_) pass_answer_body();
}

void Relay::read_answer_head() {
  const std::optional<std::size_t> size = head_size(answer_in_, answer_searched_);
  if (!size && answer_in_.size() <= kMaxHead) return;
  ResponseHead head;
  const std::string text = answer_in_.substr(0, size.value_or(0));
  if (!size || *size > kMaxHead || parse_response(text, request_.method == "HEAD", head)) {
    answer_in_.clear();
    return reply(502, "text/plain; charset=utf-8", "the replica's answer is no HTTP\n");
  }
  answer_in_.erase(0, *size);
  answer_searched_ = 0;
  if (head.status == 101) {
    if (!request_.upgrade)
      return reply(502, "text/plain; charset=utf-8",
                   "the replica changed the protocol without having been asked to\n");
    to_client_.append(text);
    to_client_.append(std::exchange(answer_in_, {}));
    to_replica_.append(std::exchange(in_, {}));
    has_head_ = true;
    answer_status_ = 101;
    state_ = State::kTunnel;
    return;
  }
  if (head.status < 200) {
    // Only a client of HTTP/1.1 knows of them.
    if (request_.minor == 1 && !is_collected_) to_client_.append(text);
    return;
  }
  has_head_ = true;
  answer_status_ = head.status;
  if (const Field* type = head.find("content-type")) answer_type_ = type->value;
  is_event_stream_ =
      equals_ignoring_case(std::string_view(answer_type_).substr(0, answer_type_.find(';')),
                           "text/event-stream") &&
      head.find("content-encoding") == nullptr &&
      (head.body == Body::kChunked || head.body == Body::kUntilClose);
  answer_body_ = head.body;
  answer_left_ = head.length;
  unchunk_ = head.body == Body::kChunked && request_.minor == 0;
  // A body of the request that is still on its way is not read to its end.
  if (!body_done_ || head.body == Body::kUntilClose || unchunk_) close_client_ = true;
  reusable_ = head.keep_alive && head.body != Body::kUntilClose;
  const bool keep = request_.keep_alive && !close_client_ && !client_ended_;
  to_client_.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" ");
  to_client_.append(head.reason).append("\r\n");
  for (const Field& field : head.fields)
    if (!is_for_one_hop(field.name, head.connection))
      put_field(to_client_, field.name, field.value);
  if (head.body == Body::kChunked && !unchunk_)
    put_field(to_client_, "Transfer-Encoding", "chunked");
  if (!timing_.empty()) put_field(to_client_, "Server-Timing", timing_);
  put_field(to_client_, "Connection", keep ? "keep-alive" : "close");
  to_client_.append("\r\n");
}

void Relay::pass_answer_body() {
  switch (answer_body_) {
    case Body::kNone:
      return answered();
    case Body::kLength: {
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(answer_left_, answer_in_.size()));
      to_client_.append(answer_in_, 0, part);
      answer_in_.erase(0, part);
      answer_left_ -= part;
      if (answer_left_ == 0) answered();
      return;
    }
    case Body::kChunked: {
      std::string data;
      const bool looks = unchunk_ || is_event_stream_;
      const std::size_t part = answer_chunks_.feed(answer_in_, looks ? &data : nullptr);
      if (unchunk_)
        to_client_.append(data);
      else
        to_client_.append(answer_in_, 0, part);
      note_stream(data);
      answer_in_.erase(0, part);
      if (answer_chunks_.failed()) return break_off();
      if (answer_chunks_.done()) answered();
      return;
    }
    case Body::kUntilClose:
      note_stream(answer_in_);
      to_client_.append(std::exchange(answer_in_, {}));
      return;
  }
}

void Relay::note_stream(std::string_view data) {
  if (!is_event_stream_) return;
  stream_end_.append(data.substr(data.size() - std::min<std::size_t>(data.size(), 4)));
  stream_end_.erase(0, stream_end_.size() - std::min<std::size_t>(stream_end_.size(), 4));
}

bool Relay::may_comment() const {
  return state_ == State::kForwarding && has_head_ && is_event_stream_ &&
         (unchunk_ || answer_body_ != Body::kChunked || answer_chunks_.is_between()) &&
         (stream_end_.ends_with("\n\n") || stream_end_.ends_with("\r\n\r\n"));
}

void Relay::comment() {
  METE_ASSERT(may_comment());
  constexpr std::string_view kComment = ": wait\n\n";
  if (answer_body_ == Body::kChunked && !unchunk_)
    to_client_.append("8\r\n").append(kComment).append("\r\n");
  else
    to_client_.append(kComment);
}

void Relay::answered() {
  // Bytes behind the answer belong to no request.
  if (!answer_in_.empty() || !body_done_ || !to_replica().empty() || deaf_) reusable_ = false;
  answer_in_.clear();
  to_replica_.clear();
  to_replica_sent_ = 0;
  state_ = keeps_client() ? State::kAnswered : State::kClosing;
}

void Relay::break_off() {
  broken_ = true;
  reusable_ = false;
  state_ = State::kClosing;
}

void Relay::replica_is_deaf() {
  deaf_ = true;
  to_replica_.clear();
  to_replica_sent_ = 0;
}

Relay::Loss Relay::replica_ended(bool broken) {
  if (state_ == State::kTunnel) {
    state_ = State::kClosing;
    return Loss::kDone;
  }
  if (state_ != State::kForwarding) return Loss::kDone;
  reusable_ = false;
  if (!has_head_) {
    answer_in_.clear();
    answer_searched_ = 0;
    return Loss::kEarly;
  }
  if (answer_body_ == Body::kUntilClose && !broken) {
    answered();
    return Loss::kDone;
  }
  break_off();
  return Loss::kBroken;
}

}  // namespace mete::proxy
