// SPDX-License-Identifier: Apache-2.0
// See server.h; session.cc has what happens on one connection.
#include "proxy/server.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "proxy/session.h"

namespace mete::proxy {

namespace {

constexpr net::Milliseconds kNoDescriptors{100};

}  // namespace

void ProxyServer::Impl::accept_on(Door& door) {
  for (int i = 0; i < 64; ++i) {  // then others have their turn
    Fd socket(accept4(door.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() &&
        (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
      // Clients wait in the kernel's queue until some connection has ended.
      door.watch.want(0);
      door.timer = loop.after(kNoDescriptors, [&door] { door.watch.want(net::kReadable); });
    }
    if (!socket.valid()) return;
    if (sessions.size() >= limits.connections) continue;  // closed at once
    auto session = std::make_shared<Session>(*this, std::move(socket));
    if (session->start()) sessions.emplace(session.get(), session);
  }
}

std::shared_ptr<Service> ProxyServer::Impl::find(const std::string& name) const {
  const auto found = services.find(name);
  return found == services.end() ? nullptr : found->second;
}

void ProxyServer::Impl::give(const std::shared_ptr<Service>& service) {
  while (const std::optional<Balancer::Given> given = service->balancer.give()) {
    const auto waits = service->waiting.find(*given->ticket);
    Session* const session = waits->second;
    service->waiting.erase(waits);
    session->take_seat(given->seat);
    step_later(*session);
  }
}

void ProxyServer::Impl::rest(const std::shared_ptr<Service>& service, ReplicaId replica) {
  service->balancer.set_resting(replica, true);
  service->resting[replica] =
      loop.after(limits.rest, [this, weak = std::weak_ptr(service), replica] {
        const std::shared_ptr<Service> self = weak.lock();
        if (self == nullptr) return;
        self->balancer.set_resting(replica, false);
        self->resting.erase(replica);
        give(self);
      });
}

void ProxyServer::Impl::step_later(Session& session) {
  loop.post([weak = session.weak_from_this()] {
    if (const std::shared_ptr<Session> self = weak.lock(); self != nullptr) self->step();
  });
}

void ProxyServer::Impl::forget(Session* session) {
  sessions.erase(session);
  look_for_end();
}

void ProxyServer::Impl::look_for_end() {
  if (draining && sessions.empty() && when_drained) loop.post(std::exchange(when_drained, nullptr));
}

ProxyServer::ProxyServer(net::Loop& loop, seam::Clock& clock, Router& router, Limits limits)
    : impl_(std::make_unique<Impl>(loop, clock, router, std::move(limits))) {}
ProxyServer::~ProxyServer() = default;

Result<void> ProxyServer::listen_on(Fd listening) {
  Impl::Door& door = impl_->doors.emplace_back();
  door.socket = std::move(listening);
  Result<net::Watch> watch = impl_->loop.watch(
      door.socket.get(), net::kReadable, [this, &door](net::Ready) { impl_->accept_on(door); });
  if (!watch) {
    impl_->doors.pop_back();
    return std::move(watch).error();
  }
  door.watch = std::move(*watch);
  return {};
}

void ProxyServer::set_service(const std::string& name, std::size_t queue) {
  std::shared_ptr<Service>& service = impl_->services[name];
  if (service == nullptr)
    service = std::make_shared<Service>(queue);
  else
    service->balancer.set_queue(queue);
}

void ProxyServer::remove_service(const std::string& name) {
  const auto found = impl_->services.find(name);
  if (found == impl_->services.end()) return;
  const std::shared_ptr<Service> service = found->second;
  impl_->services.erase(found);
  const std::map<Ticket, Session*> waiting = service->waiting;
  for (const auto& [ticket, session] : waiting) {
    session->give_up(503, "the service is gone");
    impl_->step_later(*session);
  }
}

void ProxyServer::set_replica(const std::string& name, ReplicaId replica,
                              const std::vector<std::uint16_t>& ports, std::uint32_t concurrency) {
  const std::shared_ptr<Service> service = impl_->find(name);
  if (service == nullptr || ports.empty()) return;
  if (!service->balancer.has_replica(replica)) {
    METE_ASSERT(replica > service->newest);
    service->newest = replica;
  }
  for (std::uint32_t i = 0; i < ports.size(); ++i) service->ports[{replica, i}] = ports[i];
  service->balancer.set_replica(replica, static_cast<std::uint32_t>(ports.size()), concurrency);
  impl_->give(service);
}

void ProxyServer::remove_replica(const std::string& name, ReplicaId replica) {
  const std::shared_ptr<Service> service = impl_->find(name);
  if (service == nullptr) return;
  const auto of_it = [&](const auto& entry) { return entry.first.replica == replica; };
  std::erase_if(service->ports, of_it);
  std::erase_if(service->pool, of_it);
  service->resting.erase(replica);
  service->balancer.remove_replica(replica);
}

std::size_t ProxyServer::connections() const { return impl_->sessions.size(); }

std::size_t ProxyServer::in_flight(const std::string& name) const {
  const std::shared_ptr<Service> service = impl_->find(name);
  return service == nullptr ? 0 : service->balancer.in_flight();
}

std::size_t ProxyServer::waiting(const std::string& name) const {
  const std::shared_ptr<Service> service = impl_->find(name);
  return service == nullptr ? 0 : service->balancer.waiting();
}

void ProxyServer::drain(std::function<void()> done) {
  impl_->draining = true;
  impl_->when_drained = std::move(done);
  impl_->doors.clear();
  const std::map<Session*, std::shared_ptr<Session>> sessions = impl_->sessions;
  for (const auto& [pointer, session] : sessions) session->step();
  impl_->look_for_end();
}

}  // namespace mete::proxy
