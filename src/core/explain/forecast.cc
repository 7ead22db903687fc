// SPDX-License-Identifier: Apache-2.0
// See forecast.h.
#include "core/explain/forecast.h"

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "core/explain/arrivals.h"
#include "core/explain/lengths.h"
#include "core/order/fair_share.h"

namespace mete::core {

namespace {

constexpr std::size_t kFutures = 25;
// Where each takes long fewer have to do.
constexpr std::size_t kLeastFutures = 10;
// How much may be looked at for one forecast: a walk is as much as kWalk kinds of jobs in it. All
// of it is some 50 ms.
constexpr std::size_t kMostWork = 300'000;
constexpr std::size_t kWalk = 128;
constexpr std::size_t kMostToCome = 200;  // jobs

// What is known at the moment of the forecast.
struct Known {
  PassInput now;                     // with the usage of all who may come
  std::map<JobId, const Job*> jobs;  // the front of the line
  Pending pending;                   // the same
  std::vector<const Job*> running;
  Past past;
  Lengths lengths;
};

class Future {
 public:
  Future(const Known& known, std::uint64_t seed)
      : known_(known),
        input_(known.now),
        pending_(known.pending),
        draw_(seed),
        arrivals_(known.past, known.now.now, draw_) {
    input_.pending = &pending_;
    for (const Job* job : known.running) ends_at(*job, job->started.value_or(input_.now));
  }

  // When the job starts; nullopt: never, as far as can be seen. Takes off `work` what it took.
  std::optional<WallTime> start_of(JobId id, std::size_t& work) {
    for (;;) {
      const std::size_t takes = kWalk + pending_.kinds();
      if (work < takes) {
        work = 0;
        return std::nullopt;
      }
      work -= takes;
      for (const JobGranted& granted : walk(input_).start) {
        if (granted.id == id) return input_.now;
        start(granted);
      }
      if (!step()) return std::nullopt;
    }
  }

 private:
  void ends_at(const Job& job, WallTime started) {
    const std::int64_t elapsed = std::max<std::int64_t>(0, input_.now.ms - started.ms) / 1000;
    const auto seconds = known_.lengths.draw(*job.spec, static_cast<std::uint64_t>(elapsed), draw_);
    if (seconds)
      ends_.emplace(
          std::max(input_.now.ms, started.ms + static_cast<std::int64_t>(*seconds) * 1000), job.id);
  }

  void start(const JobGranted& granted) {
    const Job& job = granted.id.number >= kFirstToCome ? come_[granted.id.number - kFirstToCome]
                                                       : *known_.jobs.at(granted.id);
    const Kind kind = kind_of(job);
    add_grant(input_.pool, {job.id, kind.user, "", {}, false}, granted.cards);
    input_.running.push_back({job.id, kind.user, held_of(granted.cards),
                              cpus_of(kind.request, kind.detached), kind.array,
                              ends_if_started(input_, kind), kind.time_s.has_value()});
    pending_.erase(job);
    ends_at(job, input_.now);
  }

  // Whoever has come since the last walk.
  void let_in() {
    while (const Past::Came* came = arrivals_.next(input_.now))
      for (std::size_t i = 0; i < came->count && come_.size() < kMostToCome; ++i) {
        Job& job = come_.emplace_back(*came->job);
        job.id = {kFirstToCome + come_.size() - 1};
        job.state = JobState::kPending;
        job.submitted = input_.now;
        job.priority = job.spec->priority;
        job.held = false;
        job.unmet.clear();
        job.not_before.reset();
        pending_.insert(job);
      }
  }

  // On to the next moment at which somebody may start; false: there is none.
  bool step() {
    std::optional<WallTime> next = pending_.next_begin(input_.now);
    const auto consider = [&](std::int64_t ms) {
      if (ms > input_.now.ms && (!next || ms < next->ms)) next = WallTime{ms};
    };
    if (!ends_.empty()) consider(std::max(ends_.begin()->first, input_.now.ms + 1));
    for (const Reservation& reservation : input_.reservations) {
      consider(reservation.from.ms);
      consider(reservation.until.ms);
    }
    if (!next) return false;
    pass_time(*next);
    while (!ends_.empty() && ends_.begin()->first <= input_.now.ms) {
      const JobId id = ends_.begin()->second;
      ends_.erase(ends_.begin());
      remove_grant(input_.pool, id);
      std::erase_if(input_.running, [id](const Running& running) { return running.id == id; });
    }
    let_in();
    return true;
  }

