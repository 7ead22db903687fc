// SPDX-License-Identifier: Apache-2.0
// The client against our server, and against sockets that answer as the test says: late, in a
// stream, with too much, or not in HTTP. Errors must have the right code, and a client must be
// usable again after a timeout, an interrupt or an abandoned answer.
#include "net/http_client.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "net/test/support.h"

namespace mete::net {
namespace {

// Accepts one connection, reads one request, sends `answer`, and closes when `close` is set or the
// test is over.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer, bool close = true) : path_(folder_ / "s") {
    thread_ =
        std::thread([this, answer = std::move(answer), close, socket = listen_plainly(path_)] {
          Raw client{Fd(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))};
          client.hear("\r\n\r\n");
          client.say(answer);
          if (!close) client.hear_all();
        });
  }
  ~OneAnswer() { thread_.join(); }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
  std::thread thread_;
};

ErrorCode failure(const std::string& answer) {
  OneAnswer server(answer);
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  EXPECT_TRUE(client);
  const Result<HttpClient::Reply> reply = client->request("GET", "/");
  EXPECT_FALSE(reply);
  return reply.error().code;
}

TEST(HttpClient, KeepsOneConnectionForManyRequests) {
  TestServer server([](const Request& request, Responder responder) {
    responder.reply({200, request.method + request.path + request.body});
  });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  const int descriptor = client->descriptor();
  EXPECT_EQ(client->request("GET", "/a")->body, "GET/a");
  EXPECT_EQ(client->request("POST", "/b", "{}")->body, "POST/b{}");
  EXPECT_EQ(client->request("HEAD", "/c")->body, "");
  EXPECT_EQ(client->request("DELETE", "/d%20e")->body, "DELETE/d e");
  EXPECT_EQ(client->descriptor(), descriptor);
  server.do_there([&] { EXPECT_EQ(server.server()->connections(), 1u); });
  EXPECT_EQ(client->peer().uid, getuid());
}

TEST(HttpClient, SaysWhichKindOfAnswerItWants) {
  TestServer server([](const Request& request, Responder responder) {
    const std::string* accept = request.header("accept");
    responder.reply({200, accept == nullptr ? "none" : *accept});
  });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  EXPECT_EQ(client->request("GET", "/")->body, "none");
  client->accept("text/event-stream");
  EXPECT_EQ(client->request("GET", "/")->body, "text/event-stream");
}

TEST(HttpClient, ConnectsAnewWhenTheDaemonHadClosed) {
  HttpServer::Limits limits;
  limits.idle = Milliseconds(10);
  TestServer server(
      [](const Request&, Responder responder) {
        responder.reply({200, "x"});
      },
      limits);
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->request("GET", "/"));
  const Result<Waited> closed = wait_for(client->descriptor(), POLLIN, -1, Deadline::in(kLong));
  ASSERT_TRUE(closed && *closed == Waited::kReady);
  EXPECT_TRUE(client->request("GET", "/"));
}

TEST(HttpClient, HearsTheRefusalOfABodyThatItCouldNotSendWhole) {
  TestServer server([](const Request&, Responder responder) { responder.reply({}); });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  const Result<HttpClient::Reply> reply = client->request("POST", "/", std::string(8 << 20, 'x'));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 413);
}

TEST(HttpClient, SaysWhyItCannotConnect) {
  const TemporaryFolder folder;
  EXPECT_EQ(HttpClient::connect(folder / "none", kLong).error().code, ErrorCode::kNotFound);
  { const Fd dead = listen_plainly(folder / "dead"); }
  EXPECT_EQ(HttpClient::connect(folder / "dead", kLong).error().code, ErrorCode::kBusy);
  const Result<HttpClient> too_long = HttpClient::connect("/" + std::string(200, 'x'), kLong);
  EXPECT_EQ(too_long.error().code, ErrorCode::kInvalid);
  EXPECT_NE(too_long.error().hint.find("METE_SOCKET"), std::string::npos);
  EXPECT_EQ(HttpClient::connect("relative", kLong).error().code, ErrorCode::kInvalid);
  if (getuid() == 0) return;
  const Fd closed = listen_plainly(folder / "closed");
  ASSERT_EQ(chmod((folder / "closed").c_str(), 0), 0);
  EXPECT_EQ(HttpClient::connect(folder / "closed", kLong).error().code, ErrorCode::kDenied);
}

