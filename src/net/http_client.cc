// SPDX-License-Identifier: Apache-2.0
// See http_client.h. The socket does not block; every wait is a poll(2) with a deadline and an
// optional second descriptor that interrupts it. A ResponseParser exists while an answer is
// awaited. An error in the middle of an exchange closes the connection, and the next send()
// connects again, to the same user only.
#include "net/http_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace mete::net {

namespace {

constexpr std::size_t kReadBytes = 64 << 10;

std::string head_of(std::string_view method, std::string_view target, std::size_t body_bytes,
                    std::string_view accept) {
  std::string head(method);
  head += ' ';
  head += target;
  head += " HTTP/1.1\r\nHost: mete\r\n";
  if (!accept.empty()) head.append("Accept: ").append(accept).append("\r\n");
  if (body_bytes > 0 || method == "POST" || method == "PUT")
    head +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body_bytes) + "\r\n";
  return head += "\r\n";
}

bool went_away(int error) { return error == EPIPE || error == ECONNRESET; }

}  // namespace

Result<HttpClient> HttpClient::connect(const std::string& path, Milliseconds timeout) {
  HttpClient client;
  client.path_ = path;
  client.connect_timeout_ = timeout;
  if (Result<void> r = client.reconnect(timeout); !r) return std::move(r).error();
  return client;
}

Result<void> HttpClient::reconnect(Milliseconds timeout) {
  Result<Fd> socket = connect_unix(path_, timeout);
  if (!socket) return std::move(socket).error();
  const Result<Peer> peer = peer_of(socket->get());
  if (!peer) return peer.error();
  // The caller of connect() has checked this user, and will not check again.
  if (peer_.pid != 0 && peer->uid != peer_.uid)
    return Error::denied("another user's program listens at " + path_ + " now");
  socket_ = *std::move(socket);
  peer_ = *peer;
  reusable_ = true;
  return {};
}

// The daemon closed the connection while no request was open. Then nothing was lost either.
bool HttpClient::stale() const {
  pollfd fd{socket_.get(), POLLIN, 0};
  return !reusable_ || poll(&fd, 1, 0) != 0;
}

Result<HttpClient::Reply> HttpClient::request(std::string_view method, std::string_view target,
                                              std::string_view body, const Wait& wait) {
  if (Result<void> sent = send(method, target, body, wait); !sent) return std::move(sent).error();
  return receive(wait);
}

Result<void> HttpClient::send(std::string_view method, std::string_view target,
                              std::string_view body, const Wait& wait) {
  abandon();  // a late answer does not belong to the new request
  stopped_ = Stopped::kNo;
  const Deadline deadline = Deadline::in(wait.timeout);
  if (stale())
    if (Result<void> r = reconnect(connect_timeout_); !r) return r;
  const std::string bytes = head_of(method, target, body.size(), accept_).append(body);
  std::string_view left = bytes;
  parser_.emplace(method == "HEAD");
  whole_.clear();
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      // A request that was sent in part cannot be resumed: close the connection.
      if (Result<void> r = await(POLLOUT, wait, deadline); !r) return broken(std::move(r).error());
    } else if (went_away(errno)) {
      return {};  // the daemon may have answered ("503", "413"): receive() will see
    } else if (errno != EINTR) {
      return broken(Error::from_errno("send to " + path_, errno));
    }
  }
  return {};
}

Result<HttpClient::Reply> HttpClient::receive(const Wait& wait) {
  const Deadline deadline = Deadline::in(wait.timeout);
  if (Result<void> r = receive_until_head(wait, deadline); !r) return std::move(r).error();
  for (;;) {
    // A long list grows once, not twenty times.
    whole_.reserve(
        whole_.size() + parser_->body_waiting() +
        static_cast<std::size_t>(std::min<std::uint64_t>(parser_->expected(), kMaxBodyBytes)));
    whole_ += parser_->take_body();
    if (whole_.size() > kMaxBodyBytes)
      return broken(
          Error::corrupt("the answer is larger than " + std::to_string(kMaxBodyBytes) + " bytes"));
    if (parser_->done()) break;
    if (Result<void> r = receive_some(wait, deadline); !r) return std::move(r).error();
  }
  Reply reply{parser_->status(), parser_->content_type(), std::exchange(whole_, {})};
  reusable_ = parser_->keep_alive();
  parser_.reset();
  return reply;
}

Result<HttpClient::Reply> HttpClient::receive_head(const Wait& wait) {
  const Deadline deadline = Deadline::in(wait.timeout);
  if (Result<void> r = receive_until_head(wait, deadline); !r) return std::move(r).error();
  return Reply{parser_->status(), parser_->content_type(), {}};
}

Result<std::optional<std::string>> HttpClient::next_chunk(const Wait& wait) {
  if (!parser_.has_value()) return std::optional<std::string>();  // the end was reported already
  METE_ASSERT(parser_->head_done());
  const Deadline deadline = Deadline::in(wait.timeout);
  while (parser_->body_waiting() == 0 && !parser_->done())
    if (Result<void> r = receive_some(wait, deadline); !r) return std::move(r).error();
  if (parser_->body_waiting() > 0) return std::optional(parser_->take_body());
  reusable_ = parser_->keep_alive();
  parser_.reset();
  return std::optional<std::string>();
}

Result<void> HttpClient::receive_until_head(const Wait& wait, const Deadline& deadline) {
  if (!parser_.has_value()) return Error::busy("the connection to the daemon is closed");
  while (!parser_->head_done())
    if (Result<void> r = receive_some(wait, deadline); !r) return r;
  return {};
}

Result<void> HttpClient::await(short events, const Wait& wait, const Deadline& deadline) {
  const Result<Waited> waited = wait_for(socket_.get(), events, wait.interrupt, deadline);
  if (!waited) return waited.error();
  if (*waited == Waited::kReady) return {};
  stopped_ = *waited == Waited::kTimeout ? Stopped::kTimeout : Stopped::kInterrupted;
  return Error::io(*waited == Waited::kTimeout ? "the daemon did not answer in time"
                                               : "interrupted while waiting for the daemon")
      .with_evidence("connected to " + path_);
}

Result<void> HttpClient::receive_some(const Wait& wait, const Deadline& deadline) {
  stopped_ = Stopped::kNo;
  if (Result<void> r = await(POLLIN, wait, deadline); !r) return r;  // the caller may wait again
  char buffer[kReadBytes];
  const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (got < 0 && !went_away(errno))
    return broken(Error::from_errno("receive from " + path_, errno));
  if (got < 0) return broken(Error::busy(path_ + ": the daemon went away before it had answered"));
  Result<void> understood =
      got > 0 ? parser_->feed(std::string_view(buffer, static_cast<std::size_t>(got)))
              : parser_->end();
  if (!understood) return broken(std::move(understood).error().within(path_));
  return {};
}

void HttpClient::abandon() {
  if (!parser_.has_value()) return;
  parser_.reset();
  socket_.reset();
  reusable_ = false;
}

// Nothing more can arrive on this connection.
Error HttpClient::broken(Error error) {
  parser_.reset();
  reusable_ = false;
  return error;
}

}  // namespace mete::net
