// SPDX-License-Identifier: Apache-2.0
// What holds in every history: replay gives an equal state, with and without a snapshot, grants fit
// the cards, and the counts are right.
#include <map>

#include "core/test/random_world.h"

namespace mete::core {
namespace {

constexpr std::uint64_t kSeeds = 60;
constexpr int kSteps = 1000;

void expect_same(const State& one, const State& other, const Moment& moment) {
  ASSERT_EQ(one, other);
  ASSERT_EQ(one.due(moment), other.due(moment));
  ASSERT_EQ(one.grants(moment), other.grants(moment));
  ASSERT_EQ(one.next_change(moment.now), other.next_change(moment.now));
  ASSERT_EQ(one.active(), other.active());
  ASSERT_EQ(one.pending().size(), other.pending().size());
  ASSERT_EQ(one.pending().kinds(), other.pending().kinds());
  ASSERT_EQ(one.blobs(), other.blobs());
  for (const char* user : {"alice", "bob", "carol", "root"}) {
    ASSERT_EQ(one.held_by(user), other.held_by(user));
    ASSERT_EQ(one.disk_of(user), other.disk_of(user));
    ASSERT_EQ(one.unfinished_of(user), other.unfinished_of(user));
    ASSERT_EQ(one.fair_share().usage(user, moment.now), other.fair_share().usage(user, moment.now));
  }
}

void expect_grants_fit(const State& state, const Pool& machine) {
  for (const PoolCard& card : state.with_grants(machine).cards) {
    Bytes granted;
    bool whole = false;
    std::size_t there = 0;  // running, not parked
    for (const Holder& holder : card.holders) {
      granted += holder.bytes;
      whole = whole || holder.whole;
      there += holder.parked ? 0 : 1;
    }
    ASSERT_LE(granted, card.card.capacity) << "card " << card.card.index;
    ASSERT_TRUE(!whole || there == 1) << "card " << card.card.index;
  }
}

void expect_counts_right(const State& state) {
  std::map<std::string, std::size_t> unfinished;
  std::map<std::uint64_t, std::uint32_t> at_once;
  std::size_t in_line = 0;
  for (const auto& [id, job] : state.jobs()) {
    const bool ended = job.state == JobState::kEnded;
    ASSERT_EQ(job.outcome.has_value(), ended || job.state == JobState::kStopping);
    ASSERT_EQ(job.ended.has_value(), ended);
    ASSERT_EQ(state.active().contains(id), !ended && job.state != JobState::kPending);
    if (job.state == JobState::kPending) {
      ASSERT_TRUE(job.grant.empty());
      if (!job.held && job.unmet.empty()) ++in_line;
    }
    ASSERT_LE(job.attempts.size(), kAttemptsKept);
    if (ended) continue;
    ++unfinished[job.spec->user];
    if (!state.active().contains(id) || !job.spec->array || !job.spec->array->at_once) continue;
    ASSERT_LE(++at_once[id.number], *job.spec->array->at_once);
  }
  ASSERT_EQ(state.pending().size(), in_line);
  for (const auto& [user, count] : unfinished) ASSERT_EQ(state.unfinished_of(user), count);
}

void live_through(std::uint64_t seed, std::map<std::string, std::size_t>& happened) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomWorld world(seed);
  const Rules rules = world.state_.rules();
  State::Parts snapshot;
  for (int i = 0; i < kSteps; ++i) {
    world.step();
    expect_grants_fit(world.state_, world.machine_);
    expect_counts_right(world.state_);
    if (testing::Test::HasFatalFailure()) return;
    if (world.one_in(100)) snapshot = world.state_.parts();
    if (!world.one_in(30)) continue;
    world.settle();  // a daemon stops only after settling
    expect_same(world.state_, State::from_parts(world.state_.parts(), rules), world.moment());
    State replayed(rules);
    State continued = State::from_parts(snapshot, rules);
    for (const Event& event : world.events_) {
      replayed.apply(event);
      if (event.seq > snapshot.last_seq) continued.apply(event);
    }
    expect_same(world.state_, replayed, world.moment());
    expect_same(world.state_, continued, world.moment());
    if (testing::Test::HasFatalFailure()) return;
  }
  for (const Event& event : world.events_) ++happened[std::string(type_of(event.what))];
}

TEST(History, ReplayAndSnapshotComeToTheSame) {
  std::map<std::string, std::size_t> happened;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) live_through(seed, happened);
  EXPECT_EQ(happened.size(), std::variant_size_v<Happened>) << "everything that can happen did";
  for (const auto& [type, count] : happened) EXPECT_GT(count, 10u) << type;
}

}  // namespace
}  // namespace mete::core
