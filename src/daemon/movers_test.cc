// SPDX-License-Identifier: Apache-2.0
// The daemon's handling of movers; tests/e2e/park has real movers.
#include "daemon/movers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/manual_loop.h"

namespace mete::daemon {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";

core::Job job(std::uint64_t number, std::uint32_t attempt = 1) {
  core::Job job;
  job.id = {number};
  job.attempt = attempt;
  core::GrantedCard& card = job.grant.emplace_back();
  card.uuid = kCard;
  card.bytes = Bytes::from_gib(8);
  return job;
}

class MoversTest : public testing::Test {
 protected:
  MoversTest() {
    char name[] = "/tmp/mete-movers-XXXXXX";
    folder_ = mkdtemp(name);
    settings_.state_dir = folder_;
    settings_.folder = *mover_folder(folder_, false);
    settings_.arena = Bytes::from_gib(16);
  }
  ~MoversTest() override { std::filesystem::remove_all(folder_); }
  Movers movers() {
    return {settings_, loop_.loop(), loop_,
            [this](const std::string& line) { log_ += line + "\n"; }};
  }
  void use_script(const std::string& text) {
    settings_.program = folder_ + "/mover";
    EXPECT_TRUE(base::write_atomic(settings_.program, "#!/bin/sh\n" + text + "\n", 0700));
  }
  std::string folder_, log_;
  MoverSettings settings_;
  support::ManualLoop loop_;
};

TEST_F(MoversTest, TheirFolderIsOursAlone) {
  struct stat info {};
  ASSERT_EQ(stat(settings_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_TRUE(mover_folder(folder_, true));
  ASSERT_EQ(stat(settings_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0711u) << "jobs of other users come in";
  const Result<std::string> elsewhere = mover_folder("/tmp/" + std::string(200, 'x'), false);
  ASSERT_TRUE(elsewhere) << "a state folder with a long name";
  EXPECT_EQ(elsewhere->find("/tmp/mete-movers-"), 0u);
  (void)rmdir(elsewhere->c_str());
  ASSERT_EQ(chmod(settings_.folder.c_str(), 0777), 0);
  EXPECT_EQ(mover_folder(folder_, false).error().code, ErrorCode::kDenied);
}

TEST_F(MoversTest, ATokenIsTheJobsAndOutlivesTheDaemon) {
  const std::string token = movers().door(job(1)).token;
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(movers().door(job(1)).token, token) << "of the next daemon too";
  EXPECT_NE(movers().door(job(2)).token, token);
  EXPECT_NE(movers().door(job(1, 2)).token, token);
  ASSERT_EQ(unlink((folder_ + "/park-secret").c_str()), 0);
  EXPECT_NE(movers().door(job(1)).token, token) << "of another state";
}

TEST_F(MoversTest, ArenasShareTheHost) {
  EXPECT_EQ(movers().arena(), Bytes::from_gib(16)) << "as configured, for each card";
  settings_.arena.reset();
  Movers all = movers();
  const Bytes one = all.arena();
  all.see_cards(4);
  EXPECT_EQ(all.arena().count(), one.count() / 4);
  all.set_arena(Bytes::from_gib(3));
  EXPECT_EQ(all.arena(), Bytes::from_gib(3)) << "another configuration";
  all.set_arena(std::nullopt);
  EXPECT_EQ(all.arena().count(), one.count() / 4);
}

TEST_F(MoversTest, OneThatDoesNotStartIsToldAndTriedLessAndLess) {
  use_script("echo tried >> " + folder_ + "/tries; echo 'the card has no room' >&2; exit 75");
  Movers all = movers();
  all.want(job(1));
  const auto tries = [&] {
    const Result<std::string> text = base::read_all(folder_ + "/tries", 1 << 16);
    return text ? static_cast<std::size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
  };
  ASSERT_TRUE(loop_.until([&] { return log_.find("has ended") != std::string::npos; },
                          seam::Milliseconds(10)));
  EXPECT_NE(log_.find("the card has no room"), std::string::npos) << log_;
  const std::size_t before = tries();
  // A minute: starts after 2, 4, 8, ... seconds, and not with every look.
  for (int i = 0; i < 600; ++i) {
    loop_.advance(seam::Milliseconds(100));
    if (i % 20 == 0) usleep(2'000);
  }
  EXPECT_GT(tries(), before);
  EXPECT_LT(tries(), before + 8);
  all.forget({1});
  EXPECT_TRUE(all.pids().empty());
}

TEST_F(MoversTest, WithoutTheProgramNothingIsStarted) {
  Movers all = movers();
  all.want(job(1));
  loop_.advance(seam::Milliseconds(10'000));
  EXPECT_TRUE(all.pids().empty());
  EXPECT_EQ(log_, "");
}

}  // namespace
}  // namespace mete::daemon
