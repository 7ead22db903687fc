// SPDX-License-Identifier: Apache-2.0
// Each proposed change starts the job, and no smaller one on the grid does: in thousands of random
// worlds each change is applied to the state, by the inputs that users have where possible, and a
// pass is done. The grids are written here a second time, from change.h.
#include "core/explain/change.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/explain/lengths.h"
#include "core/test/state_world.h"

namespace mete::core {
namespace {

// Some bugs showed in one world of a thousand. A sanitizer takes a tenth of a second for each, and
// looks for other faults.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kWorlds = 500;
#else
constexpr std::size_t kWorlds = 2'500;
#endif
constexpr std::size_t kEnough = 2'000;  // worlds in which each kind of change is proposed
using Kind = Change::Kind;

class ChangeTest : public StateWorld {
 protected:
  // ---- a random world ----
  bool one_in(std::size_t count) { return draw_.below(count) == 0; }
  template <typename T>
  T any(std::initializer_list<T> list) {
    return list.begin()[draw_.below(list.size())];
  }

  void new_world(std::uint64_t seed) {
    draw_ = Draw(seed);
    Rules rules;
    rules.starve_after_s = any<std::uint64_t>({3'600, 86'400});
    if (one_in(3)) rules.cpus = static_cast<std::uint32_t>(2 + draw_.below(4));
    state_ = State(rules);
    rules_ = rules;
    events_.clear();
    now_ = {1'800'000'000'000};
    policy_ = any({Policy::kBestFit, Policy::kFirstFit, Policy::kSpread});
    machine_ = {};
    const std::size_t cards = 1 + draw_.below(4);
    for (std::uint32_t i = 0; i < cards; ++i) {
      PoolCard card;
      card.card = {i, "GPU-" + std::to_string(i) + "-abcdef",
                   any<const char*>({"A", "A", "B", "C"}),
                   Bytes::from_mib(1024 * (2 + draw_.below(6)) + any<std::uint64_t>({0, 100}))};
      if (one_in(8)) card.foreign = {{"process 7 of eve", Bytes::from_mib(700)}};
      if (one_in(12)) card.one_process = true;
      machine_.cards.push_back(card);
    }
    const std::size_t steps = 10 + draw_.below(40);
    for (std::size_t i = 0; i < steps; ++i) do_something();
  }

  std::string any_user() { return any<const char*>({"alice", "alice", "bob", "carol"}); }

  JobSpec any_spec() {
    JobSpec spec = spec_of(
        any<const char*>({"512M", "1G", "1500M", "2G", "3G", "4G", "30%", "0.5", "0.755", "100%",
                          "1", "1", "2", "2x1G", "2x50%", "3x600M", "all", "allx20%", "0"}),
        any_user());
    spec.name = any<const char*>({"train", "eval", "serve"});
    if (one_in(3)) spec.time_s = any<std::uint64_t>({50, 600, 3'600, 7'200, 30'000, 400'000});
    if (one_in(4)) spec.priority = static_cast<std::int32_t>(draw_.below(5)) - 2;
    if (one_in(8)) spec.request.gpu_type = any<const char*>({"a", "B", "C"});
    if (one_in(10)) spec.request.devices = {std::to_string(draw_.below(machine_.cards.size()))};
    if (one_in(20) && !spec.request.devices.empty()) spec.request.gpu.reset();
    if (spec.time_s == 50)  // in some worlds
      spec.request.where = *Query::parse(spec.name == "train"  ? "attribute:gpu.free >= 3G"
                                         : spec.name == "eval" ? "attribute:gpu.memory < 5G"
                                                               : "attribute:gpu.type != A");
    if (one_in(4)) spec.request.cpus = 1 + static_cast<unsigned>(draw_.below(5));
    if (one_in(12)) spec.request.procs = 2;
    if (one_in(15)) spec.request.or_cpu = true;
    if (one_in(10)) spec.held = true;
    if (one_in(12)) spec.begin = WallTime{now_.ms + 1'000'000};
    if (one_in(10)) spec.array = *parse_array(any<const char*>({"0-3", "0-4%1", "1-6%2"}));
    if (one_in(10) && !state_.jobs().empty()) {
      const JobId id = any_job();
      spec.after = {{id, any({When::kOk, When::kAny, When::kFail})}};
      spec.user = "root";
      spec.uid = 0;
    }
    if (one_in(4)) {
      spec.detached.reset();
      spec.array.reset();
    }
    return spec;
  }

