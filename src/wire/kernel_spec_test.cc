// SPDX-License-Identifier: Apache-2.0
#include "wire/kernel_spec.h"

#include <gtest/gtest.h>

namespace mete::wire {
namespace {

TEST(KernelSpec, ComesBackAsItWas) {
  const KernelSpec spec{{"/usr/bin/mete", "kernel", "exec", "--", "{connection_file}"},
                        "Python (8 GiB) é \"x\"",
                        KernelSpec::Mete{"8G", "10m", "/usr/bin/python3"}};
  const Result<KernelSpec> read = decode_kernel_spec(encode(spec));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, spec);
  EXPECT_NE(encode(spec).find("\"interrupt_mode\": \"signal\""), std::string::npos);
}

TEST(KernelSpec, OfOthersHasNothingOfMete) {
  const Result<KernelSpec> read = decode_kernel_spec(
      R"({"argv":["python3","-m","ipykernel_launcher"],"display_name":"Python 3","env":{"A":"b"}})");
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->mete);
  const Result<KernelSpec> with =
      decode_kernel_spec(R"({"argv":["x"],"display_name":"x","metadata":{"debugger":true}})");
  ASSERT_TRUE(with.ok());
  EXPECT_FALSE(with->mete);
}

TEST(KernelSpec, WhatIsNoKernelIsAnError) {
  for (const char* text :
       {"", "[]", "{}", R"({"argv":"x","display_name":"x"})", R"({"argv":["x"],"display_name":7})",
        R"({"argv":["x"],"display_name":"x","metadata":{"mete":{"gpu":8}}})"})
    EXPECT_FALSE(decode_kernel_spec(text).ok()) << text;
}

}  // namespace
}  // namespace mete::wire
