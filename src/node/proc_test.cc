// SPDX-License-Identifier: Apache-2.0
// The parsers of /proc on texts, including hostile names and broken lines, and the readers on real
// processes: this one, a child from its start to its end, children of other threads. A pid that is
// gone must be not_found.
#include "node/proc.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace mete::node {
namespace {

// Fields 4 to 52 of a real line; 20 is the number of threads, 22 the start time, 28 the stack.
std::string stat_line(const std::string& comm, const std::string& state = "S") {
  return "4711 (" + comm + ") " + state +
         " 17 4711 4711 0 -1 4194560 190 0 0 0 1 2 0 0 20 0 3 0 987654321 2621440 228 "
         "18446744073709551615 94 95 140724603453440 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 "
         "0 0\n";
}

TEST(ProcEnvironment, FindsAVariableByItsWholeName) {
  constexpr char kText[] = "METE_PARTS=9\0PART=8\0METE_PART=3\0EMPTY=\0last";
  const std::string_view text(kText, sizeof kText - 1);
  EXPECT_EQ(parse_variable(text, "METE_PART"), "3");
  EXPECT_EQ(parse_variable(text, "EMPTY"), "");
  EXPECT_EQ(parse_variable(text, "last"), std::nullopt);
  EXPECT_EQ(parse_variable(text, "METE"), std::nullopt);
  EXPECT_EQ(parse_variable("", "METE_PART"), std::nullopt);
}

TEST(ProcStat, ReadsTheFieldsWeUse) {
  const Result<ProcessStat> stat = parse_stat(stat_line("python3"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4711);
  EXPECT_EQ(stat->comm, "python3");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 17);
  EXPECT_EQ(stat->threads, 3u);
  EXPECT_EQ(stat->start_ticks, 987654321u);
  EXPECT_EQ(stat->start_stack, 140724603453440u);
  EXPECT_FALSE(stat->is_dead());
  EXPECT_TRUE(parse_stat(stat_line("x", "Z"))->is_dead());
}

TEST(ProcStat, ANameMayHoldAnything) {
  for (const char* comm :
       {"", " ", "a b", "a) S 1 2 3 (b", ")))", "((", "new\nline", "tmux: server"}) {
    const Result<ProcessStat> stat = parse_stat(stat_line(comm));
    ASSERT_TRUE(stat) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->start_ticks, 987654321u) << comm;
  }
}

TEST(ProcStat, RefusesWhatItDoesNotUnderstand) {
  std::string cut = stat_line("sh");
  cut.resize(60);
  for (const std::string& text :
       {std::string(), std::string("12"), std::string("12 (sh"), std::string("12 (sh) S"), cut,
        std::string(
            "x (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26"),
        std::string(
            "1 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19x 20 21 22 23 24 25 26")}) {
    const Result<ProcessStat> stat = parse_stat(text);
    ASSERT_FALSE(stat) << text;
    EXPECT_EQ(stat.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ProcStatus, ReadsUidAndNamespacePids) {
  const Result<ProcessStatus> status = parse_status(
      "Name:\tUid: 0 "
      "0\nUmask:\t0022\nTgid:\t812\nPid:\t815\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t812\t34\t1\n");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->real_uid, 1000u);
  EXPECT_EQ(status->effective_uid, 1001u);
  EXPECT_EQ(status->group, 812);
  EXPECT_EQ(status->namespace_pids, (std::vector<pid_t>{812, 34, 1}));
}

TEST(ProcStatus, RefusesAFileWithoutUid) {
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("Tgid:\t1\n"));
  EXPECT_FALSE(parse_status("Tgid:\t1\nUid:\t0\t0\nNSpid:\t1\tx\n"));
}

TEST(ProcText, Namespaces) {
  EXPECT_EQ(parse_namespace_link("pid:[4026531836]"), 4026531836u);
  EXPECT_EQ(parse_namespace_link("pid:4026531836"), std::nullopt);
  EXPECT_EQ(parse_namespace_link("pid:[]"), std::nullopt);
}

// A child that lives until the test closes the pipe.
class WaitingChild {
 public:
  WaitingChild() : pipe_(std::move(*base::make_pipe())), pid_(fork()) {
    if (pid_ != 0) return;
    pipe_.write.reset();
    char byte = 0;
    while (read(pipe_.read.get(), &byte, 1) < 0) {
    }
    _exit(0);
  }
  ~WaitingChild() {
    if (pid_ > 0) finish();
  }
  pid_t pid() const { return pid_; }
  void end_unreaped() {
    pipe_.write.reset();
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void finish() {
    pipe_.write.reset();
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  base::Pipe pipe_;
  pid_t pid_;
};

TEST(ProcFiles, SeesThisProcess) {
  const Result<ProcessStat> stat = read_stat(getpid());
  ASSERT_TRUE(stat) << stat.error().message;
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_GT(stat->start_ticks, 0u);
  const Result<ProcessStatus> status = read_status(getpid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->real_uid, getuid());
  EXPECT_EQ(status->namespace_pids.back(), getpid());
  EXPECT_TRUE(read_pid_namespace(getpid()));
  EXPECT_EQ(read_boot_id()->size(), 36u);
}

TEST(ProcFiles, FollowsAChildToItsEnd) {
  WaitingChild child;
  const pid_t pid = child.pid();
  EXPECT_GE(read_stat(pid)->start_ticks, read_stat(getpid())->start_ticks);
  child.end_unreaped();
  EXPECT_TRUE(read_stat(pid)->is_dead());
  child.finish();
  EXPECT_EQ(read_stat(pid).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_status(pid).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mete::node
