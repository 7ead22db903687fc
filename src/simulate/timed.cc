// SPDX-License-Identifier: Apache-2.0
// See timed.h. A discrete event simulation: the next moment is the next submission or the next end.
// At each moment jobs that are due end, jobs that are due are submitted, the site grants what can
// start, and a sample is taken. Every step is applied to core::State as the daemon's events are.
#include "simulate/timed.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace mete::simulate {

namespace {

constexpr std::size_t kProgressJobs = 256;
constexpr std::size_t kEndedKept = 64;  // ended jobs are learned from, and then not needed

class Run {
 public:
  Run(const std::vector<TimedJob>& jobs, Site& site, core::Rules rules)
      : jobs_(jobs), site_(site), state_(rules), order_(jobs.size()) {
    timed_.lives.resize(jobs.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return jobs[a].submitted < jobs[b].submitted;
    });
  }

  Result<Timed> go(const Hooks& hooks) {
    std::size_t told = 0;
    const std::uint64_t cpu_began = hooks.cpu_ns ? hooks.cpu_ns() : 0;
    while (next_ < order_.size() || !ends_.empty()) {
      now_ = next_moment();
      end_those_due();
      submit_those_due();
      const std::uint64_t began = hooks.now_ns ? hooks.now_ns() : 0;
      if (start() && hooks.now_ns)
        timed_.times_ns.push_back(static_cast<std::uint32_t>(
            std::min<std::uint64_t>(hooks.now_ns() - began, ~std::uint32_t{0})));
      sample();
      if (hooks.progress && done_ >= told + kProgressJobs) {
        told = done_;
        // A job counts half when it is submitted, and fully when it has ended.
        if (!hooks.progress(done_ / 2, jobs_.size())) return Error::busy("stopped");
      }
    }
    if (hooks.cpu_ns) timed_.cpu_ns = hooks.cpu_ns() - cpu_began;
    if (hooks.progress) (void)hooks.progress(jobs_.size(), jobs_.size());
    return std::move(timed_);
  }

 private:
  WallTime next_moment() const {
    if (ends_.empty()) return jobs_[order_[next_]].submitted;
    const WallTime end = ends_.begin()->first;
    return next_ < order_.size() ? std::min(end, jobs_[order_[next_]].submitted) : end;
  }

  void apply(core::Happened what) { state_.apply({state_.last_seq() + 1, now_, std::move(what)}); }

  void end_those_due() {
    while (!ends_.empty() && ends_.begin()->first <= now_) {
      const core::JobId id = ends_.begin()->second;
      ends_.erase(ends_.begin());
      const Life& life = timed_.lives[index_.at(id.number)];
      core::Exit exit;
      exit.code = 0;
      exit.ran_ms = static_cast<std::uint64_t>(now_.ms - life.started->ms);
      apply(core::JobEnded{id, core::Outcome::kOk, exit});
      site_.ended(id);
      index_.erase(id.number);
      ++done_;
    }
  }

  void submit_those_due() {
    for (; next_ < order_.size() && jobs_[order_[next_]].submitted <= now_; ++next_, ++done_) {
      const std::size_t index = order_[next_];
      Result<std::vector<core::Happened>> happened =
          site_.submit(state_, submit_of(jobs_[index]), index, now_);
      if (!happened) {
        const Error& error = happened.error();
        timed_.lives[index].refused =
            error.message + (error.evidence.empty() ? "" : ": " + error.evidence);
        ++done_;  // it does not end either
        continue;
      }
      for (core::Happened& what : *happened) {
        if (const auto* submitted = std::get_if<core::JobSubmitted>(&what))
          index_[submitted->id.number] = index;
        apply(std::move(what));
      }
    }
  }

  static core::Submit submit_of(const TimedJob& job) {
    core::Submit submit;
    submit.spec.name = job.name;
    submit.spec.user = job.user;
    submit.spec.request = job.request;
    submit.spec.command = {job.name};
    submit.spec.folder = "/";
    submit.spec.time_s = job.limit_s;
    submit.spec.priority = job.priority;
    submit.spec.detached = core::Detached{};
    return submit;
  }

