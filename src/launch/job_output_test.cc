// SPDX-License-Identifier: Apache-2.0
// The output of a job through real pipes and a real pseudo-terminal: what reaches the logs, and
// what a watcher sees of it. The keeper's loop is a few calls of poll(2) in the test.
#include "launch/job_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace mete::launch {
namespace {

using Stream = JobOutput::Stream;

class JobOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-output-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    output_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return base::join_path(folder_, name); }
  std::string text(const std::string& name) const {
    return base::read_all(path(name), 16 << 20).value();
  }
  JobOutput::Places one_log() const {
    JobOutput::Places places;
    places.log = {path("out"), Bytes()};
    return places;
  }
  JobOutput::Places two_logs() const {
    JobOutput::Places places = one_log();
    places.error_log = {path("err"), Bytes()};
    return places;
  }
  void open(const JobOutput::Places& places, bool watched = true) {
    Result<JobOutput> output = JobOutput::open(places);
    ASSERT_TRUE(output.ok()) << output.error().message;
    output_.emplace(*std::move(output));
    if (watched)
      output_->watch([this](Stream stream, std::string_view bytes) {
        (stream == Stream::kOutput ? seen_ : seen_errors_) += bytes;
        EXPECT_FALSE(bytes.empty());
      });
  }
  void program_writes(int to, const std::string& bytes) {
    ASSERT_EQ(write(to, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void turn() {
    std::vector<pollfd> list;
    output_->listen(list);
    (void)poll(list.data(), list.size(), 0);
    output_->heard(list);
  }

  std::string folder_;
  std::optional<JobOutput> output_;
  std::string seen_;
  std::string seen_errors_;
};

TEST_F(JobOutputTest, AWatcherSeesWhatReachesTheLog) {
  open(one_log());
  program_writes(output_->output(), "one\nha");
  turn();
  EXPECT_EQ(seen_, "one\nha");
  program_writes(output_->error(), "lf\n");
  turn();
  EXPECT_EQ(seen_, "one\nhalf\n");
  EXPECT_EQ(seen_errors_, "");
  EXPECT_EQ(text("out"), seen_);
}

TEST_F(JobOutputTest, StandardErrorWithALogOfItsOwnIsAStreamOfItsOwn) {
  open(two_logs());
  program_writes(output_->output(), "out\n");
  program_writes(output_->error(), "err\n");
  turn();
  EXPECT_EQ(seen_, "out\n");
  EXPECT_EQ(seen_errors_, "err\n");
  EXPECT_EQ(text("out"), "out\n");
  EXPECT_EQ(text("err"), "err\n");
}

TEST_F(JobOutputTest, AWatcherSeesWhatIsReadAtTheEnd) {
  open(two_logs());
  program_writes(output_->output(), "last out");
  program_writes(output_->error(), "last err");
  output_->finish();
  EXPECT_EQ(seen_, "last out");
  EXPECT_EQ(seen_errors_, "last err");
  EXPECT_EQ(text("out"), "last out");
  EXPECT_EQ(text("err"), "last err");
}

TEST_F(JobOutputTest, OurOwnLinesAreNotSeen) {
  open(one_log());
  output_->say("attempt 2");
  program_writes(output_->output(), "x\n");
  turn();
  EXPECT_EQ(seen_, "x\n");
  EXPECT_EQ(text("out"), "mete: attempt 2\nx\n");
}

TEST_F(JobOutputTest, WithoutAWatcherTheLogsAreWritten) {
  open(two_logs(), false);
  program_writes(output_->output(), "out\n");
  turn();
  program_writes(output_->error(), "err\n");
  output_->finish();
  EXPECT_EQ(text("out"), "out\n");
  EXPECT_EQ(text("err"), "err\n");
}

TEST_F(JobOutputTest, AWatcherSeesTheOutputOfATerminal) {
  JobOutput::Places places = one_log();
  places.terminal = path("12.1");
  open(places);
  termios raw{};
  ASSERT_EQ(tcgetattr(output_->output(), &raw), 0);
  cfmakeraw(&raw);
  ASSERT_EQ(tcsetattr(output_->output(), TCSANOW, &raw), 0);
  program_writes(output_->output(), "one\n");
  turn();
  program_writes(output_->output(), "two\n");
  output_->finish();
  EXPECT_EQ(seen_, "one\ntwo\n");
  EXPECT_EQ(text("out"), "one\ntwo\n");
}

}  // namespace
}  // namespace mete::launch
