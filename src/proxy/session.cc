// SPDX-License-Identifier: Apache-2.0
// See session.h. Each event of a socket ends in step(), which lets advance() go on from state to
// state of the Relay until it waits for something, writes what there is, and watches for what is
// missing. A session keeps itself alive while one of its functions is on the stack.
#include "proxy/session.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace mete::proxy {

namespace {

using net::Milliseconds;
using net::Ready;

constexpr std::size_t kPart = 32 << 10;  // of a collected body at a time
constexpr Milliseconds kLeastTimer{10};
constexpr int kMostTries = 3;

// A connection that begins; its success shows when it can be written to.
Result<Fd> begin_connect(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Error::io("no socket for a replica");
  const int on = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), any, sizeof address) != 0 && errno != EINPROGRESS)
    return Error::busy("the replica does not listen");
  return socket;
}

// Whether an idle connection is still open and silent.
bool is_alive(int socket) {
  char byte = 0;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

// Bytes written, 0 if the socket takes none now; nullopt: the connection is gone.
std::optional<std::size_t> write_some(int socket, std::string_view bytes) {
  for (;;) {
    const ssize_t n = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    return std::nullopt;
  }
}

}  // namespace

Session::Session(ProxyServer::Impl& server, Fd socket)
    : server_(server), client_(std::move(socket)), body_(server.limits.spool), since_(now()) {}

