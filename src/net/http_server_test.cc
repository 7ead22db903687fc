// SPDX-License-Identifier: Apache-2.0
// The server against well-behaved clients: keep-alive, pipelining, late answers, streams, draining.
// Misbehaving ones are in http_hostile_test.cc. The server runs on a thread of its own; handlers
// keep Responders, and the test answers them there.
#include "net/http_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <vector>

#include "net/http_client.h"
#include "net/test/support.h"

namespace mete::net {
namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

std::string numbered(int i) {
  std::string path = "/";
  return path += std::to_string(i);
}

void echo(const Request& request, Responder responder) {
  responder.reply({200, request.method + ' ' + request.path + ' ' + request.body, "text/plain"});
}

// Keeps Responders until the test answers them; loop's thread only, except wait_for_request().
struct Waiting {
  Handler handler() {
    return [this](const Request& request, Responder responder) {
      responder.on_gone([this] { gone.set_value(); });
      kept.push_back(std::move(responder));
      if (++seen == expected) arrived.set_value(request.path);
    };
  }
  int expected = 1;
  int seen = 0;
  std::vector<Responder> kept;
  std::promise<std::string> arrived;
  std::promise<void> gone;
};

TEST(HttpServer, GoesOnAtAnotherSocketWithTheConnectionsThatItHas) {
  const TemporaryFolder folder;
  TestServer server([](const Request& request, Responder responder) {
    responder.reply({200, request.path});
  });
  Result<HttpClient> before = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(before);
  ASSERT_EQ(before->request("GET", "/1", "", {kLong})->body, "/1");
  server.do_there(
      [&] { EXPECT_TRUE(server.server()->listen_on(listen_plainly(folder / "other"))); });
  EXPECT_EQ(before->request("GET", "/2", "", {kLong})->body, "/2");
  Result<HttpClient> after = HttpClient::connect(folder / "other", kLong);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->request("GET", "/3", "", {kLong})->body, "/3");
  EXPECT_FALSE(connect_unix(server.path(), kLong));
}

TEST(HttpServer, HandsOverTheRequestAndWhoAsks) {
  Request seen;
  TestServer server([&](Request request, Responder responder) {
    seen = std::move(request);
    responder.reply({201, "{}"});
  });
  Raw client(server.path());
  client.say(
      "POST /v1/jobs?a=%41 HTTP/1.1\r\nHost: x\r\nX-Thing: Y\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(
      client.hear("{}"),
      "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/v1/jobs");
  EXPECT_EQ(*seen.parameter("a"), "A");
  EXPECT_EQ(*seen.header("x-thing"), "Y");
  EXPECT_EQ(seen.header("missing"), nullptr);
  EXPECT_EQ(seen.body, "abc");
  EXPECT_EQ(seen.peer.uid, getuid());
  EXPECT_EQ(seen.peer.gid, getgid());
  EXPECT_EQ(seen.peer.pid, getpid());
}

TEST(HttpServer, TakesChunkedBodies) {
  TestServer server(echo);
  Raw client(server.path());
  client.say(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(client.hear("abcde").ends_with("POST / abcde"));
}

TEST(HttpServer, TakesARequestByteByByte) {
  TestServer server(echo);
  Raw client(server.path());
  for (const char byte : std::string("PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"))
    client.say({&byte, 1});
  EXPECT_TRUE(client.hear("hi").ends_with("PUT /x hi"));
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  // Every second answer comes later than the turn in which it was asked.
  Loop* loop = nullptr;
  TestServer server([&](const Request& request, Responder responder) {
    const Response response{200, request.path + '!'};
    if (request.path.back() % 2 == 0) return responder.reply(response);
    loop->post([responder, response]() mutable { responder.reply(response); });
  });
  server.do_there([&] { loop = &server.loop(); });
  Raw client(server.path());
  std::string all;
  for (int i = 0; i < 500; ++i) all += get(numbered(i));
  client.say(all);
  for (int i = 0; i < 500; ++i) {
    const std::string answer = client.hear(numbered(i) + '!');
    ASSERT_EQ(answer.find("HTTP/1.1 200 OK"), 0u);
    ASSERT_EQ(answer.find("HTTP", 1), std::string::npos) << "one answer at a time, in order";
  }
}

TEST(HttpServer, AnswersLater) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  server.do_there([&] { waiting.kept[0].reply({200, "late"}); });
  EXPECT_TRUE(client.hear("late").ends_with("late"));
}

TEST(HttpServer, ReadsNothingWhileTheHandlerWaits) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(std::string(kGet) + get("/second"));
  ASSERT_TRUE(comes(waiting.arrived));
  server.do_there([&] { EXPECT_EQ(waiting.seen, 1); });
  server.do_there([&] { waiting.kept[0].reply({200, "one"}); });
  EXPECT_TRUE(client.hear("one").ends_with("one"));
}

