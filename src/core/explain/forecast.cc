// SPDX-License-Identifier: Apache-2.0
// See forecast.h. known_of() copies what a forecast depends on. A Future plays it forward: a pass
// over the queue, then on to the next time at which a job ends, arrives or may begin.
// Forecaster::Pass plays kFutures of them in bounded steps and collects when each job started; the
// marks of these times are the forecast. Work is counted, never timed, so that forecasts are
// repeatable.
#include "core/explain/forecast.h"

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "core/explain/arrivals.h"
#include "core/explain/lengths.h"
#include "core/order/fair_share.h"
#include "core/order/preempt.h"

namespace mete::core {

namespace {

constexpr std::size_t kFutures = 25;
// The least number of futures, when the work runs out.
constexpr std::size_t kLeastFutures = 10;
// The work limit of a run: a pass over the queue counts as kWalk plus its kinds of jobs. For one
// job all of it takes about 50 ms.
constexpr std::size_t kMostWork = 300'000;
constexpr std::size_t kMostWorkForAll = 2'500'000;
constexpr std::size_t kWalk = 128;
constexpr std::size_t kMostToCome = 200;  // jobs
constexpr std::size_t kMostLookedAt = 2'000;
constexpr std::int64_t kLeastParkMs = 1'000;

struct Member {
  Job job;
  Length length;
};

// What is known at the time of the forecast; nothing refers to jobs of the state.
struct Known {
  PassInput now;                   // with the usage of all users whose jobs may come
  std::map<JobId, Member> jobs;    // the front of the queue
  Pending pending;                 // the jobs of `jobs`
  std::map<JobId, Member> active;  // jobs that hold a grant
  Past past;
  std::vector<Length> to_come;  // for each job in `past`
  std::optional<JobId> only;
  std::uint32_t factor_milli = 1000;
  Rules rules;
};

std::int64_t elapsed_ms(const Job& job, WallTime now) {
  if (!job.started) return 0;
  const auto parked = static_cast<std::int64_t>(parked_ms(job, now));
  return std::max<std::int64_t>(0, now.ms - job.started->ms - parked);
}

class Future {
 public:
  Future(const Known& known, std::size_t number, std::uint64_t seed)
      : known_(known),
        number_(number),
        input_(known.now),
        pending_(known.pending),
        draw_(seed),
        arrivals_(known.past, known.now.now, draw_) {
    input_.pending = &pending_;
    waits_ = known.only ? 1 : known.jobs.size();
    for (const auto& [id, member] : known.active) expect_end(member);
  }
  Future(const Future&) = delete;
  Future& operator=(const Future&) = delete;

  std::size_t takes() const { return kWalk + pending_.kinds(); }
  // Does one pass, and moves to the next time. False: every requested job has started, or nothing
  // more happens.
  bool step() {
    const PassResult result = walk(input_);
    for (const JobGranted& granted : result.start) start(granted);
    if (waits_ == 0) return false;
    for (const PassResult::ToPark& park : result.park) expect_to_leave(park.id);
    for (const JobId id : result.back) come_back(id);
    return on_to_next_moment();
  }
  const std::map<JobId, WallTime>& starts() const { return starts_; }

 private:
  // Draws when the job ends, after it has run for `ran_ms`.
  void ends_after(JobId id, const Length& length, std::int64_t ran_ms) {
    const auto elapsed = static_cast<std::uint64_t>(ran_ms) / 1000;
    const std::uint32_t chance = id.number >= kFirstToCome
                                     ? static_cast<std::uint32_t>(draw_.next() >> 32)
                                     : chance_of(id, number_, kFutures, draw_);
    if (const auto seconds = draw_length(length, elapsed, known_.rules.grace_s, chance))
      ends_.emplace(input_.now.ms + std::max<std::int64_t>(
                                        1, static_cast<std::int64_t>(*seconds) * 1000 - ran_ms),
                    id);
  }

  void expect_end(const Member& member) {
    const Job& job = member.job;
    if (job.state == JobState::kStopping) {
      const auto grace = static_cast<std::int64_t>(draw_.below(known_.rules.grace_s + 1));
      ends_.emplace(input_.now.ms + 1 + grace * 1000, job.id);
    } else if (job.state == JobState::kParking) {
      expect_to_leave(job.id);
    } else if (!is_away(job)) {
      ends_after(job.id, member.length, elapsed_ms(job, input_.now));
    }
  }

  void expect_to_leave(JobId id) {
    const auto found = known_.active.find(id);
    if (found == known_.active.end() || !leaving_.insert(id).second) return;
    const auto takes_ms = static_cast<std::int64_t>(park_cost_ms(found->second.job));
    ends_.emplace(input_.now.ms + std::max(kLeastParkMs, takes_ms), id);
  }

