// SPDX-License-Identifier: Apache-2.0
// What is known of each user: how many unfinished jobs, and how much of the state and of the disk
// the user's jobs take.
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

  // By the state that the job has now: an unfinished job counts, the logs of an ended one are
  // added to the disk. Each leave() finds the job as enter() found it.
  void enter(const Job& job);
  void leave(const Job& job);

  // The bytes of a job are known from hold() (it is submitted, or restored from a snapshot) until
  // drop() (it is forgotten), and open unless it has ended: close(), reopen().
  void hold(const Job& job);
  void close(const Job& job);
  void reopen(const Job& job);
  void drop(const Job& job);

 private:
  std::map<std::string, UserBooks> users_;  // entries are never removed
};

}  // namespace mete::core
