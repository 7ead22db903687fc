// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_listen.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/http_server.h"
#include "net/loop.h"

namespace mete::net {
namespace {

// A port at which no program listens.
std::uint16_t free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

TEST(TcpListen, APortThatIsTakenIsBusy) {
  const base::HostPort address{"127.0.0.1", free_port()};
  Result<Fd> first = listen_tcp(address);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const Result<Fd> second = listen_tcp(address);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_NE(second.error().message.find(std::to_string(address.port)), std::string::npos);
  first->reset();
  EXPECT_TRUE(listen_tcp(address).ok());
}

TEST(TcpListen, AnAddressThatIsNotOursIsInvalid) {
  const Result<Fd> no = listen_tcp({"192.0.2.1", 9411});
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(listen_tcp({"no address", 9411}).ok());
}

// The kernel does not report the user of a TCP client: it is never root.
TEST(TcpListen, WhoComesOverTcpIsNobody) {
  Loop loop;
  const base::HostPort address{"127.0.0.1", free_port()};
  Result<Fd> socket = listen_tcp(address);
  ASSERT_TRUE(socket.ok());
  std::optional<Peer> seen;
  Result<HttpServer> server =
      HttpServer::start(loop, *std::move(socket), [&](Request request, Responder responder) {
        seen = request.peer;
        responder.reply({200, "yes", "text/plain"});
        loop.stop();
      });
  ASSERT_TRUE(server.ok());
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const std::string_view text = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(send(client.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  loop.run();
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->uid, static_cast<uid_t>(-1));
  EXPECT_EQ(seen->pid, 0);
  EXPECT_TRUE(seen->groups.empty());
}

}  // namespace
}  // namespace mete::net
