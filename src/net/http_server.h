// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on a listening Unix socket, on the loop's thread. Each request goes to one handler with
// a Responder, which is answered at once, hours later, or with a stream of chunks. Requests of one
// connection are handled one after the other (pipelining is safe: the next one is read when the
// previous answer is out). A connection whose handler waits has no buffers.
//
// Bytes from the other side never crash it: what is not HTTP gets 400, and the connection is
// closed. Every limit is in Limits. Answers to our own mistakes are 500.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "net/http.h"
#include "net/loop.h"

namespace mete::net {

// The answer to one request. Copies share one answer; exactly one call of reply() or start_stream()
// on all of them together, a second is a bug and asserts. When the last copy is destroyed without
// an answer, the client gets 500. May outlive the server, and then does nothing. Loop's thread
// only.
class Responder {
 public:
  // Where the answer goes: a connection of HttpServer, or a test's record of it.
  struct Exchange {
    virtual ~Exchange() = default;
    virtual void reply(const Response& response) = 0;
    virtual void on_gone(std::function<void()> function) = 0;
    virtual bool gone() const = 0;
    virtual void start_stream(const Response& head) = 0;
    virtual bool send(std::string_view chunk) = 0;
    virtual std::size_t unsent() const = 0;
    virtual std::size_t unread() const = 0;
    virtual void on_sent(std::function<void()> function) = 0;
    virtual void close() = 0;
  };
  explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  // Dropped when the client is gone.
  void reply(const Response& response) { exchange_->reply(response); }

  // Called once, from the loop and never from inside a call to us, when the client hangs up before
  // the answer (or the end of the stream), or its stream is cut off; not after that, not when the
  // server is destroyed, not when no copy of the Responder is left. Capture an id in it, not the
  // Responder.
  void on_gone(std::function<void()> function) { exchange_->on_gone(std::move(function)); }
  bool gone() const { return exchange_->gone(); }

  // Sends the head (its body is not used); then chunks go out until close().
  void start_stream(const Response& head) { exchange_->start_stream(head); }
  // One chunk. A client that lets more than Limits::stream_bytes accumulate is cut off. False: it
  // is gone or cut off, and so are all later chunks.
  bool send(std::string_view chunk) { return exchange_->send(chunk); }
  // Bytes that the client's socket has not taken yet.
  std::size_t unsent() const { return exchange_->unsent(); }
  // unsent() and what the client has not read from its socket: 0 once it has everything.
  std::size_t unread() const { return exchange_->unread(); }
  // Called once, as on_gone is, when the socket has taken everything: for a sender that has more to
  // send than should accumulate.
  void on_sent(std::function<void()> function) { exchange_->on_sent(std::move(function)); }
  void close() { exchange_->close(); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

using Handler = std::function<void(Request, Responder)>;

class HttpServer {
 public:
  struct Limits {
    std::size_t body_bytes = 1 << 20;     // 413
    std::size_t header_bytes = 16 << 10;  // 431
    // The user that the limits per user and on connections do not apply to, so that an
    // administrator can always connect: root.
    uid_t unbounded = 0;
    std::size_t connections = 4096;           // one more gets 503 and is closed
    std::size_t connections_per_user = 4096;  // 503 and closed beyond this
    // For all users, the unbounded one too: as many as there are descriptors for. A further client
    // takes the place of the question (GET) that has waited longest for its answer, which gets 503,
    // is closed, and has to be asked again; if there is none, the client gets 503 itself.
    std::size_t descriptors = SIZE_MAX;
    std::size_t body_bytes_per_user = 4096ull << 20;     // requests that are arriving: 503
    std::size_t waiting_bytes_per_user = 4096ull << 20;  // of requests without an answer yet: 503
    std::size_t unread_bytes_per_user = 128 << 20;       // answers beside the first one: 503
    Milliseconds idle{60'000};                           // between requests: closed
    Milliseconds request_time{10'000};                   // from the first byte to the last: 408
    Milliseconds write_stall{60'000};    // the client reads nothing of its answer: closed
    std::size_t stream_bytes = 1 << 20;  // waiting in a stream: cut off
  };

  // The socket listens already. The handler is called from the loop, never from inside a call to
  // us.
  static Result<HttpServer> start(Loop& loop, Fd listening, Handler handler, Limits limits);
  static Result<HttpServer> start(Loop& loop, Fd listening, Handler handler) {
    return start(loop, std::move(listening), std::move(handler), Limits());
  }
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) noexcept;
  // Closes everything at once.
  ~HttpServer();

  std::size_t connections() const;

  // Listens on this socket from now on. Connections stay, and clients in the old socket's queue are
  // accepted first. Not after drain().
  Result<void> listen_on(Fd listening);

  // Graceful end: accepts no more clients, closes idle connections, and calls `done` from the loop
  // when the last answer is out. The owners of streams and long polls end them.
  void drain(std::function<void()> done);

 private:
  struct Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace mete::net
