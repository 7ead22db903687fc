// SPDX-License-Identifier: Apache-2.0
#include "proxy/head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace mete::proxy {
namespace {

std::string refused(const std::string& text) {
  RequestHead head;
  const std::optional<Refusal> refusal = parse_request(text, head);
  return refusal ? std::to_string(refusal->status) + " " + std::string(refusal->why) : "fine";
}
// With these lines behind the first and its Host.
std::string refused_with(const std::string& lines) {
  return refused("POST /x HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n");
}
RequestHead request(const std::string& text) {
  RequestHead head;
  const std::optional<Refusal> refusal = parse_request(text, head);
  EXPECT_FALSE(refusal) << refusal->why;
  return head;
}

TEST(RequestHead, IsRead) {
  const std::string text =
      "POST /chat/v1?a=b HTTP/1.1\r\nHost: a.example:80\r\ncontent-length:  12 \r\nX-One: \r\n\r\n";
  const RequestHead head = request(text);
  EXPECT_EQ(head.size, text.size());
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/chat/v1?a=b");
  EXPECT_EQ(head.host, "a.example:80");
  EXPECT_EQ(head.body, Body::kLength);
  EXPECT_EQ(head.length, 12u);
  EXPECT_TRUE(head.keep_alive);
  ASSERT_NE(head.find("CONTENT-Length"), nullptr);
  EXPECT_EQ(head.find("x-one")->value, "");
  EXPECT_EQ(head.find("x-two"), nullptr);
  EXPECT_EQ(request("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").method, "GET");
}

TEST(RequestHead, TargetsAreWritten) {
  const auto path = [](const std::string& target) {
    return std::string(request("OPTIONS " + target + " HTTP/1.1\r\nHost: a\r\n\r\n").path);
  };
  EXPECT_EQ(path("http://a.example/x?y"), "/x?y");
  EXPECT_EQ(path("HTTP://a.example"), "/");
  EXPECT_EQ(path("*"), "*");
  EXPECT_EQ(refused("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), "400 the target is no path");
  EXPECT_EQ(refused("GET http://a?x=/admin HTTP/1.1\r\nHost: a\r\n\r\n"),
            "400 the target has no path");
  EXPECT_EQ(refused("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), "400 the target is no path");
  EXPECT_EQ(refused("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), "501 this is no proxy for CONNECT");
}

TEST(RequestHead, ConnectionsAreKeptOrNot) {
  EXPECT_FALSE(request("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_FALSE(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n").keep_alive);
  const std::string upgrade = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n";
  EXPECT_TRUE(request(upgrade + "Connection: keep-alive, Upgrade\r\n\r\n").upgrade);
  EXPECT_FALSE(request(upgrade + "\r\n").upgrade) << "the Connection field does not name it";
  EXPECT_TRUE(
      request("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n").expects_continue);
  EXPECT_EQ(refused_with("Expect: more\r\n"), "417 only 100-continue can be expected");
}

TEST(RequestHead, AllConnectionFieldsCount) {
  const std::string text =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: X-Secret\r\n\r\n";
  EXPECT_EQ(request(text).connection, "keep-alive, X-Secret");
  for (const char* name : {"content-length", "Host", "transfer-encoding", "a, trailer"})
    EXPECT_EQ(refused_with("Connection: " + std::string(name) + "\r\n"),
              "400 Connection names a field that is not of one hop")
        << name;
}

TEST(RequestHead, OnlyWebSocketsWithoutABodyAreUpgrades) {
  const std::string lines = "Host: a\r\nConnection: Upgrade\r\nUpgrade: ";
  EXPECT_TRUE(request("GET / HTTP/1.1\r\n" + lines + "WebSocket\r\n\r\n").upgrade);
  EXPECT_FALSE(request("GET / HTTP/1.1\r\n" + lines + "h2c\r\n\r\n").upgrade);
  EXPECT_FALSE(
      request("GET / HTTP/1.1\r\n" + lines + "websocket\r\nContent-Length: 0\r\n\r\n").upgrade);
}

TEST(RequestHead, WhatCouldBeReadInTwoWaysIsRefused) {
  EXPECT_EQ(refused_with("Content-Length: 5\r\n"), "fine");
  EXPECT_EQ(refused_with("Content-Length: 5\r\nContent-Length: 5\r\n"),
            "400 there are two Content-Length fields");
  for (const char* length : {"+5", "-5", "5,5", "0x5", "", "5 5", "1234567890123456789"})
    EXPECT_EQ(refused_with("Content-Length: " + std::string(length) + "\r\n"),
              "400 Content-Length is no number")
        << length;
  EXPECT_EQ(refused_with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
            "400 Content-Length and Transfer-Encoding contradict each other");
  for (const char* coding : {"gzip, chunked", "chunked, chunked", "xchunked", "identity", ""})
    EXPECT_EQ(refused_with("Transfer-Encoding: " + std::string(coding) + "\r\n"),
              "400 Transfer-Encoding is not chunked")
        << coding;
  EXPECT_EQ(refused_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            "400 Transfer-Encoding is not chunked");
  EXPECT_EQ(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "400 HTTP/1.0 has no Transfer-Encoding");
  EXPECT_EQ(refused_with("Content-Length : 5\r\n"), "400 the name of a field is none");
  EXPECT_EQ(refused_with(" folded: 5\r\n"), "400 the name of a field is none");
  EXPECT_EQ(refused_with("X: a\r\n  folded\r\n"), "400 a line of the head has no colon");
  EXPECT_EQ(refused_with("X: a\n"), "400 a line of the head does not end with CR LF");
  EXPECT_EQ(refused_with("X: a\rY: b\r\n"), "400 a line of the head does not end with CR LF");
  EXPECT_EQ(refused_with(std::string("X: a\0b\r\n", 8)), "400 a field has a control character");
  EXPECT_EQ(refused_with("Host: b\r\n"), "400 HTTP/1.1 needs one Host field");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), "400 HTTP/1.1 needs one Host field");
  EXPECT_EQ(refused("GET / HTTP/2.0\r\n\r\n"), "505 only HTTP/1.1 and HTTP/1.0 are spoken here");
  EXPECT_EQ(refused("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), "400 this is no HTTP request");
  EXPECT_EQ(refused("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), "400 this is no HTTP request");
  EXPECT_EQ(refused("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"), "400 this is no HTTP request");
  EXPECT_EQ(refused("\x16\x03\x01\r\n\r\n"), "400 this is no HTTP request");
  std::string many;
  for (std::size_t i = 0; i < kMaxFields; ++i) many += "X: a\r\n";
  EXPECT_EQ(refused_with(many), "400 there are too many fields");
}

TEST(HeadSize, FindsTheEndOfTheHeadInPieces) {
  const std::string text = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    std::size_t searched = 0;
    std::optional<std::size_t> size;
    for (std::size_t have = 0; !size && have < text.size();) {
      have = std::min(have + step, text.size());
      size = head_size(std::string_view(text).substr(0, have), searched);
    }
    EXPECT_EQ(size, text.size() - 4) << step;
  }
  std::size_t searched = 0;
  EXPECT_EQ(head_size("GET / HTTP/1.1\n\nX", searched), 16u) << "so that it can be refused";
  searched = 0;
  EXPECT_EQ(head_size("\r\n\r\n\r\n", searched), std::nullopt);
}

TEST(ResponseHead, IsRead) {
  const auto response = [](const std::string& text, bool of_head = false) {
    ResponseHead head;
    const auto why = parse_response(text, of_head, head);
    EXPECT_FALSE(why) << *why;
    return head;
  };
  const std::string text = "HTTP/1.1 200 All right\r\nTransfer-Encoding: Chunked\r\n\r\n";
  const ResponseHead head = response(text);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.reason, "All right");
  EXPECT_EQ(head.body, Body::kChunked);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(response("HTTP/1.1 204\r\n\r\n").body, Body::kNone);
  EXPECT_EQ(response("HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n").body, Body::kNone);
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true).body, Body::kNone);
  EXPECT_EQ(response("HTTP/1.1 101 Switching\r\n\r\n").body, Body::kNone);
  const ResponseHead old = response("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(old.body, Body::kUntilClose);
  EXPECT_FALSE(old.keep_alive);
}

TEST(ResponseHead, NonsenseIsRefused) {
  for (const char* text :
       {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
        "HTTP/3 200 OK\r\n\r\n", "200 OK\r\n\r\n", "\r\n", "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    ResponseHead head;
    EXPECT_TRUE(parse_response(text, false, head)) << text;
  }
}

TEST(Fields, OfOneHopAreNotPassedOn) {
  for (const char* name : {"Connection", "keep-alive", "TE", "Transfer-Encoding", "Upgrade",
                           "Proxy-Connection", "X-Secret"})
    EXPECT_TRUE(is_for_one_hop(name, "close, x-secret")) << name;
  EXPECT_FALSE(is_for_one_hop("X-Secret", ""));
  EXPECT_FALSE(is_for_one_hop("Content-Type", "close"));
}

// How many bytes belong to the body, fed in pieces of every size.
std::string ends_at(const std::string& text) {
  std::string all;
  for (std::size_t step = 1; step <= text.size(); ++step) {
    Chunks chunks;
    std::size_t taken = 0;
    while (taken < text.size() && !chunks.done() && !chunks.failed())
      taken += chunks.feed(std::string_view(text).substr(taken, step));
    const std::string one = chunks.failed() ? "wrong"
                            : chunks.done() ? std::to_string(taken)
                                            : "open";
    EXPECT_TRUE(all.empty() || all == one) << text;
    all = one;
  }
  return all;
}

TEST(Chunks, FindTheEndOfTheBody) {
  EXPECT_EQ(ends_at("0\r\n\r\nGET"), "5");
  EXPECT_EQ(ends_at("3\r\nabc\r\n0\r\n\r\n"), "13");
  EXPECT_EQ(ends_at("A;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\nU: w\r\n\r\nrest"), "39");
  EXPECT_EQ(ends_at("3\r\nabc\r\n"), "open");
}

TEST(Chunks, WrongOnesAreRefused) {
  for (const char* text :
       {"\r\n", "x\r\n", "-1\r\n", "0x3\r\nabc\r\n", "3\nabc", "3\r\nabcd\r\n", "3\r\nabc\n0\r\n",
        "3\r\nabc\rx", "123456789abcdef01\r\n", "3\rX", "3;a\nb\r\n", "0\r\n\rX", "0\r\nT: v\nU"})
    EXPECT_EQ(ends_at(text), "wrong") << text;
  EXPECT_EQ(ends_at("1;" + std::string(300, 'x')), "wrong");
  EXPECT_EQ(ends_at("0\r\n" + std::string(9000, 'x')), "wrong");
}

}  // namespace
}  // namespace mete::proxy