TEST(HttpServer, TellsWhenTheClientHangsUpAndDropsTheAnswer) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  client.close();
  ASSERT_TRUE(comes(waiting.gone));
  server.do_there([&] {
    EXPECT_TRUE(waiting.kept[0].gone());
    waiting.kept[0].reply({200, "the client is gone"});
    EXPECT_EQ(server.server()->connections(), 0u);
  });
}

TEST(HttpServer, TellsOfAHangUpBehindUnreadBytes) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  client.say(kGet);
  client.close();
  ASSERT_TRUE(comes(waiting.gone));
}

TEST(HttpServer, AClientThatOnlySendsNoMoreStillGetsItsAnswer) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_EQ(shutdown(client.get(), SHUT_WR), 0);
  ASSERT_TRUE(comes(waiting.arrived));
  server.do_there([&] { waiting.kept[0].reply({200, "answer"}); });
  EXPECT_TRUE(client.hear_all().ends_with("answer"));
}

TEST(HttpServer, ARequestThatNobodyAnswersGets500) {
  TestServer server([](const Request&, const Responder&) {});
  Raw client(server.path());
  client.say(kGet);
  EXPECT_TRUE(client.hear("}}").starts_with("HTTP/1.1 500 "));
}

TEST(HttpServerDeathTest, ASecondAnswerIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto exchange_is_answered_twice = [] {
    TestServer server([](const Request&, Responder responder) {
      responder.reply({});
      responder.reply({});
    });
    Raw client(server.path());
    client.say(kGet);
    client.hear_all();
  };
  EXPECT_DEATH(exchange_is_answered_twice(), "impossible");
}

TEST(HttpServer, SaysTheLengthButNotTheBodyOfAHead) {
  TestServer server(echo);
  Raw client(server.path());
  client.say("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n" + get("/next"));
  const std::string heard = client.hear("GET /next ");
  EXPECT_NE(heard.find("Content-Length: 10\r\n\r\nHTTP/1.1 200"), std::string::npos) << heard;
}

