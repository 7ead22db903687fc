// SPDX-License-Identifier: Apache-2.0
// A copy of the store while it is in use: one file, a database as docs/formats/store.md describes
// it, without a log beside it. Made in steps, so that the owner of the store can work in between:
// commits of the same connection go into the copy too. The file has its name only when it is whole
// and on the disk; an earlier copy of that name is replaced then.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/connection.h"

namespace mete::store {

class Backup {
 public:
  // `source` outlives us. invalid: the path is taken by something that is no copy, or it is the
  // store itself.
  static Result<std::unique_ptr<Backup>> begin(Connection& source, const std::string& path);
  // Without finish(): nothing is left.
  ~Backup();
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  // Copies about a megabyte. True: that was the last of it. After an error there is no next step.
  Result<bool> step();
  // After the last step: syncs the copy and gives it its name. Returns its size.
  Result<std::uint64_t> finish();

 private:
  Backup(std::string path, std::string part, Connection target);

  std::string path_;
  std::string part_;  // its name until it is whole
  std::optional<Connection> target_;
  sqlite3_backup* handle_ = nullptr;
};

}  // namespace mete::store
