// SPDX-License-Identifier: Apache-2.0
// For tests of what every history has in common: a random world, by seed. Jobs of all kinds arrive,
// sweeps make jobs of their own, users make sensible and senseless requests, processes start, end
// and vanish, cards are lost, clocks jump. Refusals are part of it.
#pragma once

#include <algorithm>
#include <memory>
#include <random>

#include "core/test/state_world.h"

namespace mete::core {

class RandomWorld : public World {
 public:
  explicit RandomWorld(std::uint64_t seed, Rules rules = few_remembered()) : random_(seed) {
    state_ = State(rules);
    machine_ = pool_of({80, 80, 40, 16});
    machine_.cards[2].card.type = "T4";
  }

  // A small number, so that a short history forgets jobs.
  static Rules few_remembered() {
    Rules rules;
    rules.ended_kept = 20;
    rules.cpus = 12;
    rules.starve_after_s = 3600;
    rules.idle_warn_s = 60;
    rules.idle_park_s = 120;
    rules.idle_stop_s = 1'000'000'000;
    return rules;
  }

  std::uint64_t below(std::uint64_t count) { return random_() % count; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <typename T>
  T any(std::vector<T> list) {
    return list[below(list.size())];
  }

  void step() {
    const std::uint64_t dice = below(100);
    if (dice < 25)
      (void)take(any_submit());
    else if (dice < 45)
      grant_some();
    else if (dice < 75)
      (void)take(any_news());
    else if (dice < 87)
      (void)take(any_wish());
    else if (dice < 91)
      (void)take(any_for_sweeps());
    else
      pass_time();
    if (one_in(2)) settle();
  }

 private:
  std::string any_user() { return any<std::string>({"alice", "bob", "carol", "root"}); }
  JobId any_id() {
    if (state_.jobs().empty() || one_in(30)) return {below(50), {}};
    auto at = state_.jobs().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(state_.jobs().size())));
    // Unfinished jobs are chosen more often.
    if (at->second.state == JobState::kEnded && !one_in(4)) {
      const JobId last = state_.jobs().rbegin()->first;
      at = state_.jobs().lower_bound(JobId{last.number - std::min(last.number - 1, below(10))});
      if (at == state_.jobs().end()) return last;
    }
    return one_in(5) ? JobId{at->first.number} : at->first;
  }
  WallTime any_time() { return {now_.ms + static_cast<std::int64_t>(below(7200)) * 1000}; }

  Submit any_submit() {
    Submit submit;
    submit.spec = any_spec();
    submit.admin = submit.spec.user == "root" || one_in(10);
    submit.wait = !one_in(10);
    if (!submit.spec.detached) submit.runner = ProcessRef{++runners_, 7};
    return submit;
  }
  JobSpec any_spec() {
    JobSpec spec = spec_of(any<std::string>({"0", "1", "2", "5G", "20G", "39G", "50%", "2x10G",
                                             "2x30%", "80G", "90G", "all", "5G..60G", "grow"}),
                           any_user());
    spec.name = any<std::string>({"train", "test", "serve"});
    if (one_in(4)) spec.detached.reset();
    if (one_in(3)) spec.time_s = 1 + below(5000);
    if (one_in(5)) spec.priority = static_cast<std::int32_t>(below(20)) - 15;
    if (one_in(4)) spec.request.cpus = static_cast<unsigned>(1 + below(16));
    if (one_in(10)) spec.request.or_cpu = true;
    if (one_in(10)) spec.request.gpu_type = any<std::string>({"H200", "T4", "L4"});
    if (one_in(5)) spec.array = *parse_array(any<std::string>({"0-3", "1,5,9", "0-9:3%2", "7%1"}));
    if (one_in(4)) spec.retries = static_cast<std::uint32_t>(below(3));
    if (one_in(4)) spec.retry_gpu_pct = 110 + static_cast<std::uint32_t>(below(200));
    if (one_in(4)) spec.requeue = true;
    if (one_in(10)) spec.held = true;
    if (one_in(3)) spec.preemptible = one_in(2);
    if (one_in(5)) spec.idle_s = below(3) * 60;
    if (one_in(10)) spec.no_preempt = true;
    if (one_in(20)) spec.shed = true;
    if (one_in(10)) spec.begin = any_time();
    if (one_in(10)) spec.deadline = any_time();
    // A `mete run` has one attempt.
    if (!spec.detached && !one_in(10)) {
      spec.array.reset();
      spec.retry_gpu_pct.reset();
      spec.retries = 0;
      spec.requeue = false;
    }
    while (one_in(6))
      spec.after.push_back({any_id(), any<When>({When::kOk, When::kAny, When::kFail})});
    return spec;
  }

