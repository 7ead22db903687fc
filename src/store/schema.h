// SPDX-License-Identifier: Apache-2.0
// The tables and their history: a list of steps, each from one version to the next in one
// transaction. docs/formats/store.md describes the columns. A released step is never changed;
// tests/data/store holds a sample of every version.
#pragma once

#include <span>

#include "store/connection.h"

namespace mete::store {

// The version that this program writes; "store" in GET /v1/version.
inline constexpr int kSchemaVersion = 3;
// "mete", in the database's header: distinguishes our file from databases of other programs.
inline constexpr int kApplicationId = 0x6d657465;

struct Step {
  int to = 0;  // from to-1
  const char* sql = "";
  // Steps that SQL cannot express, after it and in the same transaction.
  Result<void> (*then)(Connection& connection) = nullptr;
};
std::span<const Step> schema_steps();

// Read-only. Fine: a file of ours of a version up to `newest`, or an empty new one. corrupt: not a
// database, or of another program. unsupported: a newer version.
Result<void> check_identity(Connection& connection, int newest = kSchemaVersion);

// Takes the missing steps. A step that fails leaves the version before it.
Result<void> migrate(Connection& connection, std::span<const Step> steps = schema_steps());

}  // namespace mete::store
