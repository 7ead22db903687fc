// SPDX-License-Identifier: Apache-2.0
#include "net/response_parser.h"

#include <gtest/gtest.h>

namespace mete::net {
namespace {

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5;x=y\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: 1\r\n\r\n";

TEST(ResponseParser, TakesALengthInWhateverPieces) {
  const std::string text =
      "HTTP/1.1 201 Created\r\ncontent-LENGTH: 3\r\nContent-Type: a/b\r\n\r\nabc";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    ResponseParser parser;
    ASSERT_TRUE(parser.feed(text.substr(0, cut)));
    EXPECT_EQ(parser.done(), cut == text.size());
    ASSERT_TRUE(parser.feed(text.substr(cut)));
    EXPECT_TRUE(parser.done());
    EXPECT_EQ(parser.status(), 201);
    EXPECT_EQ(parser.content_type(), "a/b");
    EXPECT_EQ(parser.take_body(), "abc");
    EXPECT_TRUE(parser.keep_alive());
  }
}

TEST(ResponseParser, TakesChunksByteByByte) {
  ResponseParser parser;
  for (const char byte : kChunked) ASSERT_TRUE(parser.feed({&byte, 1}));
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.take_body(), "helloabcdefghijklmnopqrstuvwxyz");
}

TEST(ResponseParser, SkipsInterimAnswers) {
  ResponseParser parser;
  ASSERT_TRUE(parser.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.status(), 204);
}

TEST(ResponseParser, WithoutALengthTheEndOfTheConnectionIsTheEnd) {
  ResponseParser parser;
  ASSERT_TRUE(parser.feed("HTTP/1.0 200 OK\r\n\r\nall"));
  EXPECT_FALSE(parser.done());
  ASSERT_TRUE(parser.end());
  EXPECT_TRUE(parser.done());
  EXPECT_FALSE(parser.keep_alive());
  EXPECT_EQ(parser.take_body(), "all");
}

TEST(ResponseParser, AHeadHasNoBody) {
  ResponseParser parser(true);
  ASSERT_TRUE(parser.feed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"));
  EXPECT_TRUE(parser.done());
}

TEST(ResponseParser, AnEarlyEndIsBusy) {
  for (const std::string text :
       {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello"}) {
    ResponseParser parser;
    ASSERT_TRUE(parser.feed(text)) << text;
    const Result<void> end = parser.end();
    ASSERT_FALSE(end) << text;
    EXPECT_EQ(end.error().code, ErrorCode::kBusy);
  }
}

TEST(ResponseParser, WhatIsNotHttpIsCorruptAtTheFirstByteThatShowsIt) {
  for (const std::string text : {
           "S",
           "HTTQ",
           "HTTP/2",
           "HTTP/1.1 2x0 OK\r\n",
           "HTTP/1.1  200\r\n",
           "HTTP/1.1 099 X\r\n",
           "HTTP/1.1 200 OK\r\n continued: 1\r\n",
           "HTTP/1.1 200 OK\r\nnothing\r\n",
           "HTTP/1.1 200 OK\r\n: x\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
           "HTTP/1.1 101 Switching\r\n\r\n",
           "HTTP/1.1 204 No\r\n\r\nx",
       }) {
    ResponseParser parser;
    const Result<void> fed = parser.feed(text);
    ASSERT_FALSE(fed) << text;
    EXPECT_EQ(fed.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ResponseParser, NeverHoldsMoreThanItsHeadLimit) {
  for (const std::string begin :
       {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: "}) {
    ResponseParser parser;
    ASSERT_TRUE(parser.feed(begin));
    EXPECT_FALSE(parser.feed(std::string(ResponseParser::kMaxHeadBytes + 1, 'x'))) << begin;
  }
  ResponseParser forever;  // interim answers count together
  std::string interim;
  while (interim.size() <= ResponseParser::kMaxHeadBytes) interim += "HTTP/1.1 100 C\r\n\r\n";
  EXPECT_FALSE(forever.feed(interim));
}

}  // namespace
}  // namespace mete::net
