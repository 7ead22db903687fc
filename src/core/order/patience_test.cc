// SPDX-License-Identifier: Apache-2.0
// Long histories of a busy machine, by seed: the first job in the queue starts by the time that was
// found for it, no job starves under a stream of small jobs, and a quiet machine drains. Busy plays
// a history: jobs end by themselves, a pass follows each end, and time jumps to the next one.
#include <algorithm>
#include <map>
#include <random>

#include "core/test/state_world.h"

namespace mete::core {
namespace {

constexpr std::uint64_t kSeeds = 30;

// Jobs that end by themselves, each after its own time.
class Busy : public World {
 public:
  explicit Busy(std::uint64_t seed, Rules rules = {}) : random_(seed) { state_ = State(rules); }

  std::uint64_t below(std::uint64_t count) { return random_() % count; }
  template <typename T>
  T any(std::vector<T> list) {
    return list[below(list.size())];
  }

  // The job runs for this long, by itself or by its limit.
  JobId submit_for(JobSpec spec, std::int64_t seconds) {
    const JobId id = submit(std::move(spec));
    takes_[id.number] = seconds;
    return id;
  }
  Ids walk() {
    Ids ids = grant();
    for (const JobId id : ids) {
      started(id);
      ends_.emplace(now_.ms + takes_.at(id.number) * 1000, id);
    }
    return ids;
  }
  // Moves to the next time at which something changes, and ends the jobs that are due. False: no
  // job runs.
  bool step() {
    if (ends_.empty()) return false;
    const std::optional<WallTime> change = state_.next_change(now_);
    later_until(std::min(ends_.begin()->first, change ? change->ms : ends_.begin()->first));
    while (!ends_.empty() && ends_.begin()->first <= now_.ms) {
      const JobId id = ends_.begin()->second;
      ends_.erase(ends_.begin());
      ended(id);
    }
    return true;
  }
  void later_until(std::int64_t ms) {
    now_.ms = std::max(now_.ms, ms);
    settle();
  }
  std::size_t running() const { return ends_.size(); }

 private:
  std::mt19937_64 random_;
  std::map<std::uint64_t, std::int64_t> takes_;
  std::multimap<std::int64_t, JobId> ends_;
};

JobSpec any_job(Busy& world) {
  JobSpec spec = spec_of(world.any<std::string>(
      {"5G", "10G", "20G", "30%", "60G", "80G", "1", "2", "2x20G", "2x60G", "0"}));
  if (world.below(4) == 0) spec.request.cpus = static_cast<unsigned>(1 + world.below(6));
  spec.time_s = world.any<std::uint64_t>({60, 300, 600, 1800, 7200});
  spec.name = "job" + std::to_string(world.below(3));
  return spec;
}

// ---- the first in the queue --------------------------------------------------------------------

// All jobs have a time limit; many end sooner. They keep arriving, so some job could always
// overtake.
void keeps_its_word(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rules rules;
  rules.cpus = 8;
  rules.starve_after_s = 1'000'000'000;
  Busy world(seed, rules);
  world.machine_ = pool_of({80, 80, 40});
  Reserve reserve;
  reserve.user = "carol";
  reserve.request.gpu = *parse_gpu(world.any<std::string>({"1", "40G", "2x40G"}));
  reserve.from = {world.now_.ms + 3'600'000};
  reserve.until = {world.now_.ms + 9'000'000};
  reserve.by = caller("root");
  ASSERT_TRUE(world.take(reserve).ok());

  std::map<JobId, WallTime> promised;
  std::size_t promises = 0;
  std::size_t let_past = 0;
  for (int turn = 0; turn < 400; ++turn) {
    for (std::uint64_t i = world.below(4); i > 0 && world.state_.pending().size() < 40; --i) {
      JobSpec spec = any_job(world);
      const auto limit = static_cast<std::int64_t>(*spec.time_s);
      const std::int64_t longest = limit + static_cast<std::int64_t>(rules.grace_s);
      world.submit_for(spec, world.any<std::int64_t>({1, limit / 3, limit, longest}));
    }
    const PassResult result = world.state_.look(world.moment()).result;
    for (const JobId id : world.walk()) {
      if (result.held_for && id > *result.held_for) ++let_past;
      if (const auto found = promised.find(id); found != promised.end()) {
        ASSERT_LE(world.now_, found->second) << "job " << to_string(id) << " was delayed";
        promised.erase(found);
      }
    }
    if (result.held_for && result.held_until) {
      const auto [found, added] = promised.try_emplace(*result.held_for, *result.held_until);
      if (added) ++promises;
      ASSERT_LE(*result.held_until, found->second)
          << "job " << to_string(*result.held_for) << " would be delayed";
      found->second = *result.held_until;
    }
    for (const auto& [id, by] : promised)
      ASSERT_GE(by, world.now_) << "job " << to_string(id) << " should have started";
    if (!world.step()) world.later(60);
  }
  EXPECT_GT(promises, 20u) << "somebody was first in line and had to wait";
  EXPECT_GT(let_past, 20u) << "and others were let past";
}

TEST(Patience, TheFirstInLineStartsByTheTimeThatWasFoundForIt) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) keeps_its_word(seed);
}

