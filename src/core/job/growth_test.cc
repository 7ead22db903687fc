// SPDX-License-Identifier: Apache-2.0
// Shares that grow, and how their growth is taken back.
#include "core/test/park_world.h"

namespace mete::core {
namespace {

class GrowthTest : public ParkWorld {
 protected:
  Bytes allowed(JobId id) { return job(id).grant[0].bytes; }
  void wants(JobId id, std::uint64_t gib) {
    ASSERT_TRUE(take(Grow{id, 0, {Bytes::from_gib(gib)}}).ok());
  }
};

TEST_F(GrowthTest, AShareGrowsWhileItsCardHasRoom) {
  machine_.cards.resize(1);
  const JobId id = run("8G..70G");
  EXPECT_EQ(allowed(id), Bytes::from_gib(8));
  wants(id, 20);
  EXPECT_GE(allowed(id), Bytes::from_gib(20));
  wants(id, 90);
  EXPECT_EQ(allowed(id), Bytes::from_gib(70)) << "its ceiling";
  wants(id, 10);
  EXPECT_EQ(allowed(id), Bytes::from_gib(10)) << "what it frees is others'";
  const JobId other = submit("69G", "bob");
  EXPECT_EQ(grant(), Ids{other});
  wants(id, 20);
  EXPECT_EQ(allowed(id), Bytes::from_gib(10)) << "there is no room";
}

TEST_F(GrowthTest, AGuaranteedRequestTakesBackWhatIsNotUsedAndThenParks) {
  machine_.cards.resize(1);
  const JobId id = run("8G..70G");
  wants(id, 60);
  later(60);
  const JobId other = submit("60G", "bob");
  EXPECT_EQ(turn().shrink, Ids{id});
  EXPECT_TRUE(turn().shrink.empty()) << "it was asked";
  wants(id, 40);  // it uses all of it
  EXPECT_EQ(allowed(id), Bytes::from_gib(40));
  wants(id, 50);
  EXPECT_EQ(allowed(id), Bytes::from_gib(40)) << "no growth while somebody waits for the room";
  EXPECT_EQ(parked_for(other, turn()), Ids{id});
  away(id);
  (void)turn();
  EXPECT_EQ(state_of(other), JobState::kStarting);
  ended(other);
  EXPECT_EQ(turn().back, Ids{id});
}

TEST_F(GrowthTest, WhoShedsIsNotParked) {
  machine_.cards.resize(1);
  JobSpec spec = spec_of("8G..70G");
  spec.shed = true;
  const JobId id = run(spec);
  wants(id, 60);
  later(60);
  const JobId other = submit("60G", "bob");
  EXPECT_EQ(turn().shrink, Ids{id});
  wants(id, 40);
  EXPECT_TRUE(turn().park.empty());
  wants(id, 20);  // it has freed some memory
  (void)turn();
  EXPECT_EQ(state_of(other), JobState::kStarting);
}

TEST_F(GrowthTest, NoShareGrowsBeyondTheQuotaOfItsUser) {
  Quota quota;
  quota.bytes = Bytes::from_gib(30);
  ASSERT_TRUE(take(SetQuota{"alice", quota, caller("root")}).ok());
  (void)run("10G");
  const JobId id = run("8G..70G");
  wants(id, 19);
  EXPECT_EQ(allowed(id), Bytes::from_gib(20));
  wants(id, 21);
  EXPECT_EQ(allowed(id), Bytes::from_gib(20));
}

TEST_F(GrowthTest, TwoThatGrowNeverHaveMoreThanTheCardAndNeverWaitForEachOther) {
  machine_.cards.resize(1);
  const JobId a = run("8G..80G");
  const JobId b = run("8G..80G", "bob");
  for (std::uint64_t gib = 8; gib <= 80; gib += 3) {
    wants(a, gib);
    wants(b, gib);
    ASSERT_LE(granted_on_first(), Bytes::from_gib(80));
  }
  EXPECT_EQ(state_of(a), JobState::kRunning);
  EXPECT_EQ(state_of(b), JobState::kRunning);
  ended(a);
  wants(b, 80);
  EXPECT_EQ(allowed(b), Bytes::from_gib(80));
}

}  // namespace
}  // namespace mete::core
