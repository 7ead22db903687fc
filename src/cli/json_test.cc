// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <gtest/gtest.h>

namespace mete::cli {
namespace {

TEST(Json, EscapesWhatMustBe) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01"), "\"a\\\"b\\\\c\\n\\t\\u0001\"");
  EXPECT_EQ(json_string(""), "\"\"");
}

TEST(Json, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(json_string("\u009b2J\u202e\x7f"), "\"\\u009b2J\\u202e\\u007f\"");
}

TEST(Json, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(json_string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ(json_string("\xc3"), "\"\xef\xbf\xbd\"");                                  // cut short
  EXPECT_EQ(json_string("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");                  // overlong
  EXPECT_EQ(json_string("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // surrogate
}

TEST(Json, ObjectsKeepTheirOrder) {
  EXPECT_EQ(JsonObject().text("b", "x").number("a", 18446744073709551615ull).str(),
            R"({"b":"x","a":18446744073709551615})");
  EXPECT_EQ(json_array({}), "[]");
  EXPECT_EQ(json_array({"1", "2"}), "[1,2]");
}

}  // namespace
}  // namespace mete::cli