  void pass_time(WallTime next) {
    const auto seconds = static_cast<std::uint64_t>((next.ms - input_.now.ms) / 1000);
    for (const Running& running : input_.running)
      if (const auto user = input_.usage.find(running.user); user != input_.usage.end())
        user->second += mib_per_second(running.held.bytes, std::max(1u, running.cpus)) * seconds;
    input_.now = next;
  }

  static constexpr std::uint64_t kFirstToCome = std::uint64_t{1} << 60;

  const Known& known_;
  PassInput input_;
  Pending pending_;
  std::deque<Job> come_;
  std::set<std::pair<std::int64_t, JobId>> ends_;
  Draw draw_;
  Arrivals arrivals_;
};

// nullopt: the job does not stand in line, or too far back.
std::optional<Known> known_for(const State& state, const PassInput& input, JobId id) {
  const Job* job = state.find(id);
  if (job == nullptr || job->state != JobState::kPending || job->held || !job->unmet.empty())
    return std::nullopt;
  const std::vector<JobId> order = in_order(input);
  const auto place = std::find(order.begin(), order.end(), id);
  const bool later = place == order.end();  // it waits for its time
  if (!later && place - order.begin() >= static_cast<std::ptrdiff_t>(kForecastJobs))
    return std::nullopt;
  Known known{input, {}, {}, {}, Past(state, input.now), Lengths(state.estimates())};
  const auto add = [&known](const Job* each) {
    known.pending.insert(*each);
    known.jobs.emplace(each->id, each);
  };
  for (std::size_t i = 0; i < std::min(kForecastJobs, order.size()); ++i) add(state.find(order[i]));
  if (later) add(job);
  for (const JobId running : state.active()) known.running.push_back(state.find(running));
  for (const Past::Came& came : known.past.came()) {
    const std::string& user = came.job->spec->user;
    if (!known.now.usage.contains(user)) known.now.usage[user] = state.usage_of(user, input.now);
  }
  return known;
}

// Before this it cannot start, whatever the others do: its own time, and reservations. Asked of the
// same walk, with nobody else there.
WallTime earliest(const State& state, const PassInput& input, const Job& job) {
  PassInput alone = input;
  Pending pending;
  pending.insert(job);
  alone.pending = &pending;
  alone.running.clear();
  for (const JobId id : state.active()) remove_grant(alone.pool, id);
  std::set<WallTime> moments{input.now};
  for (const auto& time : {job.spec->begin, job.not_before})
    if (time) moments.insert(std::max(input.now, *time));
  for (const Reservation& reservation : input.reservations)
    for (const WallTime edge : {reservation.from, reservation.until})
      moments.insert(std::max(input.now, edge));
  for (const WallTime moment : moments) {
    alone.now = moment;
    if (!walk(alone).start.empty()) return moment;
  }
  return input.now;
}

// In whole seconds, so that what is told is not more exact than what is meant.
WallTime whole_second(WallTime time) { return {(time.ms + 999) / 1000 * 1000}; }

}  // namespace

std::optional<Forecast> forecast(const State& state, const Moment& moment, const Sight& sight,
                                 JobId id) {
  const std::optional<Known> known = known_for(state, sight.input, id);
  if (!known) return std::nullopt;
  std::vector<WallTime> starts;
  std::size_t work = kMostWork;
  std::size_t futures = 0;
  Draw seeds(id.number * 1'000'003 + id.element.value_or(0));
  while (futures < kFutures) {
    Future future(*known, seeds.next());
    const std::optional<WallTime> start = future.start_of(id, work);
    if (work == 0) break;  // nobody knows what would have come of this one
    ++futures;
    if (start) starts.push_back(*start);
  }
  if (futures < kLeastFutures) return std::nullopt;
  std::sort(starts.begin(), starts.end());
  // Of n futures the k-th to start has k / (n + 1) of what may be before it.
  const auto mark = [&](std::size_t pct) { return ((futures + 1) * pct + 99) / 100 - 1; };
  if (starts.size() <= mark(kForecastPct)) return std::nullopt;
  Forecast told;
  told.made = moment.now;
  // What is certain is not stretched, and never cut.
  const WallTime least = earliest(state, sight.input, *state.find(id));
  const std::int64_t wait = std::max<std::int64_t>(0, starts[mark(kForecastPct)].ms - least.ms);
  told.by = whole_second(
      {least.ms + std::max<std::int64_t>(1, wait * state.score().factor_milli / 1000)});
  told.at = std::min(told.by, whole_second(std::max(least, starts[mark(50)])));
  return told;
}

}  // namespace mete::core
