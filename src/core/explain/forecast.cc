// SPDX-License-Identifier: Apache-2.0
// See forecast.h.
#include "core/explain/forecast.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/explain/lengths.h"
#include "core/order/fair_share.h"

namespace mete::core {

namespace {

constexpr std::size_t kFutures = 25;
// How often the line is walked at most for one forecast, and in each walk how many kinds of jobs
// are looked at: together some 50 ms.
constexpr std::size_t kMostWork = 40'000;

// The front of the line, with the job.
struct Line {
  std::vector<const Job*> jobs;  // in order
  std::vector<const Job*> running;
};

class Future {
 public:
  Future(const PassInput& now, const Line& line, const Lengths& lengths, std::uint64_t seed)
      : input_(now), lengths_(lengths), draw_(seed) {
    for (const Job* job : line.jobs) {
      pending_.insert(*job);
      waiting_.emplace(job->id, job);
    }
    input_.pending = &pending_;
    for (const Job* job : line.running) ends_at(*job, job->started.value_or(now.now));
  }

  // When the job starts; nullopt: never, as far as can be seen. Takes off `work` what it took.
  std::optional<WallTime> start_of(JobId id, std::size_t& work) {
    for (;;) {
      const std::size_t takes = 1 + pending_.kinds();
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
    const auto seconds = lengths_.draw(*job.spec, static_cast<std::uint64_t>(elapsed), draw_);
    if (seconds)
      ends_.emplace(
          std::max(input_.now.ms, started.ms + static_cast<std::int64_t>(*seconds) * 1000), job.id);
  }

  void start(const JobGranted& granted) {
    const Job& job = *waiting_.at(granted.id);
    const Kind kind = kind_of(job);
    add_grant(input_.pool, {job.id, kind.user, "", {}, false}, granted.cards);
    input_.running.push_back({job.id, kind.user, held_of(granted.cards),
                              cpus_of(kind.request, kind.detached), kind.array,
                              ends_if_started(input_, kind), kind.time_s.has_value()});
    pending_.erase(job);
    ends_at(job, input_.now);
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
    return true;
  }

  void pass_time(WallTime next) {
    const auto seconds = static_cast<std::uint64_t>((next.ms - input_.now.ms) / 1000);
    for (const Running& running : input_.running)
      if (const auto user = input_.usage.find(running.user); user != input_.usage.end())
        user->second += mib_per_second(running.held.bytes, std::max(1u, running.cpus)) * seconds;
    input_.now = next;
  }

  PassInput input_;
  Pending pending_;
  std::map<JobId, const Job*> waiting_;
  std::set<std::pair<std::int64_t, JobId>> ends_;
  const Lengths& lengths_;
  Draw draw_;
};

std::optional<Line> line_with(const State& state, const PassInput& input, JobId id) {
  const std::vector<JobId> order = in_order(input);
  const auto place = std::find(order.begin(), order.end(), id);
  if (place == order.end() || place - order.begin() >= static_cast<std::ptrdiff_t>(kForecastJobs))
    return std::nullopt;
  Line line;
  for (std::size_t i = 0; i < std::min(kForecastJobs, order.size()); ++i)
    line.jobs.push_back(state.find(order[i]));
  for (const JobId running : state.active()) line.running.push_back(state.find(running));
  return line;
}

// In whole seconds, so that what is told is not more exact than what is meant.
WallTime whole_second(WallTime time) { return {(time.ms + 999) / 1000 * 1000}; }

}  // namespace

std::optional<Forecast> forecast(const State& state, const Moment& moment, const Sight& sight,
                                 JobId id) {
  const std::optional<Line> line = line_with(state, sight.input, id);
  if (!line) return std::nullopt;
  const Lengths lengths(state.estimates());
  std::vector<WallTime> starts;
  std::size_t work = kMostWork;
  std::size_t futures = 0;
  Draw seeds(id.number * 1'000'003 + id.element.value_or(0));
  for (; futures < kFutures; ++futures) {
    Future future(sight.input, *line, lengths, seeds.next());
    if (const std::optional<WallTime> start = future.start_of(id, work)) starts.push_back(*start);
    if (work == 0) break;
  }
  if (futures < kFutures) return std::nullopt;
  std::sort(starts.begin(), starts.end());
  const auto mark = [&](std::size_t pct) { return (kFutures * pct + 99) / 100 - 1; };
  if (starts.size() <= mark(kForecastPct)) return std::nullopt;
  Forecast told;
  told.made = moment.now;
  const std::int64_t wait = starts[mark(kForecastPct)].ms - moment.now.ms;
  told.by = whole_second(
      {moment.now.ms + std::max<std::int64_t>(1, wait * state.score().factor_milli / 1000)});
  told.at = std::min(told.by, whole_second(starts[mark(50)]));
  return told;
}

}  // namespace mete::core
