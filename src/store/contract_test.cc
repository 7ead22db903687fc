// SPDX-License-Identifier: Apache-2.0
// The contract of seam/store.h, kept by the real store and by the fakes that replace it. Every test
// runs on each of them, through a small world that can kill the store's process and open it again;
// failures on demand are tested on the fakes only.
#include <filesystem>

#include "base/content_hash.h"
#include "store/test/disk.h"
#include "tests/support/mem_store.h"

namespace mete::store {
namespace {

// A store and how its process dies: the next use() sees what is left.
struct MemoryWorld {
  tests::MemStore store;
  seam::Store& use() { return store; }
  void die() { store.forget_uncommitted(); }
};

struct FaultyWorld {
  tests::FaultyStore store;
  seam::Store& use() { return store; }
  void die() { store.crash(); }
};

class SqliteWorld {
 public:
  SqliteWorld() {
    std::string name = testing::TempDir() + "mete-store-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SqliteWorld() {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  seam::Store& use() {
    if (!store_) store_ = SqliteStore::open(folder_).value();
    return *store_;
  }
  void die() { store_.reset(); }

 private:
  std::string folder_;
  std::unique_ptr<SqliteStore> store_;
};

template <typename World>
class StoreContract : public testing::Test {
 protected:
  seam::Store& store() { return world_.use(); }
  void append(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t seq = first; seq <= last; ++seq) store().append(event_of(seq));
  }
  std::vector<std::uint64_t> numbers(std::uint64_t after = 0, std::size_t limit = 1000) {
    std::vector<std::uint64_t> found;
    const Result<std::vector<seam::StoredEvent>> events = store().load_events(after, limit);
    for (const seam::StoredEvent& event : events.value()) {
      EXPECT_EQ(event, event_of(event.seq));
      found.push_back(event.seq);
    }
    return found;
  }
  World world_;
};
using Worlds = testing::Types<MemoryWorld, FaultyWorld, SqliteWorld>;
TYPED_TEST_SUITE(StoreContract, Worlds);
using Numbers = std::vector<std::uint64_t>;

TYPED_TEST(StoreContract, NewOneIsEmpty) {
  EXPECT_EQ(this->store().load_snapshot().value(), std::nullopt);
  EXPECT_EQ(this->numbers(), Numbers{});
  EXPECT_TRUE(this->store().commit()) << "nothing to keep is fine";
}

TYPED_TEST(StoreContract, NothingIsVisibleBeforeCommit) {
  this->append(1, 3);
  this->store().put_snapshot({2, "{}"});
  EXPECT_EQ(this->numbers(), Numbers{});
  EXPECT_EQ(this->store().load_snapshot().value(), std::nullopt);
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->numbers(), (Numbers{1, 2, 3}));
  EXPECT_EQ(this->store().load_snapshot().value(), (seam::Snapshot{2, "{}"}));
}

TYPED_TEST(StoreContract, WhatWasNotCommittedDiesWithTheProcess) {
  this->append(1, 2);
  ASSERT_TRUE(this->store().commit());
  this->append(3, 5);
  this->store().put_snapshot({5, "later"});
  this->world_.die();
  EXPECT_EQ(this->numbers(), (Numbers{1, 2}));
  EXPECT_EQ(this->store().load_snapshot().value(), std::nullopt);
  this->append(3, 3);
  ASSERT_TRUE(this->store().commit()) << "it goes on from the last one kept";
  this->world_.die();
  EXPECT_EQ(this->numbers(), (Numbers{1, 2, 3}));
}

TYPED_TEST(StoreContract, EventsComeInOrderFromAnyNumberAndAtMostSoMany) {
  this->append(1, 10);
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->numbers(4, 3), (Numbers{5, 6, 7}));
  EXPECT_EQ(this->numbers(8, 3), (Numbers{9, 10}));
  EXPECT_EQ(this->numbers(10), Numbers{});
  EXPECT_EQ(this->numbers(99), Numbers{});
  EXPECT_EQ(this->numbers(0, 0), Numbers{});
}

TYPED_TEST(StoreContract, TheNewestSnapshotCounts) {
  this->store().put_snapshot({0, "empty"});
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->store().load_snapshot().value(), (seam::Snapshot{0, "empty"}));
  this->append(1, 10);
  this->store().put_snapshot({4, "four"});
  this->store().put_snapshot({6, "six"});
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->store().load_snapshot().value(), (seam::Snapshot{6, "six"}));
  this->store().put_snapshot({6, "six, in other words"});
  ASSERT_TRUE(this->store().commit());
  this->world_.die();
  EXPECT_EQ(this->store().load_snapshot().value(), (seam::Snapshot{6, "six, in other words"}));
}

TYPED_TEST(StoreContract, ContentsAreKeptWithTheEventsThatSpeakOfThem) {
  const std::string data("A=b\0C=\xff\0", 9);
  const std::string hash = base::content_hash(data), of_nothing = base::content_hash("");
  this->append(1, 1);
  this->store().put_blob(hash, data);
  EXPECT_EQ(this->store().load_blob(hash).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->store().load_blob(hash).value(), data);
  this->store().put_blob(of_nothing, "");
  this->world_.die();
  EXPECT_EQ(this->store().load_blob(hash).value(), data);
  EXPECT_EQ(this->store().load_blob(of_nothing).error().code, ErrorCode::kNotFound);
  this->store().put_blob(of_nothing, "");
  ASSERT_TRUE(this->store().commit()) << "without an event, too";
  this->world_.die();
  EXPECT_EQ(this->store().load_blob(of_nothing).value(), "");
}