  JobId any_job() {
    auto at = state_.jobs().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(draw_.below(state_.jobs().size())));
    return at->first;
  }

  void do_something() {
    const std::size_t what = draw_.below(20);
    if (what < 9) {
      Submit submit;
      submit.spec = any_spec();
      if (!submit.spec.detached) submit.runner = ProcessRef{++runners_, 7};
      (void)take(submit);
    } else if (what < 13) {
      go_on();
    } else if (what < 16) {
      now_.ms += static_cast<std::int64_t>(draw_.below(4'000)) * 1000;
      end_some();
    } else if (what == 16) {
      Quota quota;
      if (one_in(2)) quota.running = static_cast<std::uint32_t>(draw_.below(4));
      if (one_in(2)) quota.cards = static_cast<std::uint32_t>(1 + draw_.below(3));
      if (one_in(2)) quota.bytes = Bytes::from_mib(1000 * (1 + draw_.below(9)));
      (void)take(SetQuota{any<const char*>({"alice", "bob", ""}), quota, caller("root")});
    } else if (what == 17) {
      Reserve reserve{any_user(), {}, {}, {}, caller("root")};
      reserve.request.gpu = *parse_gpu(any<const char*>({"1", "1G", "50%"}));
      reserve.from = WallTime{now_.ms + any<std::int64_t>({0, 500'000, 5'000'000})};
      reserve.until = WallTime{reserve.from.ms + 6'000'000};
      (void)take(reserve);
    } else if (what == 18) {
      (void)take(
          Drain{std::to_string(draw_.below(machine_.cards.size())), caller("root"), one_in(2)});
    } else if (!state_.jobs().empty()) {
      (void)take(Cancel{any_job(), caller("root")});
    }
  }
  void go_on() {
    for (const JobId id : grant())
      if (!one_in(6)) started(id);
  }
  void end_some() {
    settle();
    for (const auto& [id, job] : std::map<JobId, Job>(state_.jobs()))
      if (job.state == JobState::kRunning && one_in(4))
        one_in(4) ? fails(id) : ended(id);
      else if (job.state == JobState::kStopping && one_in(2))
        (void)take(JobGone{id});
    settle();
  }

  // ---- the changes, applied ----
  bool starts(const State& state, JobId id) const {
    const std::vector<JobGranted> granted = state.grants(moment());
    return std::any_of(granted.begin(), granted.end(),
                       [id](const JobGranted& each) { return each.id == id; });
  }
  State edited(JobId id, const std::function<void(Job&, JobSpec&)>& edit) const {
    State::Parts parts = state_.parts();
    for (Job& job : parts.jobs)
      if (job.id == id) {
        JobSpec spec = *job.spec;
        edit(job, spec);
        job.spec = spec;
      }
    return State::from_parts(std::move(parts), rules_);
  }
  State asking(JobId id, const Request& request) const {
    return edited(id, [&](Job& job, JobSpec& spec) {
      spec.request = request;
      job.gpu.reset();
    });
  }
  State with_time(JobId id, std::uint64_t seconds) const {
    return edited(id, [&](Job&, JobSpec& spec) { spec.time_s = seconds; });
  }
  State after(const std::vector<Input>& inputs) const {
    State state = state_;
    const auto apply = [&](std::vector<Happened> happened) {
      for (Happened& what : happened) state.apply({state.last_seq() + 1, now_, std::move(what)});
    };
    for (const Input& input : inputs) {
      Result<std::vector<Happened>> happened = state.decide(input, moment());
      EXPECT_TRUE(happened.ok()) << happened.error().message;
      if (happened.ok()) apply(*std::move(happened));
    }
    for (std::vector<Happened> due = state.due(moment()); !due.empty(); due = state.due(moment()))
      apply(std::move(due));
    return state;
  }
  State without(const std::vector<JobId>& ids) const {
    std::vector<Input> inputs;
    for (const JobId id : ids) {
      inputs.emplace_back(Cancel{id, caller("root")});
      inputs.emplace_back(JobGone{id});
    }
    return after(inputs);
  }
  State with_priority(JobId id, std::int32_t priority) const {
    return after({SetPriority{id, caller("root"), priority}});
  }
  State with_quota(const std::string& user, const Quota& quota) const {
    return after({SetQuota{user, quota, caller("root")}});
  }

  bool does(JobId id, const Change& change) {
    const std::string& user = job(id).spec->user;
    switch (change.kind) {
      case Kind::kRelease:
        return starts(after({Release{id, caller("root")}}), id);
      case Kind::kBegin:
        return starts(edited(id, [](Job&, JobSpec& spec) { spec.begin.reset(); }), id);
      case Kind::kTime:
        return starts(with_time(id, *change.time_s), id);
      case Kind::kJobEnds:
        return starts(without(change.jobs), id);
      case Kind::kPriority:
        return starts(with_priority(id, *change.priority), id);
      case Kind::kQuota:
        return starts(with_quota(user, *change.quota), id);
      case Kind::kReservation:
        return starts(after({Unreserve{*change.reservation, caller("root")}}), id);
      case Kind::kUndrain:
        return starts(after({Drain{change.card, caller("root"), false}}), id);
      default:
        return starts(asking(id, *change.request), id);
    }
  }

  // ---- the grids ----
  GpuRequest gpu_of(JobId id) {
    const Request request = request_of(job(id));
    return request.gpu ? *request.gpu
                       : whole_cards(static_cast<std::uint32_t>(request.devices.size()));
  }
  // All shares that are smaller changes than `found`, or all shares.
  std::vector<Request> shares_above(JobId id, const std::optional<Change>& found) {
    std::vector<Memory> list;
    const GpuRequest gpu = gpu_of(id);
    const auto* size = std::get_if<Size>(&gpu.memory);
    const auto* fraction = std::get_if<Fraction>(&gpu.memory);
    const Memory least = found ? found->request->gpu->memory : Memory{WholeCard{}};
    if (size != nullptr) {
      for (std::uint64_t mib = 256; Bytes::from_mib(mib) < size->bytes; mib += 256)
        if (!found || Bytes::from_mib(mib) > std::get<Size>(least).bytes)
          list.emplace_back(Size{Bytes::from_mib(mib)});
    } else {
      for (std::uint32_t milli = 10; milli <= 1000; milli += 10)
        if ((fraction == nullptr || milli < fraction->milli) &&
            (!found || milli > std::get<Fraction>(least).milli))
          list.emplace_back(Fraction{milli});
    }
    std::vector<Request> requests;
    for (const Memory& memory : list) {
      Request request = request_of(job(id));
      request.gpu = GpuRequest{gpu.cards, memory};
      if (!request.devices.empty()) request.gpu->cards = {CardCount::Kind::kOne, 0};
      requests.push_back(request);
    }
    return requests;
  }
  std::vector<Request> cards_above(JobId id, const std::optional<Change>& found) {
    const Request request = request_of(job(id));
    const GpuRequest gpu = gpu_of(id);
    std::uint32_t asked = gpu.cards.kind == CardCount::Kind::kNumber ? gpu.cards.number : 1;
    if (gpu.cards.kind == CardCount::Kind::kAll)
      asked = static_cast<std::uint32_t>(machine_.cards.size());
    const auto count_of = [](const GpuRequest& of) {
      return of.cards.kind == CardCount::Kind::kNumber ? of.cards.number : 1;
    };
    std::vector<Request> requests;
    if (!request.devices.empty()) return requests;
    for (std::uint32_t cards = 1; cards < asked; ++cards) {
      if (found && cards <= count_of(*found->request->gpu)) continue;
      requests.push_back(request);
      requests.back().gpu = GpuRequest{{CardCount::Kind::kNumber, cards}, gpu.memory};
    }
    return requests;
  }
  std::vector<std::uint64_t> times_above(JobId id, const std::optional<Change>& found) {
    std::set<std::uint64_t> grid;
    for (std::uint64_t s = 60; s <= 3'600; s += 60) grid.insert(s);
    for (std::uint64_t s = 3'600; s <= 6 * 3'600; s += 300) grid.insert(s);
    for (std::uint64_t s = 6 * 3'600; s <= 48 * 3'600; s += 3'600) grid.insert(s);
    for (std::uint64_t s = 48 * 3'600; s <= 60 * 86'400; s += 86'400) grid.insert(s);
    const auto usual = state_.estimates().ends_by(*job(id).spec, 0, 50, 1);
    std::vector<std::uint64_t> times;
    for (const std::uint64_t s : grid)
      if (s < job(id).spec->time_s.value_or(UINT64_MAX) && s >= usual.value_or(0) &&
          (!found || s > *found->time_s))
        times.push_back(s);
    return times;
  }

  // From a grid that begins or ends next to what was found: both ends and some others; in some
  // worlds all.
  template <typename T>
  std::vector<T> some_of(std::vector<T> grid) {
    if (grid.size() <= 12 || thorough_) return grid;
    std::vector<T> some{grid.front(), grid.back()};
    for (std::size_t i = 0; i < 6; ++i) some.push_back(grid[draw_.below(grid.size())]);
    return some;
  }

  void check_job(JobId id) {
    SCOPED_TRACE("job " + to_string(id));
    const Sight sight = state_.look(moment());
    const std::vector<Change> list = changes(state_, moment(), sight, job(id));
    std::map<Kind, Change> found;
    for (const Change& change : list) {
      EXPECT_TRUE(does(id, change))
          << to_string(change.kind) << " " << change.argument << " " << change.text;
      found.emplace(change.kind, change);
      ++proposed_[change.kind];
    }
    if (starts(state_, id)) {
      EXPECT_TRUE(list.empty());
      return;
    }
    const bool in_line = !job(id).held && job(id).unmet.empty() &&
                         !(job(id).spec->begin && *job(id).spec->begin > now_);
    if (in_line) nothing_smaller(id, found);
  }

  void nothing_smaller(JobId id, const std::map<Kind, Change>& found) {
    const auto of = [&](Kind kind) {
      const auto at = found.find(kind);
      return at == found.end() ? std::nullopt : std::optional(at->second);
    };
    if (gpu_of(id).cards.kind != CardCount::Kind::kNone) {
      for (const Request& request : some_of(shares_above(id, of(Kind::kGpu))))
        EXPECT_FALSE(starts(asking(id, request), id)) << to_string(*request.gpu);
      for (const Request& request : cards_above(id, of(Kind::kCards)))
        EXPECT_FALSE(starts(asking(id, request), id)) << to_string(*request.gpu);
    }
    for (const std::uint64_t seconds : some_of(times_above(id, of(Kind::kTime))))
      EXPECT_FALSE(starts(with_time(id, seconds), id)) << seconds << " s";
    no_smaller_end(id, of(Kind::kJobEnds));
    const std::int32_t most = of(Kind::kPriority) ? *of(Kind::kPriority)->priority : 10;
    for (std::int32_t priority = job(id).priority + 1; priority < most; ++priority)
      EXPECT_FALSE(starts(with_priority(id, priority), id)) << "priority " << priority;
    for (const auto& [kind, change] : found)
      if (kind == Kind::kQuota) no_smaller_quota(id, change);
  }

  void no_smaller_end(JobId id, const std::optional<Change>& found) {
    const bool one = found && found->jobs.size() == 1;
    const auto weight = [this](JobId of) { return std::pair(held_of(job(of).grant).bytes, of); };
    for (const JobId active : state_.active()) {
      if (one && weight(active) >= weight(found->jobs.front())) continue;
      EXPECT_FALSE(starts(without({active}), id)) << "without " << to_string(active);
    }
    if (!found || one) return;
    for (std::size_t i = 0; i < found->jobs.size(); ++i) {
      std::vector<JobId> fewer = found->jobs;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(starts(without(fewer), id)) << "with job " << to_string(found->jobs[i]);
    }
  }

  void no_smaller_quota(JobId id, const Change& change) {
    const std::string& user = job(id).spec->user;
    PassInput input;
    input.quotas = state_.quotas();
    const Quota now = input.quota_of(user);
    Quota less = *change.quota;
    while (less.running != now.running) {
      --*less.running;
      EXPECT_FALSE(starts(with_quota(user, less), id)) << *less.running << " running";
    }
    while (less.cards != now.cards) {
      --*less.cards;
      EXPECT_FALSE(starts(with_quota(user, less), id)) << *less.cards << " cards";
    }
    while (less.bytes > now.bytes) {
      less.bytes = *less.bytes - std::min(Bytes::from_gib(1), *less.bytes - *now.bytes);
      EXPECT_FALSE(starts(with_quota(user, less), id)) << to_string(*less.bytes);
    }
  }

  Draw draw_{0};
  Rules rules_;
  bool thorough_ = false;
  std::map<Kind, std::size_t> proposed_;
};

TEST_F(ChangeTest, EachStartsTheJobAndNothingSmallerDoes) {
  for (std::uint64_t seed = 1; seed <= kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    new_world(seed);
    thorough_ = seed % 16 == 0;
    for (const auto& [id, job] : state_.jobs())
      if (job.state == JobState::kPending) check_job(id);
  }
  for (std::size_t kind = 0; kWorlds > kEnough && kind <= static_cast<std::size_t>(Kind::kUndrain);
       ++kind)
    EXPECT_GT(proposed_[static_cast<Kind>(kind)], 0u) << to_string(static_cast<Kind>(kind));
  for (const auto& [kind, count] : proposed_)
    RecordProperty("proposed-" + std::string(to_string(kind)), static_cast<int>(count));
}

// B waits for A to succeed and C for B to end: cancelling A ends B, and lets C go first.
TEST_F(ChangeTest, TheEndOfAJobLetsThoseInWhoWaitedForOneThatWaitedForIt) {
  const JobId a = run("60G");
  JobSpec b = spec_of("1G", "root");
  b.after = {{a, When::kOk}};
  JobSpec c = spec_of("60G", "root");
  c.priority = 5;
  c.after = {{submit(b), When::kAny}};
  (void)submit(c);
  const JobId waits = submit("60G");
  check_job(waits);
  EXPECT_EQ(proposed_[Kind::kJobEnds], 0u);
}

// As the first in the queue it would get half of the large card, which is above the user's quota.
TEST_F(ChangeTest, APriorityCanHelpWhereTheHighestOneDoesNot) {
  policy_ = Policy::kSpread;
  machine_ = pool_of({80, 40});
  const JobId before = run("1G");
  later(600);
  ended(before);
  JobSpec large = spec_of("50G", "root");
  large.priority = 1;
  (void)submit(large);
  (void)submit("20G");
  const JobId half = submit("50%");
  Quota quota;
  quota.bytes = Bytes::from_gib(20);
  (void)take(SetQuota{"alice", quota, caller("root")});
  check_job(half);
  const std::vector<Change> found = changes(state_, moment(), state_.look(moment()), job(half));
  const auto change = std::find_if(found.begin(), found.end(),
                                   [](const Change& c) { return c.kind == Kind::kPriority; });
  ASSERT_NE(change, found.end());
  EXPECT_EQ(change->priority, 1);
}

TEST_F(ChangeTest, AHigherPriorityIsOneAboveThoseWhoWouldBeParked) {
  machine_ = pool_of({80});
  JobSpec spec = spec_of("60G", "root");
  spec.preemptible = true;
  spec.priority = 3;
  (void)run(spec);
  later(600);
  JobSpec first = spec_of("70G", "root");
  first.priority = 10;
  first.begin = WallTime{now_.ms + 3'600'000};
  (void)submit(first);
  const JobId id = submit("60G");
  const Sight sight = state_.look(moment());
  const std::vector<Change> found = changes(state_, moment(), sight, job(id));
  const auto change = std::find_if(found.begin(), found.end(),
                                   [](const Change& c) { return c.kind == Kind::kPriority; });
  ASSERT_NE(change, found.end());
  EXPECT_EQ(change->priority, 4);
}

}  // namespace
}  // namespace mete::core