  void come_back(JobId id) {
    const auto found = known_.active.find(id);
    if (found == known_.active.end()) return;
    const Job& job = found->second.job;
    remove_grant(input_.pool, id);
    add_grant(input_.pool, {id, job.spec->user, "", {}, false, false, true}, job.grant);
    for (Running& running : input_.running)
      if (running.id == id) running.job = nullptr;
    ends_after(id, found->second.length, elapsed_ms(job, known_.now.now));
  }

  void start(const JobGranted& granted) {
    const bool came = granted.id.number >= kFirstToCome;
    const Member& member =
        came ? come_[granted.id.number - kFirstToCome] : known_.jobs.at(granted.id);
    const Kind kind = kind_of(member.job);
    add_grant(input_.pool, {granted.id, kind.user, "", {}, false}, granted.cards);
    input_.running.push_back({granted.id, kind.user, held_of(granted.cards),
                              cpus_of(kind.request, kind.detached), kind.array,
                              ends_if_started(input_, kind), kind.time_s.has_value()});
    pending_.erase(member.job);
    ends_after(granted.id, member.length, 0);
    if (came) return;
    starts_.emplace(granted.id, input_.now);
    if (!known_.only || granted.id == *known_.only) --waits_;
  }

  // Adds the jobs that have come since the last pass. A job of which nothing is known is left out:
  // it would run forever, in the way of all others.
  void let_in() {
    // Bounded: until a job that begins in some years the past would repeat itself a million times.
    for (; come_.size() < kMostToCome && looked_at_ < kMostLookedAt; ++looked_at_) {
      const Past::Came* came = arrivals_.next(input_.now);
      if (came == nullptr) return;
      const auto at = static_cast<std::size_t>(came - known_.past.came().data());
      if (!known_.to_come[at].is_known()) continue;
      for (std::size_t i = 0; i < came->count && come_.size() < kMostToCome; ++i) {
        Job& job = come_.emplace_back(Member{came->job, known_.to_come[at]}).job;
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
  }

  // Moves to the next time at which a job may start; false: there is none.
  bool on_to_next_moment() {
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
  std::size_t number_;
  PassInput input_;
  Pending pending_;
  std::size_t waits_ = 0;  // requested jobs that have not started
  std::map<JobId, WallTime> starts_;
  std::set<JobId> leaving_;
  std::deque<Member> come_;
  std::size_t looked_at_ = 0;  // entries of `past`, counted again each time
  std::set<std::pair<std::int64_t, JobId>> ends_;
  Draw draw_;
  Arrivals arrivals_;
};

bool stands_in_queue(const Job* job) {
  return job != nullptr && job->state == JobState::kPending && !job->held && job->unmet.empty();
}

// The front of the queue, with jobs that wait for a time, which in_order() leaves out.
std::vector<JobId> front_of(const State& state, const PassInput& input, std::optional<JobId> only) {
  std::vector<JobId> front = in_order(input);
  const bool later = only && std::find(front.begin(), front.end(), *only) == front.end();
  if (front.size() > kForecastJobs) front.resize(kForecastJobs);
  if (only) {
    if (later && stands_in_queue(state.find(*only))) front.push_back(*only);
    return front;
  }
  for (const auto& [queue, jobs] : state.pending().queues())
    for (const auto& [id, entry] : jobs) {
      if (front.size() >= kForecastJobs) return front;
      if (entry.not_before_ms > input.now.ms) front.push_back(id);
    }
  return front;
}

Known known_of(const State& state, const PassInput& input, std::optional<JobId> only) {
  Known known{
      input,        {}, {}, {}, Past(state, input.now), {}, only, state.score().factor_milli,
      state.rules()};
  known.now.rules = nullptr;  // set in the constructor of Pass
  const auto member = [&state](const Job& job) {
    return Member{job, length_of(state.estimates(), *job.spec)};
  };
  for (const JobId id : front_of(state, input, only)) {
    const Job& job = *state.find(id);
    known.pending.insert(job);
    known.jobs.emplace(id, member(job));
  }
  if (only && !known.jobs.contains(*only)) known.jobs.clear();
  for (const JobId id : state.active()) known.active.emplace(id, member(*state.find(id)));
  for (const Past::Came& came : known.past.came()) {
    known.to_come.push_back(length_of(state.estimates(), *came.job.spec));
    const std::string& user = came.job.spec->user;
    if (!known.now.usage.contains(user)) known.now.usage[user] = state.usage_of(user, input.now);
  }
  return known;
}

// In whole seconds: a forecast is not more exact than that.
WallTime whole_second(WallTime time) { return {(time.ms + 999) / 1000 * 1000}; }

// The k-th of n sorted start times is at k / (n + 1) of the range.
std::size_t mark(std::size_t futures, std::size_t pct) {
  return ((futures + 1) * pct + 99) / 100 - 1;
}

}  // namespace

class Forecaster::Pass {
 public:
  Pass(const State& state, const Sight& sight, std::optional<JobId> only)
      : known_(known_of(state, sight.input, only)), left_(only ? kMostWork : kMostWorkForAll) {
    known_.now.rules = &known_.rules;
    for (Running& running : known_.now.running) {
      const auto own = known_.active.find(running.id);
      running.job = own == known_.active.end() ? nullptr : &own->second.job;
    }
    over_ = known_.jobs.empty();
  }

  std::size_t left() const { return left_; }
  // Most jobs start or end at different times.
  std::size_t expected() const {
    const std::size_t walks = known_.jobs.size() + known_.active.size();
    return std::min(left_, kFutures * walks * (kWalk + known_.pending.kinds()));
  }
  const std::map<JobId, Forecast>& told() const { return told_; }

  bool go_on(std::size_t work) {
    while (!over_) {
      if (!future_) future_.emplace(known_, futures_, seeds_.next());
      const std::size_t takes = future_->takes();
      if (left_ < takes) {
        finish();  // the rest of this future is unknown
        break;
      }
      if (work < takes) return false;
      work -= takes;
      left_ -= takes;
      if (future_->step()) continue;
      for (const auto& [id, at] : future_->starts()) starts_[id].push_back(at);
      future_.reset();
      if (++futures_ == kFutures) finish();
    }
    return true;
  }

 private:
  void finish() {
    over_ = true;
    future_.reset();
    if (futures_ < kLeastFutures) return;
    for (auto& [id, starts] : starts_) {
      if (known_.only && id != *known_.only) continue;
      if (starts.size() <= mark(futures_, kForecastPct)) continue;
      std::sort(starts.begin(), starts.end());
      told_.emplace(id, forecast_of(known_.jobs.at(id).job, starts));
    }
  }

  Forecast forecast_of(const Job& job, const std::vector<WallTime>& starts) const {
    Forecast told;
    told.made = known_.now.now;
    // The certain part is not stretched, and never cut.
    const WallTime least = earliest(job);
    const WallTime late = starts[mark(futures_, kForecastPct)];
    const std::int64_t wait = std::max<std::int64_t>(0, late.ms - least.ms);
    told.by =
        whole_second({least.ms + std::max<std::int64_t>(1, wait * known_.factor_milli / 1000)});
    told.at = std::min(told.by, whole_second(std::max(least, starts[mark(futures_, 50)])));
    return told;
  }

  // The job cannot start before this, whatever other jobs do: its own time, and reservations. Found
  // by passes with no other job.
  WallTime earliest(const Job& job) const {
    const PassInput& input = known_.now;
    std::set<WallTime> moments{input.now};
    for (const auto& time : {job.spec->begin, job.not_before})
      if (time) moments.insert(std::max(input.now, *time));
    for (const Reservation& reservation : input.reservations)
      for (const WallTime edge : {reservation.from, reservation.until})
        moments.insert(std::max(input.now, edge));
    if (moments.size() == 1) return input.now;
    PassInput alone = input;
    Pending pending;
    pending.insert(job);
    alone.pending = &pending;
    alone.running.clear();
    for (const auto& [id, member] : known_.active) remove_grant(alone.pool, id);
    for (const WallTime moment : moments) {
      alone.now = moment;
      if (!walk(alone).start.empty()) return moment;
    }
    return input.now;
  }

  Known known_;
  std::size_t left_;  // work
  Draw seeds_{1};
  std::optional<Future> future_;
  std::size_t futures_ = 0;
  std::map<JobId, std::vector<WallTime>> starts_;
  std::map<JobId, Forecast> told_;
  bool over_ = false;
};

Forecaster::Forecaster(const State& state, const Sight& sight, std::optional<JobId> only)
    : pass_(std::make_unique<Pass>(state, sight, only)) {}
Forecaster::~Forecaster() = default;
std::size_t Forecaster::most_work() const { return pass_->left(); }
std::size_t Forecaster::expected_work() const { return pass_->expected(); }
bool Forecaster::go_on(std::size_t work) { return pass_->go_on(work); }
const std::map<JobId, Forecast>& Forecaster::told() const { return pass_->told(); }

std::optional<Forecast> forecast(const State& state, const Sight& sight, JobId id) {
  if (!stands_in_queue(state.find(id))) return std::nullopt;
  Forecaster forecaster(state, sight, id);
  (void)forecaster.go_on(forecaster.most_work());
  const auto told = forecaster.told().find(id);
  return told == forecaster.told().end() ? std::nullopt : std::optional(told->second);
}

}  // namespace mete::core
