// SPDX-License-Identifier: Apache-2.0
#include "net/http.h"

#include <gtest/gtest.h>

namespace mete::net {
namespace {

TEST(Target, IsSplitFirstAndDecodedThen) {
  const Result<Target> target = parse_target("/v1/a%20b%3Fc?x=1&y=%C3%A4%26+z&flag&&e=");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v1/a b?c");
  EXPECT_EQ(target->query, (Fields{{"x", "1"}, {"y", "\xC3\xA4& z"}, {"flag", ""}, {"e", ""}}));
}

TEST(Target, PlusIsAPlusInThePath) { EXPECT_EQ(parse_target("/a+b")->path, "/a+b"); }

TEST(Target, MayNameAHost) {
  EXPECT_EQ(parse_target("http://any.where:80/v1/x?y")->path, "/v1/x");
  EXPECT_EQ(parse_target("http://any.where")->path, "/");
}

TEST(Target, RefusesWhatIsNoPathAndWhatWouldMoveItsBorders) {
  for (const char* text : {"", "*", "v1", "https://x/y", "/%", "/%4", "/%zz", "/%00", "/a%2Fb",
                           "/a%2fb", "/?%", "/?a=%00"})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(Target, EveryByteSurvivesEncoding) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const Result<Target> target = parse_target("/?k=" + percent_encode(all));
  ASSERT_TRUE(target);
  EXPECT_EQ(target->query[0].second, all);
}

}  // namespace
}  // namespace mete::net
