// SPDX-License-Identifier: Apache-2.0
// The list of a screen: jobs, their processes, what runs outside mete, waiting jobs. Pure: a
// snapshot, a filter and an order in, rows out. Rows point into the snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/snapshot.h"

namespace mete::top {

enum class Sort { kId, kUser, kName, kState, kCard, kMemory, kUtil, kIdle, kTime };
inline constexpr std::size_t kSorts = 9;
std::string_view title_of(Sort sort);  // of its column: "ID", "USER"

struct Row {
  enum class Kind {
    kSection,  // a heading, never selected
    kJob,      // visible to this user: runs, is parked, waits
    kOther,    // another user's job of which only bytes are known
    kProcess,  // of the job above it
    kForeign,  // a process, or a claim of another daemon, outside mete
  };
  Kind kind = Kind::kSection;
  std::string key;                           // the same thing has the same key in the next snapshot
  std::string title;                         // of a section
  const wire::Snapshot::Job* job = nullptr;  // also of a process
  const wire::Snapshot::Process* process = nullptr;
  // For a process, a sign for each level of the tree down to it: '|' others follow on that level, '
  // ' none; the last is '+', or '`' if no other child of the parent follows.
  std::string branch = {};
  const wire::CardView* card = nullptr;  // of kForeign; for kOther the first
  const wire::CardView::Foreign* foreign = nullptr;
  const wire::CardView::JobShare* share = nullptr;  // of kOther, on its first card
  // On all cards. Absent: unknown, or not applicable.
  std::optional<Bytes> used = {};
  std::optional<Bytes> granted = {};
  std::optional<unsigned> utilisation_pct = {};
  std::vector<std::uint32_t> cards = {};
  std::optional<std::uint64_t> place = {};  // in the queue
  bool waits = false;
};

struct Wanted {
  Sort sort = Sort::kId;
  bool reverse = false;
  bool tree = false;
  std::string filter;  // words that must all occur in the shown text of a row, ignoring case
};

std::vector<Row> rows_of(const wire::Snapshot& snapshot, const Wanted& wanted);

// "alice", "train", the command: the text for filters, and the beginning of details.
std::string user_of(const Row& row);
std::string name_of(const Row& row);
std::string state_of(const Row& row);
std::string command_of(const Row& row);
// Seconds that it waits or runs; absent: unknown.
std::optional<std::int64_t> seconds_of(const Row& row, WallTime now);
std::optional<WallTime> idle_since(const Row& row);

}  // namespace mete::top
