// SPDX-License-Identifier: Apache-2.0
// Claims between daemons. The daemons are real processes here, each with its own book in a common
// folder; some are frozen or killed in the middle of a try. Whatever the order, the held claims
// never exceed a card, and damaged or foreign files are not believed.
#include "node/claims.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>

#include "base/file.h"
#include "node/proc.h"

namespace mete::node {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";
constexpr char kOther[] = "GPU-00000000-0000-0000-0000-000000000002";

Bytes gib(std::uint64_t count) { return Bytes::from_gib(count); }
Claim claim(Bytes bytes, const char* uuid = kCard) {
  Claim one;
  one.uuid = uuid;
  one.bytes = bytes;
  one.job = "12";
  return one;
}

TEST(ClaimsText, ReadsWhatItWrites) {
  ClaimsText text{7, {1000, {412, 98765}}, 4026531836, "alice", {}};
  text.claims = {claim(gib(8)), claim(gib(1), kOther)};
  text.claims[0].runner = core::ProcessRef{500, 99};
  text.claims[1].whole = true;
  text.claims[1].held = false;
  const std::string bytes = *format_claims(text);
  EXPECT_EQ(*parse_claims(bytes), text);
  EXPECT_EQ(*parse_claims(bytes + "left over from a longer one"), text);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(parse_claims(bytes.substr(0, i))) << i;
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(parse_claims(bad)) << i;
  }
  EXPECT_EQ(parse_claims("mete-claims 2 1\n").error().code, ErrorCode::kUnsupported);
}

TEST(ClaimsText, WritesNothingThatItWouldNotRead) {
  ClaimsText text{1, {1000, {412, 98765}}, 0, "two words\n", {claim(gib(1))}};
  EXPECT_EQ(parse_claims(*format_claims(text))->user, "1000");
  text.claims[0].job = "a b";
  EXPECT_FALSE(format_claims(text));
  text.claims[0] = claim(gib(1), "MIG-1");
  EXPECT_FALSE(format_claims(text));
  text.claims.assign(kMaxClaims, claim(Bytes::from_bytes(UINT64_MAX)));
  for (Claim& one : text.claims) {
    one.runner = core::ProcessRef{INT32_MAX, UINT64_MAX};
    one.job = std::string(32, 'x');
  }
  EXPECT_LE(format_claims(text)->size(), kMaxClaimsBytes);
  EXPECT_TRUE(parse_claims(*format_claims(text)));
  text.claims.push_back(claim(gib(1)));
  EXPECT_EQ(format_claims(text).error().code, ErrorCode::kExhausted);
}

TEST(ClaimsName, IsExact) {
  const ClaimsOwner owner{1000, {412, 98765}};
  EXPECT_EQ(claims_name(owner), "mete-claims.1000.412.98765");
  EXPECT_EQ(parse_claims_name(claims_name(owner)), owner);
  for (const char* name : {"mete-claims.1000.412", "mete-claims.01000.412.98765",
                           "mete-claims.1000.0.98765", "mete-claims.1000.412.98765.new",
                           "mete-claims.4294967296.412.98765", "mete-claims.-1.412.9", "x"})
    EXPECT_FALSE(parse_claims_name(name)) << name;
}

TEST(ClaimsFolders, SimulationsAreKeptApart) {
  EXPECT_EQ(claims_folders("/x", "/sim"), std::vector<std::string>{"/x"});
  EXPECT_EQ(claims_folders("", "/sim"), std::vector<std::string>{"/sim/claims"});
  EXPECT_EQ(claims_folders("", "").front(), "/run/lock");
}

class ClaimsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-claims-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    for (const pid_t pid : children_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    EXPECT_EQ(std::system(("rm -rf " + folder_).c_str()), 0);
  }
  ClaimBook open() {
    Result<ClaimBook> book = ClaimBook::open({folder_}, "alice");
    EXPECT_TRUE(book) << book.error().message;
    return *std::move(book);
  }
  // Another daemon: runs `body` with its book, reports, and stays until it is killed.
  pid_t daemon(const std::function<void(ClaimBook&)>& body) {
    base::Pipe pipe = std::move(*base::make_pipe());
    const pid_t pid = fork();
    if (pid == 0) {
      ClaimBook book = open();
      body(book);
      (void)!write(pipe.write.get(), "x", 1);
      for (;;) pause();
    }
    children_.push_back(pid);
    char byte = 0;
    pipe.write.reset();
    EXPECT_EQ(read(pipe.read.get(), &byte, 1), 1);
    return pid;
  }
  void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }
  std::string file_of(pid_t pid) {
    return base::join_path(folder_, claims_name({geteuid(), {pid, read_stat(pid)->start_ticks}}));
  }
  std::string folder_;
  std::vector<pid_t> children_;
};

TEST_F(ClaimsTest, WhatOthersHoldIsTaken) {
  const pid_t other = daemon([](ClaimBook& book) { (void)book.hold({claim(gib(60))}); });
  ClaimBook book = open();
  const std::vector<OtherClaim> seen = *book.others();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].user, "alice");
  EXPECT_EQ(seen[0].owner.daemon.pid, other);
  EXPECT_EQ(seen[0].claim, claim(gib(60)));
  const std::vector<ClaimRoom> room = {{kCard, gib(100)}, {kOther, gib(100)}};
  EXPECT_EQ(*book.try_for({claim(gib(41))}, room), Verdict::kTaken);
  EXPECT_EQ(*book.try_for({claim(gib(10), kOther), claim(gib(41))}, room), Verdict::kTaken)
      << "all or nothing";
  EXPECT_TRUE(book.held().empty());
  EXPECT_EQ(*book.try_for({claim(gib(40))}, room), Verdict::kMine);
  EXPECT_EQ(*book.try_for({claim(gib(1))}, room), Verdict::kTaken) << "our own counts too";
  EXPECT_EQ(book.held(), std::vector<Claim>{claim(gib(40))});
  Claim whole = claim(gib(1), kOther);
  whole.whole = true;
  EXPECT_EQ(*book.try_for({whole}, room), Verdict::kMine);
  EXPECT_EQ(*book.try_for({claim(gib(1), kOther)}, room), Verdict::kMine)
      << "what is beside what of our own is our ledger's business";
  ASSERT_TRUE(book.hold({}));
  end(other);
  EXPECT_EQ(*book.try_for({claim(gib(100))}, room), Verdict::kMine) << "the dead claim nothing";
}

TEST_F(ClaimsTest, AWholeCardIsNobodyElses) {
  daemon([](ClaimBook& book) { (void)book.hold({claim(gib(1))}); });
  ClaimBook book = open();
  Claim whole = claim(gib(1));
  whole.whole = true;
  EXPECT_EQ(*book.try_for({whole}, {{kCard, gib(100)}}), Verdict::kTaken);
}

TEST_F(ClaimsTest, OfTwoWhoTryOneGoesFirst) {
  // Frozen in the middle of a try, with a lesser pid and with a greater one than ours.
  const std::vector<ClaimRoom> room = {{kCard, gib(100)}};
  const auto stuck = [&](ClaimBook& book) {
    (void)book.try_for({claim(gib(60))}, {{kCard, gib(1)}});
    ClaimsText text{99, book.owner(), *read_pid_namespace(getpid()), "bob", {claim(gib(60))}};
    text.claims[0].held = false;
    std::ofstream(base::join_path(book.folder(), claims_name(book.owner())),
                  std::ios::in | std::ios::out)
        << *format_claims(text);
  };
  const pid_t other = daemon(stuck);
  ClaimBook book = open();
  const bool ours_first = getpid() < other;
  const Verdict verdict = *book.try_for({claim(gib(60))}, room);
  EXPECT_EQ(verdict, ours_first ? Verdict::kAskAgain : Verdict::kLater);
  if (ours_first) {
    EXPECT_EQ(*book.ask_again(), Verdict::kAskAgain);
    ASSERT_TRUE(book.give_up());
  }
  EXPECT_EQ(*book.try_for({claim(gib(40))}, room), Verdict::kMine) << "there is room for both";
  ASSERT_TRUE(book.hold({}));
  EXPECT_EQ(*book.try_for({claim(gib(60))}, room), verdict);
  end(other);
  EXPECT_EQ(ours_first ? *book.ask_again() : *book.try_for({claim(gib(60))}, room), Verdict::kMine);
}