TEST(HttpClient, GivesUpOnAListenerThatDoesNotAccept) {
  const TemporaryFolder folder;
  const Fd full = listen_plainly(folder / "full");
  ASSERT_EQ(listen(full.get(), 0), 0);
  std::vector<Fd> waiting;
  for (int i = 0; i < 8; ++i) {
    Result<Fd> one = connect_unix(folder / "full", Milliseconds(1));
    if (!one) {
      EXPECT_EQ(one.error().code, ErrorCode::kIo);
      return;
    }
    waiting.push_back(*std::move(one));
  }
  FAIL() << "the queue never fills";
}

TEST(HttpClient, TellsASocketThatIsNotOursFromADaemonThatWentAway) {
  EXPECT_EQ(failure("SSH-2.0-OpenSSH_9.2\r\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), ErrorCode::kCorrupt);
  EXPECT_EQ(failure(""), ErrorCode::kBusy);
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), ErrorCode::kBusy);
}

TEST(HttpClient, AWaitMayBeInterruptedAndTakenUpAgain) {
  std::vector<Responder> kept;
  TestServer server([&](const Request&, Responder responder) { kept.push_back(responder); });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_EQ(write(pipe->write.get(), "x", 1), 1);
  const Result<HttpClient::Reply> interrupted =
      client->request("GET", "/", "", {kLong, pipe->read.get()});
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().code, ErrorCode::kIo);
  EXPECT_EQ(client->stopped(), HttpClient::Stopped::kInterrupted);
  ASSERT_FALSE(client->receive({Milliseconds(1)}));
  EXPECT_EQ(client->stopped(), HttpClient::Stopped::kTimeout);
  bool arrived = false;
  for (int i = 0; i < 30'000 && !arrived; ++i) {
    server.do_there([&] { arrived = !kept.empty(); });
    if (!arrived) usleep(1000);
  }
  ASSERT_TRUE(arrived);
  server.do_there([&] { kept[0].reply({200, "late"}); });
  EXPECT_EQ(client->receive({kLong})->body, "late");
  server.do_there([&] { kept.clear(); });
}

TEST(HttpClient, ARequestThatTimedOutIsNoHindranceToTheNext) {
  std::vector<Responder> kept;
  TestServer server([&](const Request& request, Responder responder) {
    if (request.path == "/late") return kept.push_back(responder);
    responder.reply({200, request.path});
  });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  for (const char* next : {"/a", "/b"}) {
    ASSERT_FALSE(client->request("GET", "/late", "", {Milliseconds(1)}));
    EXPECT_EQ(client->stopped(), HttpClient::Stopped::kTimeout);
    EXPECT_EQ(client->request("GET", next, "", {kLong})->body, next);
    EXPECT_EQ(client->stopped(), HttpClient::Stopped::kNo);
  }
  server.do_there([&] { kept.clear(); });
}

TEST(HttpClient, AnAbandonedAnswerHangsUp) {
  std::promise<void> gone;
  std::vector<Responder> kept;
  TestServer server([&](const Request& request, Responder responder) {
    if (request.path == "/cancel") return responder.reply({200, "cancelled"});
    responder.on_gone([&] { gone.set_value(); });
    kept.push_back(responder);
  });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->send("GET", "/wait"));
  bool arrived = false;
  for (int i = 0; i < 30'000 && !arrived; ++i) {
    server.do_there([&] { arrived = !kept.empty(); });
    if (!arrived) usleep(1000);
  }
  ASSERT_TRUE(arrived);
  client->abandon();
  EXPECT_EQ(client->request("POST", "/cancel")->body, "cancelled");
  ASSERT_TRUE(comes(gone));
  server.do_there([&] { kept.clear(); });
}

TEST(HttpClient, ReadsAStreamAsItComes) {
  std::vector<Responder> kept;
  TestServer server([&](const Request&, Responder responder) {
    responder.start_stream({200, "", "text/event-stream"});
    kept.push_back(responder);
  });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->send("GET", "/v1/events"));
  EXPECT_EQ(client->receive_head({kLong})->content_type, "text/event-stream");
  for (const std::string event : {"id: 1\n\n", "id: 2\n\n"}) {
    server.do_there([&] { kept[0].send(event); });
    const Result<std::optional<std::string>> chunk = client->next_chunk({kLong});
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk->value(), event);
  }
  ASSERT_FALSE(client->next_chunk({Milliseconds(1)}));
  EXPECT_EQ(client->stopped(), HttpClient::Stopped::kTimeout);
  server.do_there([&] { kept[0].close(); });
  const Result<std::optional<std::string>> end = client->next_chunk({kLong});
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->has_value());
  server.do_there([&] { kept.clear(); });
}

TEST(HttpClient, ALimitedAnswerIsNotFollowedForEver) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n" +
                   std::string(HttpClient::kMaxBodyBytes + 1, 'x'));
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  const Result<HttpClient::Reply> reply = client->request("GET", "/");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace mete::net
