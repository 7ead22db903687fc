// SPDX-License-Identifier: Apache-2.0
// See change.h. A Question (question.h) answers whether the job would start after a change. Changes
// of the request are listed from the smallest on, and one pass finds the first that works
// (try_requests, try_times). Other changes (jobs that end, priority, quota, reservations, drained
// cards) need a pass for each attempt, so most_walks() bounds them.
#include "core/explain/change.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "core/explain/question.h"
#include "core/place/room.h"

namespace mete::core {

namespace {

using Kinds = std::vector<Kind>;
using Found = std::vector<Change>;

constexpr std::uint64_t kMinute = 60;
constexpr std::uint64_t kHour = 3'600;
constexpr std::uint64_t kDay = 86'400;
constexpr std::uint64_t kLongestTime = 60 * kDay;
constexpr std::size_t kMostTogether = 8;  // jobs that would all have to end

// ---- the request -------------------------------------------------------------------------------

// As users write it: a share of one card has no count.
CardCount count_of(std::uint32_t cards, const Memory& memory) {
  if (cards == 1 && !std::holds_alternative<WholeCard>(memory)) return {CardCount::Kind::kOne, 0};
  return {CardCount::Kind::kNumber, cards};
}

std::vector<Memory> smaller_shares(const Memory& memory) {
  std::vector<Memory> list;
  if (const auto* size = std::get_if<Size>(&memory)) {
    const std::uint64_t step = kShareStep.count();
    for (std::uint64_t n = (size->bytes.count() - 1) / step; n > 0; --n)
      list.emplace_back(Size{Bytes::from_bytes(n * step)});
    return list;
  }
  std::uint32_t milli = 1000;
  if (const auto* fraction = std::get_if<Fraction>(&memory))
    milli = (fraction->milli - 1) / kShareStepMilli * kShareStepMilli;
  for (; milli > 0; milli -= kShareStepMilli) list.emplace_back(Fraction{milli});
  return list;
}

// What --devices alone means, as a request.
GpuRequest gpu_of(const Request& request) {
  if (request.gpu) return *request.gpu;
  return whole_cards(static_cast<std::uint32_t>(request.devices.size()));
}

std::vector<Request> with_less_memory(const Request& request) {
  std::vector<Request> list;
  const GpuRequest gpu = gpu_of(request);
  for (const Memory& memory : smaller_shares(gpu.memory)) {
    Request& less = list.emplace_back(request);
    less.gpu = GpuRequest{gpu.cards, memory};
    // On each of the named cards, or on as many as before.
    if (!request.devices.empty())
      less.gpu->cards = {CardCount::Kind::kOne, 0};
    else if (gpu.cards.kind == CardCount::Kind::kNumber)
      less.gpu->cards = count_of(gpu.cards.number, memory);
  }
  return list;
}

std::vector<Request> with_fewer_cards(const Request& request, std::size_t cards_here) {
  std::vector<Request> list;
  if (!request.devices.empty()) return list;
  const GpuRequest gpu = gpu_of(request);
  std::uint32_t cards = 1;
  if (gpu.cards.kind == CardCount::Kind::kNumber) cards = gpu.cards.number;
  if (gpu.cards.kind == CardCount::Kind::kAll) cards = static_cast<std::uint32_t>(cards_here);
  while (cards > 1) {
    Request& less = list.emplace_back(request);
    less.gpu = GpuRequest{count_of(--cards, gpu.memory), gpu.memory};
  }
  return list;
}

std::vector<Request> of_other_types(const Request& request, const Pool& pool) {
  std::vector<Request> list;
  if (!request.gpu_type || !request.devices.empty()) return list;
  const std::string asked = base::to_lower(*request.gpu_type);
  Bytes size;
  for (const PoolCard& card : pool.cards)
    if (base::to_lower(card.card.type) == asked) size = std::max(size, card.card.capacity);
  std::set<std::pair<Bytes, std::string>> types;
  for (const PoolCard& card : pool.cards) {
    const Bytes capacity = card.card.capacity;
    if (base::to_lower(card.card.type) != asked)
      types.emplace(std::max(capacity.minus(size), size.minus(capacity)), card.card.type);
  }
  for (const auto& [difference, type] : types) list.emplace_back(request).gpu_type = type;
  return list;
}

std::vector<Request> on_any_cards(const Request& request) {
  std::vector<Request> list;
  if (request.devices.empty()) return list;
  Request& any = list.emplace_back(request);
  const GpuRequest gpu = gpu_of(request);
  any.gpu = GpuRequest{count_of(static_cast<std::uint32_t>(request.devices.size()), gpu.memory),
                       gpu.memory};
  any.devices.clear();
  return list;
}

std::vector<Request> wherever(const Request& request) {
  std::vector<Request> list;
  if (request.where) list.emplace_back(request).where.reset();
  return list;
}

std::vector<Request> with_fewer_cpus(const Request& request) {
  std::vector<Request> list;
  for (unsigned cpus = request.cpus.value_or(1); cpus > 1;)
    list.emplace_back(request).cpus = --cpus;
  return list;
}

Change asking(Change::Kind kind, const Request& was, const Request& now) {
  Change change{kind, "", ""};
  switch (kind) {
    case Change::Kind::kType:
      change.argument = "--gpu-type " + *now.gpu_type;
      change.text = "instead of " + *was.gpu_type;
      break;
    case Change::Kind::kDevices:
      change.argument = "--gpu " + to_string(*now.gpu);
      change.text = "on any cards, without --devices";
      break;
    case Change::Kind::kWhere:
      change.text = "without --where " + base::quote(was.where->text());
      break;
    case Change::Kind::kCpus:
      change.argument = "--cpus " + std::to_string(*now.cpus);
      change.text = "instead of " + std::to_string(*was.cpus);
      break;
    default:
      change.argument = "--gpu " + to_string(*now.gpu);
      change.text = "instead of " + as_written(gpu_of(was));
  }
  change.request = now;
  return change;
}

void try_requests(const Question& question, Change::Kind kind, const std::vector<Request>& requests,
                  Found& found) {
  Kinds kinds;
  for (const Request& request : requests) kinds.emplace_back(question.kind()).request = request;
  if (kinds.empty()) return;
  if (const std::optional<std::size_t> at = question.first_as(kinds))
    found.push_back(asking(kind, question.kind().request, requests[*at]));
}

// ---- --time ------------------------------------------------------------------------------------

std::uint64_t shorter(std::uint64_t seconds) {
  const auto below = [seconds](std::uint64_t step) { return (seconds - 1) / step * step; };
  if (seconds > 2 * kDay) return std::max(2 * kDay, below(kDay));
  if (seconds > 6 * kHour) return std::max(6 * kHour, below(kHour));
  if (seconds > kHour) return std::max(kHour, below(5 * kMinute));
  return below(kMinute);
}

void try_times(const State& state, const Question& question, const Job& job, Found& found) {
  const std::optional<std::uint64_t> usual = state.estimates().ends_by(*job.spec, 0, 50, 1);
  Kinds kinds;
  std::uint64_t seconds = job.spec->time_s.value_or(kLongestTime + 1);
  while ((seconds = shorter(seconds)) >= std::max<std::uint64_t>(1, usual.value_or(0))) {
    Kind& kind = kinds.emplace_back(question.kind());
    kind.time_s = seconds;
    kind.name.clear();
  }
  const std::optional<std::size_t> at = question.first_as(kinds);
  if (!at) return;
  const std::uint64_t found_s = *kinds[*at].time_s;
  Change change{Change::Kind::kTime, "", ""};
  change.argument = "--time " + (found_s % kHour == 0 ? std::to_string(found_s / kHour) + "h"
                                                      : std::to_string(found_s / kMinute) + "m");
  change.text = "it would be over before others need the room";
  change.time_s = found_s;
  found.push_back(std::move(change));
}

// ---- other jobs --------------------------------------------------------------------------------

std::string name_of(const State& state, JobId id) {
  const Job& job = *state.find(id);
  return "job " + to_string(id) + " of " + job.spec->user;
}

Change ended(const State& state, std::vector<JobId> jobs) {
  Change change{Change::Kind::kJobEnds, "", ""};
  std::vector<std::string> names;
  Bytes bytes;
  for (const JobId id : jobs) {
    names.push_back(name_of(state, id));
    bytes = bytes.plus(held_of(state.find(id)->grant).bytes);
  }
  change.text = base::join(names, " and ") + " ended";
  if (!bytes.is_zero())
    change.text +=
        std::string(", which ") + (jobs.size() == 1 ? "holds " : "hold ") + to_string(bytes);
  change.jobs = std::move(jobs);
  return change;
}

// Jobs whose end would make room, by placement without the queue; reduced to as few as possible.
std::vector<JobId> enough_together(const Question& question) {
  const PassInput& now = question.now();
  const Decision decision =
      place(seen_by(now, now.pool, question.kind()), question.kind().request, now.policy);
  const auto* wait = std::get_if<Wait>(&decision);
  if (wait == nullptr) return {};
  std::vector<JobId> jobs;
  for (const JobId id : wait->holders) {
    if (jobs.size() == kMostTogether) return {};
    jobs.push_back(id);
    if (jobs.size() > 1 && question.without_jobs(jobs)) break;
  }
  if (!question.without_jobs(jobs)) return {};
  // Leave out jobs until none can be left out. With fewer jobs ended, others enter or leave the
  // queue, and a job that was needed before may not be needed now. Jobs added last are needed most.
  for (std::size_t i = 0; i < jobs.size();) {
    std::vector<JobId> fewer = jobs;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!question.without_jobs(fewer)) {
      ++i;
      continue;
    }
    jobs = std::move(fewer);
    i = 0;
  }
  return jobs;
}

// Whether there would be room if no other job waited: only then a pass is worthwhile.
bool room_without(const Question& question, JobId id) {
  const PassInput& now = question.now();
  Pool pool = now.pool;
  remove_grant(pool, id);
  return place_now(seen_by(now, pool, question.kind()), question.kind().request, now.policy)
      .has_value();
}

void try_ends(const State& state, const Question& question, Found& found) {
  std::vector<std::pair<Bytes, JobId>> running;
  for (const Running& each : question.now().running)
    if (room_without(question, each.id)) running.emplace_back(each.held.bytes, each.id);
  std::sort(running.begin(), running.end());
  if (running.size() > question.most_walks()) running.resize(question.most_walks());
  for (const auto& [bytes, id] : running)
    if (question.without_jobs(std::span(&id, 1))) {
      found.push_back(ended(state, {id}));
      return;
    }
  std::vector<JobId> jobs = enough_together(question);
  if (jobs.size() > 1) found.push_back(ended(state, std::move(jobs)));
}

// Tries each used priority and one above it: all priorities between two used ones are equal.
void try_priorities(const State& state, Question& question, const Job& job, Found& found) {
  // Room is being made for the job with its present priority.
  if (job.priority >= kMaxPriority || question.room_is_being_made()) return;
  // A job that does not start as the first in the queue starts nowhere in it, unless its user has a
  // quota: a percentage of a smaller card, which others leave, may stay within the quota.
  const bool within = question.now().quota_of(question.kind().user) == Quota{};
  if (within && !question.with_priority(kMaxPriority)) return;
  std::set<std::int32_t> levels{job.priority + 1};
  for (const auto& [queue, jobs] : question.now().pending->queues()) {
    if (queue.priority <= job.priority) continue;
    levels.insert(queue.priority);
    if (queue.priority < kMaxPriority) levels.insert(queue.priority + 1);
  }
  // Running jobs are parked for jobs above them, and for equal ones if they have grown.
  for (const Running& running : question.now().running) {
    if (running.job == nullptr || !is_parkable(*running.job->spec)) continue;
    if (running.job->priority > job.priority) levels.insert(running.job->priority);
    if (running.job->priority >= job.priority && running.job->priority < kMaxPriority)
      levels.insert(running.job->priority + 1);
  }
  std::size_t walks = 0;
  for (const std::int32_t level : levels) {
    if (++walks > question.most_walks()) return;
    std::optional<std::vector<JobId>> parked = question.with_priority(level);
    if (!parked) continue;
    // A job that is being parked for another is not parked again.
    std::erase_if(*parked, [&](JobId id) { return is_being_parked(*state.find(id)); });
    const std::string number = std::to_string(level);
    Change change{Change::Kind::kPriority, "", "--priority " + number};
    change.text = "instead of " + std::to_string(job.priority);
    if (!parked->empty()) {
      std::vector<std::string> names;
      for (const JobId id : *parked) names.push_back(to_string(id));
      change.text +=
          (names.size() == 1 ? "; job " : "; jobs ") + base::join(names, ", ") + " would be parked";
    }
    change.priority = level;
    change.jobs = *parked;
    found.push_back(std::move(change));
    return;
  }
}

// ---- quotas, reservations, drained cards -------------------------------------------------------

// A limit of a quota, to be raised step by step.
struct Limit {
  std::string what;
  std::optional<Quota> (*raise)(Quota quota, std::uint64_t steps);
  std::string (*amount)(const Quota& quota);
};

const Limit kLimits[] = {
    {"running jobs",
     [](Quota quota, std::uint64_t steps) -> std::optional<Quota> {
       if (!quota.running) return std::nullopt;
       *quota.running += static_cast<std::uint32_t>(steps);
       return quota;
     },
     [](const Quota& quota) { return std::to_string(*quota.running); }},
    {"cards",
     [](Quota quota, std::uint64_t steps) -> std::optional<Quota> {
       if (!quota.cards) return std::nullopt;
       *quota.cards += static_cast<std::uint32_t>(steps);
       return quota;
     },
     [](const Quota& quota) { return std::to_string(*quota.cards); }},
    {"of GPU memory",
     [](Quota quota, std::uint64_t steps) -> std::optional<Quota> {
       if (!quota.bytes) return std::nullopt;
       quota.bytes = quota.bytes->round_down(kQuotaStep).plus(kQuotaStep * steps);
       return quota;
     },
     [](const Quota& quota) { return to_string(*quota.bytes); }},
};

void try_quotas(const Question& question, Found& found) {
  const std::string& user = question.kind().user;
  const Quota now = question.now().quota_of(user);
  if (!question.over_quota()) return;
  for (const Limit& limit : kLimits)
    for (std::uint64_t steps = 1; steps <= question.most_walks(); ++steps) {
      const std::optional<Quota> raised = limit.raise(now, steps);
      if (!raised) break;
      if (!question.with_quota(*raised)) continue;
      Change change{Change::Kind::kQuota, "", ""};
      change.text = "a quota of " + limit.amount(*raised) + " " + limit.what + " for " + user +
                    " instead of " + limit.amount(now);
      change.quota = raised;
      found.push_back(std::move(change));
      break;
    }
}

void try_reservations(const Question& question, Found& found) {
  const PassInput& now = question.now();
  std::vector<std::tuple<Bytes, std::uint64_t, std::string>> list;
  for (const Reservation& each : now.reservations)
    if (in_the_way(each, question.kind().user, now.now, ends_if_started(now, question.kind())))
      list.emplace_back(held_of(each.cards).bytes, each.id, each.user);
  std::sort(list.begin(), list.end());
  if (list.size() > question.most_walks()) list.resize(question.most_walks());
  for (const auto& [bytes, id, user] : list) {
    if (!question.without_reservation(id)) continue;
    Change change{Change::Kind::kReservation, "", ""};
    change.text = "reservation " + std::to_string(id) + " of " + user + " taken back";
    change.reservation = id;
    found.push_back(std::move(change));
    return;
  }
}

void try_drained(const State& state, const Question& question, Found& found) {
  for (const PoolCard& card : question.now().pool.cards) {
    if (!state.drained().contains(card.card.uuid) || !question.undrained(card.card.uuid)) continue;
    Change change{Change::Kind::kUndrain, "", ""};
    const std::string index = std::to_string(card.card.index);
    change.text = "card " + index + " back in use: mete undrain " + index;
    change.card = card.card.uuid;
    found.push_back(std::move(change));
    return;
  }
}

// A job that is not in the queue: only a change that puts it there helps.
Found to_the_line(const Question& question, const Job& job, WallTime now) {
  const bool later = job.spec->begin && *job.spec->begin > now;
  const bool pauses = job.not_before && *job.not_before > now;
  if (!job.unmet.empty() || pauses || job.held == later || !question.in_line()) return {};
  if (job.held)
    return {{Change::Kind::kRelease, "its hold ended: mete release " + to_string(job.id), ""}};
  return {{Change::Kind::kBegin, "its --begin left out", ""}};
}

}  // namespace

