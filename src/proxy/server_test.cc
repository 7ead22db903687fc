// SPDX-License-Identifier: Apache-2.0
// Real sockets on this machine: the proxy on the test's thread, clients and replicas on their own.
#include "proxy/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "proxy/spool.h"
#include "proxy/test/peers.h"

namespace mete::proxy {
namespace {

// Answers each request with its first line and its body.
void echo(Plug& plug) {
  for (;;) {
    const std::string request = plug.hear_message();
    if (request.find("\r\n\r\n") == std::string::npos) return;
    const std::string body = request.substr(0, request.find("\r\n")) + "|" +
                             request.substr(request.find("\r\n\r\n") + 4);
    if (!plug.say("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                  body))
      return;
  }
}

// /NAME/rest goes to the service NAME; /v1/… by its model.
class Names : public Router {
 public:
  Route route(const RequestHead& head) override {
    Route route;
    if (head.path.starts_with("/v1/")) {
      route.by_model = true;
      route.body_limit = 4 << 20;
      return route;
    }
    const std::size_t slash = head.path.find('/', 1);
    route.service = head.path.substr(1, slash == std::string_view::npos ? slash : slash - 1);
    route.target = slash == std::string_view::npos ? "/" : head.path.substr(slash);
    if (route.service.empty()) route.status = 404, route.body = "no service\n";
    return route;
  }
  Route route_model(const RequestHead& head, const Result<std::string>& model) override {
    if (!model) return refuse(head, 400, model.error().message);
    Route route;
    route.service = *model;
    route.target = head.path;
    return route;
  }
  Route refuse(const RequestHead&, int status, std::string_view why) override {
    Route route;
    route.status = status;
    route.body = std::string(why) + "\n";
    return route;
  }
};

class ProxyServerTest : public ::testing::Test {
 protected:
  void begin(ProxyServer::Limits limits = {}) {
    server_.emplace(loop_, seam::system_clock(), names_, limits);
    ASSERT_TRUE(server_->listen_on(listener(port_)));
  }
  // With a service "chat" that has this replica; `concurrency` requests at a time, 100 wait.
  void begin_chat(const Replica& replica, std::uint32_t concurrency = 1,
                  ProxyServer::Limits limits = {}) {
    begin(std::move(limits));
    server_->set_service("chat", 100);
    server_->set_replica("chat", 1, {replica.port}, concurrency);
  }
  // Clients, beside the loop; `changes` runs on the loop once, when `change_` is set.
  void run(const std::function<void()>& clients, const std::function<void()>& changes = {}) {
    std::atomic<bool> over = false;
    std::thread thread([&] {
      clients();
      over = true;
    });
    const net::Timer timer = loop_.every(net::Milliseconds(1), [&] {
      if (change_.exchange(false) && changes) changes();
      if (over) loop_.stop();
    });
    loop_.run();
    thread.join();
  }
  static std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }

  net::Loop loop_;
  Names names_;
  std::optional<ProxyServer> server_;
  std::uint16_t port_ = 0;
  std::atomic<bool> change_ = false;
};

TEST_F(ProxyServerTest, RequestsReachTheirService) {
  Replica replica(echo);
  begin_chat(replica, 4);
  run([&] {
    Plug client = Plug::to(port_);
    for (int i = 0; i < 3; ++i) {
      client.say(get("/chat/a?b=" + std::to_string(i)));
      const std::string answer = client.hear_message();
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
      EXPECT_NE(answer.find("Server-Timing: queue;dur="), std::string::npos) << answer;
      EXPECT_TRUE(answer.ends_with("GET /a?b=" + std::to_string(i) + " HTTP/1.1|")) << answer;
    }
    client.say("POST /chat HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_TRUE(client.hear_message().ends_with("POST / HTTP/1.1|hello"));
    client.say(get("/"));
    EXPECT_TRUE(client.hear_message().ends_with("no service\n"));
    client.say(get("/other/"));
    EXPECT_TRUE(client.hear_message().starts_with("HTTP/1.1 503 "));
  });
  EXPECT_EQ(replica.connections, 1) << "the connection is used again";
  EXPECT_EQ(server_->in_flight("chat"), 0u);
}

TEST_F(ProxyServerTest, RequestsReachTheirModel) {
  Replica replica(echo);
  begin();
  server_->set_service("llama", 10);
  server_->set_replica("llama", 1, {replica.port}, 4);
  run([&] {
    for (const std::size_t size : {std::size_t{10}, std::size_t{3} << 20}) {
      Plug client = Plug::to(port_);
      const std::string body =
          "{\"prompt\":\"" + std::string(size, 'x') + "\",\"model\":\"llama\"}";
      client.say("POST /v1/chat HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
      EXPECT_TRUE(client.hear_message().ends_with("POST /v1/chat HTTP/1.1|" + body)) << size;
      client.say("POST /v1/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
      EXPECT_TRUE(client.hear_message().ends_with("the body has no model\n"));
    }
    Plug large = Plug::to(port_);
    large.say("POST /v1/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n");
    EXPECT_TRUE(large.hear_message().starts_with("HTTP/1.1 413 "));
  });
}

TEST_F(ProxyServerTest, MoreThanTheConcurrencyWaits) {
  std::barrier<> both(2);  // requests are answered in pairs, so that two are in it
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  Replica replica([&](Plug& plug) {
    while (plug.hear("\r\n\r\n").ends_with("\r\n\r\n")) {
      const int now = ++inside;
      int seen = most;
      while (seen < now && !most.compare_exchange_weak(seen, now)) continue;
      both.arrive_and_wait();
      --inside;
      plug.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  begin_chat(replica, 2);
  run([&] {
    std::vector<std::thread> clients;
    std::atomic<int> ok = 0;
    for (int i = 0; i < 12; ++i)
      clients.emplace_back([&] {
        Plug client = Plug::to(port_);
        client.say(get("/chat/"));
        if (client.hear_message().ends_with("ok")) ++ok;
      });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(ok, 12);
  });
  EXPECT_EQ(most, 2);
}

TEST_F(ProxyServerTest, ARequestWaitsForAReplicaAndTheQueueHasABound) {
  Replica replica(echo);
  begin();
  server_->set_service("chat", 1);
  run(
      [&] {
        Plug first = Plug::to(port_);
        first.say(get("/chat/1"));
        // The second is refused once the first waits.
        Plug second = Plug::to(port_);
        std::string answer;
        do {
          second = Plug::to(port_);
          second.say(get("/chat/2"));
          answer = second.hear("\n");
        } while (!answer.starts_with("HTTP/1.1 503 "));
        EXPECT_NE(second.hear("\r\n\r\n").find("Retry-After: 1"), std::string::npos);
        change_ = true;
        EXPECT_TRUE(first.hear_message().ends_with("GET /1 HTTP/1.1|"));
      },
      [&] { server_->set_replica("chat", 1, {replica.port}, 1); });
}

TEST_F(ProxyServerTest, ARequestDoesNotWaitForEver) {
  ProxyServer::Limits limits;
  limits.hold = net::Milliseconds(100);
  begin(limits);
  server_->set_service("chat", 1);
  run([&] {
    Plug client = Plug::to(port_);
    client.say(get("/chat/1"));
    EXPECT_TRUE(client.hear_message().starts_with("HTTP/1.1 504 "));
  });
  EXPECT_EQ(server_->waiting("chat"), 0u);
}

TEST_F(ProxyServerTest, AReplicaThatIsGoneIsSaid) {
  std::uint16_t closed = 0;
  { const Fd door = listener(closed); }
  Replica silent([](Plug& plug) { plug.hear("\r\n\r\n"); });
  Replica half([](Plug& plug) {
    plug.hear("\r\n\r\n");
    plug.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  });
  ProxyServer::Limits limits;
  limits.rest = net::Milliseconds(10);
  begin(limits);
  for (const char* name : {"closed", "silent", "half"}) server_->set_service(name, 1);
  server_->set_replica("closed", 1, {closed}, 1);
  server_->set_replica("silent", 2, {silent.port}, 1);
  server_->set_replica("half", 3, {half.port}, 1);
  run([&] {
    for (int i = 0; i < 2; ++i) {
      Plug client = Plug::to(port_);
      client.say(get("/closed/"));
      EXPECT_TRUE(client.hear_message().ends_with("the replica does not take connections\n"));
      client.say(get("/silent/"));
      EXPECT_TRUE(
          client.hear_message().ends_with("the replica closed the connection without an answer\n"));
      client.say(get("/half/"));
      EXPECT_TRUE(client.hear("half").ends_with("half"));
      EXPECT_FALSE(client.ends_well()) << "it is reset: a part is not the whole";
    }
  });
}

// It would have the fewest requests in it, and so get all of them.
TEST_F(ProxyServerTest, AReplicaThatTakesNoConnectionsGetsNoRequests) {
  std::uint16_t closed = 0;
  { const Fd door = listener(closed); }
  Replica replica(echo);
  begin();
  server_->set_service("chat", 100);
  server_->set_replica("chat", 1, {closed}, 4);
  server_->set_replica("chat", 2, {replica.port}, 4);
  run([&] {
    std::vector<std::thread> clients;
    std::atomic<int> ok = 0;
    for (int i = 0; i < 8; ++i)
      clients.emplace_back([&] {
        Plug client = Plug::to(port_);
        for (int k = 0; k < 20; ++k) {
          client.say("POST /chat/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
          if (client.hear_message().ends_with("POST / HTTP/1.1|hello")) ++ok;
        }
      });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(ok, 160);
  });
  EXPECT_EQ(server_->in_flight("chat"), 0u);
}

// A replica that closes idle connections: a request on such a one goes to a new one.
TEST_F(ProxyServerTest, AnIdleConnectionThatIsClosedIsReplaced) {
  Replica replica([](Plug& plug) {
    plug.hear("\r\n\r\n");
    plug.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  begin_chat(replica);
  run([&] {
    Plug client = Plug::to(port_);
    for (int i = 0; i < 50; ++i) {
      client.say(get("/chat/"));
      const std::string answer = client.hear_message();
      EXPECT_TRUE(answer.ends_with("ok") || answer.starts_with("HTTP/1.1 502 ")) << answer;
      if (!answer.ends_with("ok")) client = Plug::to(port_);
    }
  });
}

TEST_F(ProxyServerTest, StreamsPassAsTheyCome) {
  std::binary_semaphore heard(0);
  Replica replica([&](Plug& plug) {
    plug.hear("\r\n\r\n");
    plug.say(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
        "chunked\r\n\r\n9\r\ndata: 1\n\n\r\n");
    EXPECT_TRUE(heard.try_acquire_for(std::chrono::seconds(kBound)));
    plug.say("9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  });
  ProxyServer::Limits limits;
  limits.comment = net::Milliseconds(50);
  begin_chat(replica, 1, limits);
  run([&] {
    Plug client = Plug::to(port_);
    client.say(get("/chat/"));
    EXPECT_TRUE(client.hear("data: 1\n\n\r\n").ends_with("data: 1\n\n\r\n"));
    EXPECT_EQ(client.hear(": wait\n\n\r\n"), "8\r\n: wait\n\n\r\n") << "while it is silent";
    heard.release();
    EXPECT_TRUE(client.hear("0\r\n\r\n").ends_with("9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
  });
}

TEST_F(ProxyServerTest, ProtocolsAreTunnelled) {
  Replica replica([](Plug& plug) {
    plug.hear("\r\n\r\n");
    plug.say("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    std::string line;
    while ((line = plug.hear("\n")).ends_with("\n")) plug.say("> " + line);
  });
  begin_chat(replica);
  run([&] {
    Plug client = Plug::to(port_);
    client.say(
        "GET /chat/ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    EXPECT_TRUE(client.hear("\r\n\r\n").starts_with("HTTP/1.1 101 "));
    for (const char* word : {"one\n", "two\n"}) {
      client.say(word);
      EXPECT_EQ(client.hear("\n"), std::string("> ") + word);
    }
    client.half_close();
    EXPECT_TRUE(client.ends_well());
  });
}

TEST_F(ProxyServerTest, LargeBodiesTakeLittleMemory) {
  constexpr std::size_t kBytes = 64 << 20;
  Replica replica([](Plug& plug) {
    plug.hear("\r\n\r\n");
    plug.say("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kBytes) + "\r\n\r\n");
    const std::string part(1 << 20, 'x');
    for (std::size_t i = 0; i < kBytes / part.size(); ++i) plug.say(part);
  });
  begin_chat(replica);
  run([&] {
    Plug client = Plug::to(port_);
    client.say(get("/chat/"));
    const std::string answer = client.hear_message();
    EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, kBytes);
  });
}

// A client must not take the length away from the body that follows.
TEST_F(ProxyServerTest, NoRequestHidesInTheBodyOfAnother) {
  std::atomic<int> requests = 0;
  Replica replica([&](Plug& plug) {
    while (plug.hear("\r\n\r\n").ends_with("\r\n\r\n")) {
      ++requests;
      plug.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  begin_chat(replica, 4);
  run([&] {
    for (const char* named : {"content-length", "Keep-Alive, HOST", "transfer-encoding"}) {
      Plug client = Plug::to(port_);
      client.say("POST /chat/x HTTP/1.1\r\nHost: a\r\nConnection: " + std::string(named) +
                 "\r\nContent-Length: 43\r\n\r\nGET /admin/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_TRUE(client.hear("\r\n\r\n").starts_with("HTTP/1.1 400 ")) << named;
    }
  });
  EXPECT_EQ(requests, 0);
}

// The rest of an answer that a client did not wait for goes to no other.
TEST_F(ProxyServerTest, HalfAnAnswerIsNotGivenToTheNextClient) {
  std::binary_semaphore gone(0);
  Replica replica([&](Plug& plug) {
    const std::string request = plug.hear("\r\n\r\n");
    if (request.starts_with("GET /first")) {
      plug.say("HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\nhalf");
      EXPECT_TRUE(gone.try_acquire_for(std::chrono::seconds(kBound)));
      plug.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen");
      plug.hear("\r\n\r\n");
      return;
    }
    plug.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  begin_chat(replica);
  run([&] {
    Plug second = Plug::to(port_);
    {
      Plug first = Plug::to(port_);
      first.say(get("/chat/first"));
      first.hear("half");
      second.say(get("/chat/second"));
      first.reset();
    }
    EXPECT_TRUE(second.hear_message().ends_with("ok"));
    gone.release();
  });
}

TEST_F(ProxyServerTest, ABodyThatCannotBeKeptIsRefused) {
  ProxyServer::Limits limits;
  limits.spool = "/nonexistent";
  begin(limits);
  server_->set_service("llama", 10);
  run([&] {
    for (const std::size_t size : {Spool::kInMemory + 1, 2 * Spool::kInMemory}) {
      Plug client = Plug::to(port_);
      client.say("POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) +
                 "\r\n\r\n" + std::string(size, ' '));
      EXPECT_TRUE(client.hear("\r\n\r\n").starts_with("HTTP/1.1 503 ")) << size;
    }
  });
}

// They would keep the seats of others.
TEST_F(ProxyServerTest, SlowClientsAreEnded) {
  Replica replica(echo);
  ProxyServer::Limits limits;
  limits.body_stall = limits.head_time = net::Milliseconds(100);
  begin_chat(replica, 1, limits);
  run([&] {
    for (const char* path : {"/chat/", "/v1/x"}) {
      Plug client = Plug::to(port_);
      client.say("POST " + std::string(path) +
                 " HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
      EXPECT_TRUE(client.hear("\r\n\r\n").starts_with("HTTP/1.1 408 ")) << path;
    }
    Plug head = Plug::to(port_);
    head.say("GET / HTTP/1.1\r\nHo");
    EXPECT_EQ(head.hear("\r\n\r\n"), "");
    Plug other = Plug::to(port_);
    other.say(get("/chat/"));
    EXPECT_TRUE(other.hear_message().starts_with("HTTP/1.1 200 "));
  });
}

TEST_F(ProxyServerTest, AnAnswerWithoutALengthThatBreaksIsNotWhole) {
  Replica replica([](Plug& plug) {
    plug.hear("\r\n\r\n");
    plug.say("HTTP/1.1 200 OK\r\n\r\nhalf");
    plug.reset();
  });
  begin_chat(replica);
  run([&] {
    Plug client = Plug::to(port_);
    client.say(get("/chat/"));
    client.hear("half");
    EXPECT_FALSE(client.ends_well());
  });
}

TEST_F(ProxyServerTest, AfterDrainTheLastAnswersGoOut) {
  std::binary_semaphore asked(0), go(0), drained(0);
  Replica replica([&](Plug& plug) {
    plug.hear("\r\n\r\n");
    asked.release();
    EXPECT_TRUE(go.try_acquire_for(std::chrono::seconds(kBound)));
    plug.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  begin_chat(replica);
  run(
      [&] {
        Plug idle = Plug::to(port_);
        idle.say(get("/"));
        idle.hear_message();
        Plug client = Plug::to(port_);
        client.say(get("/chat/"));
        EXPECT_TRUE(asked.try_acquire_for(std::chrono::seconds(kBound)));
        change_ = true;
        EXPECT_TRUE(idle.ends_well());
        EXPECT_FALSE(drained.try_acquire());
        go.release();
        EXPECT_TRUE(client.hear_message().ends_with("ok"));
        EXPECT_TRUE(client.ends_well());
        EXPECT_TRUE(drained.try_acquire_for(std::chrono::seconds(kBound)));
      },
      [&] { server_->drain([&] { drained.release(); }); });
  EXPECT_EQ(server_->connections(), 0u);
}

}  // namespace
}  // namespace mete::proxy
