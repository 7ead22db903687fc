// SPDX-License-Identifier: Apache-2.0
// See connection.h. ready() reads and writes as far as the socket allows; process() parses requests
// out of the received bytes and passes each to the handler; replies are appended to one output
// buffer. Counters in the host bound what is held for each user. A call that may close the
// connection may also free it: the entry points (ready, the timers, posted functions) hold a
// reference until they return.
#include "net/connection.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/assert.h"

namespace mete::net {

namespace {

constexpr int kRequestsPerTurn = 16;  // of one connection, before others get their turn
constexpr std::size_t kSmall = 4096;  // a buffer of this size may be kept
constexpr std::size_t kCompact = 64 << 10;

// The error object of the API. The message is plain text of ours, with quoted input in it.
std::string error_json(int status, const std::string& message) {
  std::string text;
  for (const char c : message) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  const char* code = status == 503 ? "busy" : status >= 500 ? "io" : "invalid";
  return std::string(R"({"error":{"code":")") + code + R"(","message":")" + text +
         R"(","exit":125}})";
}

void append_clean(std::string& out, std::string_view text) {
  for (const char c : text)
    out += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? ' ' : c;  // no second header line
}

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): without memory there is nothing left to answer with
Exchange::~Exchange() {
  const std::shared_ptr<Connection> open = connection.lock();
  if (open == nullptr || ended) return;
  if (answered)
    open->end_stream();
  else
    open->reply({500, error_json(500, "the daemon has no answer to this request")});
}

void Exchange::tell_gone() {
  const std::shared_ptr<ConnectionHost> server = host.lock();
  if (server == nullptr || when_gone == nullptr || ended) return;
  server->loop->post([weak = weak_from_this(), weak_server = host] {
    const std::shared_ptr<Exchange> self = weak.lock();
    const std::shared_ptr<ConnectionHost> running = weak_server.lock();
    if (self == nullptr || running == nullptr || running->stopped) return;
    if (auto function = std::exchange(self->when_gone, nullptr); function != nullptr) function();
  });
}

void Exchange::tell_sent() {
  const std::shared_ptr<ConnectionHost> server = host.lock();
  if (server == nullptr || when_sent == nullptr || ended) return;
  server->loop->post([weak = weak_from_this(), weak_server = host] {
    const std::shared_ptr<Exchange> self = weak.lock();
    const std::shared_ptr<ConnectionHost> running = weak_server.lock();
    if (self == nullptr || running == nullptr || running->stopped) return;
    if (auto function = std::exchange(self->when_sent, nullptr); function != nullptr) function();
  });
}

void Exchange::reply(const Response& response) {
  METE_ASSERT(!answered);
  answered = ended = true;
  when_gone = nullptr;
  if (const auto open = connection.lock()) open->reply(response);
}

void Exchange::on_gone(std::function<void()> function) {
  if (ended) return;
  when_gone = std::move(function);
  if (gone()) tell_gone();
}

void Exchange::start_stream(const Response& head) {
  METE_ASSERT(!answered);
  answered = true;
  if (const auto open = connection.lock()) open->start_stream(head);
}

bool Exchange::send(std::string_view chunk) {
  METE_ASSERT(answered);
  const auto open = connection.lock();
  return open != nullptr && !ended && open->send_chunk(chunk);
}

std::size_t Exchange::unsent() const {
  const auto open = connection.lock();
  return open == nullptr ? 0 : open->unsent();
}

std::size_t Exchange::unread() const {
  const auto open = connection.lock();
  return open == nullptr ? 0 : open->unread();
}

void Exchange::on_sent(std::function<void()> function) {
  if (ended) return;
  when_sent = std::move(function);
  if (unsent() == 0) tell_sent();
}

void Exchange::close() {
  METE_ASSERT(answered);
  if (std::exchange(ended, true)) return;
  when_gone = nullptr;
  if (const auto open = connection.lock()) open->end_stream();
}

Connection::Connection(ConnectionHost& host, Fd socket, Peer peer)
    : host_(host), socket_(std::move(socket)), peer_(peer) {}

Result<void> Connection::start() {
  Result<Watch> watch =
      host_.loop->watch(socket_.get(), kReadable, [this](Ready what) { ready(what); });
  if (!watch) return std::move(watch).error();
  watch_ = *std::move(watch);
  enter(State::kIdle);
  return {};
}

bool Connection::idle() const {
  int waiting = 0;
  return state_ == State::kIdle && in_.empty() &&
         (ioctl(socket_.get(), FIONREAD, &waiting) != 0 || waiting == 0);
}

void Connection::ready(Ready what) {
  const std::shared_ptr<Connection> self = shared_from_this();
  if (what == kReadable) receive();
  if (what == kWritable) flush();
  // Urgent bytes look like a hang-up here; they have no place in HTTP and are treated as one.
  if (what == kHangup) lost();
}