TEST_F(ClaimsTest, AJobThatOutlivesItsDaemonKeepsItsClaim) {
  const pid_t runner = fork();
  if (runner == 0)
    for (;;) pause();
  children_.push_back(runner);
  const core::ProcessRef ref{runner, read_stat(runner)->start_ticks};
  const auto hold = [&](ClaimBook& book) {
    Claim lasting = claim(gib(30)), reused = claim(gib(5));
    lasting.runner = ref;
    reused.runner = core::ProcessRef{ref.pid, ref.start_ticks + 1};
    (void)book.hold({lasting, reused, claim(gib(1))});
  };
  const pid_t first = daemon(hold);
  const std::string left = file_of(first);
  end(first);
  ClaimBook book = open();
  ASSERT_EQ(book.others()->size(), 1u);
  EXPECT_EQ(book.others()->front().claim.bytes, gib(30));
  daemon(hold);  // its successor repeats the claims
  EXPECT_EQ(book.others()->size(), 3u) << "counted once";
  end(runner);
  EXPECT_EQ(book.others()->size(), 3u) << "a living daemon is believed";
  daemon([](ClaimBook&) {});
  EXPECT_NE(access(left.c_str(), F_OK), 0) << "swept by the next daemon of that user";
}

TEST_F(ClaimsTest, ARestartedDaemonIsNotInItsOwnWay) {
  const pid_t runner = fork();
  if (runner == 0)
    for (;;) pause();
  children_.push_back(runner);
  Claim held = claim(gib(90));
  held.runner = core::ProcessRef{runner, read_stat(runner)->start_ticks};
  end(daemon([&](ClaimBook& book) { (void)book.hold({held}); }));
  ClaimBook book = open();
  ASSERT_TRUE(book.hold({held}));
  EXPECT_TRUE(book.others()->empty());
  EXPECT_EQ(*book.try_for({claim(gib(10))}, {{kCard, gib(100)}}), Verdict::kMine);
}

TEST_F(ClaimsTest, WhatIsNotAFileByItsOwnerIsNotBelieved) {
  ClaimBook book = open();
  const ClaimsOwner liar{4242, {getpid(), 5}};
  ClaimsText text{1, liar, 0, "root", {claim(gib(100))}};
  std::ofstream(base::join_path(folder_, claims_name(liar))) << *format_claims(text);
  const ClaimsOwner dead{geteuid(), {getpid(), 6}};
  ASSERT_EQ(mkfifo(base::join_path(folder_, claims_name(dead)).c_str(), 0600), 0);
  const ClaimsOwner link{geteuid(), {getpid(), 7}};
  ASSERT_EQ(symlink("/etc/passwd", base::join_path(folder_, claims_name(link)).c_str()), 0);
  const ClaimsOwner empty{geteuid(), {getpid(), 8}};
  std::ofstream(base::join_path(folder_, claims_name(empty))).flush();
  EXPECT_TRUE(book.others()->empty());
}

TEST_F(ClaimsTest, ALivingDaemonThatCannotBeUnderstoodIsAnError) {
  daemon([&](ClaimBook& book) {
    std::ofstream(base::join_path(book.folder(), claims_name(book.owner())),
                  std::ios::in | std::ios::out | std::ios::binary)
        << std::string(2 * kMaxClaimsBytes, 'x');
  });
  ClaimBook book = open();
  EXPECT_EQ(book.others().error().code, ErrorCode::kBusy);
  EXPECT_FALSE(book.try_for({claim(gib(1))}, {{kCard, gib(100)}}));
  EXPECT_TRUE(book.held().empty());
}

