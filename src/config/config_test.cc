// SPDX-License-Identifier: Apache-2.0
// The configuration file: every key with its default, its line and its errors; the order of system
// file, user file and METE_CONFIG. A text in, values or a list of errors out; whatever `mete config
// show` prints must parse to the same values. Files of the order tests are real, in a temporary
// folder.
#include "config/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace mete::config {
namespace {

Config good(std::string_view text) {
  Config config;
  const std::vector<Error> errors = parse_config(text, "f", config);
  EXPECT_TRUE(errors.empty()) << errors.front().message;
  return config;
}

// The only error of a text.
Error complaint(std::string_view text) {
  Config config;
  const std::vector<Error> errors = parse_config(text, "f", config);
  EXPECT_EQ(errors.size(), 1U) << text;
  EXPECT_EQ(config, Config()) << "nothing of a bad file holds";
  return errors.empty() ? Error{} : errors.front();
}

TEST(Config, EmptyFileMeansTheDefaults) {
  EXPECT_EQ(good(""), Config());
  EXPECT_EQ(good("[daemon]\n[cards]\n"), Config());
  EXPECT_EQ(to_string(Config().idle_s.origin), "default");
}

TEST(Config, EveryKeyIsReadWithItsLine) {
  const Config config = good(
      "# ours\n[daemon]\nidle_s = 5\npolicy = \"spread\"\n"
      "[cards]\nreserve = \"512M\"\ndevices = [0, \"3\", \"GPU-8a\"]\n");
  EXPECT_EQ(config.idle_s.value, 5U);
  EXPECT_EQ(config.policy.value, core::Policy::kSpread);
  EXPECT_EQ(config.reserve.value, Bytes::from_mib(512));
  EXPECT_EQ(config.devices.value, (std::vector<std::string>{"0", "3", "GPU-8a"}));
  EXPECT_EQ(to_string(config.idle_s.origin), "f:3");
  EXPECT_EQ(to_string(config.devices.origin), "f:7");
}

TEST(Config, OtherUsersJobsAreRowsUnlessTheFileSaysOtherwise) {
  EXPECT_EQ(Config().others.value, core::Others::kRows);
  EXPECT_EQ(good("[sight]\nothers = \"totals\"").others.value, core::Others::kTotals);
  EXPECT_EQ(good("sight.others = \"all\"").others.value, core::Others::kAll);
  EXPECT_EQ(complaint("[sight]\nothers = \"none\"").hint, "others = \"rows\"");
  EXPECT_EQ(complaint("[sight]\nother = \"rows\"").hint, "did you mean sight.others?");
}

TEST(Config, DottedKeysAndInlineTablesAreTheSame) {
  EXPECT_EQ(good("daemon.idle_s = 7").idle_s.value, 7U);
  EXPECT_EQ(good("daemon = { idle_s = 7 }").idle_s.value, 7U);
}

TEST(Config, WhatIsShownIsAFileOfTheSameMeaning) {
  const Config config =
      good("[daemon]\nidle_s = 0\n[cards]\nreserve = \"1.5G\"\ndevices = [\"GPU-8a\", 1]\n");
  std::string text;
  for (const Shown& shown : show(config))
    if (!shown.value.empty())
      text +=
          std::string(shown.section) + "." + std::string(shown.key) + " = " + shown.value + "\n";
  const Config again = good(text);
  EXPECT_EQ(again.idle_s.value, config.idle_s.value);
  EXPECT_EQ(again.policy.value, config.policy.value);
  EXPECT_EQ(again.reserve.value, config.reserve.value);
  EXPECT_EQ(again.devices.value, config.devices.value);
}

TEST(Config, DevicesAreNumbersOrBeginningsOfUuids) {
  EXPECT_TRUE(allows(Config(), 7, "GPU-8a1b"));
  const Config config = good("cards.devices = [1, \"GPU-8A\"]");
  EXPECT_TRUE(allows(config, 1, "GPU-00"));
  EXPECT_TRUE(allows(config, 0, "GPU-8a1b"));
  EXPECT_FALSE(allows(config, 0, "GPU-00"));
  EXPECT_FALSE(allows(config, 11, "GPU-18a"));
}

TEST(Config, UnknownKeysNameTheNearest) {
  EXPECT_EQ(complaint("[daemon]\nidel_s = 5").message, "f:2:1: there is no key 'daemon.idel_s'");
  EXPECT_EQ(complaint("[daemon]\nidel_s = 5").hint, "did you mean daemon.idle_s?");
  EXPECT_EQ(complaint("[deamon]\nidle_s = 5").hint, "did you mean [daemon]?");
  EXPECT_EQ(complaint("policy = \"spread\"").hint, "did you mean daemon.policy?");
  EXPECT_EQ(complaint("[daemon]\nreserve = \"1G\"").hint, "did you mean cards.reserve?");
  EXPECT_EQ(complaint("zzzzzz = 1").hint,
            "mete config show lists the keys; a newer mete may have more");
}

TEST(Config, AFileOfANewerVersionIsOneError) {
  EXPECT_EQ(good("version = 1\n[daemon]\nidle_s = 5\n").idle_s.value, 5U);
  const Error newer = complaint("version = 2\n[clouds]\nheight = 3\n[daemon]\nidle_s = true\n");
  EXPECT_EQ(newer.message, "f:1:11: the file has version 2, this mete reads version 1");
  EXPECT_EQ(complaint("version = 0").hint, "version = 1");
  EXPECT_EQ(complaint("version = \"1\"").hint, "version = 1");
}

TEST(Config, WrongTypesSayWhereAndWhat) {
  EXPECT_EQ(complaint("[daemon]\nidle_s = \"5\"").message,
            "f:2:10: daemon.idle_s must be a number of seconds from 0 to 31622400");
  EXPECT_EQ(complaint("daemon = 5").hint, "write [daemon] on a line of its own");
  EXPECT_EQ(complaint("[daemon]\npolicy = \"best-fti\"").hint, "policy = \"best-fit\"");
  for (const char* text :
       {"daemon.idle_s = -1", "daemon.idle_s = 1.5", "daemon.idle_s = 99999999999999",
        "daemon.policy = 1", "cards.reserve = 512", "cards.reserve = \"512\"",
        "cards.reserve = \"99999999999999999999G\"", "cards.devices = 0", "cards.devices = []",
        "cards.devices = [-1]", "cards.devices = [true]", "cards.devices = [0, \"0\"]",
        "cards.devices = [\"all\"]", "cards.devices = [\"GPU-\"]", "cards.devices = [[0]]"})
    EXPECT_FALSE(complaint(text).hint.empty()) << text;
}

TEST(Config, BrokenTomlSaysWhere) {
  EXPECT_TRUE(complaint("[daemon\nidle_s = 5").message.starts_with("f:1:"));
  EXPECT_TRUE(complaint("[=").message.starts_with("f:1:"));
  EXPECT_TRUE(complaint("[daemon]\nidle_s = 5\nidle_s = 6").message.starts_with("f:3:"));
}

TEST(Config, OnlyCommentsMayBeOtherThanAscii) {
  EXPECT_EQ(good("\xef\xbb\xbf# für alle\n[daemon]\nidle_s = 5 # é\n").idle_s.value, 5U);
  EXPECT_TRUE(complaint("[daemon]\nidle_s = é").message.starts_with("f:2:10: outside of comments"));
  EXPECT_FALSE(complaint("[daemon]\npolicy = \"spread\"\u00a0# é").hint.empty());
  EXPECT_FALSE(complaint("[daemon]\npolicy = \"#é\"").hint.empty());
}

TEST(Config, AllThatIsWrongIsSaid) {
  Config config;
  const std::vector<Error> errors =
      parse_config("x = 1\n[daemon]\npolicy = 3\nidle_s = 1.5\n", "f", config);
  ASSERT_EQ(errors.size(), 3U);
  for (std::size_t i = 0; i < errors.size(); ++i)
    EXPECT_TRUE(errors[i].message.starts_with("f:" + std::string(1, "134"[i]) + ":"))
        << "in the order of the file: " << errors[i].message;
}

TEST(Config, ChangesAreTheKeysWithOtherValues) {
  const Config before = good("[queue]\ngrace_s = 30\n[logs]\nmax = \"1G\"\n");
  const Config after = good("[queue]\ngrace_s = 60\n[park]\nspill = \"/x\"\nspill_max = \"1G\"\n");
  EXPECT_TRUE(changes(before, before).empty());
  const std::vector<Change> found = changes(before, after);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].key, "queue.grace_s");
  EXPECT_EQ(found[0].old_value, "30");
  EXPECT_EQ(found[0].new_value, "60");
  EXPECT_EQ(to_string(found[0].origin), "f:2");
  EXPECT_TRUE(found[0].live);
  EXPECT_EQ(found[1].key, "park.spill");
  EXPECT_FALSE(found[1].live);
  EXPECT_EQ(found[3].key, "logs.max");
  EXPECT_EQ(to_string(found[3].origin), "default");
}

