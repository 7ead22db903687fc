// SPDX-License-Identifier: Apache-2.0
#include "store/mark.h"

#include <unistd.h>

#include <fstream>

#include "store/test/disk.h"

namespace mete::store {
namespace {

class MarkTest : public StoreTest {
 protected:
  std::uint64_t commit_more(std::uint64_t count) {
    const std::unique_ptr<SqliteStore> store = open();
    append_more(*store, store->last_seq(), count);
    EXPECT_TRUE(store->commit());
    return store->last_seq();
  }
};

TEST_F(MarkTest, SaysTheLastCommit) {
  commit_more(3);
  const MarkContent mark = *read_mark(folder_).value();
  EXPECT_EQ(mark.seq, 3u);
  EXPECT_EQ(mark.version, 3u);
  EXPECT_EQ(mark.database.size(), 32u);
  commit_more(2);
  EXPECT_EQ(read_mark(folder_).value(), (MarkContent{mark.database, 5, 3}));
  EXPECT_EQ(size_of(path("meted.mark")), 88u);
}

TEST_F(MarkTest, AnOlderCopyOfTheDatabaseIsRefused) {
  commit_more(3);
  copy_file(path("meted.db"), path("copy"));
  commit_more(2);
  copy_file(path("copy"), path("meted.db"));
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.evidence.find("events 4 to 5 were recorded and are missing"), std::string::npos)
      << error.evidence;
  EXPECT_NE(error.hint.find("mete daemon repair"), std::string::npos);
}

TEST_F(MarkTest, ACopyWithoutAMarkIsTaken) {
  commit_more(3);
  copy_file(path("meted.db"), path("copy"));
  commit_more(2);
  copy_file(path("copy"), path("meted.db"));
  ASSERT_EQ(unlink(path("meted.mark").c_str()), 0);
  EXPECT_EQ(commit_more(1), 4u);
  EXPECT_EQ(read_mark(folder_).value()->seq, 4u);
}

TEST_F(MarkTest, AnotherDatabaseInItsPlaceIsRefused) {
  commit_more(3);
  ASSERT_EQ(rename(path("meted.db").c_str(), path("first").c_str()), 0);
  ASSERT_EQ(rename(path("meted.mark").c_str(), path("first.mark").c_str()), 0);
  commit_more(9);
  copy_file(path("first.mark"), path("meted.mark"));
  EXPECT_NE(refused().evidence.find("another database"), std::string::npos);
}

TEST_F(MarkTest, ADatabaseThatIsGoneOrEmptyBesideItsMarkIsRefused) {
  commit_more(3);
  copy_file("/dev/null", path("meted.db"));
  Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("is empty"), std::string::npos);
  EXPECT_FALSE(error.hint.empty());
  ASSERT_EQ(unlink(path("meted.db").c_str()), 0);
  error = refused();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("is gone"), std::string::npos);
  ASSERT_EQ(unlink(path("meted.mark").c_str()), 0);
  EXPECT_EQ(commit_more(1), 1u) << "it was moved away with its mark: a new one";
}

TEST_F(MarkTest, ADamagedMarkIsSaid) {
  commit_more(3);
  std::fstream(path("meted.mark"), std::ios::in | std::ios::out).seekp(60) << '7';
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_NE(error.message.find("meted.mark is damaged"), std::string::npos);
  EXPECT_NE(error.hint.find("mete daemon repair"), std::string::npos);
}

}  // namespace
}  // namespace mete::store
