// SPDX-License-Identifier: Apache-2.0
// A small blocking HTTP/1.1 client on a Unix socket, for `mete`. One connection, kept open between
// requests. No Boost, no threads, no signals (EINTR is retried, a closed socket is no SIGPIPE).
//
// Codes of its errors: not_found, no socket there; denied, not for this user; busy, no process
// listens there or the daemon went away in the middle (it is unknown whether it had acted on the
// request); corrupt, the answer is not HTTP: the socket is not ours; io, everything else, and every
// wait that ended without an answer. stopped() identifies that last case, in which nothing is lost:
// call receive() or next_chunk() again.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "net/response_parser.h"
#include "net/unix_socket.h"

namespace mete::net {

// How long to wait, and what else to listen to meanwhile.
struct Wait {
  std::optional<Milliseconds> timeout;  // nullopt: for ever
  int interrupt = -1;                   // readable (a signalfd, say): stop waiting
};

class HttpClient {
 public:
  static constexpr std::size_t kMaxBodyBytes = 64 << 20;  // of a reply in one piece

  struct Reply {
    int status = 0;
    std::string content_type;
    std::string body;
  };

  static Result<HttpClient> connect(const std::string& path, Milliseconds timeout);

  // send() and receive(). Connects again if the daemon closed the connection since the last reply.
  Result<Reply> request(std::string_view method, std::string_view target,
                        std::string_view body = {}, const Wait& wait = {});
  // Sends a request. An answer that is still awaited is given up, as by abandon(): after a timeout
  // the client stays usable. The target is percent-encoded already.
  Result<void> send(std::string_view method, std::string_view target, std::string_view body = {},
                    const Wait& wait = {});
  // The whole answer.
  Result<Reply> receive(const Wait& wait = {});

  // Instead of receive(): the head (its body is empty), then the body in pieces as they arrive,
  // nullopt at its end.
  Result<Reply> receive_head(const Wait& wait = {});
  Result<std::optional<std::string>> next_chunk(const Wait& wait = {});

  // The wanted kind of answer, from the next request on: "text/event-stream". "": the daemon's
  // default.
  void accept(std::string type) { accept_ = std::move(type); }

  // Stops waiting for the answer and closes the connection; the next send() connects again.
  void abandon();

  // Why the last call failed with io: the wait was over, or `interrupt` was readable.
  enum class Stopped { kNo, kTimeout, kInterrupted };
  Stopped stopped() const { return stopped_; }

  // The process that listens there: always the same user, as long as this client lives.
  const Peer& peer() const { return peer_; }
  const std::string& path() const { return path_; }
  // To poll together with other descriptors. After an answer: the daemon closes the connection
  // behind it.
  bool closed_behind() const { return !reusable_; }
  int descriptor() const { return socket_.get(); }

 private:
  Result<void> reconnect(Milliseconds timeout);
  bool stale() const;
  Result<void> await(short events, const Wait& wait, const Deadline& deadline);
  Result<void> receive_some(const Wait& wait, const Deadline& deadline);
  Result<void> receive_until_head(const Wait& wait, const Deadline& deadline);
  Error broken(Error error);

  std::string path_;
  std::string accept_;
  Fd socket_;
  Peer peer_;  // pid 0: never connected
  Milliseconds connect_timeout_{0};
  std::optional<ResponseParser> parser_;  // while an answer is awaited
  std::string whole_;                     // the part that receive() has so far
  bool reusable_ = true;
  Stopped stopped_ = Stopped::kNo;
};

}  // namespace mete::net
