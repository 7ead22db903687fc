// SPDX-License-Identifier: Apache-2.0
#include "node/unasked.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "abi/grant.h"

namespace mete::node {
namespace {

constexpr std::uint64_t kMib = 16;  // units
constexpr std::uint64_t kHeadroom = abi::units_for(abi::kHeadroomBytes);

Holding at_rest(std::uint64_t held, std::uint64_t charge, std::uint64_t lent = 0) {
  return {held, charge, charge, lent, true};
}

// Repeats a reading; returns the last verdict.
Unasked::Verdict see(Unasked& unasked, const Holding& now, unsigned times) {
  Unasked::Verdict last;
  for (unsigned i = 0; i < times; ++i) last = unasked.see(now);
  return last;
}

using Verdict = Unasked::Verdict;

TEST(Unasked, WhatAContextDoesNotNeedIsSpareOnceNothingHasMoved) {
  Unasked unasked;
  EXPECT_EQ(see(unasked, at_rest(518 * kMib, 580 * kMib), Unasked::kSame), Verdict{});
  EXPECT_EQ(unasked.see(at_rest(518 * kMib, 580 * kMib)), (Verdict{0, 54 * kMib}));
}

TEST(Unasked, WhatIsLentIsNeitherMissingNorLentAgain) {
  Unasked unasked;
  see(unasked, at_rest(518 * kMib, 580 * kMib), 20);
  EXPECT_EQ(see(unasked, at_rest(518 * kMib, 526 * kMib, 54 * kMib), 20), Verdict{});
}

TEST(Unasked, WhatTheDriverTookAndGaveBackIsLentLater) {
  Unasked unasked;
  see(unasked, at_rest(538 * kMib, 580 * kMib), 20);
  see(unasked, at_rest(538 * kMib, 546 * kMib, 34 * kMib), 20);
  EXPECT_EQ(see(unasked, at_rest(518 * kMib, 546 * kMib, 34 * kMib), Unasked::kSame), Verdict{});
  EXPECT_EQ(unasked.see(at_rest(518 * kMib, 546 * kMib, 34 * kMib)), (Verdict{0, 20 * kMib}));
}

TEST(Unasked, GrowthIsChargedAfterTwoReadingsAndKeptAhead) {
  Unasked unasked;
  see(unasked, at_rest(518 * kMib, 526 * kMib, 54 * kMib), 20);
  const Holding grown = at_rest(558 * kMib, 526 * kMib, 54 * kMib);
  EXPECT_EQ(unasked.see(grown), Verdict{});
  EXPECT_EQ(unasked.see(grown), (Verdict{40 * kMib, 0}));
  EXPECT_EQ(see(unasked, grown, 20), (Verdict{40 * kMib, 0}));
  EXPECT_EQ(unasked.see(at_rest(518 * kMib, 526 * kMib, 54 * kMib)), Verdict{});
}

TEST(Unasked, AnythingThatMovesBeginsTheWaitAnew) {
  const Holding rest = at_rest(518 * kMib, 580 * kMib);
  Holding grows = rest, charged = rest, moves = rest, unsettled = rest, unknown = rest;
  grows.held += 2 * kMib;
  charged.least = charged.most = 581 * kMib;
  moves.most += 1;
  unsettled.is_settled = false;
  unknown.held = 0;
  for (const Holding& other : {grows, charged, moves, unsettled, unknown}) {
    Unasked unasked;
    see(unasked, rest, Unasked::kSame);
    EXPECT_EQ(unasked.see(other), Verdict{});
    EXPECT_EQ(see(unasked, rest, Unasked::kSame), Verdict{});
    EXPECT_EQ(see(unasked, rest, 2).spare, 54 * kMib);
  }
}

TEST(Unasked, NothingIsSpareOfAChargeThatIsUsedOrCannotBeMeasured) {
  Unasked unasked;
  EXPECT_EQ(see(unasked, at_rest(580 * kMib - kHeadroom, 580 * kMib), 20), Verdict{});
  EXPECT_EQ(see(unasked, at_rest(0, 580 * kMib), 20), Verdict{});
}

// Whatever the driver takes unasked: the charge never falls below the last reading and the
// headroom, and at rest no more than the headroom is lost.
TEST(Unasked, FollowsTheReadingUpAndDown) {
  Unasked unasked;
  const std::uint64_t reserve = 60 * kMib;
  const std::uint64_t asked = 520 * kMib;  // the context and the spare slab
  std::uint64_t lent = 0;
  for (const std::uint64_t own : {0, 10, 40, 200, 60, 3, 0, 58}) {
    const std::uint64_t held = 518 * kMib + own * kMib;
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t charge = asked + reserve - lent;
      const Verdict verdict = unasked.see(at_rest(held, charge, lent));
      const std::uint64_t given = std::min(verdict.spare, reserve - lent);
      if (i > 0) {
        EXPECT_GE(charge + verdict.excess, held + kHeadroom) << own;
      }
      EXPECT_GE(charge - given + verdict.excess, std::min(charge, held + kHeadroom)) << own;
      lent += given;
      if (i > 10) {
        EXPECT_EQ(charge + verdict.excess, held + kHeadroom) << own;
      }
    }
  }
}

}  // namespace
}  // namespace mete::node
