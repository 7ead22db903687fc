// SPDX-License-Identifier: Apache-2.0
// Pool files: YAML in, the nodes of a pool and its running jobs out, each error with its line and
// column. docs/formats/pool-file.md has every key. Only the text is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/type_tables.h"
#include "core/cluster/model.h"

namespace mete::cli {

inline constexpr std::size_t kMaxPoolFile = 16 << 20;
inline constexpr std::uint64_t kMaxPoolNodes = 100'000;
inline constexpr std::uint64_t kMaxPoolJobs = 100'000;

// A job that already runs in the pool.
struct PoolJob {
  core::cluster::Ask ask;
  std::string node;                  // "": chosen by the policy
  std::vector<std::uint32_t> cards;  // empty: chosen by the policy
  std::string where;                 // "pool.yaml:7:5"
  std::string name = {};             // "": not said
};

struct PoolFile {
  std::string policy;  // "": not said
  std::vector<core::cluster::NodeSpec> nodes;
  std::vector<PoolJob> jobs;
};

// `path` is for the places in errors. At least one node.
Result<PoolFile> parse_pool_file(std::string_view text, const std::string& path,
                                 const TypeTables& types);

}  // namespace mete::cli