void Connection::receive() {
  if (state_ != State::kIdle && state_ != State::kReading) return;
  const ssize_t got = recv(socket_.get(), host_.scratch.data(), host_.scratch.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;  // reported again later
  if (got <= 0) return close();
  in_.append(host_.scratch.data(), static_cast<std::size_t>(got));
  received_ += static_cast<std::size_t>(got);
  count();
  // A client that has sent next to nothing is served nevertheless.
  if (peer_.uid != host_.limits.unbounded && received_ > kSmall &&
      host_.loads[peer_.uid].in_bytes > host_.limits.body_bytes_per_user)
    return refuse(503, "this user sends too much at once");
  process();
}

// Updates how much the server holds for this client.
void Connection::count() {
  ConnectionHost::Load& load = host_.loads[peer_.uid];
  load.in_bytes += received_ - counted_in_;
  counted_in_ = received_;
  load.out_bytes += unsent() - counted_out_;
  counted_out_ = unsent();
}

// Counts how much of a request is kept until it is answered.
void Connection::wait_with(std::size_t body_bytes) {
  host_.loads[peer_.uid].waiting_bytes += body_bytes - waiting_;
  waiting_ = body_bytes;
}

void Connection::process() {
  if (processing_) return;
  processing_ = true;
  for (int left = kRequestsPerTurn; left > 0; --left)
    if ((state_ != State::kIdle && state_ != State::kReading) || in_.empty() || !parse_one()) break;
  processing_ = false;
  // Answered already, and more has arrived: later, so that others get their turn.
  if (state_ == State::kIdle && !in_.empty())
    host_.loop->post([weak = weak_from_this()] {
      if (const std::shared_ptr<Connection> self = weak.lock()) self->process();
    });
}

// False: more bytes are needed, or the request was refused.
bool Connection::parse_one() {
  if (parser_ == nullptr) {
    parser_ = std::make_unique<RequestParser>(
        RequestParser::Limits{host_.limits.header_bytes, host_.limits.body_bytes});
    enter(State::kReading);
  }
  in_.erase(0, parser_->feed(in_));
  if (in_.empty()) in_ = std::string();
  if (parser_->failed()) {
    refuse(parser_->error_status(), std::string(parser_->error()));
    return false;
  }
  if (parser_->done()) {
    hand_over();
    return true;
  }
  if (parser_->take_expectation()) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    // Nothing else is being sent now; a client whose buffer is full nevertheless does not wait for
    // this.
    (void)send(socket_.get(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  return false;
}

void Connection::hand_over() {
  keep_alive_ = parser_->keep_alive();
  chunked_ = !parser_->http_1_0();
  Result<Request> request = parser_->take_request();
  parser_.reset();
  received_ = in_.size();
  count();
  if (!request) return refuse(400, request.error().message);
  if (peer_.uid != host_.limits.unbounded && request->body.size() > kSmall &&
      host_.loads[peer_.uid].waiting_bytes + request->body.size() >
          host_.limits.waiting_bytes_per_user)
    return refuse(503, "too many requests of this user are unanswered");
  wait_with(request->body.size());
  head_only_ = request->method == "HEAD";
  asked_ = request->method == "GET" ? ++host_.questions : 0;
  request->peer = peer_;
  auto exchange = std::make_shared<Exchange>();
  exchange->host = host_.weak_from_this();
  exchange->connection = weak_from_this();
  exchange_ = exchange;
  enter(State::kWaiting);
  host_.handler(*std::move(request), Responder(std::move(exchange)));
}

void Connection::refuse(int status, const std::string& why) {
  parser_.reset();
  in_ = std::string();
  received_ = 0;
  keep_alive_ = head_only_ = false;
  enter(State::kWaiting);
  reply({status, error_json(status, why)});
}

void Connection::give_way() {
  const std::shared_ptr<Connection> self = shared_from_this();
  if (const std::shared_ptr<Exchange> exchange = exchange_.lock()) {
    exchange->tell_gone();
    exchange->connection.reset();
  }
  asked_ = 0;
  refuse(503, "the daemon has too many clients");
}

void Connection::reply(const Response& response) {
  if (state_ != State::kWaiting) return;
  const std::size_t unread = host_.loads[peer_.uid].out_bytes;
  if (peer_.uid != host_.limits.unbounded && unread > 0 && response.body.size() > kSmall &&
      unread + response.body.size() > host_.limits.unread_bytes_per_user)
    return reply({503, error_json(503, "this user does not read its other answers")});
  wait_with(0);
  held_ = response.held;
  put_head(response, false);
  if (!head_only_ && !has_no_body(response.status)) out_ += response.body;
  enter(State::kWriting);
  flush();
}

void Connection::start_stream(const Response& head) {
  if (state_ != State::kWaiting) return;
  wait_with(0);
  if (!chunked_) keep_alive_ = false;
  put_head(head, true);
  enter(head_only_ ? State::kWriting : State::kStreaming);
  flush();
}

bool Connection::send_chunk(std::string_view chunk) {
  if (state_ != State::kStreaming) return false;
  if (chunk.empty()) return true;  // an empty chunk would be the end
  // Counts what is waiting already: a chunk larger than the limit can be sent.
  const bool too_slow = unsent() > host_.limits.stream_bytes;
  if (too_slow) lost();
  if (too_slow) return false;
  char size[20];
  if (chunked_) out_.append(size, std::snprintf(size, sizeof size, "%zx\r\n", chunk.size()));
  out_ += chunk;
  if (chunked_) out_ += "\r\n";
  flush();
  return state_ == State::kStreaming;
}

std::size_t Connection::unread() const {
  int queued = 0;
  if (!socket_ || ioctl(socket_.get(), TIOCOUTQ, &queued) != 0 || queued < 0) queued = 0;
  return unsent() + static_cast<std::size_t>(queued);
}

void Connection::end_stream() {
  if (state_ != State::kStreaming) return;
  if (chunked_) out_ += "0\r\n\r\n";
  enter(State::kWriting);
  flush();
}

void Connection::put_head(const Response& response, bool streamed) {
  out_ += "HTTP/1.1 " + std::to_string(response.status) + ' ';
  out_ += reason_phrase(response.status);
  out_ += "\r\n";
  if (!has_no_body(response.status)) {
    out_ += "Content-Type: ";
    append_clean(out_, response.content_type);
    if (!streamed) out_ += "\r\nContent-Length: " + std::to_string(response.body.size());
    if (streamed && chunked_) out_ += "\r\nTransfer-Encoding: chunked";
    out_ += "\r\n";
  }
  for (const auto& [name, value] : response.headers) {
    append_clean(out_, name);
    out_ += ": ";
    append_clean(out_, value);
    out_ += "\r\n";
  }
  if (host_.draining) keep_alive_ = false;
  if (!keep_alive_) out_ += "Connection: close\r\n";
  if (keep_alive_ && !chunked_)
    out_ += "Connection: keep-alive\r\n";  // HTTP/1.0 does not assume it
  out_ += "\r\n";
}

void Connection::flush() {
  while (out_sent_ < out_.size()) {
    const ssize_t sent = ::send(socket_.get(), out_.data() + out_sent_, out_.size() - out_sent_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return lost();
    out_sent_ += static_cast<std::size_t>(sent);
    progress_ = true;
  }
  if (out_sent_ == out_.size()) {
    if (out_.capacity() > kSmall || state_ != State::kStreaming) out_ = std::string();
    out_.clear();
    out_sent_ = 0;
    count();
    return written();
  }
  count();
  if (out_sent_ > kCompact) {
    out_.erase(0, out_sent_);
    out_sent_ = 0;
  }
  watch_.want(state_ == State::kStreaming ? kWritable | kHangup : kWritable);
  if (state_ == State::kWriting && !deadline_.active()) {
    progress_ = false;
    deadline_ = host_.loop->every(host_.limits.write_stall, [this] { look_for_stall(); });
  }
}

void Connection::written() {
  if (state_ == State::kStreaming) {
    if (const std::shared_ptr<Exchange> exchange = exchange_.lock()) exchange->tell_sent();
    return watch_.want(kHangup);
  }
  if (state_ != State::kWriting) return;
  held_.reset();
  if (!keep_alive_ || host_.draining) return close();
  enter(State::kIdle);
  // Bytes behind the request. Not processed here: this may be inside a caller's reply().
  if (!in_.empty() && !processing_)
    host_.loop->post([weak = weak_from_this()] {
      if (const std::shared_ptr<Connection> self = weak.lock()) self->process();
    });
}

void Connection::enter(State state) {
  state_ = state;
  deadline_.cancel();
  switch (state) {
    case State::kIdle:
      watch_.want(kReadable);
      deadline_ = host_.loop->after(host_.limits.idle, [this] { close(); });
      break;
    case State::kReading:
      watch_.want(kReadable);
      deadline_ = host_.loop->after(host_.limits.request_time, [this] {
        const std::shared_ptr<Connection> self = shared_from_this();
        refuse(408, "the request took too long to arrive");
      });
      break;
    case State::kWaiting:
    case State::kStreaming:
      watch_.want(kHangup);
      break;
    case State::kWriting:
    case State::kClosed:
      watch_.want(0);
      break;
  }
}

void Connection::look_for_stall() {
  if (!std::exchange(progress_, false)) close();
}

// The client is gone, or as good as gone.
void Connection::lost() {
  if (state_ == State::kWaiting || state_ == State::kStreaming)
    if (const std::shared_ptr<Exchange> exchange = exchange_.lock()) exchange->tell_gone();
  close();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const std::shared_ptr<Connection> self = shared_from_this();  // the server drops its reference
                                                                // below
  state_ = State::kClosed;
  watch_.cancel();
  deadline_.cancel();
  socket_.reset();
  parser_.reset();
  in_ = out_ = std::string();
  out_sent_ = received_ = 0;
  wait_with(0);
  held_.reset();
  count();
  if (const std::shared_ptr<Exchange> exchange = exchange_.lock()) exchange->connection.reset();
  host_.closed(*this);
}

}  // namespace mete::net