Result<void> Session::start() {
  const int on = 1;
  (void)setsockopt(client_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  client_wants_ = net::kReadable;
  Result<net::Watch> watch = server_.loop.watch(client_.get(), client_wants_, [this](Ready ready) {
    const std::shared_ptr<Session> self = shared_from_this();
    client_ready(ready);
  });
  if (!watch) return std::move(watch).error();
  client_watch_ = std::move(*watch);
  set_timer();
  return {};
}

// ---- sockets -----------------------------------------------------------------------------------

void Session::client_ready(Ready ready) {
  if (ready == net::kHangup) {
    pollfd both{client_.get(), 0, 0};
    if (poll(&both, 1, 0) > 0 && (both.revents & (POLLERR | POLLHUP)) != 0) return close(true);
    // An urgent byte is reported until it is taken.
    char byte = 0;
    (void)recv(client_.get(), &byte, 1, MSG_OOB | MSG_DONTWAIT);
  }
  if (ready == net::kReadable) read_client();
  step();
}

void Session::replica_ready(Ready ready) {
  if (connecting_ && ready != net::kReadable) {
    int error = 0;
    socklen_t size = sizeof error;
    (void)getsockopt(replica_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      replica_lost();
      return step();
    }
    connecting_ = false;
  }
  if (ready == net::kReadable) read_replica();
  step();
}

void Session::read_client() {
  while (!closed_ && relay_.wants_client()) {
    const ssize_t n =
        recv(client_.get(), server_.scratch.data(), server_.scratch.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    // A client that is gone is gone for its replica too.
    if (n < 0) return close(true);
    if (n == 0) {
      relay_.client_ended();
      return;
    }
    if (relay_.state() != Relay::State::kHead || !relay_.has_begun()) since_ = now();
    relay_.from_client({server_.scratch.data(), static_cast<std::size_t>(n)});
    if (static_cast<std::size_t>(n) < server_.scratch.size()) return;
  }
}

void Session::read_replica() {
  while (replica_.valid() && relay_.wants_replica()) {
    const ssize_t n =
        recv(replica_.get(), server_.scratch.data(), server_.scratch.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) return replica_lost(n < 0);
    since_ = now();
    if (!relay_.has_answer_head()) relay_.set_server_timing(timing());
    relay_.from_replica({server_.scratch.data(), static_cast<std::size_t>(n)});
    if (static_cast<std::size_t>(n) < server_.scratch.size()) return;
  }
}

void Session::write_client() {
  while (!closed_ && !relay_.to_client().empty()) {
    const std::optional<std::size_t> n = write_some(client_.get(), relay_.to_client());
    if (!n) return close(true);
    if (*n == 0) return;
    since_ = now();
    relay_.sent_to_client(*n);
  }
}

void Session::write_replica() {
  while (replica_.valid() && !connecting_) {
    send_body();
    if (closed_) return;
    if (relay_.to_replica().empty()) {
      if (relay_.state() == Relay::State::kTunnel && relay_.client_has_ended())
        (void)shutdown(replica_.get(), SHUT_WR);
      return;
    }
    const std::optional<std::size_t> n = write_some(replica_.get(), relay_.to_replica());
    if (!n && relay_.is_untouched()) return replica_lost();
    if (!n) {
      relay_.replica_is_deaf();
      return read_replica();
    }
    if (*n == 0) return;
    relay_.sent_to_replica(*n);
  }
}

// ---- states ------------------------------------------------------------------------------------

void Session::step() {
  if (closed_ || stepping_) return;
  stepping_ = true;
  do {
    while (!closed_ && advance()) continue;
    if (!closed_) write_replica();
    if (!closed_) write_client();
  } while (!closed_ && advance());
  stepping_ = false;
  if (closed_) return;
  watch();
  set_timer();
}

// Whether something has changed.
bool Session::advance() {
  using State = Relay::State;
  switch (relay_.state()) {
    case State::kAsked:
      if (ticket_ || forwarded_) return false;
      asked_ = now();
      if (model_ != nullptr) {
        if (!collect()) return true;
        const Result<std::string> model = model_->model();
        model_.reset();
        follow(server_.router.route_model(relay_.request(), model));
      } else {
        follow(server_.router.route(relay_.request()));
      }
      return true;
    case State::kCollecting:
      return !collect();
    case State::kAnswered:
      leave_replica();
      // What was written so far goes out first: a client that reads nothing gets nothing more.
      if (relay_.to_client().size() >= Relay::kLowMark) return false;
      if (server_.draining) {
        if (relay_.to_client().empty()) close(false);
        return false;
      }
      relay_.next();
      body_.clear();
      model_.reset();
      body_sent_ = 0;
      forwarded_ = false;
      tries_ = 0;
      since_ = now();
      return true;
    case State::kClosing:
      leave_replica();
      if (relay_.is_broken()) close(true);
      if (!closed_ && relay_.is_closed()) close(false);
      return false;
    case State::kHead:
      if (server_.draining && !relay_.has_begun() && relay_.to_client().empty()) close(false);
      return false;
    case State::kForwarding:
    case State::kTunnel:
      return false;
  }
  return false;
}

// False: the body cannot be kept, and the request is answered.
bool Session::collect() {
  const std::string part = relay_.take_collected();
  model_->feed(part);
  const Result<void> kept = body_.append(part);
  if (kept) return true;
  model_.reset();
  reply(server_.router.refuse(relay_.request(), 503, kept.error().message));
  return false;
}

void Session::follow(Route route) {
  if (route.status != 0) return reply(route);
  if (route.by_model) {
    model_ = std::make_unique<ModelField>();
    return relay_.collect(route.body_limit);
  }
  target_ = std::move(route.target);
  service_ = server_.find(route.service);
  if (service_ == nullptr)
    return reply(server_.router.refuse(relay_.request(), 503, "the service is gone"));
  ask();
}

void Session::ask() {
  const Balancer::Answer answer = service_->balancer.ask();
  if (answer.seat) return take_seat(*answer.seat);
  if (!answer.ticket)
    return reply(server_.router.refuse(relay_.request(), 503, "too many requests wait"));
  ticket_ = answer.ticket;
  service_->waiting.emplace(*ticket_, this);
  since_ = now();
}

void Session::take_seat(Seat seat) {
  ticket_.reset();
  seat_ = seat;
  seated_ = now();
  // Otherwise its head is there already: another replica did not take the connection.
  if (!std::exchange(forwarded_, true)) relay_.forward(target_, {}, body_.size());
  connect(true);
}

void Session::connect(bool may_reuse) {
  replica_watch_.cancel();
  replica_ = Fd();
  std::vector<Fd>& pool = service_->pool[*seat_];
  while (may_reuse && !replica_.valid() && !pool.empty()) {
    Fd idle = std::move(pool.back());
    pool.pop_back();
    if (is_alive(idle.get())) replica_ = std::move(idle);
  }
  pooled_ = replica_.valid();
  connecting_ = !pooled_;
  if (!pooled_) {
    const auto port = service_->ports.find(*seat_);
    Result<Fd> socket = port == service_->ports.end() ? Result<Fd>(Error::busy("it has no port"))
                                                      : begin_connect(port->second);
    if (!socket) return replica_lost();
    replica_ = std::move(*socket);
  }
  since_ = now();
  replica_wants_ = net::kReadable | net::kWritable;
  Result<net::Watch> watch =
      server_.loop.watch(replica_.get(), replica_wants_, [this](Ready ready) {
        const std::shared_ptr<Session> self = shared_from_this();
        replica_ready(ready);
      });
  if (!watch) return replica_lost();
  replica_watch_ = std::move(*watch);
}

// The connection to the replica is gone, or never came to be.
void Session::replica_lost(bool broken) {
  replica_watch_.cancel();
  replica_ = Fd();
  connecting_ = false;
  if (!seat_) return;
  // A connection of the pool may have been closed at the moment it was taken out.
  if (pooled_ && relay_.is_untouched() && !relay_.has_answer_head()) return connect(false);
  if (relay_.is_untouched() && !relay_.has_answer_head() && try_another()) return;
  if (relay_.replica_ended(broken) == Relay::Loss::kEarly)
    reply(server_.router.refuse(relay_.request(), 502,
                                relay_.is_untouched()
                                    ? "the replica does not take connections"
                                    : "the replica closed the connection without an answer"));
}

// The replica does not take connections: it rests, and nothing of the request was written.
bool Session::try_another() {
  if (relay_.state() != Relay::State::kForwarding || ++tries_ > kMostTries) return false;
  const Seat seat = *std::exchange(seat_, std::nullopt);
  if (service_->balancer.has_replica(seat.replica)) {
    service_->balancer.finish(seat);
    server_.rest(service_, seat.replica);
  }
  ask();
  return true;
}

void Session::send_body() {
  while (relay_.state() == Relay::State::kForwarding && relay_.is_collected() &&
         body_sent_ < body_.size() && relay_.to_replica().size() < Relay::kLowMark) {
    std::string part;
    if (!body_.read(body_sent_, kPart, part)) return close(true);
    body_sent_ += part.size();
    relay_.push_body(part);
  }
}

void Session::leave_queue() {
  if (!ticket_) return;
  service_->waiting.erase(*ticket_);
  (void)service_->balancer.leave(*std::exchange(ticket_, std::nullopt));
}

// Gives the seat back, and the connection where it can be used again.
void Session::leave_replica() {
  leave_queue();
  replica_watch_.cancel();
  if (!seat_) return;
  const Seat seat = *std::exchange(seat_, std::nullopt);
  if (replica_.valid() && relay_.replica_reusable() && service_->ports.contains(seat)) {
    std::vector<Fd>& pool = service_->pool[seat];
    if (pool.size() < server_.limits.pooled) pool.push_back(std::move(replica_));
  }
  replica_ = Fd();
  if (service_->balancer.has_replica(seat.replica)) service_->balancer.finish(seat);
  server_.give(service_);
}

void Session::give_up(int status, std::string_view why) {
  leave_queue();
  reply(server_.router.refuse(relay_.request(), status, why));
}

void Session::reply(const Route& route) {
  Relay::Pairs fields;
  if (route.status == 503) fields.emplace_back("Retry-After", "1");
  relay_.reply(route.status, route.type, route.body, fields);
}

std::string Session::timing() const {
  const auto text = [](seam::Nanoseconds time) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    return std::to_string(us / 1000) + "." + std::to_string(us / 100 % 10);
  };
  return "queue;dur=" + text(seated_ - asked_) + ", replica;dur=" + text(now() - seated_);
}

// ---- what is waited for ------------------------------------------------------------------------

void Session::watch() {
  unsigned wants = 0;
  if (relay_.wants_client()) wants |= net::kReadable;
  if (!relay_.to_client().empty()) wants |= net::kWritable;
  wants |= net::kHangup;
  if (wants != client_wants_) client_watch_.want(client_wants_ = wants);
  if (!replica_.valid()) return;
  wants = 0;
  if (relay_.wants_replica() && !connecting_) wants |= net::kReadable;
  if (connecting_ || !relay_.to_replica().empty()) wants |= net::kWritable;
  if (wants != replica_wants_) replica_watch_.want(replica_wants_ = wants);
}

// A timer that is due too early looks again; so a request seldom needs a new one.
void Session::set_timer() {
  const seam::Nanoseconds due = since_ + deadline();
  if (timer_.active() && timer_due_ <= due) return;
  timer_due_ = due;
  const auto left = std::chrono::duration_cast<Milliseconds>(due - now());
  timer_ = server_.loop.after(std::max(left, kLeastTimer), [this] {
    const std::shared_ptr<Session> self = shared_from_this();
    timer_.cancel();
    look_at_time();
  });
}

// How long the present state may last without progress.
Milliseconds Session::deadline() const {
  using State = Relay::State;
  const ProxyServer::Limits& limits = server_.limits;
  if (ticket_) return limits.hold;
  if (connecting_) return limits.connect;
  if (relay_.state() == State::kHead && relay_.to_client().empty())
    return relay_.has_begun() ? limits.head_time : limits.idle;
  if (!relay_.to_client().empty()) return limits.write_stall;
  if (relay_.waits_for_body()) return limits.body_stall;
  if (relay_.state() == State::kTunnel) return limits.tunnel;
  return limits.comment;
}

void Session::look_at_time() {
  using State = Relay::State;
  if (now() - since_ < deadline()) return set_timer();
  if (ticket_) {
    give_up(504, "no replica was free in time");
    return step();
  }
  if (connecting_) {
    replica_lost();
    return step();
  }
  if (relay_.state() == State::kHead && relay_.to_client().empty()) return close(false);
  if (!relay_.to_client().empty() || relay_.state() == State::kTunnel) return close(true);
  if (relay_.waits_for_body()) {
    if (relay_.has_answer_head()) return close(true);
    reply(server_.router.refuse(relay_.request(), 408, "the body of the request does not come"));
    return step();
  }
  since_ = now();
  if (relay_.may_comment()) {
    relay_.comment();
    return step();
  }
  set_timer();
}

// `reset`: so that the client does not take what it has for the whole.
void Session::close(bool reset) {
  if (closed_) return;
  closed_ = true;
  timer_.cancel();
  leave_replica();
  client_watch_.cancel();
  if (reset) {
    const linger now{1, 0};
    (void)setsockopt(client_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  client_ = Fd();
  server_.forget(this);
}

}  // namespace mete::proxy