// A key that show() calls fixed and without_fixed() forgets would change unnoticed.
TEST(Config, WhatOnlyANewDaemonCanTakeKeepsItsValue) {
  const Config running;
  const Config next = good("[queue]\ngrace_s = 60\n[park]\nspill = \"/x\"\nspill_max = \"1G\"\n");
  std::size_t fixed = 0;
  for (const Change& change : changes(running, next)) fixed += change.live ? 0 : 1;
  EXPECT_EQ(fixed, 2U);
  const std::vector<Change> applied = changes(running, without_fixed(running, next));
  ASSERT_EQ(applied.size(), 1U);
  EXPECT_EQ(applied[0].key, "queue.grace_s");
}

class ConfigFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-config-XXXXXX";
    folder_ = mkdtemp(name);
    places_ = {folder_ + "/system.toml", folder_ + "/user.toml", ""};
  }
  void TearDown() override {
    for (const char* name : {"/system.toml", "/user.toml", "/other.toml"})
      (void)base::remove_file(folder_ + name);
    (void)rmdir(folder_.c_str());
  }
  void write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(base::write_atomic(path, text).ok());
  }
  std::string folder_;
  ConfigPlaces places_;
};

TEST_F(ConfigFiles, MissingFilesMeanTheDefaults) {
  const Result<Config> config = load_config(places_);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config, Config());
}

