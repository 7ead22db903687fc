// SPDX-License-Identifier: Apache-2.0
// Pool files: YAML in, the nodes of a pool and what runs on them out, each error with its line and
// column. docs/formats/pool-file.md has every key. Only the text is looked at.
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

// Something that runs in the pool already.
struct PoolJob {
  core::cluster::Ask ask;
  std::string node;                  // "": where the policy says
  std::vector<std::uint32_t> cards;  // none: where the policy says
  std::string where;                 // "pool.yaml:7:5"
  std::string name = {};             // "": not said
};

struct PoolFile {
  std::string policy;  // "": not said
  std::vector<core::cluster::NodeSpec> nodes;
  std::vector<PoolJob> jobs;
};

// `path` is for the places in errors. One node at least.
Result<PoolFile> parse_pool_file(std::string_view text, const std::string& path,
                                 const TypeTables& types);

}  // namespace mete::cli
