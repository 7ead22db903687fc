// SPDX-License-Identifier: Apache-2.0
// See explain.h. Most of an explanation comes from elsewhere: State::wait_of(), forecast() and
// changes(). Added here is, for each card, what the job finds there when it is considered in a pass
// (cards_for). try_out() submits a job to the state, explains it and takes it back.
#include "core/explain/explain.h"

#include <algorithm>

#include "core/explain/forecast.h"
#include "core/place/match.h"
#include "core/place/need.h"
#include "core/place/room.h"
#include "core/place/wait_for.h"

namespace mete::core {

namespace {

using OnCard = Explanation::OnCard;

// The machine as the job finds it in a pass: with the reservations of others, and what is kept for
// the first in the queue, if that is another job.
Pool found_by(const Sight& sight, const Job& job, const Kind& kind) {
  Pool pool = sight.input.pool;
  const PassResult& result = sight.result;
  if (result.held_for && *result.held_for != job.id)
    for (std::size_t i = 0; i < pool.cards.size(); ++i)
      pool.cards[i].kept = result.left.cards[i].kept;
  return seen_by(sight.input, pool, kind);
}

std::vector<Explanation::CardHolder> holders_of(const PoolCard& card, const PassInput& input) {
  std::vector<Explanation::CardHolder> list;
  for (const Holder& holder : card.holders) {
    Explanation::CardHolder& one = list.emplace_back();
    one = {holder.job, holder.user, holder.bytes, holder.whole, {}, false};
    for (const Running& running : input.running)
      if (running.id == holder.job) {
        one.ends = running.ends;
        one.by_limit = running.by_limit;
      }
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return list;
}

// Without reservations, which have their own list.
std::vector<Explanation::CardOutside> outside_of(const PoolCard& card) {
  std::vector<Explanation::CardOutside> list;
  for (const std::vector<Outside>* each : {&card.claimed, &card.foreign})
    for (const Outside& outside : *each)
      if (!outside.bytes.is_zero()) list.push_back(outside);
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return list;
}

std::vector<Explanation::CardReserved> reserved_on(const PoolCard& card, const PassInput& input,
                                                   const Kind& kind) {
  std::vector<Explanation::CardReserved> list;
  const std::optional<WallTime> ends = ends_if_started(input, kind);
  for (const Reservation& reservation : input.reservations) {
    if (!in_the_way(reservation, kind.user, input.now, ends)) continue;
    for (const GrantedCard& reserved : reservation.cards)
      if (reserved.uuid == card.card.uuid)
        list.push_back({reservation.user, reservation.from, reservation.until, reserved.bytes});
  }
  return list;
}

std::vector<OnCard> cards_for(const Sight& sight, const Job& job) {
  const Kind kind = kind_of(job);
  const Pool pool = found_by(sight, job, kind);
  const Result<Needs> needs = needs_of(pool, kind.request);
  const std::vector<Match> where =
      kind.request.where ? matches(pool, *kind.request.where) : std::vector<Match>();
  std::vector<OnCard> list;
  for (std::size_t at = 0; at < pool.cards.size(); ++at) {
    const PoolCard& card = pool.cards[at];
    OnCard& on = list.emplace_back();
    on.index = card.card.index;
    on.uuid = card.card.uuid;
    on.type = card.card.type;
    if (card.drained) on.state = Explanation::CardState::kDrained;
    if (card.lost) on.state = Explanation::CardState::kLost;
    on.holders = holders_of(card, sight.input);
    on.outside = outside_of(sight.input.pool.cards[at]);
    on.reserved = reserved_on(card, sight.input, kind);
    const Need* need = nullptr;
    if (needs)
      for (const Need& each : needs->cards)
        if (each.at == at) need = &each;
    if (need == nullptr) {
      on.wait = not_asked_for(card, where.empty() ? Match{} : where[at], kind.request);
      continue;
    }
    const Room room = room_on(card, *need);
    on.needs = need->whole ? card.card.capacity : need->bytes;
    if (!card.lost && !card.stale) on.free = room.free;
    on.wait = wait_on(card, *need, room);
  }
  return list;
}

}  // namespace

Explanation explain(const State& state, const Moment& moment, Sight& sight, const Job& job) {
  Explanation why;
  why.id = job.id;
  why.state = job.state;
  why.started = job.started;
  why.ended = job.ended;
  why.outcome = job.outcome;
  if (std::optional<Wait> wait = state.wait_to_return(job, moment)) why.wait = *std::move(wait);
  if (job.state == JobState::kParked && job.park->lost) why.lost = job.park->why;
  if (job.state != JobState::kPending) return why;
  why.waiting_s =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, moment.now.ms - job.submitted.ms)) /
      1000;
  why.wait = state.wait_of(job, moment, sight);
  const std::vector<JobId> order = in_order(sight.input);
  const auto place = std::find(order.begin(), order.end(), job.id);
  if (place != order.end()) {
    why.place = static_cast<std::uint64_t>(place - order.begin()) + 1;
    why.in_line = order.size();
  }
  why.forecast = forecast(state, sight, job.id);
  // Cards do not explain a job without a card.
  if (request_of(job).gpu != no_gpu()) why.cards = cards_for(sight, job);
  why.changes = changes(state, moment, sight, job);
  return why;
}

namespace {

Trial look_at_last(const State& state, const Moment& moment) {
  const Job& job = state.jobs().rbegin()->second;
  Sight sight = state.look(moment);
  Trial trial;
  for (const JobGranted& start : sight.result.start)
    if (start.id == job.id) trial.grant = start.cards;
  if (const auto room = sight.result.waits_for.find(job.id); room != sight.result.waits_for.end())
    for (const JobId id : room->second)
      if (!is_being_parked(*state.find(id))) trial.parked.push_back(id);
  if (!trial.grant) trial.why = explain(state, moment, sight, job);
  return trial;
}

}  // namespace

Result<Trial> try_out(State& state, const Moment& moment, const Submit& submit) {
  const Result<std::vector<Happened>> happened = state.decide(submit, moment);
  if (!happened) return happened.error();
  const auto& submitted = std::get<JobSubmitted>(happened->front());
  // The jobs of an array are equal, so one is enough: creating fifty thousand would take long.
  JobSpec spec = submit.spec;
  spec.key.clear();
  if (spec.array) {
    const std::uint32_t first = spec.array->ranges.front().first;
    spec.array->ranges = {{first, first}};
  }
  state.apply({state.last_seq() + 1, moment.now,
               JobSubmitted{submitted.id, std::move(spec), submitted.runner}});
  const Trial trial = look_at_last(state, moment);
  state.take_back_last();
  return trial;
}

}  // namespace mete::core