TEST_F(ConfigFiles, TheUsersWordHoldsOverTheSystems) {
  write(places_.system, "[daemon]\nidle_s = 1\npolicy = \"spread\"\n");
  write(places_.user, "[daemon]\nidle_s = 2\n");
  const Result<Config> config = load_config(places_);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->idle_s.value, 2U);
  EXPECT_EQ(config->idle_s.origin.file, places_.user);
  EXPECT_EQ(config->policy.value, core::Policy::kSpread);
}

TEST_F(ConfigFiles, TheOverridingFileIsReadAlone) {
  write(places_.system, "[daemon]\npolicy = \"spread\"\n");
  places_.override = folder_ + "/other.toml";
  EXPECT_FALSE(load_config(places_).ok()) << "it must exist";
  write(places_.override, "[daemon]\nidle_s = 3\n");
  const Result<Config> config = load_config(places_);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->idle_s.value, 3U);
  EXPECT_EQ(config->policy.value, core::Policy::kBestFit);
}

TEST_F(ConfigFiles, WhatIsNoFileIsRefused) {
  places_.override = folder_;
  EXPECT_FALSE(load_config(places_).ok());
  ASSERT_EQ(mkfifo((folder_ + "/other.toml").c_str(), 0600), 0);
  places_.override = folder_ + "/other.toml";
  EXPECT_FALSE(load_config(places_).ok()) << "and is not waited for";
}

TEST_F(ConfigFiles, SeveralMistakesAreCounted) {
  write(places_.user, "a = 1\nb = 2\n");
  const Result<Config> config = load_config(places_);
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().evidence.find("1 more"), std::string::npos);
}

}  // namespace
}  // namespace mete::config