// ---- no job starves ----------------------------------------------------------------------------

struct Stream {
  bool times = false;         // small jobs have a time limit
  std::string user;           // of the small jobs
  std::int32_t priority = 0;  // of the small jobs
};

std::size_t small_ones_before(std::uint64_t seed, const std::string& large_gpu,
                              const Stream& stream) {
  Rules rules;
  rules.starve_after_s = 7200;
  rules.cpus = 4;
  Busy world(seed, rules);
  world.machine_ = pool_of({80, 80});
  const auto small = [&] {
    JobSpec spec = spec_of(world.any<std::string>({"5G", "10G", "20G", "0"}), stream.user);
    spec.name = "small";
    const std::int64_t takes = 30 + static_cast<std::int64_t>(world.below(600));
    if (stream.times) spec.time_s = static_cast<std::uint64_t>(takes);
    const JobId id = world.submit_for(spec, takes);
    if (stream.priority == 0) return;
    EXPECT_TRUE(world.take(SetPriority{id, caller("root"), stream.priority}).ok());
  };
  for (int i = 0; i < 40; ++i) small();
  world.walk();
  JobSpec spec = spec_of(large_gpu, "alice");
  spec.name = "large";
  if (large_gpu == "0") spec.request.cpus = 4;
  const JobId large = world.submit_for(spec, 600);
  std::size_t started = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    while (world.state_.pending().size() < 40) small();
    for (const JobId id : world.walk()) {
      if (id == large) return started;
      ++started;
    }
    world.step();
  }
  ADD_FAILURE() << "it never starts";
  return started;
}

TEST(Patience, ALargeJobStartsUnderAStreamOfSmallOnes) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const char* large : {"80G", "2x70G", "2", "1", "0"})
      for (const bool times : {false, true})
        for (const char* user : {"alice", "bob"}) {
          SCOPED_TRACE("seed " + std::to_string(seed) + ", " + large + ", stream of " + user);
          EXPECT_LT(small_ones_before(seed, large, {times, user, 0}), 500u);
        }
}

TEST(Patience, EvenUnderAStreamOfHigherPriority) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
    for (const char* large : {"2", "2x70G"}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + large);
      EXPECT_GT(small_ones_before(seed, large, {false, "bob", 10}), 50u) << "it does go first";
    }
}

// ---- a quiet machine drains --------------------------------------------------------------------

TEST(Patience, EverybodyHasHadATurnInTheEnd) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rules rules;
    rules.cpus = 4;
    Busy world(seed, rules);
    world.machine_ = pool_of({80, 80, 40});
    for (int i = 0; i < 200; ++i) {
      JobSpec spec = any_job(world);
      spec.user = world.any<std::string>({"alice", "bob", "carol"});
      spec.uid = uid_of(spec.user);
      spec.priority = static_cast<std::int32_t>(world.below(3)) - 2;
      if (world.below(2) == 0) spec.time_s.reset();
      world.submit_for(spec, static_cast<std::int64_t>(1 + world.below(3000)));
    }
    std::size_t turns = 0;
    while (world.state_.unfinished() > 0 && ++turns < 1000) {
      world.walk();
      ASSERT_TRUE(world.step()) << "nothing runs, and " << world.state_.unfinished() << " wait";
    }
    EXPECT_EQ(world.state_.unfinished(), 0u);
  }
}

}  // namespace
}  // namespace mete::core
