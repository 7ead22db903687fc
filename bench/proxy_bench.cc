// SPDX-License-Identifier: Apache-2.0
// The proxy of services alone, for bench/proxy:   proxy_bench PORT REPLICA-PORT...
// Every request goes to one service with a replica on each of the ports.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/host_port.h"
#include "net/listen.h"
#include "net/tcp_listen.h"
#include "proxy/server.h"

using namespace mete;

namespace {

class OneService : public proxy::Router {
 public:
  proxy::Route route(const proxy::RequestHead& head) override {
    proxy::Route route;
    route.service = "service";
    route.target = head.path;
    return route;
  }
  proxy::Route route_model(const proxy::RequestHead& head, const Result<std::string>&) override {
    return route(head);
  }
  proxy::Route refuse(const proxy::RequestHead&, int status, std::string_view why) override {
    proxy::Route route;
    route.status = status;
    route.body = std::string(why) + "\n";
    return route;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  (void)net::raise_descriptor_limit();
  net::Loop loop;
  OneService router;
  proxy::ProxyServer::Limits limits;
  limits.connections = 20'000;
  proxy::ProxyServer server(loop, seam::system_clock(), router, limits);
  Result<Fd> socket =
      net::listen_tcp({"127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[1]))});
  if (!socket || !server.listen_on(std::move(*socket))) {
    std::fprintf(stderr, "proxy_bench: cannot listen on %s\n", argv[1]);
    return 1;
  }
  server.set_service("service", 100'000);
  for (int i = 2; i < argc; ++i)
    server.set_replica("service", static_cast<proxy::ReplicaId>(i),
                       {static_cast<std::uint16_t>(std::atoi(argv[i]))}, 10'000);
  loop.run();
}
