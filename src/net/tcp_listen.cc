// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace mete::net {

namespace {

constexpr int kBacklog = 64;

Error why_not(const base::HostPort& address, int error) {
  const std::string port = std::to_string(address.port);
  const std::string where = (address.ipv6() ? "[" + address.host + "]" : address.host) + ":" + port;
  switch (error) {
    case EADDRINUSE:
      return Error::busy("another program listens at " + where)
          .with_hint("ss -ltnp 'sport = :" + port + "' shows which one");
    case EACCES:
      return Error::denied("this user may not listen at port " + port)
          .with_hint("choose a port from 1024 on");
    case EADDRNOTAVAIL:
      return Error::invalid("this machine has no address " + address.host)
          .with_hint("`ip address` lists its addresses");
    default:
      return Error::from_errno("listen at " + where, error);
  }
}

}  // namespace

Result<Fd> listen_tcp(const base::HostPort& address) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (address.ipv6()) {
    auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&storage);
    ipv6->sin6_family = AF_INET6;
    ipv6->sin6_port = htons(address.port);
    if (inet_pton(AF_INET6, address.host.c_str(), &ipv6->sin6_addr) != 1)
      return Error::invalid(address.host + " is no address");
    size = sizeof *ipv6;
  } else {
    auto* ipv4 = reinterpret_cast<sockaddr_in*>(&storage);
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons(address.port);
    if (inet_pton(AF_INET, address.host.c_str(), &ipv4->sin_addr) != 1)
      return Error::invalid(address.host + " is no address");
    size = sizeof *ipv4;
  }
  Fd socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return why_not(address, errno);
  // A restarted daemon need not wait for the connections of the previous one.
  const int yes = 1;
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // "[::]" means IPv6 only: for both, configure both addresses.
  if (address.ipv6()) (void)setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0 ||
      listen(socket.get(), kBacklog) != 0)
    return why_not(address, errno);
  return socket;
}

}  // namespace mete::net
