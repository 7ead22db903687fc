// SPDX-License-Identifier: Apache-2.0
// What the tests of net share: a temporary folder, a listening socket, raw bytes to and from a
// socket, and a server that runs on a thread of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/unix_socket.h"

namespace mete::net {

constexpr Milliseconds kLong{60'000};  // a test that waits this long has failed

// True once it was set; a test that waits for ever would report nothing.
template <class Value>
bool comes(std::promise<Value>& promise) {
  return promise.get_future().wait_for(kLong) == std::future_status::ready;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/mete-net-XXXXXX";
    path_ = mkdtemp(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Fd listen_plainly(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Result<sockaddr_un> address = unix_address(path);
  EXPECT_TRUE(address);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  EXPECT_EQ(listen(socket.get(), SOMAXCONN), 0);
  return socket;
}

// A client that sends whatever the test wants.
class Raw {
 public:
  explicit Raw(const std::string& path) {
    Result<Fd> socket = connect_unix(path, kLong);
    EXPECT_TRUE(socket);
    if (socket) socket_ = *std::move(socket);
  }
  explicit Raw(Fd socket) : socket_(std::move(socket)) {}

  // False: the other side has closed.
  bool say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) {
        if (!wait(POLLOUT)) return false;
        continue;
      }
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Until `end` has been heard, or the other side closed.
  std::string hear(std::string_view end) {
    while (heard_.find(end) == std::string::npos && hear_some()) continue;
    const std::size_t at = heard_.find(end);
    const std::size_t size = at == std::string::npos ? heard_.size() : at + end.size();
    std::string out = heard_.substr(0, size);
    heard_.erase(0, size);
    return out;
  }
  // Until the other side closed.
  std::string hear_all() {
    while (hear_some()) continue;
    return std::exchange(heard_, {});
  }
  int get() const { return socket_.get(); }
  void close() { socket_.reset(); }

 private:
  bool wait(short events) const {
    const Result<Waited> waited = wait_for(socket_.get(), events, -1, Deadline::in(kLong));
    EXPECT_TRUE(waited && *waited == Waited::kReady) << "nothing happens";
    return waited && *waited == Waited::kReady;
  }
  bool hear_some() {
    if (!wait(POLLIN)) return false;
    char buffer[65536];
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    heard_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  Fd socket_;
  std::string heard_;
};

// A server with its loop on a thread. Handlers run there; so do functions given to do_there().
class TestServer {
 public:
  explicit TestServer(Handler handler, HttpServer::Limits limits = {})
      : path_(folder_ / "s"), wake_(*base::make_pipe()) {
    (void)fcntl(wake_.read.get(), F_SETFL, O_NONBLOCK);
    thread_ = std::thread(
        [this, handler = std::move(handler), limits, socket = listen_plainly(path_)]() mutable {
          Result<Watch> watch = loop_.watch(wake_.read.get(), kReadable, [this](Ready) { work(); });
          ASSERT_TRUE(watch);
          Result<HttpServer> server =
              HttpServer::start(loop_, std::move(socket), std::move(handler), limits);
          ASSERT_TRUE(server);
          server_.emplace(*std::move(server));
          loop_.run();
          server_.reset();
        });
  }
  ~TestServer() {
    do_there([this] { loop_.stop(); });
    thread_.join();
  }

  const std::string& path() const { return path_; }
  Loop& loop() { return loop_; }                           // loop's thread only
  std::optional<HttpServer>& server() { return server_; }  // loop's thread only

  // Runs it on the loop's thread and returns when it has run.
  void do_there(const std::function<void()>& function) {
    std::promise<void> done;
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      queue_.push_back([&] {
        function();
        done.set_value();
      });
    }
    ASSERT_EQ(write(wake_.write.get(), "", 1), 1);
    ASSERT_TRUE(comes(done)) << "the loop stands still";
  }

 private:
  void work() {
    char bytes[64];
    (void)!read(wake_.read.get(), bytes, sizeof bytes);
    for (;;) {
      std::function<void()> next;
      {
        const std::lock_guard<std::mutex> hold(mutex_);
        if (queue_.empty()) return;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      next();
    }
  }

  TemporaryFolder folder_;
  std::string path_;
  base::Pipe wake_;
  Loop loop_;
  std::optional<HttpServer> server_;
  std::mutex mutex_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
};

}  // namespace mete::net
