// SPDX-License-Identifier: Apache-2.0
// One connection of the HTTP server: reads a request, passes it on, writes the answer, and repeats.
// Its states:
//
//   idle ──first byte──► reading ──whole──► waiting ──answer──► writing ──all out──► idle
//                           │ not HTTP, too slow   └─stream──► streaming ─close()─┘
//                           ▼                                     │ hang-up, or cut off
//                        writing the error, then closed ◄─────────┘
//
// In `waiting` nothing is read, so that a client that keeps sending cannot fill our memory; only a
// hang-up is watched for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/fd.h"
#include "net/http_server.h"
#include "net/request_parser.h"

namespace mete::net {

class Connection;

// What a connection needs from its server. Outlives its connections.
struct ConnectionHost : std::enable_shared_from_this<ConnectionHost> {
  virtual ~ConnectionHost() = default;
  virtual void closed(Connection& connection) = 0;

  // What is held for the clients of one user.
  struct Load {
    std::size_t connections = 0;
    std::size_t in_bytes = 0;
    std::size_t waiting_bytes = 0;
    std::size_t out_bytes = 0;
  };
  std::unordered_map<uid_t, Load> loads;
  std::uint64_t questions = 0;

  Loop* loop = nullptr;
  Handler handler;
  HttpServer::Limits limits;
  bool draining = false;
  bool stopped = false;  // the HttpServer is destroyed: no callbacks any more
  std::string scratch;   // receive buffer; one for all connections, of a fixed size
};

// The answer to one request on a connection.
struct Exchange final : Responder::Exchange, std::enable_shared_from_this<Exchange> {
  ~Exchange() override;  // NOLINT(bugprone-exception-escape): as in connection.cc
  void reply(const Response& response) override;
  void on_gone(std::function<void()> function) override;
  bool gone() const override { return connection.expired(); }
  void start_stream(const Response& head) override;
  bool send(std::string_view chunk) override;
  std::size_t unsent() const override;
  std::size_t unread() const override;
  void on_sent(std::function<void()> function) override;
  void close() override;
  void tell_gone();  // posts when_gone, if there is one
  void tell_sent();  // posts when_sent, if there is one

  std::weak_ptr<ConnectionHost> host;
  std::weak_ptr<Connection> connection;  // empty once the client is gone or has its answer
  std::function<void()> when_gone;
  std::function<void()> when_sent;
  bool answered = false;  // a second answer is a bug
  bool ended = false;     // nothing more follows: the reply or the end of the stream was given
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionHost& host, Fd socket, Peer peer);
  // Watches the socket; to be called once, and the connection is dropped if it fails.
  Result<void> start();

  const Peer& peer() const { return peer_; }
  // Every request has been answered.
  bool idle() const;
  // The number of the unanswered question (GET) on this connection, in order of arrival on the
  // server; 0: none waits here.
  std::uint64_t waits_since() const { return state_ == State::kWaiting ? asked_ : 0; }
  // Makes room for another client: 503, and closed. The client has to ask again.
  void give_way();
  void close();

  // For Responder.
  void reply(const Response& response);
  void start_stream(const Response& head);
  bool send_chunk(std::string_view chunk);
  std::size_t unsent() const { return out_.size() - out_sent_; }
  std::size_t unread() const;
  void end_stream();

 private:
  enum class State { kIdle, kReading, kWaiting, kStreaming, kWriting, kClosed };

  void ready(Ready what);
  void receive();
  void process();
  bool parse_one();
  void hand_over();
  void refuse(int status, const std::string& why);
  void put_head(const Response& response, bool streamed);
  void flush();
  void written();
  void enter(State state);
  void look_for_stall();
  void lost();
  void count();
  void wait_with(std::size_t body_bytes);

  ConnectionHost& host_;
  Fd socket_;
  Peer peer_;
  Watch watch_;
  Timer deadline_;
  State state_ = State::kIdle;
  std::string in_;                         // received and not yet parsed
  std::unique_ptr<RequestParser> parser_;  // while reading
  std::string out_;                        // to be sent, from out_sent_ on
  std::size_t out_sent_ = 0;
  std::shared_ptr<void> held_;   // kept alive until the current answer is written
  std::size_t waiting_ = 0;      // body of the request that is not answered yet
  std::size_t received_ = 0;     // bytes of the request that is being read, and behind it
  std::size_t counted_in_ = 0;   // in the load of its user
  std::size_t counted_out_ = 0;  // the same
  std::uint64_t asked_ = 0;      // the number of the question; 0: it was none
  std::weak_ptr<Exchange> exchange_;
  bool keep_alive_ = true;   // of the request being answered
  bool chunked_ = true;      // HTTP/1.0 knows no chunks: a stream ends with the connection
  bool head_only_ = false;   // it was HEAD
  bool processing_ = false;  // process() is on the stack
  bool progress_ = false;    // bytes were written since the last check for a stall
};

}  // namespace mete::net
