// SPDX-License-Identifier: Apache-2.0
// Saves the intact part of a damaged store: the newest whole snapshot, every whole event after it
// up to the first one that is not, and every whole content. The old files stay beside it, as
// meted.db.damaged-TIME with its log. No process may have the store open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace mete::store {

struct Repaired {
  bool was_whole = false;  // nothing was wrong, and nothing was done
  std::string why;         // what was damaged
  std::string copy;        // where the damaged database is now; "": there was none
  std::uint64_t kept = 0;  // the last event of the repaired store
  std::uint64_t lost = 0;  // recorded events after it
  // Jobs that were submitted in those lost events that can still be read.
  std::vector<std::string> lost_jobs;
  std::uint64_t lost_contents = 0;  // environments, scripts, commands that are not whole
};

// For the event store.repaired, which follows the last one that is kept if others are lost.
struct RepairedAt {
  std::int64_t ms = 0;
  std::uint64_t last_job = 0;  // the highest job number of which the caller has found anything
};

// `time` is part of the copy's name. busy: a daemon has it. not_found: there is no store.
Result<Repaired> repair(const std::string& folder, const std::string& time, RepairedAt at = {});

// Reads every content once; "": all are whole. No process may have the database open.
std::string damage_in_contents(const std::string& database);

// The log with checksums that match its bytes, so that SQLite reads all of it: the checksums of our
// rows find the damage. "": it holds nothing.
std::string with_new_checksums(std::string log);

}  // namespace mete::store
