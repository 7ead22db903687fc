// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.h"

#include <gtest/gtest.h>

namespace mete::base {
namespace {

TEST(Descriptors, AllSharesTogetherAreWithinTheLimit) {
  for (std::size_t limit = 56; limit < 100'000; limit += 7) {
    const DescriptorShares shares = share_descriptors(limit);
    EXPECT_LE(kOwnDescriptors + shares.connections + 2 * shares.handles + shares.starting, limit);
    EXPECT_GE(shares.connections, 4u);
    EXPECT_GE(shares.starting, 2u);
  }
}

TEST(Descriptors, FewAreSharedEvenSo) {
  for (const std::size_t limit : {0, 3, 20}) EXPECT_GE(share_descriptors(limit).connections, 4u);
}

TEST(Descriptors, ThousandsAreEnoughWhereABillionIsAllowed) {
  const DescriptorShares shares = share_descriptors(1'000'000'000);
  EXPECT_EQ(shares.connections, 4096u);
  EXPECT_EQ(shares.starting, 256u);
}

}  // namespace
}  // namespace mete::base