std::string_view to_string(Change::Kind kind) {
  switch (kind) {
    case Change::Kind::kRelease:
      return "release";
    case Change::Kind::kBegin:
      return "begin";
    case Change::Kind::kGpu:
      return "gpu";
    case Change::Kind::kCards:
      return "cards";
    case Change::Kind::kType:
      return "type";
    case Change::Kind::kDevices:
      return "devices";
    case Change::Kind::kWhere:
      return "where";
    case Change::Kind::kCpus:
      return "cpus";
    case Change::Kind::kTime:
      return "time";
    case Change::Kind::kJobEnds:
      return "job-ends";
    case Change::Kind::kPriority:
      return "priority";
    case Change::Kind::kQuota:
      return "quota";
    case Change::Kind::kReservation:
      return "reservation";
    case Change::Kind::kUndrain:
      break;
  }
  return "undrain";
}

std::vector<Change> changes(const State& state, const Moment& moment, const Sight& sight,
                            const Job& job) {
  if (job.state != JobState::kPending) return {};
  Question question(state, sight, job);
  const bool waits = job.held || !job.unmet.empty() ||
                     (job.spec->begin && *job.spec->begin > moment.now) ||
                     (job.not_before && *job.not_before > moment.now);
  if (waits) return to_the_line(question, job, moment.now);
  if (question.first_as(std::span(&question.kind(), 1))) return {};
  const Request& request = question.kind().request;
  Found found;
  const bool cards = gpu_of(request).cards.kind != CardCount::Kind::kNone;
  if (cards) {
    const Pool& pool = question.now().pool;
    try_requests(question, Change::Kind::kGpu, with_less_memory(request), found);
    try_requests(question, Change::Kind::kCards, with_fewer_cards(request, pool.cards.size()),
                 found);
    try_requests(question, Change::Kind::kType, of_other_types(request, pool), found);
    try_requests(question, Change::Kind::kDevices, on_any_cards(request), found);
  }
  try_requests(question, Change::Kind::kWhere, wherever(request), found);
  try_requests(question, Change::Kind::kCpus, with_fewer_cpus(request), found);
  try_times(state, question, job, found);
  try_ends(state, question, found);
  try_priorities(state, question, job, found);
  try_quotas(question, found);
  try_reservations(question, found);
  try_drained(state, question, found);
  return found;
}

}  // namespace mete::core
