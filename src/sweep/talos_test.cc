// SPDX-License-Identifier: Apache-2.0
// Talos' parameter dictionaries. values() are the texts of the one parameter of a dictionary with a
// letter for the kind of each: i(nteger), r(eal), b(ool), t(ext). bad() is the message of one that
// must be refused.
#include <gtest/gtest.h>

#include "sweep/space_file.h"

namespace mete::sweep {
namespace {

using core::sweep::Parameter;
using core::sweep::Value;

std::string values(const Parameter& parameter) {
  std::string all;
  for (const Value& value : std::get<std::vector<Value>>(parameter.domain))
    all += (all.empty() ? "" : " ") + std::string(1, "tirb"[static_cast<int>(value.kind)]) + ":" +
           value.text;
  return all;
}
SpaceFile read(const std::string& text) {
  Result<SpaceFile> file = read_talos(text, "p.py");
  if (!file) ADD_FAILURE() << file.error().message << "\n" << file.error().evidence;
  return file ? *std::move(file) : SpaceFile{};
}
std::string values(const std::string& value) {
  const SpaceFile file = read("{'a': " + value + "}");
  return file.params.empty() ? "" : values(file.params[0]);
}
Error error_of(const std::string& text) {
  const Result<SpaceFile> file = read_talos(text, "p.py");
  return file ? Error::invalid("accepted") : file.error();
}
std::string bad(const std::string& text) { return error_of(text).message; }

TEST(Talos, ADictionaryIsASpace) {
  const SpaceFile file = read(
      "# the space\n"
      "p = {'lr': (0.5, 5, 10),\n"
      "     \"first_neuron\": [4, 8, 16,],  # a list\n"
      "     'shapes': ['brick', 'long_funnel'],\n"
      "     'weight_regulizer': [None], 'amp': [True, False],\n"
      "}\n");
  ASSERT_EQ(file.params.size(), 5u);
  EXPECT_EQ(file.params[0].name, "lr");
  EXPECT_EQ(values(file.params[0]),
            "r:0.5 r:0.95 r:1.4 r:1.85 r:2.3 r:2.75 r:3.2 r:3.65 r:4.1 r:4.55");
  EXPECT_EQ(values(file.params[1]), "i:4 i:8 i:16");
  EXPECT_EQ(values(file.params[2]), "t:brick t:long_funnel");
  EXPECT_EQ(values(file.params[3]), "t:None");
  EXPECT_EQ(values(file.params[4]), "b:true b:false");
  EXPECT_FALSE(file.keep || file.trials || file.goal || file.sampler);
}

TEST(Talos, ATupleIsThatManyValuesWithoutMax) {
  EXPECT_EQ(values("(12, 48, 2)"), "i:12 i:30") << "the example of docs/Scan.md";
  EXPECT_EQ(values("(20, 50, 5)"), "i:20 i:26 i:32 i:38 i:44");
  EXPECT_EQ(values("(0, 0.5, 5)"), "r:0 r:0.1 r:0.2 r:0.3 r:0.4");
  EXPECT_EQ(values("(0.1, 0.5, 4)"), "r:0.1 r:0.2 r:0.3 r:0.4");
  EXPECT_EQ(values("(1, 2, 1)"), "i:1");
  EXPECT_EQ(values("(-1.0, 1.0, 4)"), "r:-1 r:-0.5 r:0 r:0.5");
}

TEST(Talos, ATupleOfIntsIsCutToIntsEachOnce) {
  EXPECT_EQ(values("(2, 30, 10)"), "i:2 i:4 i:7 i:10 i:13 i:16 i:18 i:21 i:24 i:27");
  EXPECT_EQ(values("(0, 3, 10)"), "i:0 i:1 i:2");
  EXPECT_EQ(values("(-3, 3, 4)"), "i:-3 i:-1 i:0 i:1") << "towards zero";
  EXPECT_EQ(values("(0, 9_000_000_000_000_000_000, 3)"),
            "i:0 i:3000000000000000000 i:6000000000000000000");
}

TEST(Talos, NumbersKeepTheirText) {
  EXPECT_EQ(values("[1e-3, 0.10, -5, - 6, +7, .5, 1E+2]"),
            "r:1e-3 r:0.10 i:-5 i:-6 i:7 r:.5 r:1E+2");
  EXPECT_EQ(values("[1_000, 0x1F, -0b11, 0o17, 0x_ff]"), "i:1000 i:31 i:-3 i:15 i:255");
  EXPECT_EQ(values("20"), "i:20") << "fixed";
}

TEST(Talos, TextsHaveTheEscapesOfPython) {
  EXPECT_EQ(values(R"(['a\'b', "a'c", 'a\\b', 'a\tb', '\x41\101\u00e9\U0001F600', '\d'])"),
            "t:a'b t:a'c t:a\\b t:a\tb t:AA\xc3\xa9\xf0\x9f\x98\x80 t:\\d");
  EXPECT_EQ(values(R"([r'a\n', u'b', '32', 'true', ''])"), "t:a\\n t:b t:32 t:true t:");
  EXPECT_EQ(values("['a\\\nb']"), "t:ab");
}

TEST(Talos, LayoutIsThatOfPython) {
  EXPECT_EQ(values("((((1))))"), "i:1");
  EXPECT_EQ(values("[(1), ('b')]"), "i:1 t:b");
  EXPECT_EQ(values("(\n1, # min\n\n3,\n2,)"), "i:1 i:2");
  EXPECT_EQ(read("\xef\xbb\xbf{'a': [1]}\r\n# end").params.size(), 1u);
  EXPECT_EQ(read("params = \\\n {'a': [1]};\n").params.size(), 1u);
}

TEST(Talos, ATupleOfAnotherKindIsRefused) {
  EXPECT_EQ(bad("{'a': (1, 2)}"),
            "p.py:1: parameter 'a': a tuple has three numbers, this one has 2");
  EXPECT_EQ(bad("{'a': (1, 2, 3, 4)}"),
            "p.py:1: parameter 'a': a tuple has three numbers, this one has 4");
  EXPECT_EQ(bad("{'a': ()}"), "p.py:1: parameter 'a': a tuple has three numbers, this one has 0");
  EXPECT_EQ(bad("{'a': (1,)}"), "p.py:1: parameter 'a': a tuple has three numbers, this one has 1");
  for (const char* tuple : {"('a', 'b', 'c')", "(0, 1, True)", "(0, 1, '2')", "(0, 1, [2])"})
    EXPECT_EQ(bad("\n{'a':\n" + std::string(tuple) + "}"),
              "p.py:3: parameter 'a': a tuple has something that is no number");
  EXPECT_EQ(bad("{'a': (0, 1, 0.1)}"),
            "p.py:1: parameter 'a': the number of values is 1 to 100000, not '0.1'");
  EXPECT_EQ(bad("{'a': (0, 1, 0)}").substr(0, 43), "p.py:1: parameter 'a': the number of values");
  EXPECT_EQ(bad("{'a': (0, 1, 100001)}").substr(0, 43),
            "p.py:1: parameter 'a': the number of values");
  EXPECT_EQ(bad("{'a': (1, 1.0, 5)}"), "p.py:1: parameter 'a': the range has no width");
  EXPECT_EQ(bad("{'a': (5, 1, 5)}"), "p.py:1: parameter 'a': min is larger than max");
}

TEST(Talos, AValueIsNoListItself) {
  EXPECT_EQ(bad("{'a': [1,\n[2]]}"), "p.py:2: parameter 'a': a value is a list itself");
  EXPECT_EQ(bad("{'a': [(1, 2, 3)]}"), "p.py:1: parameter 'a': a value is a list itself");
  EXPECT_EQ(bad("{'a': [{'b': 1}]}"), "p.py:1: a value belongs here");
  EXPECT_EQ(bad("{'a': {'b': 1}}"), "p.py:1: a value belongs here");
}

TEST(Talos, NamesOfPythonAreRefusedWithAHint) {
  const Error adam = error_of("p = {\n 'opt': [keras.optimizers.Adam]}");
  EXPECT_EQ(adam.message, "p.py:2: 'keras.optimizers.Adam' is a name of Python, no value");
  EXPECT_EQ(adam.hint, "mete reads texts in quotes, numbers, True, False and None: 'Adam'");
  EXPECT_EQ(bad("{'a': float('inf')}"), "p.py:1: 'float' is a name of Python, no value");
  EXPECT_EQ(bad("{'a': [-inf]}"), "p.py:1: a number belongs here");
}

TEST(Talos, EveryErrorHasItsLine) {
  EXPECT_EQ(bad(""), "p.py:1: a dictionary belongs here");
  EXPECT_EQ(bad("import talos\np = {'a': [1]}"), "p.py:1: a dictionary belongs here");
  EXPECT_EQ(bad("p = [1]"), "p.py:1: a dictionary belongs here");
  EXPECT_EQ(bad("\n{}"), "p.py:2: the dictionary is empty");
  EXPECT_EQ(bad("{'a': [1]}\n{'b': [1]}"), "p.py:2: nothing belongs behind the dictionary");
  EXPECT_EQ(bad("{'a': [1],\n'a': [2]}"), "p.py:2: 'a' is there twice");
  EXPECT_EQ(bad("{1: [1]}"), "p.py:1: the name of a parameter belongs here");
  EXPECT_EQ(bad("{'a' [1]}"), "p.py:1: a : belongs here");
  EXPECT_EQ(bad("{'a': [1] 'b': [2]}"), "p.py:1: a comma or } belongs here");
  EXPECT_EQ(bad("{'a': [1 2]}"), "p.py:1: a comma or ] belongs here");
  EXPECT_EQ(bad("{'a': [1\n"), "p.py:2: a comma or ] belongs here");
  EXPECT_EQ(bad("{'a': [,]}"), "p.py:1: a value belongs here");
  EXPECT_EQ(bad("{'a': 2**5}"), "p.py:1: a comma or } belongs here");
  EXPECT_EQ(bad("{\n'a': ['b\n']}"), "p.py:2: this text is not closed");
  EXPECT_EQ(bad("{'a': '''b'''}"), "p.py:1: texts in triple quotes are not read here");
  EXPECT_EQ(bad("{'a': b'b'}"), "p.py:1: a text of this kind is not read here: 'b'");
  EXPECT_EQ(bad("{'a': '\\xg1'}"), "p.py:1: this escape means no character: '\\g1'");
  EXPECT_EQ(bad("{'a': '\\ud800'}").substr(0, 43), "p.py:1: this escape means no character: '\\d");
  for (const char* number : {"1j", "007", "1__0", "1_", "1_e5", "1e_5", "0_x1", "0x", "0xg",
                             "1.2.3", "1e999", "5x", "0x8000000000000000"})
    EXPECT_EQ(bad("{'a': [" + std::string(number) + "]}"), "p.py:1: this number is not understood")
        << number;
}

TEST(Talos, TheSpaceIsCheckedWithTheLineOfItsParameter) {
  EXPECT_EQ(bad("{'ok': [1],\n'a': []}").substr(0, 21), "p.py:2: parameter 'a'");
  EXPECT_EQ(bad("{'ok': [1],\n'a': [1, 1]}").substr(0, 21), "p.py:2: parameter 'a'");
  EXPECT_EQ(bad("{'ok': [1],\n'a b': [1]}"), "p.py:2: 'a b' cannot be the name of a parameter");
}

TEST(Talos, IsBounded) {
  EXPECT_EQ(bad("{'a': " + std::string(100'000, '[')), "p.py:1: more than 64 levels of nesting");
  EXPECT_EQ(bad("{'a': " + std::string(100'000, '(')), "p.py:1: more than 64 levels of nesting");
  EXPECT_EQ(values(std::string(64, '(') + "1" + std::string(64, ')')), "i:1");
  std::string many = "{";
  for (int i = 0; i < 300; ++i) many += "'p" + std::to_string(i) + "': 1,";
  EXPECT_EQ(bad(many + "}"), "p.py:1: the space has too many parameters");
  std::string list;
  for (int i = 0; i <= 100'000; ++i) list += "1,";
  EXPECT_EQ(bad("{'a': [" + list + "]}"), "p.py:1: there are too many values");
  EXPECT_EQ(bad(std::string(kMaxSpaceFile + 1, ' ')), "p.py:1: the file is too long");
}

}  // namespace
}  // namespace mete::sweep
