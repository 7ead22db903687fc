// SPDX-License-Identifier: Apache-2.0
// Clients and replicas of the proxy for tests: blocking sockets on threads of their own.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace mete::proxy {

inline constexpr std::size_t kBound = 30;  // seconds, for what hangs

// Listens on this machine; `port` is set.
inline Fd listener(std::uint16_t& port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(socket.get(), any, sizeof address), 0);
  EXPECT_EQ(listen(socket.get(), 128), 0);
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(socket.get(), any, &size), 0);
  port = ntohs(address.sin_port);
  return socket;
}

// A blocking connection; everything ends after kBound.
class Plug {
 public:
  explicit Plug(Fd socket) : socket_(std::move(socket)) {
    const timeval bound{kBound, 0};
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
  }
  Plug(Plug&&) = default;
  Plug& operator=(Plug&&) = default;
  // Also where the socket has another name.
  ~Plug() {
    if (socket_.valid()) (void)shutdown(socket_.get(), SHUT_RDWR);
  }
  static Plug to(std::uint16_t port) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return Plug(std::move(socket));
  }
  bool say(std::string_view text) const { return base::write_all(socket_.get(), text); }
  // Until `end` is at the end of what was read; or the connection ends.
  std::string hear(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && recv(socket_.get(), &byte, 1, 0) == 1) text += byte;
    return text;
  }
  // A head, and the body of its Content-Length.
  std::string hear_message() {
    std::string text = hear("\r\n\r\n");
    const std::size_t at = text.find("Content-Length: ");
    std::size_t left = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
    std::string body(left, '\0');
    std::size_t done = 0;
    while (done < left) {
      const ssize_t n = recv(socket_.get(), body.data() + done, left - done, 0);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    return text + body.substr(0, done);
  }
  // Reads until the end: true, or an error: false.
  bool ends_well() {
    char byte = 0;
    ssize_t n = 0;
    while ((n = recv(socket_.get(), &byte, 1, 0)) > 0) continue;
    EXPECT_TRUE(n == 0 || errno != EAGAIN) << "it hangs";
    return n == 0;
  }
  // Ends with an error at the other end.
  void reset() {
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNSPEC;  // also where the socket has another name
    EXPECT_EQ(::connect(socket_.get(), &nowhere, sizeof nowhere), 0);
    socket_.reset();
  }
  void half_close() { (void)shutdown(socket_.get(), SHUT_WR); }

 private:
  Fd socket_;
};

// A replica: one thread for each connection.
class Replica {
 public:
  using Serve = std::function<void(Plug&)>;
  explicit Replica(Serve serve) : serve_(std::move(serve)), door_(listener(port)) {
    thread_ = std::thread([this] {
      for (;;) {
        Fd socket(accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket.valid()) return;
        ++connections;
        const std::lock_guard<std::mutex> lock(mutex_);
        ends_.emplace_back(dup(socket.get()));
        threads_.emplace_back([this, socket = std::move(socket)]() mutable {
          Plug plug(std::move(socket));
          serve_(plug);
        });
      }
    });
  }
  ~Replica() {
    (void)shutdown(door_.get(), SHUT_RDWR);
    thread_.join();
    for (const Fd& end : ends_) (void)shutdown(end.get(), SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }
  std::uint16_t port = 0;
  std::atomic<int> connections = 0;

 private:
  Serve serve_;
  Fd door_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::vector<Fd> ends_;  // other names of the connections, to end them by
};

}  // namespace mete::proxy
