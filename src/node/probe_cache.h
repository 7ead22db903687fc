// SPDX-License-Identifier: Apache-2.0
// The text file that caches the cost of contexts. First line "mete-context-cost 1", then one line
// per key:
//   GPU-8d0f… H200 580.159.04 plain 543162368 549031936
// docs/formats/context-cost.md. Anything else makes the whole file count as empty: measuring again
// is cheaper than guessing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/probe.h"

namespace mete::node {

struct CacheEntry {
  ContextKey key;
  ContextCost cost;
};

// Corrupt text is an error; an empty list is a file with its first line only.
Result<std::vector<CacheEntry>> parse_cache(std::string_view text);
std::string format_cache(const std::vector<CacheEntry>& entries);

std::optional<ContextCost> find_cached(const std::string& path, const ContextKey& key);

// Keeps the other keys, at most 64 in all, the newest last. If two processes write at once, one of
// the two entries may be lost, and is then measured again.
Result<void> store_cached(const std::string& path, const ContextKey& key, const ContextCost& cost);

}  // namespace mete::node
