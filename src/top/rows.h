// SPDX-License-Identifier: Apache-2.0
// What the list of a screen is made of: jobs, their processes, what runs outside mete, who waits.
// Pure: a snapshot, a filter and an order in, rows out. Rows point into the snapshot.
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
    kJob,      // that the reader may look at: runs, is parked, waits
    kOther,    // somebody's job of which only bytes are known
    kProcess,  // of the job above it
    kForeign,  // a process, or what another daemon has claimed, outside mete
  };
  Kind kind = Kind::kSection;
  std::string key;                           // the same thing has the same key in the next snapshot
  std::string title;                         // of a section
  const wire::Snapshot::Job* job = nullptr;  // also of a process
  const wire::Snapshot::Process* process = nullptr;
  // Of a process, a sign for each level of the tree down to it: '|' others follow on that level,
  // ' ' none; the last is '+', or '`' where no other of the same parent follows.
  std::string branch = {};
  const wire::CardView* card = nullptr;  // of kForeign; of kOther the first
  const wire::CardView::Foreign* foreign = nullptr;
  const wire::CardView::JobShare* share = nullptr;  // of kOther, on its first card
  // On all cards. Absent: not known, or nothing of the kind.
  std::optional<Bytes> used = {};
  std::optional<Bytes> granted = {};
  std::optional<unsigned> utilisation_pct = {};
  std::vector<std::uint32_t> cards = {};
  std::optional<std::uint64_t> place = {};  // in line
  bool waits = false;
};

struct Wanted {
  Sort sort = Sort::kId;
  bool reverse = false;
  bool tree = false;
  std::string filter;  // words that must all be in what is shown of a row, in any case
};

std::vector<Row> rows_of(const wire::Snapshot& snapshot, const Wanted& wanted);

// "alice", "train", the command: what filters look at, and details begin with.
std::string user_of(const Row& row);
std::string name_of(const Row& row);
std::string state_of(const Row& row);
std::string command_of(const Row& row);
// Seconds that it waits or runs; absent: not known.
std::optional<std::int64_t> seconds_of(const Row& row, WallTime now);
std::optional<WallTime> idle_since(const Row& row);

}  // namespace mete::top
