// SPDX-License-Identifier: Apache-2.0
// See state.h: which ended jobs are remembered. So many of each user, the latest ones: what one
// user does makes nobody else's jobs forgotten. Of an array that is known at all one failure is, so
// that whoever waits for it is not told that all went well; there is one for each array at most, so
// that a user's history has less than twice the jobs that it should, and one for each array that
// has not ended.
#include <algorithm>

#include "core/job/state.h"

namespace mete::core {

namespace {

bool failed(const Job& job) { return job.outcome != Outcome::kOk; }

}  // namespace

template <typename Change>
void State::change_array(const Job& job, Change change) {
  Ends& array = arrays_[job.id.number];
  std::size_t& known = users_[job.spec->user].arrays_known;
  known -= array.keeps_one() ? 1 : 0;
  change(array);
  known += array.keeps_one() ? 1 : 0;
}

void State::into_history(const Job& job) {
  ended_.push_back(job.id);
  UserState& user = users_[job.spec->user];
  ++user.ended;
  if (job.exit && job.exit->log_bytes)
    user.disk = Bytes::from_bytes(user.disk.count() + job.exit->log_bytes->count());
  if (job.id.element && failed(job)) change_array(job, [](Ends& array) { ++array.known_failed; });
}

// All but its place in ended_.
void State::out_of_history(const Job& job) {
  UserState& user = users_[job.spec->user];
  --user.ended;
  if (job.exit && job.exit->log_bytes)
    user.disk = Bytes::from_bytes(user.disk.count() - job.exit->log_bytes->count());
  if (job.id.element && failed(job)) change_array(job, [](Ends& array) { --array.known_failed; });
}

bool State::may_forget(const Job& job) const {
  if (requeued_later_.contains(job.id)) return false;
  if (!job.id.element || !failed(job)) return true;
  const Ends& array = arrays_.at(job.id.number);
  return !array.keeps_one() || array.known_failed > 1;
}

void State::forget(const Job& job) {
  out_of_history(job);
  users_.at(job.spec->user).known.drop(job);
  if (job.id.element) {
    change_array(job, [](Ends& array) { --array.known; });
    if (arrays_.at(job.id.number).known == 0) arrays_.erase(job.id.number);
  }
  forgotten_.push_back(job);
  const JobId id = forgotten_.back().id;
  jobs_.erase(id);
  const JobSpec& spec = *forgotten_.back().spec;
  if (!spec.key.empty() && first_of({id.number}) == nullptr) keys_.erase({spec.uid, spec.key});
}

void State::forget_old(const std::string& of) {
  const std::string name = of;  // is in a job that may go
  const UserState& user = users_.at(name);
  // In batches: the list is a vector of everybody's. What has to stay does not count, so that a
  // batch always finds enough.
  const std::size_t kept = rules_.ended_kept + user.arrays_known;
  if (user.ended < kept + std::max<std::size_t>(100, rules_.ended_kept / 10)) return;
  std::size_t spare = user.ended - kept;
  std::erase_if(ended_, [&](JobId id) {
    if (spare == 0) return false;
    const Job& job = jobs_.at(id);
    if (job.spec->user != name || !may_forget(job)) return false;
    --spare;
    forget(job);
    return true;
  });
}

// The oldest of the user's ended jobs go when all of them take more than they may. More than
// needed, for the same reason as above.
void State::forget_for_room(const std::string& of) {
  const std::string name = of;  // is in a job that may go
  const UserState& user = users_.at(name);
  if (user.known.bytes() <= rules_.user_bytes || user.ended == 0) return;
  const std::uint64_t most = rules_.user_bytes - rules_.user_bytes / 10;
  std::erase_if(ended_, [&](JobId id) {
    if (user.known.bytes() <= most) return false;
    const Job& job = jobs_.at(id);
    if (job.spec->user != name || !may_forget(job)) return false;
    forget(job);
    return true;
  });
}

}  // namespace mete::core
