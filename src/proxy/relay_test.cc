// SPDX-License-Identifier: Apache-2.0
// A client and a replica write; what the other reads is compared, with the bytes whole and in
// pieces of every size.
#include "proxy/relay.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace mete::proxy {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
using State = Relay::State;

// What one side says, cut into pieces of `size` bytes.
void pieces(std::string_view bytes, std::size_t size,
            const std::function<void(std::string_view)>& take) {
  for (std::size_t at = 0; at < bytes.size(); at += size) take(bytes.substr(at, size));
}

std::string drain_client(Relay& relay) {
  std::string text(relay.to_client());
  relay.sent_to_client(text.size());
  return text;
}
std::string drain_replica(Relay& relay) {
  std::string text(relay.to_replica());
  relay.sent_to_replica(text.size());
  return text;
}

struct Seen {
  std::string replica;
  std::string client;
  State state = State::kHead;
  bool reusable = false;
  bool broken = false;
  bool operator==(const Seen&) const = default;
};

// One request that is passed on, and its answer.
Seen passed(std::string_view request, std::string_view answer, std::string_view path = "/p",
            const Relay::Pairs& added = {}) {
  std::vector<Seen> all;
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1} << 20}) {
    Relay relay;
    Seen seen;
    pieces(request, size, [&](std::string_view part) {
      relay.from_client(part);
      if (relay.state() == State::kAsked) relay.forward(path, added);
      seen.replica += drain_replica(relay);
    });
    pieces(answer, size, [&](std::string_view part) {
      relay.from_replica(part);
      seen.client += drain_client(relay);
    });
    seen.client += drain_client(relay);
    seen.state = relay.state();
    seen.reusable = relay.replica_reusable();
    seen.broken = relay.is_broken();
    all.push_back(seen);
    EXPECT_EQ(all.front(), seen) << size << "\n" << seen.replica << "\n" << seen.client;
  }
  return all.front();
}

TEST(Relay, PassesARequestAndItsAnswer) {
  const Seen seen = passed(
      "POST /chat/v1?x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-One: 1\r\nConnection: "
      "keep-alive, X-Hop\r\nX-Hop: 2\r\nKeep-Alive: 9\r\n\r\nhello",
      "HTTP/1.1 201 Made\r\nContent-Length: 2\r\nX-Two: 2\r\nConnection: X-Back\r\nX-Back: "
      "1\r\n\r\nok",
      "/v1?x", {{"X-Request-Id", "r1"}});
  EXPECT_EQ(seen.replica,
            "POST /v1?x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-One: 1\r\nX-Request-Id: "
            "r1\r\n\r\nhello");
  EXPECT_EQ(
      seen.client,
      "HTTP/1.1 201 Made\r\nContent-Length: 2\r\nX-Two: 2\r\nConnection: keep-alive\r\n\r\nok");
  EXPECT_EQ(seen.state, State::kAnswered);
  EXPECT_TRUE(seen.reusable);
}

