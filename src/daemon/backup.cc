// SPDX-License-Identifier: Apache-2.0
// See backup.h.
#include "daemon/backup.h"

#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "base/bytes.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "daemon/repair.h"
#include "seam/clock.h"

namespace mete::daemon {

void BackupJob::start(const std::string& path, Done done) {
  if (copy_) return done(Error::busy("another backup is under way").with_hint("try again later"));
  if (!path.starts_with('/')) return done(Error::invalid("the file needs an absolute path"));
  Result<std::unique_ptr<store::Backup>> copy = store_.begin_backup(path);
  if (!copy) return done(std::move(copy).error());
  path_ = path;
  copy_ = *std::move(copy);
  done_ = std::move(done);
  later();
}

void BackupJob::later() {
  loop_.after(seam::Milliseconds(0), [this, alive = alive_] {
    if (*alive) step();
  });
}

void BackupJob::step() {
  const Result<bool> last = copy_->step();
  if (last && !*last) return later();
  Result<std::uint64_t> bytes = last ? copy_->finish() : Result<std::uint64_t>(last.error());
  copy_.reset();
  const Done done = std::exchange(done_, nullptr);
  if (bytes)
    done(wire::BackupView{path_, *bytes, store_.last_seq()});
  else
    done(std::move(bytes).error());
}

int run_backup(const std::string& state_dir, const std::string& file, bool json) {
  const auto fail = [&](const Error& error) {
    return tell_failure(error, json, base::exit_code_of_failure(error.code));
  };
  struct stat info {};
  if (stat(base::join_path(state_dir, "meted.db").c_str(), &info) != 0)
    return fail(Error::not_found("there is no state in " + state_dir));
  Result<std::unique_ptr<store::SqliteStore>> store = store::SqliteStore::open(state_dir);
  if (!store) return fail(store.error());
  Result<std::unique_ptr<store::Backup>> copy = (*store)->begin_backup(file);
  if (!copy) return fail(copy.error());
  for (;;) {
    const Result<bool> last = (*copy)->step();
    if (!last) return fail(last.error());
    if (*last) break;
  }
  const Result<std::uint64_t> bytes = (*copy)->finish();
  if (!bytes) return fail(bytes.error());
  const wire::BackupView view{file, *bytes, (*store)->last_seq()};
  const std::string text =
      json ? wire::encode(view, seam::system_clock().wall()) : wire::text_of(view);
  (void)std::printf("%s\n", text.c_str());
  return 0;
}

}  // namespace mete::daemon
