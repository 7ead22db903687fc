// SPDX-License-Identifier: Apache-2.0
// Counts per user: unfinished jobs, and how much of the state and of the disk the user's jobs take.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/bytes.h"
#include "core/job/account.h"
#include "core/job/job.h"

namespace mete::core {

struct UserBooks {
  std::size_t unfinished = 0;
  Bytes disk;     // the logs of ended jobs that are remembered
  Account known;  // all jobs that are not forgotten
  Account open;   // jobs that have not ended
};

class Users {
 public:
  // All zero for a user without jobs. The reference stays valid and follows later changes.
  const UserBooks& of(const std::string& user) const;

  // Uses the present state of the job: an unfinished job is counted, the logs of an ended job are
  // added to the disk. The job must be unchanged between enter() and leave().
  void enter(const Job& job);
  void leave(const Job& job);

  // hold(): a job is submitted, or restored from a snapshot; drop(): it is forgotten. A held job is
  // also in `open` unless it has ended: close(), reopen().
  void hold(const Job& job);
  void close(const Job& job);
  void reopen(const Job& job);
  void drop(const Job& job);

 private:
  std::map<std::string, UserBooks> users_;  // entries are never removed
};

}  // namespace mete::core
