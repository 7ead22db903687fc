// SPDX-License-Identifier: Apache-2.0
// See disk.h. SQLite lets its writes be replaced, but not its syncs; these are replaced by the
// loader, since a program's own functions come before those of libraries.
#include "store/test/disk.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/file.h"

namespace mete::store {

DiskFaults disk;

namespace {

bool write_fails() {
  ++disk.writes;
  if (disk.writes_left < 0) return false;
  if (disk.writes_left > 0) {
    --disk.writes_left;
    return false;
  }
  errno = disk.write_error;
  return true;
}

// SQLite ignores the result of syncing a folder, which not every file system supports.
bool sync_fails(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  ++disk.syncs;
  if (disk.syncs_left < 0) return false;
  if (disk.syncs_left-- > 0) return false;
  errno = disk.sync_error;
  return true;
}

ssize_t faulty_write(int fd, const void* data, size_t bytes) {
  return write_fails() ? -1 : write(fd, data, bytes);
}
ssize_t faulty_pwrite(int fd, const void* data, size_t bytes, off_t at) {
  return write_fails() ? -1 : pwrite(fd, data, bytes, at);
}

void replace_writes(bool on) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  const auto set = [&](const char* name, auto* function) {
    vfs->xSetSystemCall(vfs, name, on ? reinterpret_cast<sqlite3_syscall_ptr>(function) : nullptr);
  };
  set("write", faulty_write);
  set("pwrite", faulty_pwrite);
  set("pwrite64", faulty_pwrite);
}

}  // namespace

seam::StoredEvent event_of(std::uint64_t seq) {
  const std::string number = std::to_string(seq);
  return {seq, static_cast<std::int64_t>(1'790'000'000'000 + seq), "job.started",
          std::to_string(seq / 4),
          "{\"number\":" + number + ",\"text\":\"" + std::string(seq * 37 % 300, 'x') + "\"}"};
}

std::uint64_t append_more(SqliteStore& store, std::uint64_t last, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) store.append(event_of(++last));
  return last;
}

std::uint64_t size_of(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

void copy_file(const std::string& from, const std::string& to, std::uint64_t bytes) {
  std::ifstream in(from, std::ios::binary);
  std::string data((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  data.resize(std::min<std::uint64_t>(bytes, data.size()));
  std::ofstream(to, std::ios::binary | std::ios::trunc) << data;
  ASSERT_EQ(chmod(to.c_str(), 0600), 0);
}

StoreTest::StoreTest() {
  std::string name = testing::TempDir() + "mete-store-XXXXXX";
  folder_ = mkdtemp(name.data());
  disk = {};
  replace_writes(true);
}

StoreTest::~StoreTest() {
  disk = {};
  replace_writes(false);
  std::filesystem::remove_all(folder_);
}

std::unique_ptr<SqliteStore> StoreTest::open(SqliteOptions options) {
  Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(folder_, options);
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().message << "; " << store.error().evidence;
  return nullptr;
}

Error StoreTest::refused() {
  Result<std::unique_ptr<SqliteStore>> store = SqliteStore::open(folder_);
  if (!store) return store.error();
  ADD_FAILURE() << "opened what it should refuse";
  return {};
}

void StoreTest::expect_events(SqliteStore& store, std::uint64_t first, std::uint64_t last) {
  const Result<std::vector<seam::StoredEvent>> events = store.load_events(0, 1'000'000);
  ASSERT_TRUE(events) << events.error().message << "; " << events.error().evidence;
  ASSERT_EQ(events->size(), last + 1 - first);
  for (std::uint64_t seq = first; seq <= last; ++seq)
    ASSERT_EQ((*events)[seq - first], event_of(seq)) << seq;
  EXPECT_EQ(store.last_seq(), last);
}

void StoreTest::run_sql(const char* sql) {
  Result<Connection> connection = Connection::open(path("meted.db"));
  ASSERT_TRUE(connection);
  const Result<void> done = connection->run(sql);
  ASSERT_TRUE(done) << done.error().evidence;
}

}  // namespace mete::store

extern "C" {
int fsync(int fd) {
  return mete::store::sync_fails(fd) ? -1 : static_cast<int>(syscall(SYS_fsync, fd));
}
int fdatasync(int fd) {
  return mete::store::sync_fails(fd) ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd));
}
}
