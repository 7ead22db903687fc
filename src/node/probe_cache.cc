// SPDX-License-Identifier: Apache-2.0
#include "node/probe_cache.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace mete::node {
namespace {

constexpr std::string_view kHead = "mete-context-cost 1";
constexpr std::size_t kMostEntries = 64;

}  // namespace

Result<std::vector<CacheEntry>> parse_cache(std::string_view text) {
  std::vector<std::string_view> lines = base::split(text, '\n');
  // The last line ends with a newline, otherwise the file was truncated.
  if (lines.size() < 2 || lines.front() != kHead || !lines.back().empty())
    return Error::corrupt("not a cache of context costs");
  std::vector<CacheEntry> entries;
  for (const std::string_view line : std::vector(lines.begin() + 1, lines.end() - 1)) {
    const std::vector<std::string_view> words = base::split(line, ' ');
    if (words.size() != 6 || words[0].empty() || words[1].empty() || words[2].empty() ||
        (words[3] != "mps" && words[3] != "plain"))
      return Error::corrupt("a cache of context costs with the line " + base::quote(line));
    const Result<std::uint64_t> first = base::parse_uint(words[4]),
                                more = base::parse_uint(words[5]);
    if (!first || !more || *first == 0)
      return Error::corrupt("a cache of context costs with the line " + base::quote(line));
    entries.push_back(
        {{std::string(words[0]), std::string(words[1]), std::string(words[2]), words[3] == "mps"},
         {Bytes::from_bytes(*first), Bytes::from_bytes(*more)}});
  }
  return entries;
}

std::string format_cache(const std::vector<CacheEntry>& entries) {
  std::string text = std::string(kHead) + "\n";
  for (const CacheEntry& entry : entries)
    text += entry.key.uuid + " " + entry.key.type + " " + entry.key.driver +
            (entry.key.mps ? " mps " : " plain ") + std::to_string(entry.cost.first.count()) + " " +
            std::to_string(entry.cost.more.count()) + "\n";
  return text;
}

std::optional<ContextCost> find_cached(const std::string& path, const ContextKey& key) {
  Result<std::string> text = base::read_all(path);
  if (!text) return std::nullopt;
  Result<std::vector<CacheEntry>> entries = parse_cache(*text);
  if (!entries) return std::nullopt;
  for (const CacheEntry& entry : *entries)
    if (entry.key == key) return entry.cost;
  return std::nullopt;
}

Result<void> store_cached(const std::string& path, const ContextKey& key, const ContextCost& cost) {
  std::vector<CacheEntry> entries;
  if (Result<std::string> text = base::read_all(path); text)
    if (Result<std::vector<CacheEntry>> old = parse_cache(*text); old) entries = std::move(*old);
  std::erase_if(entries, [&](const CacheEntry& entry) { return entry.key == key; });
  if (entries.size() >= kMostEntries) entries.erase(entries.begin());
  entries.push_back({key, cost});
  if (Result<void> made = base::make_directories(base::parent_path(path)); !made) return made;
  return base::write_atomic(path, format_cache(entries));
}

}  // namespace mete::node
