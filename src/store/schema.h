// SPDX-License-Identifier: Apache-2.0
// The tables and how they came to be: a list of steps, each from one version to the next in one
// transaction. docs/formats/store.md says what the columns mean. A step that was released is never
// changed; tests/data/store holds a sample of every version.
#pragma once

#include <span>

#include "store/connection.h"

namespace mete::store {

// The version that this program writes; what GET /v1/version calls "store".
inline constexpr int kSchemaVersion = 3;
// "mete", in the database's header: tells our file from other programs' databases.
inline constexpr int kApplicationId = 0x6d657465;

struct Step {
  int to = 0;  // from to-1
  const char* sql = "";
  // What SQL cannot say, after it and in the same transaction.
  Result<void> (*then)(Connection& connection) = nullptr;
};
std::span<const Step> schema_steps();

// Looks only. Fine: one of ours of a version up to `newest`, or an empty new one. corrupt: not a
// database, or another program's. unsupported: a newer version.
Result<void> check_identity(Connection& connection, int newest = kSchemaVersion);

// Takes the steps that are missing. A step that fails leaves the version before it.
Result<void> migrate(Connection& connection, std::span<const Step> steps = schema_steps());

}  // namespace mete::store
