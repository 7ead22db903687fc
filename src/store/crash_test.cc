// SPDX-License-Identifier: Apache-2.0
// Death at any moment: by SIGKILL, and as a power failure would leave the files. Everything that
// was reported is there, no event is missing in between, and of everything unreported there is at
// most one commit, whole.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "base/fd.h"
#include "store/test/disk.h"

namespace mete::store {
namespace {

constexpr std::uint64_t kMaxBatch = 5;

// Commits until it is killed; reports after each commit which event was its last.
[[noreturn]] void commit_forever(const std::string& folder, SqliteOptions options,
                                 std::uint64_t seed, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::minstd_rand random(seed);
  Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(folder, options);
  if (!store) _exit(1);
  for (std::uint64_t last = (*store)->last_seq();;) {
    last = append_more(**store, last, 1 + random() % kMaxBatch);
    if (random() % 8 == 0) (*store)->put_snapshot({last, std::string(random() % 20'000, 's')});
    if (!(*store)->commit()) _exit(2);
    if (write(report, &last, sizeof last) != sizeof last) _exit(3);
  }
}

class CrashTest : public StoreTest {
 protected:
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static void write(const std::string& path, const std::string& data) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << data;
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
  }
  // Opens these bytes as if a machine had booted with them; returns the last event's number. The
  // mark, which is not synced, is from before.
  std::uint64_t last_in(const std::string& database, const std::string& log) {
    (void)unlink(path("meted.mark").c_str());
    write(path("meted.db"), database);
    write(path("meted.db-wal"), log);
    const std::unique_ptr<SqliteStore> store = open();
    if (!store) return 0;
    expect_events(*store, 1, store->last_seq());
    return store->last_seq();
  }
};

TEST_F(CrashTest, EveryReportedCommitSurvivesSigkill) {
  const int rounds = std::getenv("METE_FULL") != nullptr ? 400 : 40;
  std::minstd_rand random(20261115);
  const SqliteOptions options{.keep_events = 200, .checkpoint_pages = 6};
  std::uint64_t reported = 0, unreported = 0;
  for (int round = 0; round < rounds; ++round) {
    Result<base::Pipe> pipe = base::make_pipe();
    ASSERT_TRUE(pipe);
    const pid_t child = fork();
    if (child == 0) commit_forever(folder_, options, random(), pipe->write.get());
    pipe->write.reset();
    // Any moment after a few reports: this many harmless calls later.
    for (std::uint64_t wanted = random() % 6; wanted > 0; --wanted)
      ASSERT_EQ(::read(pipe->read.get(), &reported, sizeof reported), 8) << round;
    for (std::uint64_t spin = random() % 20'000; spin > 0; --spin) (void)getppid();
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);
    while (::read(pipe->read.get(), &reported, sizeof reported) == 8) continue;

    const std::unique_ptr<SqliteStore> store = open(options);
    ASSERT_NE(store, nullptr) << "round " << round;
    const std::uint64_t last = store->last_seq();
    ASSERT_GE(last, reported) << "round " << round;
    ASSERT_LE(last, reported + kMaxBatch) << "round " << round;
    unreported += last - reported;
    reported = last;
    const std::size_t kept = store->load_events(0, 1'000'000).value().size();
    expect_events(*store, last + 1 - kept, last);
    const std::optional<seam::Snapshot> snapshot = store->load_snapshot().value();
    if (snapshot) {
      EXPECT_GE(snapshot->seq + 1, last + 1 - kept);
    }
  }
  EXPECT_GT(reported, static_cast<std::uint64_t>(rounds));
  RecordProperty("unreported", std::to_string(unreported));
}

// The log as far as it had reached the disk: each commit is there as a whole or not at all.
TEST_F(CrashTest, LogCutAnywhereKeepsWholeCommitsOnly) {
  std::vector<std::uint64_t> log_sizes = {0};
  std::string database, log;
  {
    const std::unique_ptr<SqliteStore> store = open({.checkpoint_pages = 1'000});
    append_more(*store, 0, 10);
    ASSERT_TRUE(store->commit());
  }
  {
    const std::unique_ptr<SqliteStore> store = open({.checkpoint_pages = 1'000});
    database = read(path("meted.db"));
    for (int i = 0; i < 6; ++i) {
      append_more(*store, store->last_seq(), 10);
      ASSERT_TRUE(store->commit());
      log_sizes.push_back(size_of(path("meted.db-wal")));
    }
    log = read(path("meted.db-wal"));
    EXPECT_EQ(read(path("meted.db")), database) << "nothing but the log is written";
  }
  ASSERT_EQ(log.size(), log_sizes.back());
  const auto commits_in = [&](std::uint64_t bytes) {
    std::uint64_t whole = 0;
    while (whole + 1 < log_sizes.size() && log_sizes[whole + 1] <= bytes) ++whole;
    return whole;
  };
  const std::uint64_t stride = std::getenv("METE_FULL") != nullptr ? 101 : 1'531;
  for (std::uint64_t bytes = 0; bytes <= log.size(); bytes += bytes == log.size() ? 1 : stride) {
    EXPECT_EQ(last_in(database, log.substr(0, bytes)), 10 + 10 * commits_in(bytes)) << bytes;
    // The length is on the disk already, the bytes are not; and old bytes in their place.
    std::string torn = log;
    torn.replace(bytes, std::string::npos, log.size() - bytes, '\0');
    EXPECT_EQ(last_in(database, torn), 10 + 10 * commits_in(bytes)) << bytes;
    torn = log;
    if (bytes < torn.size()) torn[bytes] ^= 0x10;
    EXPECT_LE(last_in(database, torn), 10 + 10 * (log_sizes.size() - 1)) << bytes;
  }
  EXPECT_EQ(last_in(database, log), 10 + 10 * (log_sizes.size() - 1));
}

// Power fails while the log is being copied into the database: any sectors may be new, and the log,
// which is removed only later, makes all of it whole.
TEST_F(CrashTest, TornCopyOfTheLogIsMadeWhole) {
  std::string before, log;
  {
    const std::unique_ptr<SqliteStore> store = open({.checkpoint_pages = 1'000});
    for (int i = 0; i < 20; ++i) {
      append_more(*store, store->last_seq(), 10);
      ASSERT_TRUE(store->commit());
    }
    before = read(path("meted.db"));
    log = read(path("meted.db-wal"));
  }
  const std::string after = read(path("meted.db"));
  ASSERT_NE(before, after);
  std::minstd_rand random(7);
  for (int round = 0; round < 30; ++round) {
    std::string torn = before;
    torn.resize(before.size() + random() % (after.size() - before.size() + 1));
    for (std::size_t at = 0; at < torn.size(); at += 512)
      if (random() % 2 == 0)
        torn.replace(at, 512, after, at, std::min<std::size_t>(512, torn.size() - at));
    EXPECT_EQ(last_in(torn, log), 200u) << round;
  }
}

}  // namespace
}  // namespace mete::store