TYPED_TEST(StoreContract, AContentIsPutOnce) {
  const std::string hash = base::content_hash("first");
  this->store().put_blob(hash, "first");
  this->store().put_blob(hash, "again in the same commit");
  ASSERT_TRUE(this->store().commit());
  this->store().put_blob(hash, "and in another");
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->store().load_blob(hash).value(), "first");
}

TYPED_TEST(StoreContract, ASnapshotLetsGoOfContentsThatNobodySpeaksOf) {
  const auto hash = [](const char* name) { return base::content_hash(name); };
  const auto put = [&](const char* name) { this->store().put_blob(hash(name), name); };
  for (const char* name : {"aa", "bb", "cc"}) put(name);
  this->append(1, 1);
  ASSERT_TRUE(this->store().commit());
  const auto there = [&](const char* name) { return this->store().load_blob(hash(name)).ok(); };
  this->store().keep_blobs({hash("aa"), "zz"});
  this->append(2, 2);
  ASSERT_TRUE(this->store().commit());
  EXPECT_TRUE(there("bb")) << "there was no snapshot yet";
  put("dd");  // after the list was made
  put("cc");
  this->store().put_snapshot({2, "{}"});
  ASSERT_TRUE(this->store().commit());
  EXPECT_TRUE(there("aa"));
  EXPECT_FALSE(there("bb"));
  EXPECT_TRUE(there("cc")) << "put again since";
  EXPECT_TRUE(there("dd"));
  this->store().put_snapshot({2, "{}"});
  ASSERT_TRUE(this->store().commit());
  EXPECT_TRUE(there("dd")) << "a list is for one snapshot";
  this->store().keep_blobs({});
  this->store().put_snapshot({2, "{}"});
  ASSERT_TRUE(this->store().commit());
  this->world_.die();
  EXPECT_FALSE(there("aa"));
}

TYPED_TEST(StoreContract, WhatIsWithdrawnWasNeverSaid) {
  this->append(1, 2);
  ASSERT_TRUE(this->store().commit());
  this->append(3, 4);
  this->store().put_snapshot({4, "{}"});
  this->store().put_blob(base::content_hash("x"), "x");
  this->store().keep_blobs({});
  this->store().withdraw();
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->numbers(), (Numbers{1, 2}));
  EXPECT_EQ(this->store().load_snapshot().value(), std::nullopt);
  EXPECT_FALSE(this->store().load_blob(base::content_hash("x")));
  this->append(3, 3);
  ASSERT_TRUE(this->store().commit());
  EXPECT_EQ(this->numbers(), (Numbers{1, 2, 3}));
}

TYPED_TEST(StoreContract, GapInTheNumbersIsImpossible) {
  this->append(1, 2);
  EXPECT_DEATH(this->store().append(event_of(4)), "impossible");
  EXPECT_DEATH(this->store().append(event_of(2)), "impossible");
  EXPECT_DEATH(this->store().put_snapshot({3, ""}), "impossible");
}

TYPED_TEST(StoreContract, BallastIsThereToBeFreedOnlyOnce) {
  EXPECT_TRUE(this->store().restore_ballast());
  if (!this->store().free_ballast()) return;  // a store without ballast
  EXPECT_FALSE(this->store().free_ballast());
  EXPECT_TRUE(this->store().restore_ballast());
  EXPECT_TRUE(this->store().free_ballast());
}

TEST(FaultyStore, FailsTheNthCommitOnceAndKeepsWhatIsQueuedWhenTheDiskIsFull) {
  tests::FaultyStore store;
  store.fail_commit(2, Error::exhausted("full"));
  store.append(event_of(1));
  ASSERT_TRUE(store.commit());
  store.append(event_of(2));
  EXPECT_EQ(store.commit().error().code, ErrorCode::kExhausted);
  EXPECT_EQ(store.committed().size(), 1u);
  EXPECT_EQ(store.queued(), 1u);
  ASSERT_TRUE(store.commit());
  EXPECT_EQ(store.committed().size(), 2u);
}

TEST(FaultyStore, AfterAnIoErrorNothingIsKeptUntilARestart) {
  tests::FaultyStore store;
  store.append(event_of(1));
  store.fail_commit(1, Error::io("disk gone"));
  EXPECT_EQ(store.commit().error().code, ErrorCode::kIo);
  EXPECT_EQ(store.commit().error().code, ErrorCode::kIo);
  store.crash();
  EXPECT_EQ(store.committed().size(), 0u);

  store.append(event_of(1));
  store.fail_commit(1, Error::io("disk gone"), tests::FaultyStore::Left::kAll);
  EXPECT_EQ(store.commit().error().code, ErrorCode::kIo);
  store.crash();
  EXPECT_EQ(store.committed().size(), 1u) << "it had reached the disk before the error";
}

TEST(FaultyStore, FullDiskTakesAsManyCommitsAsTheBallastHolds) {
  tests::FaultyStore store;
  store.set_full(1);
  store.append(event_of(1));
  EXPECT_EQ(store.commit().error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(store.free_ballast());
  EXPECT_TRUE(store.commit());
  EXPECT_FALSE(store.restore_ballast());
  store.append(event_of(2));
  EXPECT_EQ(store.commit().error().code, ErrorCode::kExhausted) << "the ballast is used up";
  store.set_room();
  EXPECT_TRUE(store.commit());
  EXPECT_TRUE(store.restore_ballast());
}

}  // namespace
}  // namespace mete::store
