// SPDX-License-Identifier: Apache-2.0
// A trial as its keeper sees it: real files in a temporary folder, a clock that the test moves, and
// a daemon that is a list of reports. What is at the path of METE_METRICS may be anything.
#include "runner/trial_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "tests/support/fake_clock.h"

namespace mete::runner {
namespace {

using core::sweep::Metric;
using core::sweep::TrialOf;
using core::sweep::TrialPoint;
using seam::Milliseconds;
using Points = std::vector<TrialPoint>;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

class TrialWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-trial-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    state_ = name;
    trial_.sweep = 1;
    trial_.name = "night";
    trial_.n = 7;
  }
  void TearDown() override {
    watch_.reset();
    std::filesystem::remove_all(state_);
  }

  std::string path(const std::string& below) const { return state_ + "/sweeps/night/" + below; }
  std::string metrics() const { return path("trials/7.metrics.jsonl"); }
  std::string text_of(const std::string& below) const {
    return base::read_all(path(below), 16 << 20).value();
  }

  void begin() {
    Result<TrialWatch> watch = TrialWatch::begin(
        trial_, state_,
        [this](const std::string& body) -> Result<void> {
          ++asked_;
          if (daemon_says_) return *daemon_says_;
          const Result<wire::MetricsReport> report = wire::decode_metrics_report(body);
          EXPECT_TRUE(report.ok()) << body;
          if (report) told_.insert(told_.end(), report->points.begin(), report->points.end());
          return {};
        },
        clock_);
    ASSERT_TRUE(watch.ok()) << watch.error().message;
    watch_.emplace(*std::move(watch));
  }
  void append(std::string_view text) const {
    std::ofstream(metrics(), std::ios::app | std::ios::binary) << text;
  }
  void write_anew(std::string_view text) const {
    std::ofstream(metrics(), std::ios::trunc | std::ios::binary) << text;
    // Times of files have the resolution of the kernel's tick.
    const timespec times[2] = {{++written_, 0}, {written_, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, metrics().c_str(), times, 0), 0);
  }
  void tick(Milliseconds after = Milliseconds(250)) {
    clock_.advance(after);
    watch_->step();
  }
  Points take_told() { return std::exchange(told_, {}); }

  std::string state_;
  TrialOf trial_;
  tests::FakeClock clock_;
  std::optional<Error> daemon_says_;
  int asked_ = 0;
  Points told_;
  std::optional<TrialWatch> watch_;
  mutable time_t written_ = 1'000'000'000;
};

// ---- files -------------------------------------------------------------------------------------

TEST_F(TrialWatchTest, TheProgramGetsItsParametersInEachForm) {
  trial_.params = {{"lr", core::sweep::guess("1e-3")}, {"batch-size", core::sweep::guess("32")}};
  begin();
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : watch_->environment()) all[name] = value;
  EXPECT_EQ(all, (std::map<std::string, std::string>{{"METE_SWEEP", "night"},
                                                     {"METE_TRIAL", "7"},
                                                     {"METE_PARAMS", path("trials/7.json")},
                                                     {"METE_METRICS", metrics()},
                                                     {"METE_PARAM_LR", "1e-3"},
                                                     {"SM_HP_LR", "1e-3"},
                                                     {"METE_PARAM_BATCH_SIZE", "32"},
                                                     {"SM_HP_BATCH_SIZE", "32"}}));
  EXPECT_EQ(text_of("trials/7.json"), "{\"lr\":1e-3,\"batch-size\":32}\n");
  EXPECT_EQ(text_of("trials/7.metrics.jsonl"), "");
  for (const char* file : {"trials/7.json", "trials/7.metrics.jsonl", "curves/7.jsonl"}) {
    struct stat info {};
    ASSERT_EQ(lstat(path(file).c_str(), &info), 0) << file;
    EXPECT_EQ(info.st_mode, mode_t{S_IFREG | 0600}) << file;
  }
  struct stat info {};
  ASSERT_EQ(lstat(path("trials").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode, mode_t{S_IFDIR | 0700});
}

TEST_F(TrialWatchTest, ANameThatIsAPathIsRefused) {
  for (const char* name : {"", "..", ".", ".x", "-x", "a/b", "a b", "\xc3\xbc"}) {
    trial_.name = name;
    EXPECT_FALSE(TrialWatch::begin(trial_, state_, {}, clock_).ok()) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(state_));
}

