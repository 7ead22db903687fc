// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <gtest/gtest.h>

#include <array>

namespace mete::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<OptionSpec, 5> kSpecs{{
    {"--gpu", "SHARE", "how much"},
    {"--env", "K=V", "", "", true},
    {"--output", "FORMAT", "", "-o"},
    {"--quiet"},
    {.name = "--time", .value = "T", .not_built = "it comes with the daemon"},
}};

Result<Parsed> parsed(const Words& args, Rest rest = Rest::kCommand) {
  return parse_options(kSpecs, args, rest);
}

TEST(Options, EndAtTheDashesOrAtTheFirstWord) {
  const Words command{"cmd", "--gpu", "3"};
  EXPECT_EQ(parsed({"--gpu", "8G", "--", "cmd", "--gpu", "3"})->rest, command);
  EXPECT_EQ(parsed({"--gpu", "8G", "cmd", "--gpu", "3"})->rest, command);
  EXPECT_EQ(*parsed({"--gpu", "8G", "cmd", "--gpu", "3"})->find("--gpu"), "8G");
  EXPECT_EQ(parsed({"cmd", "--", "x"})->rest, (Words{"cmd", "--", "x"}));
  EXPECT_EQ(parsed({"--", "--", "x"})->rest, (Words{"--", "x"}));
}

TEST(Options, AreWrittenInFourWays) {
  for (const Words& args :
       {Words{"--output", "json"}, Words{"--output=json"}, Words{"-o", "json"}, Words{"-ojson"}})
    EXPECT_EQ(*parsed(args)->find("--output"), "json");
  EXPECT_EQ(*parsed({"--gpu="})->find("--gpu"), "");
  EXPECT_EQ(*parsed({"--gpu", "-1"})->find("--gpu"), "-1");
}

TEST(Options, RepeatOnlyWhereTheyMay) {
  EXPECT_EQ(parsed({"--env", "A=1", "--env=B=2"})->all("--env"), (Words{"A=1", "B=2"}));
  EXPECT_EQ(parsed({"--gpu", "1", "--gpu", "2"}).error().message, "--gpu is given twice");
}

TEST(Options, SayWhatIsWrong) {
  EXPECT_EQ(parsed({"--gup", "1"}).error().hint, "did you mean --gpu?");
  EXPECT_EQ(parsed({"--gres", "gpu:1"}).error().hint, "did you mean --gpu?") << "as Slurm has it";
  EXPECT_EQ(parsed({"--mem", "1G"}).error().hint, "--help lists the options; -- ends them")
      << "there is no --ram here";
  EXPECT_EQ(parsed({"--gpu"}).error().message, "--gpu needs a value");
  EXPECT_EQ(parsed({"--gpu", "--", "cmd"}).error().message, "--gpu needs a value");
  EXPECT_EQ(parsed({"--quiet=1"}).error().message, "--quiet takes no value");
  EXPECT_EQ(parsed({"word"}, Rest::kNothing).error().code, ErrorCode::kInvalid);
}

TEST(Options, NotBuiltAreRefusedAndNotIgnored) {
  const Error error = parsed({"--time", "5", "--", "cmd"}).error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.evidence, "it comes with the daemon");
}

TEST(Options, MayStandBetweenWords) {
  const Result<Parsed> result = parsed({"bash", "--quiet", "x"}, Rest::kWords);
  EXPECT_EQ(result->rest, (Words{"bash", "x"}));
  EXPECT_TRUE(result->has("--quiet"));
}

TEST(Options, WordsBeforeTheDashesStay) {
  EXPECT_EQ(parsed({"exec", "--quiet", "--", "--x", "y"}, Rest::kWords)->rest,
            (Words{"exec", "--x", "y"}));
}

TEST(Options, ANegativeNumberIsAWordAmongWords) {
  EXPECT_EQ(parsed({"12", "-5"}, Rest::kWords)->rest, (Words{"12", "-5"}));
  EXPECT_FALSE(parsed({"-5", "cmd"}, Rest::kCommand).ok());
}

}  // namespace
}  // namespace mete::cli
