// SPDX-License-Identifier: Apache-2.0
// See users.h.
#include "core/job/users.h"

namespace mete::core {

const UserBooks& Users::of(const std::string& user) const {
  static const UserBooks kNone;
  const auto found = users_.find(user);
  return found == users_.end() ? kNone : found->second;
}

void Users::enter(const Job& job) {
  UserBooks& user = users_[job.spec->user];
  if (job.state != JobState::kEnded)
    ++user.unfinished;
  else if (job.exit && job.exit->log_bytes)
    user.disk = Bytes::from_bytes(user.disk.count() + job.exit->log_bytes->count());
}

void Users::leave(const Job& job) {
  UserBooks& user = users_[job.spec->user];
  if (job.state != JobState::kEnded)
    --user.unfinished;
  else if (job.exit && job.exit->log_bytes)
    user.disk = Bytes::from_bytes(user.disk.count() - job.exit->log_bytes->count());
}

void Users::hold(const Job& job) {
  UserBooks& user = users_[job.spec->user];
  user.known.hold(job);
  if (job.state != JobState::kEnded) user.open.hold(job);
}

void Users::close(const Job& job) { users_.at(job.spec->user).open.drop(job); }
void Users::reopen(const Job& job) { users_.at(job.spec->user).open.hold(job); }
void Users::drop(const Job& job) { users_.at(job.spec->user).known.drop(job); }

}  // namespace mete::core
