// SPDX-License-Identifier: Apache-2.0
// See http_server.h: accepting, counting and closing connections; connection.cc has what happens on
// one. Each accepted client becomes a Connection in one list. When descriptors run out, a reserved
// one is given up to accept the client and answer 503, or the connection with the oldest unanswered
// question makes room.
#include "net/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/connection.h"
#include "net/unix_socket.h"

namespace mete::net {

namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr std::size_t kScratchBytes = 64 << 10;
constexpr Milliseconds kPause{100};  // when the system has no resources for another connection
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 80\r\n"
    "Connection: close\r\n\r\n"
    R"({"error":{"code":"busy","message":"the daemon has too many clients","exit":125}})";

int open_reserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

struct HttpServer::Impl : ConnectionHost {
  void accept_some();
  bool accept_one();
  Result<void> listen_on(Fd socket);
  void no_descriptor_left();
  bool full_for(const Peer& peer) const;
  bool make_room();
  void closed(Connection& connection) override;
  void check_drained();

  Fd listening;
  Fd reserve;  // given up for a moment when there is no other descriptor left
  Watch watch;
  Timer pause;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> open;
  std::function<void()> drained;
};

void HttpServer::Impl::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i)
    if (!accept_one()) return;
}

bool HttpServer::Impl::accept_one() {
  if (!listening) return false;
  Fd socket(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE) no_descriptor_left();
    if (errno == ENOMEM || errno == ENOBUFS) {
      watch.want(0);
      pause = loop->after(kPause, [this] { watch.want(kReadable); });
    }
    return errno == EINTR || errno == ECONNABORTED;
  }
  const Result<Peer> peer = peer_of(socket.get());
  if (!peer) return true;  // it is gone already
  if (full_for(*peer) || !make_room()) {
    (void)send(socket.get(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
  }
  auto connection = std::make_shared<Connection>(*this, std::move(socket), *peer);
  if (!connection->start()) return true;  // out of kernel memory: as if it had not connected
  ++loads[peer->uid].connections;
  open.emplace(connection.get(), connection);
  return true;
}

// The waiting client cannot be served; rejecting it at once is better than a loop that spins on a
// socket that stays readable.
void HttpServer::Impl::no_descriptor_left() {
  reserve.reset();
  {
    const Fd turned_away(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (turned_away)
      (void)send(turned_away.get(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  reserve.reset(open_reserve());
  errno = EAGAIN;
  if (!reserve) {
    watch.want(0);
    pause = loop->after(kPause, [this] { watch.want(kReadable); });
  }
}

bool HttpServer::Impl::make_room() {
  if (open.size() < limits.descriptors) return true;
  std::shared_ptr<Connection> longest;
  for (const auto& [raw, connection] : open)
    if (connection->waits_since() != 0 &&
        (longest == nullptr || connection->waits_since() < longest->waits_since()))
      longest = connection;
  if (longest == nullptr) return false;
  longest->give_way();
  return open.size() < limits.descriptors;
}

bool HttpServer::Impl::full_for(const Peer& peer) const {
  if (peer.uid == limits.unbounded) return false;
  const auto outside = loads.find(limits.unbounded);
  const std::size_t others =
      open.size() - (outside == loads.end() ? 0 : outside->second.connections);
  const auto mine = loads.find(peer.uid);
  return others >= limits.connections ||
         (mine != loads.end() && mine->second.connections >= limits.connections_per_user);
}

void HttpServer::Impl::closed(Connection& connection) {
  const auto mine = loads.find(connection.peer().uid);
  if (mine != loads.end() && --mine->second.connections == 0) loads.erase(mine);
  open.erase(&connection);
  check_drained();
}

void HttpServer::Impl::check_drained() {
  if (draining && open.empty() && drained != nullptr && !stopped)
    loop->post(std::exchange(drained, nullptr));
}

Result<HttpServer> HttpServer::start(Loop& loop, Fd listening, Handler handler, Limits limits) {
  auto impl = std::make_shared<Impl>();
  impl->loop = &loop;
  impl->handler = std::move(handler);
  impl->limits = limits;
  impl->scratch.resize(kScratchBytes);
  impl->reserve.reset(open_reserve());
  if (Result<void> r = impl->listen_on(std::move(listening)); !r) return std::move(r).error();
  return HttpServer(std::move(impl));
}

Result<void> HttpServer::Impl::listen_on(Fd socket) {
  // accept() must not block if the client went away between the event and the call.
  const int flags = fcntl(socket.get(), F_GETFL);
  if (flags < 0 || fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return Error::from_errno("prepare the listening socket", errno);
  Result<Watch> news = loop->watch(socket.get(), kReadable, [this](Ready) { accept_some(); });
  if (!news) return std::move(news).error();
  pause.cancel();
  watch = *std::move(news);
  listening = std::move(socket);
  return {};
}

Result<void> HttpServer::listen_on(Fd listening) {
  while (impl_->accept_one()) continue;
  return impl_->listen_on(std::move(listening));
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;

HttpServer& HttpServer::operator=(HttpServer&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

HttpServer::~HttpServer() {
  if (impl_ == nullptr) return;
  impl_->stopped = true;
  impl_->watch.cancel();
  impl_->pause.cancel();
  impl_->listening.reset();
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [raw, connection] : impl_->open) all.push_back(connection);
  for (const auto& connection : all) connection->close();
  // We may be inside our own handler, which must not be freed during its call.
  impl_->loop->post([impl = impl_] {});
}

std::size_t HttpServer::connections() const { return impl_->open.size(); }

void HttpServer::drain(std::function<void()> done) {
  // Every client in the queue has connected: it is accepted, and served if it has sent a request.
  while (impl_->accept_one()) continue;
  impl_->draining = true;
  impl_->drained = std::move(done);
  impl_->watch.cancel();
  impl_->pause.cancel();
  impl_->listening.reset();
  std::vector<std::shared_ptr<Connection>> idle;
  for (const auto& [raw, connection] : impl_->open)
    if (connection->idle()) idle.push_back(connection);
  for (const auto& connection : idle) connection->close();
  impl_->check_drained();
}

}  // namespace mete::net
