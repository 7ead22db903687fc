// SPDX-License-Identifier: Apache-2.0
// Copies of the state: `mete daemon backup` and `mete daemon restore`. A daemon that runs makes a
// copy in small steps between its other work (BackupJob); without a daemon `meted --backup` does
// it. `meted --restore` puts a copy in place of the state, while no daemon and no job runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "seam/loop.h"
#include "store/backup.h"
#include "store/sqlite_store.h"
#include "wire/cards.h"

namespace mete::daemon {

// One copy at a time; the store and the loop outlive it.
class BackupJob {
 public:
  using Done = std::function<void(const Result<wire::BackupView>&)>;

  BackupJob(store::SqliteStore& store, seam::Loop loop) : store_(store), loop_(std::move(loop)) {}
  ~BackupJob() { *alive_ = false; }
  BackupJob(const BackupJob&) = delete;
  BackupJob& operator=(const BackupJob&) = delete;

  // `done` is called from the loop, or at once if it cannot begin: busy, invalid (path), denied.
  void start(const std::string& path, Done done);

 private:
  void step();
  void later();

  store::SqliteStore& store_;
  seam::Loop loop_;
  std::string path_;
  std::unique_ptr<store::Backup> copy_;  // under way
  Done done_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The command lines. To stdout, as lines or as one document; errors to stderr. Return the exit
// code.
int run_backup(const std::string& state_dir, const std::string& file, bool json);

struct RestoreOptions {
  std::string state_dir;
  std::string file;
  bool force = false;    // replace a state that is not empty
  bool dry_run = false;  // say what would be restored
  bool json = false;
};
int run_restore(const RestoreOptions& options);

}  // namespace mete::daemon
