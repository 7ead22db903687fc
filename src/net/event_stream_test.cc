// SPDX-License-Identifier: Apache-2.0
#include "net/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace mete::net {
namespace {

std::vector<std::string> events_of(std::string_view text, std::size_t step) {
  EventStream stream;
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size(); at += step) {
    EXPECT_TRUE(stream.feed(text.substr(at, step)).ok());
    while (std::optional<std::string> event = stream.next()) events.push_back(*std::move(event));
  }
  return events;
}

TEST(EventStream, IsTheSameInWhateverPiecesItComes) {
  const std::string text = "event: snapshot\ndata: {\"a\":1}\n\nevent: snapshot\ndata: {}\n\n";
  const std::vector<std::string> wanted{"{\"a\":1}", "{}"};
  for (std::size_t step = 1; step <= text.size(); ++step)
    EXPECT_EQ(events_of(text, step), wanted) << step;
}

TEST(EventStream, WhatIsNotWholeWaits) {
  EventStream stream;
  ASSERT_TRUE(stream.feed("data: one\n").ok());
  EXPECT_EQ(stream.next(), std::nullopt);
  ASSERT_TRUE(stream.feed("\ndata: tw").ok());
  EXPECT_EQ(stream.next(), "one");
  EXPECT_EQ(stream.next(), std::nullopt);
  ASSERT_TRUE(stream.feed("o\n\n").ok());
  EXPECT_EQ(stream.next(), "two");
}

TEST(EventStream, OtherLinesAreReadPast) {
  const std::vector<std::string> wanted{"a\nb", " c", ""};
  EXPECT_EQ(
      events_of(": hello\r\n\r\nid: 4\r\ndata: a\r\ndata:b\r\n\r\nretry: 3\n\ndata:  c\nx\n\ndata\n"
                "data:\n\n",
                3),
      wanted);
}

TEST(EventStream, AnEventWithoutEndIsRefused) {
  EventStream stream;
  const std::string much(EventStream::kMaxEventBytes / 4, 'x');
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(stream.feed(much).ok());
  const Result<void> more = stream.feed("x");
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace mete::net