TEST_F(TrialWatchTest, ANextRunBeginsWithNewFiles) {
  begin();
  append("{\"a\":1}\n");
  tick();
  EXPECT_EQ(text_of("curves/7.jsonl"), "{\"step\":1,\"a\":1}\n");
  begin();
  EXPECT_EQ(text_of("trials/7.metrics.jsonl"), "");
  EXPECT_EQ(text_of("curves/7.jsonl"), "");
  tick();
  EXPECT_TRUE(watch_->finish().metrics.empty());
}

TEST_F(TrialWatchTest, LinksOfAnEarlierRunAreNotFollowed) {
  begin();
  const std::string target = state_ + "/precious";
  std::ofstream(target) << "x";
  for (const char* file : {"trials/7.json", "trials/7.metrics.jsonl", "curves/7.jsonl"}) {
    std::filesystem::remove(path(file));
    std::filesystem::create_symlink(target, path(file));
  }
  begin();
  EXPECT_EQ(base::read_all(target).value(), "x");
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(metrics())));
}

TEST_F(TrialWatchTest, TheCurveHasEachPointWhereverItComesFrom) {
  trial_.metrics = {{"loss", "loss=(\\S+)"}};
  begin();
  watch_->seen("loss=0.5\nloss=na", false);
  watch_->seen("n\n", false);
  append("{\"step\":3,\"val \\\"loss\\\"\":0.25}\n");
  tick();
  EXPECT_EQ(text_of("curves/7.jsonl"),
            "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":null}\n"
            "{\"step\":3,\"val \\\"loss\\\"\":0.25}\n");
}

// ---- METE_METRICS ------------------------------------------------------------------------------

TEST_F(TrialWatchTest, AppendedLinesAreReadOnce) {
  begin();
  append("{\"step\":1,\"a\":1}\n{\"step\":2,");
  tick();
  append("\"a\":2}\n");
  tick();
  tick();
  EXPECT_EQ(text_of("curves/7.jsonl"), "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n");
}

TEST_F(TrialWatchTest, TheFileIsReadFourTimesASecondAtMost) {
  begin();
  tick();
  append("{\"a\":1}\n");
  tick(Milliseconds(249));
  EXPECT_EQ(text_of("curves/7.jsonl"), "");
  tick(Milliseconds(1));
  EXPECT_NE(text_of("curves/7.jsonl"), "");
}

TEST_F(TrialWatchTest, AFileThatIsWrittenAnewIsReadFromItsBegin) {
  begin();
  append("{\"step\":1,\"a\":10}\n{\"step\":2,\"a\":20}\n");
  tick();
  write_anew("{\"step\":3,\"a\":30}\n");  // shorter
  tick();
  write_anew("{\"step\":4,\"a\":40}\n");  // of equal size
  tick();
  write_anew("{\"step\":5,\"a\":50}\n{\"step\":6,\"a\":60}\n");  // longer
  tick();
  write_anew(
      "{\"step\":5,\"a\":50}\n{\"step\":6,\"a\":60}\n{\"step\":7,\"a\":70}\n");  // as appended
  tick();
  std::string expected;
  for (int i = 1; i <= 7; ++i)
    expected += "{\"step\":" + std::to_string(i) + ",\"a\":" + std::to_string(10 * i) + "}\n";
  EXPECT_EQ(text_of("curves/7.jsonl"), expected);
}

TEST_F(TrialWatchTest, WhatIsNoRegularFileIsLeftAlone) {
  begin();
  const auto put = [&](const std::function<void()>& make) {
    std::filesystem::remove_all(metrics());
    make();
    tick();
    tick();
  };
  put([&] { ASSERT_EQ(mkfifo(metrics().c_str(), 0600), 0); });
  put([&] { std::filesystem::create_directory(metrics()); });
  std::ofstream(state_ + "/other") << "{\"secret\":1}\n";
  put([&] { std::filesystem::create_symlink(state_ + "/other", metrics()); });
  put([&] { std::filesystem::create_symlink("/dev/zero", metrics()); });
  put([] {});
  put([&] { append("{\"a\":2}\n"); });
  const TrialWatch::End end = watch_->finish();
  EXPECT_EQ(end.metrics, (std::vector<Metric>{{"a", 2}}));
  EXPECT_EQ(end.note, "");
}

TEST_F(TrialWatchTest, AHugeFileIsReadInPiecesAndNotToItsEnd) {
  begin();
  append("{\"step\":1,\"a\":1}\n");
  ASSERT_EQ(truncate(metrics().c_str(), 1LL << 40), 0);
  tick();
  EXPECT_EQ(take_told(), (Points{{1, {{"a", 1}}}}));
  const TrialWatch::End end = watch_->finish();
  const std::uint64_t read = AppendedFile::kMaxPiece + TrialWatch::kMostAtEnd;
  EXPECT_NE(end.note.find("last " + std::to_string((1ULL << 40) - read) + " bytes"),
            std::string::npos)
      << end.note;
  EXPECT_EQ(end.metrics, (std::vector<Metric>{{"a", 1}}));
}

