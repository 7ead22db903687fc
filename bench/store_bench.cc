// SPDX-License-Identifier: Apache-2.0
// The cost of the store: commits of 1, 10 and 100 events, and opening one with 100,000 of them
// after a clean end and after a kill. In a folder of its own below $TMPDIR (/tmp): run it on the
// disk that matters, since a sync is most of the time.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "store/sqlite_store.h"

namespace mete::store {
namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path().string() + "/mete-bench-XXXXXX") {
    METE_ASSERT(mkdtemp(path_.data()) != nullptr);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void append(SqliteStore& store, std::uint64_t& last, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    store.append({++last, 1'794'733'200'000, "job.started", "12", std::string(200, 'x')});
}

void commit(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<SqliteStore> store = SqliteStore::open(folder.path()).value();
  std::uint64_t last = 0;
  for ([[maybe_unused]] auto turn : state) {
    append(*store, last, state.range(0));
    METE_ASSERT(store->commit());
  }
  state.counters["commits"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["events"] =
      benchmark::Counter(static_cast<double>(last), benchmark::Counter::kIsRate);
}
BENCHMARK(commit)->Arg(1)->Arg(10)->Arg(100)->UseRealTime();

// A leftover log, however empty, makes the open check the whole database.
void open_full(benchmark::State& state) {
  const Folder folder;
  const std::string log = folder.path() + "/meted.db-wal";
  std::uint64_t last = 0;
  {
    const std::unique_ptr<SqliteStore> store = SqliteStore::open(folder.path()).value();
    while (last < 100'000) {
      append(*store, last, 1'000);
      METE_ASSERT(store->commit());
    }
    store->put_snapshot({last, std::string(1 << 20, 's')});
    METE_ASSERT(store->commit());
  }
  for ([[maybe_unused]] auto turn : state) {
    state.PauseTiming();
    if (state.range(0) != 0) {
      FILE* file = fopen(log.c_str(), "w");
      METE_ASSERT(file != nullptr && fwrite("killed", 1, 6, file) == 6 && fclose(file) == 0);
    }
    state.ResumeTiming();
    METE_ASSERT(SqliteStore::open(folder.path()));
  }
}
BENCHMARK(open_full)->ArgName("killed")->Arg(0)->Arg(1)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace mete::store
