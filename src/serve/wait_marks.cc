// SPDX-License-Identifier: Apache-2.0
// See wait_marks.h. The number is the FNV-1a hash of the wait's data.
#include "serve/wait_marks.h"

#include "wire/wait_text.h"

namespace mete::serve {

std::uint64_t WaitMarks::mark_of(const core::SharedWait& wait) {
  if (const auto known = marks_.find(wait.get()); known != marks_.end())
    return known->second.second;
  if (marks_.size() >= kMost) marks_.clear();
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : wire::wait_json(*wait))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  marks_.emplace(wait.get(), std::pair(wait, hash));
  return hash;
}

}  // namespace mete::serve