TEST(HttpServer, ClosesWhenAskedTo) {
  TestServer server(echo);
  Raw client(server.path());
  client.say("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.hear_all().find("Connection: close\r\n"), std::string::npos);
  Raw old(server.path());
  old.say("GET / HTTP/1.0\r\n\r\n");
  EXPECT_NE(old.hear_all().find("Connection: close\r\n"), std::string::npos);
}

TEST(HttpServer, TellsAClientToGoOnWithItsBody) {
  TestServer server(echo);
  Raw client(server.path());
  client.say("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.hear("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.say("hi");
  EXPECT_TRUE(client.hear("hi").starts_with("HTTP/1.1 200 OK"));
}

TEST(HttpServer, AHeaderCannotCarryASecondOne) {
  TestServer server([](const Request&, Responder responder) {
    responder.reply({200, "", "text/plain", {{"Location", "/a\r\nEvil: yes"}}});
  });
  Raw client(server.path());
  client.say(kGet);
  EXPECT_NE(client.hear("\r\n\r\n").find("Location: /a  Evil: yes\r\n"), std::string::npos);
}

TEST(HttpServer, SendsAnswersLargerThanTheSocketTakes) {
  const std::string body(8 << 20, 'b');
  TestServer server([&](const Request&, Responder responder) { responder.reply({200, body}); });
  Result<HttpClient> client = HttpClient::connect(server.path(), kLong);
  ASSERT_TRUE(client);
  for (int i = 0; i < 3; ++i) {
    const Result<HttpClient::Reply> reply = client->request("GET", "/");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->body, body);
  }
}

TEST(HttpServer, StreamsChunksUntilClosedAndThenGoesOn) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  server.do_there([&] { waiting.kept[0].start_stream({200, "", "text/event-stream"}); });
  EXPECT_EQ(
      client.hear("\r\n\r\n"),
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  server.do_there([&] { EXPECT_TRUE(waiting.kept[0].send("id: 81\n\n")); });
  EXPECT_EQ(client.hear("id: 81\n\n\r\n"), "8\r\nid: 81\n\n\r\n");
  server.do_there([&] {
    EXPECT_TRUE(waiting.kept[0].send(""));  // is not the end
    EXPECT_TRUE(waiting.kept[0].send(std::string(20, 'x')));
    waiting.kept[0].close();
    EXPECT_FALSE(waiting.kept[0].send("too late"));
  });
  EXPECT_EQ(client.hear("0\r\n\r\n"), "14\r\n" + std::string(20, 'x') + "\r\n0\r\n\r\n");
  client.say(kGet);
  for (bool again = false; !again;) server.do_there([&] { again = waiting.kept.size() == 2; });
  server.do_there([&] { waiting.kept[1].reply({200, "same connection"}); });
  EXPECT_TRUE(client.hear("connection").ends_with("same connection"));
}

TEST(HttpServer, AStreamToAnOldClientEndsWithTheConnection) {
  TestServer server([](const Request&, Responder responder) {
    responder.start_stream({200, "", "text/plain"});
    responder.send("all");
    responder.close();
  });
  Raw client(server.path());
  client.say("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(client.hear_all().ends_with("\r\n\r\nall"));
}

TEST(HttpServer, CutsOffAReaderThatIsTooSlowAndTellsSo) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  std::size_t sent = 0;
  server.do_there([&] {
    waiting.kept[0].start_stream({});
    const std::string chunk(100'000, 'x');
    while (waiting.kept[0].send(chunk)) sent += chunk.size();
  });
  ASSERT_TRUE(comes(waiting.gone));
  EXPECT_GE(sent, HttpServer::Limits().stream_bytes - 100'000);
  EXPECT_LT(sent, HttpServer::Limits().stream_bytes + (4u << 20)) << "and what the kernel holds";
  EXPECT_FALSE(client.hear_all().ends_with("0\r\n\r\n")) << "a cut stream does not look whole";
}

TEST(HttpServer, TellsWhenTheReaderOfAStreamHasAllOfIt) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  std::promise<void> sent;
  // More than may accumulate, in one piece.
  const std::string chunk(4 << 20, 'x');
  server.do_there([&] {
    Responder& stream = waiting.kept[0];
    stream.start_stream({});
    EXPECT_EQ(stream.unsent(), 0u);
    EXPECT_TRUE(stream.send(chunk));
    EXPECT_GT(stream.unsent(), HttpServer::Limits().stream_bytes);
    stream.on_sent([&] { sent.set_value(); });
  });
  EXPECT_NE(client.hear(chunk), "");
  ASSERT_TRUE(comes(sent));
  server.do_there([&] {
    EXPECT_EQ(waiting.kept[0].unsent(), 0u);
    EXPECT_TRUE(waiting.kept[0].send("and more"));
  });
  EXPECT_TRUE(client.hear("and more").ends_with("and more"));
}

TEST(HttpServer, TellsWhenTheReaderOfAStreamHangsUp) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  server.do_there([&] { waiting.kept[0].start_stream({}); });
  client.close();
  ASSERT_TRUE(comes(waiting.gone));
  server.do_there([&] { EXPECT_FALSE(waiting.kept[0].send("x")); });
}

TEST(HttpServer, DrainsPolitely) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw idle(server.path());
  Raw asking(server.path());
  asking.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  std::promise<void> drained;
  server.do_there([&] { server.server()->drain([&] { drained.set_value(); }); });
  EXPECT_EQ(idle.hear_all(), "");
  EXPECT_EQ(connect_unix(server.path(), kLong).error().code, ErrorCode::kBusy);
  server.do_there([&] { waiting.kept[0].reply({200, "the last"}); });
  EXPECT_TRUE(asking.hear_all().ends_with("the last"));
  ASSERT_TRUE(comes(drained));
}

TEST(HttpServer, WhoHasAskedIsServedEvenWhenDrainingBegins) {
  TestServer server(echo);
  Raw client(server.path());
  server.do_there([&] {
    ASSERT_TRUE(client.say(kGet));  // the loop is busy with this function and cannot have read it
    Raw queued(server.path());      // and this one it cannot have accepted
    queued.say(get("/queued"));
    server.server()->drain([] {});
  });
  EXPECT_TRUE(client.hear_all().ends_with("GET / "));
}

TEST(HttpServer, MayBeDestroyedInItsOwnHandler) {
  TestServer* owner = nullptr;
  TestServer server([&](const Request&, const Responder&) { owner->server().reset(); });
  server.do_there([&] { owner = &server; });
  Raw client(server.path());
  client.say(kGet);
  EXPECT_EQ(client.hear_all(), "");
}

TEST(HttpServer, ARespondersAnswerAfterTheServerIsDropped) {
  Waiting waiting;
  TestServer server(waiting.handler());
  Raw client(server.path());
  client.say(kGet);
  ASSERT_TRUE(comes(waiting.arrived));
  server.do_there([&] {
    server.server().reset();
    waiting.kept[0].reply({200, "x"});
    waiting.kept.clear();
  });
  EXPECT_EQ(client.hear_all(), "");
}

}  // namespace
}  // namespace mete::net
