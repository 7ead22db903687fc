// SPDX-License-Identifier: Apache-2.0
// See history.h.
#include "core/job/history.h"

#include <algorithm>

#include "base/assert.h"

namespace mete::core {

template <typename Change>
void History::change_array(const Job& job, Change change) {
  Ends& array = arrays_[job.id.number];
  std::size_t& kept = users_[job.spec->user].kept_failures;
  kept -= array.keeps_one() ? 1 : 0;
  change(array);
  kept += array.keeps_one() ? 1 : 0;
}

void History::enter(const Job& job) {
  ended_.push_back(job.id);
  ++users_[job.spec->user].ended;
  if (job.id.element && has_failed(job))
    change_array(job, [](Ends& array) { ++array.known_failed; });
}

void History::leave(const Job& job) {
  std::erase(ended_, job.id);
  count_out(job);
}

void History::count_out(const Job& job) {
  --users_[job.spec->user].ended;
  if (job.id.element && has_failed(job))
    change_array(job, [](Ends& array) { --array.known_failed; });
}

const Ends* History::array(std::uint64_t number) const {
  const auto found = arrays_.find(number);
  return found == arrays_.end() ? nullptr : &found->second;
}

void History::open(JobId id) {
  Ends& array = arrays_[id.number];
  ++array.open;
  ++array.known;
}

const Ends& History::close(const Job& job) {
  Ends& array = arrays_[job.id.number];
  METE_ASSERT(array.open > 0);
  --array.open;
  if (has_failed(job)) ++array.failed;
  return array;
}

void History::reopen(const Job& job) {
  Ends& array = arrays_[job.id.number];
  ++array.open;
  if (has_failed(job) && array.failed > 0) --array.failed;
}

void History::restore_failed(std::uint64_t number, std::uint64_t failed) {
  arrays_[number].failed = failed;
}

std::size_t History::too_many(const std::string& user, std::size_t kept) const {
  const Tally& tally = users_.at(user);
  const std::size_t all = kept + tally.kept_failures;
  return tally.ended < all + std::max<std::size_t>(100, kept / 10) ? 0 : tally.ended - all;
}

bool History::has_ended_jobs(const std::string& user) const {
  const auto found = users_.find(user);
  return found != users_.end() && found->second.ended > 0;
}

bool History::may_forget(const Job& job) const {
  if (requeued_later_.contains(job.id)) return false;
  if (!job.id.element || !has_failed(job)) return true;
  const Ends& array = arrays_.at(job.id.number);
  return !array.keeps_one() || array.known_failed > 1;
}

void History::forget(const Job& job) {
  count_out(job);
  if (job.id.element) {
    change_array(job, [](Ends& array) { --array.known; });
    if (arrays_.at(job.id.number).known == 0) arrays_.erase(job.id.number);
  }
  forgotten_.push_back(job);
}

void History::requeued(JobId id) {
  if (const auto known = requeued_later_.find(id); known != requeued_later_.end())
    if (--known->second == 0) requeued_later_.erase(known);
}

}  // namespace mete::core