// ---- the end -----------------------------------------------------------------------------------

TEST_F(TrialWatchTest, TheEndHasTheLatestValueOfEachMetric) {
  trial_.metrics = {{"loss", "loss=(\\S+)"}};
  begin();
  append("{\"step\":8,\"val\":1,\"bad\":0}\n{\"step\":9,\"val\":2,\"bad\":NaN}\nx\n{\"val\":3}");
  watch_->seen("loss=5\nloss=4", false);
  const TrialWatch::End end = watch_->finish();
  EXPECT_EQ(end.metrics, (std::vector<Metric>{{"loss", 4}, {"val", 3}, {"bad", kNotANumber}}));
  EXPECT_EQ(end.step, 9u);
  EXPECT_EQ(end.note, "1 line of METE_METRICS is no JSON object");
  EXPECT_EQ(asked_, 0);  // all of it is in the exit
}

TEST_F(TrialWatchTest, ATrialWithoutMetricsHasNone) {
  begin();
  watch_->seen("done\n", false);
  tick();
  const TrialWatch::End end = watch_->finish();
  EXPECT_TRUE(end.metrics.empty());
  EXPECT_EQ(end.step, std::nullopt);
  EXPECT_EQ(end.note, "");
  EXPECT_EQ(asked_, 0);
}

// ---- reports -----------------------------------------------------------------------------------