TEST(Relay, ChunksPassAsTheyAre) {
  const std::string chunks = "3;a=b\r\nabc\r\n0\r\nT: v\r\n\r\n";
  const Seen seen =
      passed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks);
  EXPECT_EQ(seen.replica,
            "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks);
  EXPECT_EQ(
      seen.client,
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n" + chunks);
  EXPECT_TRUE(seen.reusable);
}

TEST(Relay, AClientOfHttp10GetsNoChunks) {
  const Seen seen = passed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(seen.replica, "GET /p HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(seen.client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde");
  EXPECT_EQ(seen.state, State::kClosing);
}

TEST(Relay, RequestsFollowOneAnother) {
  Relay relay;
  relay.from_client(std::string(kGet) + "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  for (const char* path : {"/a", "/b"}) {
    ASSERT_EQ(relay.state(), State::kAsked);
    EXPECT_EQ(relay.request().path, path);
    relay.forward(relay.request().path, {});
    drain_replica(relay);
    relay.from_replica("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    if (relay.state() == State::kAnswered) relay.next();
  }
  EXPECT_EQ(relay.state(), State::kClosing);
  EXPECT_FALSE(relay.is_closed());
  EXPECT_EQ(drain_client(relay),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(relay.is_closed());
}

TEST(Relay, AnswersOfOurOwn) {
  Relay relay;
  relay.from_client(kGet);
  relay.reply(503, "text/plain", "later", {{"Retry-After", "2"}});
  EXPECT_EQ(drain_client(relay),
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: "
            "5\r\nRetry-After: 2\r\nConnection: keep-alive\r\n\r\nlater");
  EXPECT_EQ(relay.state(), State::kAnswered);
  relay.next();
  // A body that was not read: the connection cannot be used any more.
  relay.from_client("HEAD /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
  relay.reply(404, "text/plain", "none");
  EXPECT_EQ(
      drain_client(relay),
      "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_TRUE(relay.is_closed());
}

TEST(Relay, WhatIsNoRequestIsRefusedAlsoAfterAnAnswer) {
  for (const bool after : {false, true}) {
    Relay relay;
    if (after) {
      relay.from_client(kGet);
      relay.forward("/", {});
      relay.from_replica("HTTP/1.1 204 No\r\n\r\n");
      drain_client(relay);
      relay.next();
    }
    relay.from_client("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET / HTTP/1.1\r\n");
    EXPECT_TRUE(drain_client(relay).starts_with("HTTP/1.1 400 Bad Request\r\n"));
    EXPECT_TRUE(relay.is_closed());
  }
  Relay relay;
  relay.from_client("GET /" + std::string(kMaxHead, 'x'));
  EXPECT_TRUE(drain_client(relay).starts_with("HTTP/1.1 431 "));
}

TEST(Relay, BodiesAreCollected) {
  for (const bool chunked : {false, true}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{1000}}) {
      Relay relay;
      std::string body;
      const std::string text =
          std::string("POST /v1/chat HTTP/1.1\r\nHost: a\r\n") +
          (chunked ? "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
                   : "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
      pieces(text, size, [&](std::string_view part) {
        relay.from_client(part);
        if (relay.state() == State::kAsked && !relay.is_collected()) relay.collect(100);
        body += relay.take_collected();
      });
      ASSERT_TRUE(relay.is_collected());
      EXPECT_EQ(body, "hello");
      relay.forward("/chat", {}, body.size());
      relay.push_body("he");
      EXPECT_EQ(drain_replica(relay),
                "POST /chat HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
      relay.push_body("llo");
      EXPECT_EQ(drain_replica(relay), "llo");
    }
  }
  Relay relay;
  relay.from_client(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  relay.collect(5);
  EXPECT_EQ(drain_client(relay), "HTTP/1.1 100 Continue\r\n\r\n");
  Relay none;
  none.from_client(kGet);
  none.collect(5);
  EXPECT_TRUE(none.is_collected() && none.state() == State::kAsked);
}

TEST(Relay, ABodyThatIsTooLargeIsRefused) {
  Relay known;
  known.from_client("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
  known.collect(5);
  EXPECT_TRUE(drain_client(known).starts_with("HTTP/1.1 413 "));
  Relay found;
  found.from_client("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  found.collect(5);
  EXPECT_EQ(drain_client(found), "");
  found.from_client("3\r\nabc\r\n");
  EXPECT_TRUE(drain_client(found).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(found.is_closed());
}

TEST(Relay, ProtocolsAreChangedWhereTheClientAskedForIt) {
  const std::string upgrade =
      "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  Relay relay;
  relay.from_client(upgrade);
  relay.forward("/ws", {});
  EXPECT_EQ(drain_replica(relay),
            "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const std::string answer =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
  relay.from_client("early");
  relay.from_replica(answer + "\x81");
  EXPECT_EQ(relay.state(), State::kTunnel);
  EXPECT_EQ(drain_client(relay), answer + "\x81");
  relay.from_client("frame");
  EXPECT_EQ(drain_replica(relay), "earlyframe");
  relay.from_replica("back");
  EXPECT_EQ(drain_client(relay), "back");
  EXPECT_EQ(relay.replica_ended(), Relay::Loss::kDone);
  EXPECT_TRUE(relay.is_closed());
  EXPECT_TRUE(passed(kGet, "HTTP/1.1 101 No\r\n\r\n").client.starts_with("HTTP/1.1 502 "));
}

TEST(Relay, InterimAnswersPass) {
  const Seen seen =
      passed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\nx",
             "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(seen.client,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: "
            "keep-alive\r\n\r\n");
  EXPECT_EQ(passed("GET / HTTP/1.0\r\n\r\n",
                   "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .client,
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST(Relay, AnAnswerBeforeTheWholeRequestEndsTheConnections) {
  const Seen seen = passed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
                           "HTTP/1.1 413 Large\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_TRUE(seen.client.ends_with("Connection: close\r\n\r\nx"));
  EXPECT_EQ(seen.state, State::kClosing);
  EXPECT_FALSE(seen.reusable);
}

TEST(Relay, ReplicasThatGoAway) {
  const auto ask = [](Relay& relay) {
    relay.from_client(kGet);
    relay.forward("/", {});
  };
  Relay untouched;
  ask(untouched);
  EXPECT_EQ(untouched.replica_ended(), Relay::Loss::kEarly);
  EXPECT_TRUE(untouched.is_untouched());
  EXPECT_FALSE(untouched.to_replica().empty()) << "another one may have it";
  drain_replica(untouched);
  EXPECT_FALSE(untouched.is_untouched());
  untouched.from_replica("HTTP/1.1 20");
  EXPECT_EQ(untouched.replica_ended(), Relay::Loss::kEarly);
  untouched.reply(502, "text/plain", "");
  EXPECT_EQ(untouched.state(), State::kAnswered);

  Relay broken;
  ask(broken);
  broken.from_replica("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
  EXPECT_EQ(broken.replica_ended(), Relay::Loss::kBroken);
  EXPECT_TRUE(broken.is_broken());

  Relay whole;
  ask(whole);
  whole.from_replica("HTTP/1.1 200 OK\r\n\r\nhel");
  EXPECT_EQ(whole.replica_ended(), Relay::Loss::kDone);
  EXPECT_EQ(drain_client(whole), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhel");
  EXPECT_FALSE(whole.is_broken());

  Relay extra;
  ask(extra);
  drain_replica(extra);
  extra.from_replica("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK");
  EXPECT_FALSE(extra.replica_reusable()) << "bytes that no one asked for";
  EXPECT_TRUE(passed(kGet, "SSH-2.0-x\r\n\r\n").client.starts_with("HTTP/1.1 502 "));
}

TEST(Relay, ClientsThatGoAway) {
  Relay between;
  between.client_ended();
  EXPECT_TRUE(between.is_closed());
  Relay within;
  within.from_client("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  within.forward("/", {});
  within.client_ended();
  EXPECT_TRUE(within.is_broken());
  // A half-closed connection still gets its answer.
  Relay half;
  half.from_client(kGet);
  half.forward("/", {});
  half.client_ended();
  half.from_replica("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_TRUE(drain_client(half).ends_with("x"));
  EXPECT_TRUE(half.is_closed());
}

TEST(Relay, AConnectionIsReusableOnlyAfterItsWholeAnswer) {
  Relay relay;
  relay.from_client(kGet);
  relay.forward("/", {});
  drain_replica(relay);
  relay.from_replica("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
  EXPECT_FALSE(relay.replica_reusable());
  relay.from_replica("b");
  EXPECT_TRUE(relay.replica_reusable());
}

TEST(Relay, ARequestThatCameBeforeTheEndIsAnswered) {
  Relay relay;
  relay.from_client(std::string(kGet) + std::string(kGet));
  relay.client_ended();
  relay.reply(200, "text/plain", "one");
  ASSERT_EQ(relay.state(), State::kAnswered);
  relay.next();
  ASSERT_EQ(relay.state(), State::kAsked);
  relay.reply(200, "text/plain", "two");
  EXPECT_TRUE(drain_client(relay).ends_with("two"));
  EXPECT_TRUE(relay.is_closed());
}

TEST(Relay, AReplicaThatReadsNothingMoreMayAnswer) {
  Relay relay;
  relay.from_client("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
  relay.forward("/", {});
  relay.replica_is_deaf();
  EXPECT_TRUE(relay.to_replica().empty());
  relay.from_client("cd");
  EXPECT_TRUE(relay.to_replica().empty());
  relay.from_replica("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(drain_client(relay).starts_with("HTTP/1.1 413 "));
  EXPECT_FALSE(relay.replica_reusable());
}

TEST(Relay, BuffersHaveMarks) {
  Relay relay;
  relay.from_client("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  relay.forward("/", {});
  EXPECT_TRUE(relay.wants_client());
  relay.from_client(std::string(Relay::kHighMark, 'x'));
  EXPECT_FALSE(relay.wants_client());
  drain_replica(relay);
  EXPECT_TRUE(relay.wants_client());
  EXPECT_TRUE(relay.wants_replica());
  relay.from_replica("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" +
                     std::string(Relay::kHighMark, 'y'));
  EXPECT_FALSE(relay.wants_replica());
  relay.sent_to_client(Relay::kHighMark);
  EXPECT_TRUE(relay.wants_replica());
}

TEST(Relay, CommentsStandBetweenEvents) {
  Relay relay;
  relay.from_client(kGet);
  relay.forward("/", {});
  EXPECT_FALSE(relay.may_comment());
  relay.from_replica(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  drain_client(relay);
  EXPECT_TRUE(relay.may_comment()) << "before the first event";
  relay.from_replica("8\r\ndata: 1\n\r\n");
  EXPECT_FALSE(relay.may_comment()) << "within an event";
  relay.from_replica("1\r\n\n");
  EXPECT_FALSE(relay.may_comment()) << "within a chunk";
  relay.from_replica("\r\n");
  drain_client(relay);
  ASSERT_TRUE(relay.may_comment());
  relay.comment();
  EXPECT_EQ(drain_client(relay), "8\r\n: wait\n\n\r\n");
  for (const char* fields :
       {"Content-Type: text/plain\r\n", "Content-Type: text/event-stream\r\nContent-Length: 9\r\n",
        "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"}) {
    Relay other;
    other.from_client(kGet);
    other.forward("/", {});
    other.from_replica("HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n");
    EXPECT_FALSE(other.may_comment()) << fields;
  }
}

TEST(Relay, TimesAreInTheHead) {
  Relay relay;
  relay.from_client(kGet);
  relay.forward("/", {});
  relay.set_server_timing("queue;dur=1, wake;dur=0, replica;dur=3");
  relay.from_replica("HTTP/1.1 204 No\r\n\r\n");
  EXPECT_NE(
      drain_client(relay).find("\r\nServer-Timing: queue;dur=1, wake;dur=0, replica;dur=3\r\n"),
      std::string::npos);
}

}  // namespace
}  // namespace mete::proxy
