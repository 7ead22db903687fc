// SPDX-License-Identifier: Apache-2.0
// Our declarations of the CUDA driver interface against a real cuda.h: every size, offset, value
// and signature that we declare must be the toolkit's.
#include "tests/checks/cuda_abi.h"

#include <gtest/gtest.h>

namespace cuda_abi {

TEST(CudaAbi, AgreesWithARealHeader) {
  const Facts ours = our_facts();
  const Facts real = real_facts();
  ASSERT_EQ(ours.size(), real.size());
  ASSERT_GT(ours.size(), 900u);
  for (const auto& [name, value] : ours) EXPECT_EQ(value, real.at(name)) << name;
}

}  // namespace cuda_abi
