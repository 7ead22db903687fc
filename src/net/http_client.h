// SPDX-License-Identifier: Apache-2.0
// A small blocking HTTP/1.1 client on a Unix socket, for `mete`. One connection, kept open between
// requests. No Boost, no threads, no signals (EINTR is retried, a closed socket is no SIGPIPE).
//
// Codes of its errors: not_found, no socket there; denied, not for this user; busy, nobody listens
// there or the daemon went away in the middle (whether it had acted on the request is not known);
// corrupt, what answers does not speak HTTP: the socket is not ours; io, everything else, and every
// wait that ended without news. That last case is also told by stopped(), and then nothing is lost:
// ask again with receive() or next_chunk().
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

  // send() and receive(). Connects anew when the daemon closed the connection since the last reply.
  Result<Reply> request(std::string_view method, std::string_view target,
                        std::string_view body = {}, const Wait& wait = {});
  // Sends a request. An answer that is still awaited is given up, as by abandon(): a request that
  // timed out leaves a client that can be used. The target is percent-encoded already.
  Result<void> send(std::string_view method, std::string_view target, std::string_view body = {},
                    const Wait& wait = {});
  // The whole answer.
  Result<Reply> receive(const Wait& wait = {});

  // Instead of receive(): the head (its body is empty), then what comes of the body, in pieces as
  // they come, nullopt at its end.
  Result<Reply> receive_head(const Wait& wait = {});
  Result<std::optional<std::string>> next_chunk(const Wait& wait = {});

  // What of several kinds of answer is wanted, from the next request on: "text/event-stream". "":
  // whatever the daemon gives by itself.
  void accept(std::string type) { accept_ = std::move(type); }

  // Waits no longer for the answer, which hangs up; the next send() connects anew.
  void abandon();

  // Why the last call failed with io: the wait was over, or `interrupt` was readable.
  enum class Stopped { kNo, kTimeout, kInterrupted };
  Stopped stopped() const { return stopped_; }

  // Who listens there: one user, as long as this client lives.
  const Peer& peer() const { return peer_; }
  const std::string& path() const { return path_; }
  // To poll together with other descriptors.
  // After an answer: the daemon closes the connection behind it.
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
  std::string whole_;                     // what receive() has so far
  bool reusable_ = true;
  Stopped stopped_ = Stopped::kNo;
};

}  // namespace mete::net