  void grant_some() {
    PassResult steps = state_.next_steps(moment());
    if (one_in(3)) steps.back.resize(std::min(steps.back.size(), below(2)));
    if (one_in(3)) steps.start.resize(std::min(steps.start.size(), below(3)));
    for (const JobId id : steps.back) apply(JobUnparked{id, JobState::kUnparking});
    for (JobGranted& each : steps.start) apply(std::move(each));
    for (const PassResult::ToPark& each : steps.park)
      apply(JobParked{each.id, JobState::kParking, ParkCause::kPreempted, each.for_job});
    for (const JobId id : steps.shrink) apply(JobGrown{id, {}, true});
  }

  Exit any_exit() {
    Exit exit;
    if (one_in(4))
      exit.signal = 9;
    else
      exit.code = one_in(2) ? 0 : static_cast<int>(below(3));
    exit.gpu_oom = one_in(5);
    exit.ram_oom = one_in(20);
    exit.timed_out = one_in(20);
    exit.not_started = one_in(30);
    if (one_in(2)) exit.ran_ms = below(5'000'000);
    if (one_in(2)) exit.log_bytes = Bytes::from_bytes(below(1 << 20));
    if (one_in(2)) exit.peaks = {Bytes::from_gib(below(80))};
    if (one_in(2)) exit.metrics = {{"loss", any_loss()}};
    if (one_in(10)) exit.note = "a note";
    return exit;
  }
  Escape any_escape() {
    return {static_cast<std::int32_t>(1 + below(4)),
            below(2),
            "GPU-0",
            0,
            Bytes::from_gib(below(9)),
            Bytes::from_gib(below(3)),
            "python"};
  }
  // A job that holds a grant, most of the time.
  JobId any_active() {
    if (state_.active().empty() || one_in(20)) return any_id();
    auto at = state_.active().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(state_.active().size())));
    return *at;
  }
  Input any_news() {
    const JobId id = any_active();
    const ProcessRef program{static_cast<std::int32_t>(1 + below(30'000)), below(1000)};
    const std::uint32_t uid = one_in(10) ? uid_of("bob") : 0;
    switch (below(16)) {
      case 14:
        return Active{id};
      case 15:
        return Escaped{id, any_escape(), one_in(5)};
      case 10:
        return any_park_report(id);
      case 11:
        return any_park_report(id);
      case 12:
        return Grow{id, uid, any_amounts(id)};
      case 13:
        return Idle{id};
      case 0:
      case 1:
      case 2:
        return Started{id, uid, program, below(1000), ProcessRef{5, below(9)}};
      case 3:
      case 4:
      case 5:
        return Ended{id, uid, any_exit(), one_in(2) ? std::optional(program) : std::nullopt,
                     below(9)};
      case 6:
        return RunnerGone{id};
      case 7:
        return JobGone{id};
      case 8:
        return NotLaunched{id, one_in(2) ? "" : "no such folder", one_in(2)};
      default:
        return Foretold{any_id(), {now_, any_time(), any_time()}};
    }
  }

  std::vector<Bytes> any_amounts(JobId id) {
    std::vector<Bytes> amounts;
    if (const Job* job = state_.find(id); job != nullptr)
      for (const GrantedCard& card : job->grant)
        amounts.push_back(Bytes::from_bytes(below(card.bytes.count() + 1)) +
                          Bytes::from_gib(below(20)));
    return amounts;
  }
  Input any_park_report(JobId id) {
    ParkReport report{id, 0, one_in(2)};
    report.held = any_amounts(id);
    report.moved = Bytes::from_gib(below(40));
    if (one_in(3)) report.why = "there is no room";
    report.standing = one_in(5);
    report.wakes = one_in(4);
    return report;
  }

  Input any_wish() {
    const Caller by = caller(one_in(3) ? any_user() : "root");
    const JobId id = any_id();
    switch (below(12)) {
      case 10:
        return ParkJob{any_active(), by, one_in(3)};
      case 11:
        return UnparkJob{any_active(), by};
      case 0:
      case 1:
        return Cancel{id, by};
      case 2:
        return Hold{id, by};
      case 3:
        return Release{id, by};
      case 4:
        return Requeue{id, by};
      case 5:
        return SetPriority{id, by, static_cast<std::int32_t>(below(30)) - 15};
      case 6:
        return Drain{std::to_string(below(5)), by, one_in(4)};
      case 7:
        return SetQuota{one_in(2) ? "" : any_user(), any_quota(), by};
      case 8:
        return Unreserve{1 + below(20), by};
      default:
        return Reserve{any_user(), spec_of(any<std::string>({"1", "40G", "2"})).request, any_time(),
                       any_time(), by};
    }
  }
  Quota any_quota() {
    Quota quota;
    if (!one_in(3)) return quota;
    if (one_in(2)) quota.cards = static_cast<std::uint32_t>(1 + below(5));
    if (one_in(3)) quota.bytes = Bytes::from_gib(80 + below(200));
    if (one_in(3)) quota.running = static_cast<std::uint32_t>(1 + below(5));
    if (one_in(4)) quota.jobs = static_cast<std::uint32_t>(5 + below(30));
    if (one_in(4)) quota.disk = Bytes::from_mib(1 + below(10));
    return quota;
  }

  double any_loss() { return static_cast<double>(below(1000)) / 1000; }
  // Some are small, so that all their points are tried and drawing finds no new one.
  std::shared_ptr<const sweep::Plan> any_plan() {
    std::vector<sweep::Value> values;
    for (std::uint64_t i = 0; i < 2 + below(4); ++i)
      values.push_back(sweep::of_integer(static_cast<std::int64_t>(i)));
    sweep::Plan plan;
    plan.name = any<std::string>({"scan", "grid", "long"});
    plan.space = *sweep::Space::make({{"lr", values, {}}, {"bs", values, {}}});
    const bool rare = one_in(4);  // most draws find nothing
    if (rare) {
      sweep::Range range{0, 1'000'000};
      range.integer = true;
      plan.space = *sweep::Space::make(
          {{"lr", range, {}}, {"bs", values, {}}},
          *sweep::Expression::parse("lr < 2000", std::vector<std::string>{"lr"}));
    }
    plan.goal = sweep::Goal{"loss", one_in(4)};
    if (rare || one_in(2)) {
      plan.sampling.method = sweep::Method::kRandom;
      plan.sampling.trials = 2 + below(40);
      plan.sampling.seed = below(100);
    }
    if (one_in(2)) plan.halving = sweep::HalvingRule{"loss", 1, 9, 3};
    if (one_in(2)) plan.reduce = sweep::ReduceRule{sweep::Correlation::kSpearman, 10, 3, 0.1};
    if (one_in(5)) plan.target = *sweep::parse_target("loss < 0.02", plan);
    if (one_in(5)) plan.max_failures = 1 + below(9);
    if (one_in(5)) plan.for_s = 60 + below(7200);
    plan.auto_gpu = one_in(4);
    plan.job = spec_of(any<std::string>({"5G", "20G", "1"}), any_user());
    if (plan.auto_gpu) plan.job.request.gpu.reset();
    plan.job.command = {"train", "{lr}", "{bs}"};
    return std::make_shared<const sweep::Plan>(*sweep::checked(std::move(plan)));
  }
  // A number of a sweep that there is, most of the time.
  std::uint64_t any_sweep() {
    const auto& all = state_.sweeps().all();
    if (all.empty() || one_in(20)) return below(50);
    auto at = all.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(all.size())));
    return at->first;
  }
  JobId any_trial() {
    const sweep::Sweep* sweep = state_.sweeps().find(any_sweep());
    if (sweep == nullptr || sweep->active().empty()) return any_active();
    auto at = sweep->active().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(sweep->active().size())));
    return *sweep->find(*at)->job;
  }
  Input any_for_sweeps() {
    using Wish = ChangeSweep::Kind;
    if (one_in(4)) return StartSweep{any_plan(), one_in(2)};
    if (one_in(2)) {
      TrialReport report{any_trial(), 0, {}};
      for (std::uint64_t i = 0; i < 1 + below(3); ++i)
        report.points.push_back({any<std::uint64_t>({1, 3, 9}), {{"loss", any_loss()}}});
      return report;
    }
    ChangeSweep change{any_sweep(),
                       any<Wish>({Wish::kPause, Wish::kStop, Wish::kResume, Wish::kResume,
                                  Wish::kExtend, Wish::kRemove}),
                       caller(one_in(3) ? any_user() : "root")};
    change.trials = 1 + below(5);
    return change;
  }

  void pass_time() {
    now_.ms += static_cast<std::int64_t>(below(one_in(10) ? 100'000'000 : 600'000));
    if (one_in(20)) now_.ms -= 7'200'000;
    if (one_in(5)) {
      PoolCard& card = machine_.cards[below(machine_.cards.size())];
      card.lost = !card.lost && one_in(2);
    }
    (void)take(Look{});
    if (one_in(50)) apply(Booted{"boot-" + std::to_string(below(1000))});
    if (one_in(50)) apply(Repaired{below(3), 0});
  }

  std::mt19937_64 random_;
};

}  // namespace mete::core
