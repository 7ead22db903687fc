// SPDX-License-Identifier: Apache-2.0
// Random histories through the text in which they are stored: every event and every snapshot reads
// back as it was, and leads to the same decisions from there on.
#include "core/test/random_world.h"
#include "wire/event.h"
#include "wire/state.h"

namespace mete::engine {
namespace {

constexpr std::uint64_t kSeeds = 15;
constexpr int kSteps = 600;

void live_through(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  core::RandomWorld world(seed);
  core::State replayed(world.state_.rules());
  std::size_t read = 0;
  for (int i = 0; i < kSteps; ++i) {
    world.step();
    for (; read < world.events_.size(); ++read) {
      const core::Event& event = world.events_[read];
      const Result<core::Happened> again =
          wire::decode_event(core::type_of(event.what), wire::encode(event.what));
      ASSERT_TRUE(again.ok()) << again.error().message;
      ASSERT_EQ(*again, event.what);
      replayed.apply({event.seq, event.at, *again});
    }
    ASSERT_EQ(replayed, world.state_);
    if (!world.one_in(20)) continue;
    world.settle();
    const core::State::Parts parts = world.state_.parts();
    const Result<core::State::Parts> again = wire::decode_parts(wire::encode(parts));
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(*again, parts);
    const core::State restored = core::State::from_parts(*again, world.state_.rules());
    ASSERT_EQ(restored, world.state_);
    ASSERT_EQ(restored.grants(world.moment()), world.state_.grants(world.moment()));
    ASSERT_EQ(restored.due(world.moment()), world.state_.due(world.moment()));
  }
}

TEST(History, ReadsBackFromItsText) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) live_through(seed);
}

}  // namespace
}  // namespace mete::engine
