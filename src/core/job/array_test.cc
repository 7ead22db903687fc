// SPDX-License-Identifier: Apache-2.0
#include "core/job/array.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace mete::core {
namespace {

using Elements = std::vector<std::uint32_t>;

TEST(Arrays, AreRangesAndNumbers) {
  EXPECT_EQ(elements_of(*parse_array("7")), Elements{7});
  EXPECT_EQ(elements_of(*parse_array("0-4")), (Elements{0, 1, 2, 3, 4}));
  EXPECT_EQ(elements_of(*parse_array("1,3,5")), (Elements{1, 3, 5}));
  EXPECT_EQ(elements_of(*parse_array("0-10:5")), (Elements{0, 5, 10}));
  EXPECT_EQ(elements_of(*parse_array("0-9:4")), (Elements{0, 4, 8})) << "the last may be passed";
  EXPECT_EQ(elements_of(*parse_array("9,0-2")), (Elements{9, 0, 1, 2})) << "in the order written";
  EXPECT_EQ(elements_of(*parse_array("5-5")), Elements{5});
  EXPECT_EQ(elements_of(*parse_array("5-5:3")), Elements{5});
  EXPECT_EQ(elements_of(*parse_array("9999999")), Elements{kMaxElement});
  EXPECT_EQ(parse_array("0-4")->at_once, std::nullopt);
  EXPECT_EQ(parse_array("0-99%4")->at_once, 4u);
}

TEST(Arrays, WhatIsNoneIsRefusedWithTheWord) {
  for (const char* text : {"",
                           ",",
                           "1,",
                           ",1",
                           "-",
                           "1-",
                           "-1",
                           "4-1",
                           "1-2-3",
                           "a",
                           "1-b",
                           " 1",
                           "1 ",
                           "+1",
                           "0x1",
                           "1:2",
                           "1-4:",
                           "1-4:0",
                           "1-4:x",
                           "1-4:2:2",
                           "10000000",
                           "1-10000000",
                           "99999999999999999999",
                           "%4",
                           "1%",
                           "1%0",
                           "1%x",
                           "1%4%4",
                           "%",
                           "1%-1",
                           "1-4%2,5"}) {
    const Result<Array> array = parse_array(text);
    ASSERT_FALSE(array.ok()) << text;
    EXPECT_EQ(array.error().code, ErrorCode::kInvalid) << text;
    EXPECT_FALSE(array.error().hint.empty()) << text;
  }
  EXPECT_NE(parse_array("1,x-3").error().message.find("'x-3'"), std::string::npos);
}

TEST(Arrays, AnElementTwiceIsRefused) {
  for (const char* text : {"1,1", "0-4,2", "0-10:5,10"}) {
    const Result<Array> array = parse_array(text);
    ASSERT_FALSE(array.ok()) << text;
    EXPECT_NE(array.error().message.find("twice"), std::string::npos) << array.error().message;
  }
}

TEST(Arrays, AMillionIsTooMany) {
  for (const char* text : {"0-999999", "0-9999999", "0-50000", "0-24999,25000-50000",
                           "0-9999999,0-9999999,0-9999999"}) {
    const Result<Array> array = parse_array(text);
    ASSERT_FALSE(array.ok()) << text;
    EXPECT_NE(array.error().message.find("at most 50000"), std::string::npos)
        << array.error().message;
  }
  EXPECT_EQ(elements_of(*parse_array("0-49999")).size(), kMaxElements);
  EXPECT_EQ(elements_of(*parse_array("0-9999999:1000")).size(), 10'000u);
}

// Many small ranges, some of a single element with a step.
std::string random_text() {
  std::string text;
  std::uint32_t from = 0;
  const int ranges = *rc::gen::inRange(1, 8);
  for (int i = 0; i < ranges; ++i) {
    const auto first = from + *rc::gen::inRange(0u, 1000u);
    const auto last = first + *rc::gen::element(0u, 1u, 7u, 1000u);
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last != first || *rc::gen::arbitrary<bool>()) text += "-" + std::to_string(last);
    if (text.ends_with("-" + std::to_string(last)) && *rc::gen::arbitrary<bool>())
      text += ":" + std::to_string(*rc::gen::inRange(1u, 50u));
    from = last + 1;
  }
  if (*rc::gen::arbitrary<bool>()) text += "%" + std::to_string(*rc::gen::inRange(1u, 100u));
  return text;
}

RC_GTEST_PROP(ArrayProperty, WhatIsWrittenReadsBackTheSame, ()) {
  const std::string text = random_text();
  const Result<Array> array = parse_array(text);
  RC_ASSERT(array.ok());
  const Result<Array> again = parse_array(to_string(*array));
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == *array);
  const std::vector<std::uint32_t> all = elements_of(*array);
  RC_ASSERT(std::set<std::uint32_t>(all.begin(), all.end()).size() == all.size());
}

RC_GTEST_PROP(ArrayProperty, AnyTextIsAnArrayOrRefused, ()) {
  const auto characters = rc::gen::element('0', '1', '9', '-', ',', ':', '%', ' ');
  const std::string text = *rc::gen::container<std::string>(characters);
  const Result<Array> array = parse_array(text);
  if (!array.ok()) return;
  const std::size_t count = elements_of(*array).size();
  RC_ASSERT(count >= 1u);
  RC_ASSERT(count <= kMaxElements);
  RC_ASSERT(*parse_array(to_string(*array)) == *array);
}

}  // namespace
}  // namespace mete::core
