// SPDX-License-Identifier: Apache-2.0
// See checker.h: an answer can be relied on, and a request without permission is refused. Each
// answer of a turn is compared with what its request asked for and with the job's entry in the
// books. If a turn has several different requests about one job, only the last one is compared.
#include <algorithm>
#include <type_traits>

#include "tests/sim/checker.h"

namespace mete::sim {

using core::JobId;
using core::JobState;

namespace {

// The number of the job of the input; 0: none.
std::uint64_t number_of(const core::Input& input) {
  return std::visit(
      [](const auto& in) -> std::uint64_t {
        if constexpr (requires { requires std::is_same_v<decltype(in.id), JobId>; })
          return in.id.number;
        else
          return 0;
      },
      input);
}

const core::Caller* caller_of(const core::Input& input) {
  return std::visit(
      [](const auto& in) -> const core::Caller* {
        if constexpr (requires { requires std::is_same_v<decltype(in.by), core::Caller>; })
          return &in.by;
        else
          return nullptr;
      },
      input);
}

template <typename What>
const What* only(const core::Input& input) {
  return std::get_if<What>(&input);
}

}  // namespace

void Checker::check_answers(const std::vector<engine::Answer>& answers) {
  for (const engine::Answer& answer : answers) {
    const auto found = asked_.find(answer.ticket);
    if (found == asked_.end())
      judge_.fail("ticket " + std::to_string(answer.ticket) + " was answered twice");
    const core::Input input = found->second;
    asked_.erase(found);
    if (answer.result) {
      if (!world_.engine_->settled()) judge_.fail("answered before the commit");
      check_answer(input, answer);
    } else {
      judge_.saw("refused");
      check_refusal(input, answer.result.error());
    }
  }
  if (world_.engine_->settled() && !asked_.empty()) judge_.fail("a request was not answered");
}

void Checker::check_refusal(const core::Input& input, const Error& error) const {
  const core::Caller* by = caller_of(input);
  const std::uint64_t number = number_of(input);
  if (by == nullptr || number == 0 || number > known_jobs_) return;
  if (error.code != ErrorCode::kNotFound) return;
  for (const core::Job* job : world_.engine_->state().find_all(JobId{number}))
    if (only<core::Cancel>(input) != nullptr && job->id == only<core::Cancel>(input)->id &&
        (by->admin || by->uid == job->spec->uid))
      judge_.fail("job " + to_string(job->id) + " is there, and its user was told that it is not");
}

void Checker::check_answer(const core::Input& input, const engine::Answer& answer) {
  const JobId id = *answer.result;
  if (const auto* submit = only<core::Submit>(input)) {
    check_submit(*submit, id);
    return;
  }
  const core::Caller* by = caller_of(input);
  const auto first = world_.books_.jobs().lower_bound(JobId{id.number});
  const bool known =
      id.number != 0 && first != world_.books_.jobs().end() && first->first.number == id.number;
  if (by != nullptr && !by->admin) {
    const bool own = known && first->second.spec->uid == by->uid;
    const bool own_reservation = only<core::Unreserve>(input) != nullptr && by->user != "nobody";
    if (!own && !own_reservation) judge_.fail("a user did what only others may do");
  }
  if (known) {
    for (const JobId changed : answer.changed)
      if (changed.number != id.number) judge_.fail("a change of one job changed another");
  }
  if (is_the_only_one_about(input)) check_change(input, id);
}

void Checker::check_submit(const core::Submit& submit, JobId id) const {
  const std::string name = "job " + to_string(id);
  const std::vector<const core::Job*> jobs = follower_.find_all(id);
  if (jobs.empty()) judge_.fail(name + " was acknowledged and is not in the log");
  for (const core::Job* job : jobs) {
    if (*job->spec != submit.spec) judge_.fail(name + " is not what was asked for");
    if (!submit.wait && job->state == JobState::kPending && job->attempt == 1)
      judge_.fail(name + " waits, in spite of --no-wait");
  }
  if (submit.spec.priority > 0 && !submit.admin) judge_.fail(name + " has a priority it may not");
}

// Of two different requests about one job in one turn, the last one counts.
bool Checker::is_the_only_one_about(const core::Input& input) const {
  const std::uint64_t number = number_of(input);
  std::size_t about = 0;
  for (const core::Input& other : batch_) {
    if (number == 0)
      about += other.index() == input.index() ? 1 : 0;
    else
      about += number_of(other) == number ? 1 : 0;
  }
  return about == 1;
}

void Checker::check_change(const core::Input& input, JobId id) const {
  const std::string name = "job " + to_string(id);
  const core::State& log = follower_;
  for (const core::Job* job : log.find_all(id)) {
    const bool over = job->state == JobState::kEnded;
    if (only<core::Cancel>(input) != nullptr && !over &&
        (job->state != JobState::kStopping || job->requeue))
      judge_.fail(name + " was cancelled, and goes on");
    if (only<core::Ended>(input) != nullptr && !over)
      judge_.fail("the end of " + name + " was acknowledged, and is none");
    if (only<core::Hold>(input) != nullptr && job->state == JobState::kPending && !job->held)
      judge_.fail(name + " was to be held, and is not");
    if (only<core::Release>(input) != nullptr && job->held)
      judge_.fail(name + " was released, and is still held");
    if (only<core::Requeue>(input) != nullptr && over && job->outcome != core::Outcome::kDeadline &&
        job->outcome != core::Outcome::kDependency)
      judge_.fail(name + " was to run again, and has ended");
    if (const auto* priority = only<core::SetPriority>(input);
        priority != nullptr && !over && job->priority != priority->priority)
      judge_.fail(name + " has not the priority that it was given");
  }
  if (const auto* quota = only<core::SetQuota>(input)) {
    const auto found = log.quotas().find(quota->user);
    if ((found == log.quotas().end() ? core::Quota{} : found->second) != quota->quota)
      judge_.fail("a quota was set, and is another");
  }
  if (const auto* drain = only<core::Drain>(input)) {
    for (const core::PoolCard& card : world_.cards_.now().cards)
      if ((drain->card == card.card.uuid || drain->card == std::to_string(card.card.index)) &&
          log.drained().contains(card.card.uuid) != drain->drain)
        judge_.fail("a card was drained or undrained, and is not");
  }
  if (const auto* reserve = only<core::Reserve>(input)) {
    const auto& list = world_.books_.reservations();
    const bool there = std::any_of(list.begin(), list.end(), [&](const auto& each) {
      return each.second.user == reserve->user && each.second.from == reserve->from &&
             each.second.until == reserve->until;
    });
    const bool taken_back = std::any_of(batch_.begin(), batch_.end(), [](const auto& other) {
      return only<core::Unreserve>(other) != nullptr;
    });
    if (!there && !taken_back && reserve->until > world_.engine_->moment().now)
      judge_.fail("a reservation was acknowledged, and is not there");
  }
}

}  // namespace mete::sim