  // False: no job waited.
  bool start() {
    if (state_.pending().size() == 0) return false;
    for (core::JobGranted& granted : site_.grants(state_, now_)) {
      const core::JobId id = granted.id;
      const std::size_t index = index_.at(id.number);
      Life& life = timed_.lives[index];
      life.started = now_;
      const TimedJob& job = jobs_[index];
      std::int64_t run_ms = std::max<std::int64_t>(job.run_ms, 0);
      if (job.limit_s) run_ms = std::min(run_ms, static_cast<std::int64_t>(*job.limit_s) * 1000);
      life.ended = WallTime{now_.ms + run_ms};
      site_.locate(granted, life);
      apply(std::move(granted));
      apply(core::JobStarted{id, {1, id.number}, 0, core::ProcessRef{1, id.number}});
      ends_.emplace(life.ended, id);
    }
    return true;
  }

  void sample() {
    const Site::Use use = site_.use(state_);
    timed_.samples.push_back(
        {now_, use.alloc_pct, use.frag_pct, state_.pending().size(), state_.active().size()});
  }

  const std::vector<TimedJob>& jobs_;
  Site& site_;
  core::State state_;
  std::vector<std::size_t> order_;  // by submission
  std::size_t next_ = 0;
  std::map<std::uint64_t, std::size_t> index_;  // of unfinished jobs, by number
  std::set<std::pair<WallTime, core::JobId>> ends_;
  WallTime now_;
  std::size_t done_ = 0;
  Timed timed_;
};

double seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

}  // namespace

Result<Timed> run_timed(const std::vector<TimedJob>& jobs, Site& site, core::Rules rules,
                        const Hooks& hooks) {
  rules.ended_kept = std::min(rules.ended_kept, kEndedKept);
  return Run(jobs, site, rules).go(hooks);
}

Waits waits_of(std::vector<std::int64_t> waits) {
  Waits result;
  result.jobs = waits.size();
  if (waits.empty()) return result;
  std::sort(waits.begin(), waits.end());
  double sum = 0;
  for (const std::int64_t wait : waits) {
    sum += seconds(wait);
    if (wait > 1000) ++result.waited;
  }
  const auto at = [&](std::size_t percent) {
    return seconds(waits[std::min(waits.size() * percent / 100, waits.size() - 1)]);
  };
  result.mean_s = sum / static_cast<double>(waits.size());
  result.p50_s = at(50);
  result.p90_s = at(90);
  result.p99_s = at(99);
  result.max_s = seconds(waits.back());
  return result;
}

Waits waits_of(const std::vector<TimedJob>& jobs, const Timed& timed) {
  std::vector<std::int64_t> waits;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (timed.lives[i].started) waits.push_back(timed.lives[i].started->ms - jobs[i].submitted.ms);
  return waits_of(std::move(waits));
}

OverTime over_time(const std::vector<Sample>& samples) {
  OverTime mean;
  if (samples.empty()) return mean;
  mean.span_ms = samples.back().at.ms - samples.front().at.ms;
  if (mean.span_ms == 0) return mean;
  for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
    const double part = static_cast<double>(samples[i + 1].at.ms - samples[i].at.ms) /
                        static_cast<double>(mean.span_ms);
    mean.alloc_pct += part * samples[i].alloc_pct;
    mean.frag_pct += part * samples[i].frag_pct;
    mean.waiting += part * static_cast<double>(samples[i].waiting);
  }
  return mean;
}

std::string decisions_csv(const Timed& timed, const std::vector<std::uint32_t>& rows) {
  const auto moment = [](WallTime time) {
    std::string digits = std::to_string(1000 + time.ms % 1000).substr(1);
    return std::to_string(time.ms / 1000) + "." + digits;
  };
  std::string text;
  for (std::size_t i = 0; i < timed.lives.size(); ++i) {
    const Life& life = timed.lives[i];
    const std::string index = std::to_string(i) + ",";
    if (!life.started) text += index + "-1,,,\n";
    for (const Life::Part& part : life.parts) {
      text += index + std::to_string(rows.empty() ? part.node : rows[part.node]) + ",";
      for (std::size_t c = 0; c < part.cards.size(); ++c)
        text += (c == 0 ? "" : "-") + std::to_string(part.cards[c]);
      text += "," + moment(*life.started) + "," + moment(life.ended) + "\n";
    }
  }
  return text;
}

}  // namespace mete::simulate
