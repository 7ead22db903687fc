// SPDX-License-Identifier: Apache-2.0
// Expressions over a few parameters: what holds, what a parameter that is not in use does, and
// where errors point. Each case is a text and the values in values().
#include "core/sweep/expression.h"

#include <gtest/gtest.h>

#include <map>

namespace mete::core::sweep {
namespace {

const std::map<std::string, Value, std::less<>>& values() {
  static const std::map<std::string, Value, std::less<>> all = {
      {"bs", of_integer(64)},          {"width", of_integer(512)},  {"lr", guess("1e-3")},
      {"opt", of_text("adam")},        {"nesterov", of_bool(true)}, {"off", of_bool(false)},
      {"weight-decay", of_real(0.01)}, {"layers", of_integer(3)},   {"word", of_text("3")},
      {"empty", of_text("")},          {"mixed", of_integer(2)},    {"zero", of_integer(0)}};
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> names = {"unused", "weight", "decay"};
  for (const auto& [name, value] : values()) names.push_back(name);
  return names;
}

std::optional<Value> value_of(std::string_view name) {
  const auto found = values().find(name);
  return found == values().end() ? std::nullopt : std::optional(found->second);
}

bool holds(const std::string& text) {
  const Result<Expression> expression = Expression::parse(text, names());
  EXPECT_TRUE(expression.ok()) << text << ": " << (expression ? "" : expression.error().message);
  return expression && expression->holds(value_of);
}

Error error_of(const std::string& text) {
  const Result<Expression> expression = Expression::parse(text, names());
  EXPECT_FALSE(expression.ok()) << text;
  return expression ? Error{} : expression.error();
}

// Where the mark is, from 0.
std::size_t mark_of(const std::string& text) {
  const std::string evidence = error_of(text).evidence;
  return evidence.size() - evidence.find('\n') - 2;
}

TEST(SweepExpression, ComparesNumbers) {
  for (const char* text : {"bs == 64", "bs != 65", "bs < 65", "bs <= 64", "bs > 63.5", "bs >= 64",
                           "lr == 0.001", "1e-3 == lr", "bs==64", " bs\t==\n64 ", "width > bs"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text : {"bs == 65", "bs != 64", "bs < 64", "bs <= 63", "bs > 64", "bs >= 65"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(SweepExpression, ComparesTexts) {
  for (const char* text : {"opt == \"adam\"", "opt == 'adam'", "opt != 'sgd'", "opt < 'b'",
                           "opt >= 'adam'", "word == '3'", "empty == ''", "'a\\'b' == \"a'b\"",
                           "'a\\\\' == \"a\\\\\"", "'a\\n' == 'a\\\\n'"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text : {"opt == 'sgd'", "opt != 'adam'", "opt > 'b'"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(SweepExpression, ATextAndANumberAreNeitherEqualNorDifferent) {
  for (const char* op : {"==", "!=", "<", "<=", ">", ">="}) {
    EXPECT_FALSE(holds("word " + std::string(op) + " 3")) << op;
    EXPECT_FALSE(holds("3 " + std::string(op) + " word")) << op;
    EXPECT_TRUE(holds("not (word " + std::string(op) + " 3)")) << op;
  }
}

TEST(SweepExpression, AParameterThatIsNotInUseMakesComparisonsFalse) {
  for (const char* text :
       {"unused == 1", "unused != 1", "unused < 1", "unused == unused", "unused", "unused in [1]",
        "unused not in [1]", "unused not in []", "unused + 1 > 0", "-unused < 1",
        "unused ** 0 == 1", "0 * unused == 0", "bs == unused", "bs not in [unused]"})
    EXPECT_FALSE(holds(text)) << text;
  EXPECT_TRUE(holds("not unused"));
  EXPECT_TRUE(holds("not (unused == 1)"));
  EXPECT_TRUE(holds("unused == 1 or bs == 64"));
  EXPECT_TRUE(holds("bs in [unused, 64]"));
}

TEST(SweepExpression, ANumberThatIsNotFiniteMakesComparisonsFalse) {
  for (const char* text :
       {"1 / zero > 0", "1 / zero == 1 / zero", "1 / zero != 0", "zero / zero != zero / zero",
        "bs % zero != 1", "1 / (1 / zero) == 0", "10 ** 400 > 1", "(0 - 1) ** 0.5 != 1",
        "zero ** -1 > 0", "zero ** -0.5 > 0", "1e308 * 10 > 0", "1 / zero"})
    EXPECT_FALSE(holds(text)) << text;
  EXPECT_TRUE(holds("not 1 / zero > 0"));
}

TEST(SweepExpression, Computes) {
  for (const char* text : {"bs * width <= 65536",
                           "1 + 2 * 3 == 7",
                           "(1 + 2) * 3 == 9",
                           "10 - 3 - 2 == 5",
                           "100 / 10 / 5 == 2",
                           "100 / 10 * 5 == 50",
                           "bs % 32 == 0",
                           "7 % 4 == 3",
                           "-7 % 4 == 1",
                           "7 % -4 == -1",
                           "-7 % -4 == -3",
                           "8 % 4 == 0",
                           "2 ** 10 == 1024",
                           "2 ** 3 ** 2 == 512",
                           "-2 ** 2 == -4",
                           "(-2) ** 3 == -8",
                           "2 ** -1 == 0.5",
                           "10 ** -3 == 0.001",
                           "width ** 0.5 * width ** 0.5 > 511.9",
                           "4 ** 0.5 == 2",
                           "0 ** 0 == 1",
                           "0 ** 0.5 == 0",
                           "1 ** 9007199254740991 == 1",
                           "0.5 ** 1e300 == 0",
                           "8 ** (1 / 3) > 1.999999",
                           "8 ** (1 / 3) < 2.000001",
                           "--3 == 3",
                           "2 * -3 == -6",
                           "1.5e1 == 15",
                           ".5 == 5. / 10"})
    EXPECT_TRUE(holds(text)) << text;
}

TEST(SweepExpression, RootsOfSquaresAreWhole) {
  for (int n = 1; n <= 300; ++n)
    EXPECT_TRUE(holds(std::to_string(n * n) + " ** 0.5 == " + std::to_string(n))) << n;
}

TEST(SweepExpression, ArithmeticWithATextIsNothing) {
  for (const char* text : {"opt + 1 > 0", "-opt != 0", "'a' + 'b' == 'ab'", "word * 1 == 3",
                           "2 ** word > 0", "word + 0 != 3"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(SweepExpression, BoolsAreNumbers) {
  for (const char* text : {"nesterov", "not off", "nesterov == true", "nesterov == True",
                           "nesterov == 1", "off == false", "off == False", "nesterov != off",
                           "true", "!false", "(bs == 64) == true", "(bs == 64) + (lr > 0) == 2",
                           "(bs == 1) == off", "(opt in ['adam']) == 1", "bs", "opt", "!empty"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text : {"off", "not nesterov", "false", "0", "empty", "nesterov == 'true'"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(SweepExpression, AndBindsStrongerThanOr) {
  EXPECT_TRUE(holds("true or false and false"));
  EXPECT_FALSE(holds("(true or false) and false"));
  EXPECT_TRUE(holds("not false and true"));
  EXPECT_FALSE(holds("not (false or true)"));
  EXPECT_TRUE(holds("not bs == 65")) << "not (bs == 65)";
  EXPECT_TRUE(holds("bs == 64 && !(opt == 'sgd' || lr > 0.1)"));
  EXPECT_TRUE(holds("not not true"));
}

TEST(SweepExpression, FindsValuesInLists) {
  for (const char* text : {"layers in [2, 3]", "layers in [1 + 2]", "layers not in [2, 4]",
                           "opt in [\"sgd\", 'adam']", "opt not in ['sgd']", "layers not in []",
                           "opt not in [1, 'sgd']", "mixed not in ['auto', 1]", "bs+1 in[65]"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text : {"layers in [2, 4]", "layers in []", "layers not in [3]",
                           "opt in ['sgd']", "opt not in ['adam', 1]", "opt not in [1]",
                           "word in [3]", "word not in [4]", "mixed not in ['auto', 2]"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(SweepExpression, AHyphenIsPartOfAKnownNameOnly) {
  EXPECT_TRUE(holds("weight-decay == 0.01"));
  EXPECT_TRUE(holds("weight-decay-1 < 0")) << "the longest known name, then a minus";
  EXPECT_TRUE(holds("bs-lr > 63"));
  EXPECT_TRUE(holds("bs-64 == 0"));
  EXPECT_TRUE(holds("bs--1 == 65"));
  EXPECT_FALSE(holds("weight - decay == 0.01")) << "two parameters that are not in use";
  const std::vector<std::string> known = {"a", "a-b-c", "a-b"};
  for (const auto& [text, used] :
       std::map<std::string, std::vector<std::string>>{{"a-b-c > 0", {"a-b-c"}},
                                                       {"a-b-a > 0", {"a-b", "a"}},
                                                       {"a-bc", {}},
                                                       {"a - b", {}},
                                                       {"a-b-cd", {}}}) {
    const Result<Expression> expression = Expression::parse(text, known);
    EXPECT_EQ(expression.ok(), !used.empty()) << text;
    EXPECT_EQ(expression ? expression->names() : std::vector<std::string>{}, used) << text;
  }
}

TEST(SweepExpression, KeywordsEndAtANamesEnd) {
  const std::vector<std::string> known = {"order",  "android", "notes", "inner",
                                          "truely", "not-x",   "x"};
  const auto one = [](std::string_view) { return std::optional(of_integer(1)); };
  for (const char* text : {"order and android", "not notes == 2", "inner in [1] or order",
                           "truely == 1", "not-x == 1", "x or-x", "not x-2", "not(x == 2)"}) {
    const Result<Expression> expression = Expression::parse(text, known);
    ASSERT_TRUE(expression.ok()) << text << ": " << expression.error().message;
    EXPECT_EQ(expression->holds(one), std::string_view(text) != "not x-2") << text;
  }
}

TEST(SweepExpression, NamesAreInTheOrderOfTheirFirstUse) {
  const Result<Expression> expression =
      Expression::parse("opt in ['a', bs] or -lr ** width > bs and not (layers) == lr", names());
  ASSERT_TRUE(expression.ok());
  EXPECT_EQ(expression->names(), (std::vector<std::string>{"opt", "bs", "lr", "width", "layers"}));
}

TEST(SweepExpression, ErrorsPointAtTheCharacter) {
  for (const auto& [text, at] : std::map<std::string, std::size_t>{
           {"", 0},           {"bs >", 4},        {"bs > > 1", 5},     {"bs 1", 3},
           {"(bs > 1", 0},    {"bs > 1)", 6},     {"bs = 1", 3},       {"1 < bs < 3", 7},
           {"bs in 3", 6},    {"bs in [1", 8},    {"bs in [1 2]", 9},  {"bs not 1", 7},
           {"'a", 0},         {"opt == \"a'", 7}, {"bs > 3x", 5},      {"bs > 1.2.3", 5},
           {"bs > 1e999", 5}, {"wdith > 1", 0},   {"bs and", 6},       {"and bs", 0},
           {"bs > $", 5},     {"bs > 1 lr", 7},   {"bs > 2 wdith", 7}, {"[1]", 0},
           {"bs in []]", 8},  {"bs & lr", 3},     {"bs in [1,]", 9},   {"bs > 1e", 5},
           {"bs > .", 5},     {"not", 3},         {"bs == \xff", 6}})
    EXPECT_EQ(mark_of(text), at) << text << "\n" << error_of(text).evidence;
}

TEST(SweepExpression, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(error_of("bs = 1").message,
            "the expression is not understood: = does not compare; write == (character 4)");
  EXPECT_EQ(error_of("bs = 1").evidence, "bs = 1\n   ^");
  EXPECT_EQ(error_of("bs >").message,
            "the expression is not understood: it ends where a value belongs (character 5)");
  EXPECT_EQ(error_of("'äö' == 'x").message,
            "the expression is not understood: this quote is not closed (character 9)");
}

TEST(SweepExpression, AnUnknownNameSuggestsTheNearest) {
  EXPECT_EQ(error_of("wdith > 1").hint, "did you mean width?");
  EXPECT_EQ(error_of("bs > 1 and wdith > 1").message,
            "the expression is not understood: there is no parameter 'wdith' (character 12)");
  EXPECT_EQ(error_of("weigth-decay > 1").hint, "did you mean weight-decay?");
  EXPECT_EQ(error_of("layer-1 > 1").hint, "did you mean layers?");
  EXPECT_EQ(error_of("opt == rmsprop").hint, "a text needs quotes, as in opt == \"adam\"");
}

TEST(SweepExpression, NestingIsBounded) {
  const auto nested = [](const std::string& open, std::size_t depth, const std::string& close) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += open;
    text += "bs";
    for (std::size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  for (const auto& [open, close] : std::map<std::string, std::string>{
           {"(", ")"}, {"not ", ""}, {"!", ""}, {"-", ""}, {"1**", ""}}) {
    EXPECT_TRUE(Expression::parse(nested(open, 64, close), names()).ok()) << open;
    EXPECT_FALSE(Expression::parse(nested(open, 65, close), names()).ok()) << open;
    EXPECT_FALSE(Expression::parse(nested(open, 300, close), names()).ok()) << open;
  }
  EXPECT_FALSE(Expression::parse(nested("(-", 33, ")"), names()).ok()) << "kinds add up";
}

TEST(SweepExpression, LongChainsAreNotNested) {
  for (const char* link : {" + 1", " and 1", " or 1", " * 1"}) {
    std::string text = "bs";
    while (text.size() + 10 < kMaxExpression) text += link;
    EXPECT_TRUE(holds(text)) << link;
  }
}

TEST(SweepExpression, LengthIsBounded) {
  const std::string most = "opt != '" + std::string(kMaxExpression - 9, 'x') + "'";
  ASSERT_EQ(most.size(), kMaxExpression);
  EXPECT_TRUE(Expression::parse(most, names()).ok());
  EXPECT_EQ(error_of(most + " ").evidence, "2001 characters; at most 2000");
  EXPECT_FALSE(Expression::parse("'" + std::string(1'000'000, '\x80') + "'", names()).ok());
  std::string wide = "opt != '";
  for (int i = 0; i < 1900; ++i) wide += "ü";
  EXPECT_TRUE(Expression::parse(wide + "'", names()).ok()) << "characters, not bytes";
}

TEST(SweepExpression, ExpressionsAreEqualByText) {
  const Result<Expression> one = Expression::parse("bs > 1", names());
  const Result<Expression> same = Expression::parse("bs > 1", names());
  const Result<Expression> other = Expression::parse("bs > 2", names());
  ASSERT_TRUE(one.ok() && same.ok() && other.ok());
  EXPECT_EQ(*one, *same);
  EXPECT_FALSE(*one == *other);
  EXPECT_EQ(one->text(), "bs > 1");
}

}  // namespace
}  // namespace mete::core::sweep
