// SPDX-License-Identifier: Apache-2.0
#include "node/nvml_processes.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

using seam::ProcessReading;

TEST(MergeProcesses, APidInTwoListsHoldsItsMemoryOnce) {
  std::vector<ProcessReading> all = {{30, Bytes::from_mib(518), false},
                                     {10, Bytes::from_mib(100), false}};
  merge_processes(all, {{30, Bytes::from_mib(520), false}, {20, std::nullopt, false}});
  EXPECT_EQ(all, (std::vector<ProcessReading>{{10, Bytes::from_mib(100), false},
                                              {20, std::nullopt, false},
                                              {30, Bytes::from_mib(520), false}}));
}

TEST(MergeProcesses, AKnownFigureBeatsAnUnknownOne) {
  std::vector<ProcessReading> all = {{7, std::nullopt, false}};
  merge_processes(all, {{7, Bytes::from_mib(3), true}});
  EXPECT_EQ(all, (std::vector<ProcessReading>{{7, Bytes::from_mib(3), true}}));
  merge_processes(all, {{7, std::nullopt, false}});
  EXPECT_EQ(all, (std::vector<ProcessReading>{{7, Bytes::from_mib(3), true}}));
}

}  // namespace
}  // namespace mete::node