TEST_F(ClaimsTest, AKillInTheMiddleOfAChangeLeavesTheOneBefore) {
  daemon([&](ClaimBook& book) {
    (void)book.hold({claim(gib(1))});
    (void)book.hold({claim(gib(2))});
    // As if the next change had been written half.
    std::fstream file(base::join_path(book.folder(), claims_name(book.owner())),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0);  // change 3 is in the second copy
    file << "mete-claims 1 4\ndaem";
  });
  EXPECT_EQ(open().others()->front().claim.bytes, gib(2));
}

TEST_F(ClaimsTest, AFolderThatOthersRuleIsNotUsed) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_EQ(ClaimBook::open({folder_}, "a").error().code, ErrorCode::kDenied);
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(ClaimBook::open({folder_}, "a"));
  EXPECT_EQ(ClaimBook::open({"/proc/self/nothing"}, "a").error().code, ErrorCode::kDenied);
}

TEST_F(ClaimsTest, ARemovedFileIsWrittenAgain) {
  ClaimBook book = open();
  ASSERT_TRUE(book.hold({claim(gib(1))}));
  const std::string path = base::join_path(folder_, claims_name(book.owner()));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_TRUE(book.refresh());
  const pid_t asks = fork();
  if (asks == 0) _exit(open().others()->size() == 1 ? 0 : 1);
  int status = -1;
  waitpid(asks, &status, 0);
  EXPECT_EQ(status, 0);
}

// Several daemons at once, each taking and giving back: the held claims never exceed the card, and
// every daemon gets its turn.
struct Arena {
  std::atomic<std::int64_t> held{0};
  std::atomic<std::int64_t> most{0};
  std::atomic<int> wins[8] = {};
  std::atomic<int> failures{0};
};

TEST_F(ClaimsTest, ManyAtOnceAreNeverOver) {
  constexpr int kDaemons = 5;
  constexpr int kWins = 40;
  void* memory =
      mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Arena& arena = *new (memory) Arena;
  for (int d = 0; d < kDaemons; ++d) {
    const pid_t pid = fork();
    if (pid != 0) {
      children_.push_back(pid);
      continue;
    }
    ClaimBook book = open();
    const std::vector<ClaimRoom> room = {{kCard, gib(100)}};
    const std::int64_t wanted = 30 + 15 * d;  // 30 … 90: one or two fit
    while (arena.wins[d] < kWins) {
      Result<Verdict> verdict =
          book.try_for({claim(gib(static_cast<std::uint64_t>(wanted)))}, room);
      for (int i = 0; verdict && *verdict == Verdict::kAskAgain && i < ClaimBook::kMaxAsks; ++i) {
        (void)poll(nullptr, 0, 1);
        verdict = book.ask_again();
      }
      if (!verdict) {
        ++arena.failures;
        continue;
      }
      if (*verdict != Verdict::kMine) {
        (void)book.give_up();
        (void)poll(nullptr, 0, 1 + d % 3);
        continue;
      }
      const std::int64_t now = arena.held += wanted;
      std::int64_t most = arena.most;
      while (now > most && !arena.most.compare_exchange_weak(most, now)) {
      }
      (void)poll(nullptr, 0, 1);
      arena.held -= wanted;
      ++arena.wins[d];
      (void)book.hold({});
      (void)poll(nullptr, 0, 1);
    }
    _exit(0);
  }
  for (const pid_t pid : children_) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  children_.clear();
  EXPECT_LE(arena.most, 100) << "two daemons gave away the same bytes";
  EXPECT_GT(arena.most, 0);
  EXPECT_EQ(arena.failures, 0);
  munmap(memory, sizeof(Arena));
}

}  // namespace
}  // namespace mete::node