TEST_F(TrialWatchTest, ReportsGoOnceASecondAndOnlyWithNews) {
  begin();
  append("{\"step\":1,\"a\":1,\"b\":9}\n");
  tick();
  EXPECT_EQ(take_told(), (Points{{1, {{"a", 1}, {"b", 9}}}}));
  append("{\"step\":2,\"a\":2}\n{\"step\":3,\"a\":3}\n");
  tick();
  EXPECT_EQ(asked_, 1);
  tick(Milliseconds(750));
  EXPECT_EQ(take_told(), (Points{{3, {{"a", 3}}}}));
  tick(Milliseconds(10'000));
  EXPECT_EQ(asked_, 2);
}

TEST_F(TrialWatchTest, APointAtARungIsReportedAtOnce) {
  trial_.rungs = {1, 3, 9};
  trial_.metrics = {{"loss", "loss=(\\S+)"}};
  begin();
  for (int step = 1; step <= 3; ++step) {
    watch_->seen("loss=" + std::to_string(step) + "\n", false);
    EXPECT_EQ(watch_->tick_ms() == 0, step != 2) << step;
    tick(Milliseconds(0));
  }
  EXPECT_EQ(take_told(), (Points{{1, {{"loss", 1}}}, {3, {{"loss", 3}}}}));
  EXPECT_GT(watch_->tick_ms(), 0);
}

TEST_F(TrialWatchTest, EachRungIsReportedOnceForEachMetric) {
  trial_.rungs = {2, 4, 8};
  begin();
  append("{\"step\":5,\"a\":1}\n{\"step\":6,\"a\":2}\n{\"step\":7,\"a\":3,\"b\":4}\n");
  append("{\"step\":7,\"a\":5}\n");
  tick();
  // At 5 `a` has passed two rungs, at 7 `b` has; the last point is the latest of `a`.
  EXPECT_EQ(take_told(), (Points{{5, {{"a", 1}}}, {7, {{"a", 3}, {"b", 4}}}, {7, {{"a", 5}}}}));
}

TEST_F(TrialWatchTest, AReportThatFailsIsRepeatedWithGrowingPauses) {
  trial_.rungs = {1};
  daemon_says_ = Error::io("the daemon is away");
  begin();
  append("{\"step\":1,\"a\":1}\n");
  std::vector<int> at;
  for (int ms = 0, before = 0; ms < 40'000; ms += 250) {
    tick();
    if (asked_ > before) at.push_back(ms / 1000);
    before = asked_;
  }
  EXPECT_EQ(at, (std::vector<int>{0, 1, 3, 7, 15, 25, 35}));
  append("{\"step\":2,\"a\":2}\n");
  daemon_says_.reset();
  tick(Milliseconds(10'000));
  EXPECT_EQ(take_told(), (Points{{1, {{"a", 1}}}, {2, {{"a", 2}}}}));
}

TEST_F(TrialWatchTest, ADaemonThatDoesNotKnowTheJobIsNotAskedAgain) {
  for (const Error& error : {Error::not_found("no such job"), Error::unsupported("no such path"),
                             Error::denied("not yours"), Error::invalid("no")}) {
    asked_ = 0;
    daemon_says_ = error;
    begin();
    append("{\"a\":1}\n");
    tick();
    append("{\"a\":2}\n");
    tick(Milliseconds(60'000));
    EXPECT_EQ(asked_, 1) << error.message;
    EXPECT_EQ(watch_->finish().metrics, (std::vector<Metric>{{"a", 2}}));
  }
}

TEST_F(TrialWatchTest, RungsReachedAtTheEndAreStillReported) {
  trial_.rungs = {1, 2};
  begin();
  append("{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n");
  (void)watch_->finish();
  EXPECT_EQ(take_told(), (Points{{1, {{"a", 1}}}, {2, {{"a", 2}}}}));
}

TEST(TrialReports, AReportIsBoundedAndTheRestFollows) {
  std::vector<std::uint64_t> rungs;
  for (std::uint64_t rung = 1; rung <= 60; ++rung) rungs.push_back(rung);
  TrialReports reports(rungs);
  for (std::uint64_t step = 1; step <= 60; ++step)
    for (const char* name : {"a", "b"}) reports.add({step, {{name, 1}}});
  std::size_t points = 0, largest = 0;
  while (reports.is_urgent()) {
    ASSERT_TRUE(reports.is_due(seam::Nanoseconds(0)));
    const std::size_t count = reports.make().points.size();
    ASSERT_GT(count, 0u);
    largest = std::max(largest, count);
    points += count;
    reports.sent(seam::Nanoseconds(0));
  }
  EXPECT_EQ(points, 120u);
  EXPECT_LE(largest, TrialReports::kMaxPoints);
}

// ---- the curve ---------------------------------------------------------------------------------

TEST_F(TrialWatchTest, ALongCurveIsThinnedEvenly) {
  const std::string file = state_ + "/curve";
  CurveFile curve(file);
  for (std::uint64_t step = 1; step <= 100'000; ++step)
    for (const char* name : {"train_loss", "val_loss"})
      curve.add({step, {{name, 1.0 / static_cast<double>(step)}}});
  curve.flush();
  EXPECT_EQ(curve.lost(), 0u);
  const std::string text = base::read_all(file, 16 << 20).value();
  EXPECT_LE(text.size(), CurveFile::kMaxBytes);
  EXPECT_GT(text.size(), CurveFile::kMaxBytes / 4);
  EXPECT_EQ(text.back(), '\n');
  std::map<std::string, int> lines;  // of each metric in each quarter
  std::uint64_t last = 0;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.empty()) continue;
    const std::uint64_t step = std::stoull(std::string(line.substr(8)));
    EXPECT_GE(step, last);
    last = step;
    ++lines[std::to_string((step - 1) / 25'000) + (line.find("val_") < line.size() ? "v" : "t")];
  }
  ASSERT_EQ(lines.size(), 8u);
  for (const auto& [which, count] : lines)
    EXPECT_NEAR(count, lines["0t"], lines["0t"] / 10) << which;
  EXPECT_FALSE(std::filesystem::exists(file + ".new"));
}

TEST_F(TrialWatchTest, AFullDiskCostsPointsAndLeavesWholeLines) {
  const std::string file = state_ + "/curve";
  CurveFile curve(file);
  curve.add({1, {{"a", 1}}});
  curve.flush();
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 30, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  curve.add({2, {{"a", 2}}});
  curve.add({3, {{"a", 3}}});
  curve.flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(curve.lost(), 2u);
  EXPECT_NE(curve.why().find("curve"), std::string::npos) << curve.why();
  EXPECT_EQ(base::read_all(file).value(), "{\"step\":1,\"a\":1}\n");
  curve.add({4, {{"a", 4}}});
  curve.flush();
  EXPECT_EQ(base::read_all(file).value(), "{\"step\":1,\"a\":1}\n{\"step\":4,\"a\":4}\n");
}

TEST_F(TrialWatchTest, ACurveThatCannotBeMadeLosesPointsAndNotTheTrial) {
  begin();
  std::filesystem::remove_all(path("curves/7.jsonl"));
  std::filesystem::create_directories(path("curves/7.jsonl/x"));
  begin();
  append("{\"a\":1}\n");
  const TrialWatch::End end = watch_->finish();
  EXPECT_EQ(end.metrics, (std::vector<Metric>{{"a", 1}}));
  EXPECT_NE(end.note.find("1 point is missing in the curve"), std::string::npos) << end.note;
}

}  // namespace
}  // namespace mete::runner
