// SPDX-License-Identifier: Apache-2.0
// Module images, text in and values out; and damaged images.
#include "simgpu/module_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace simgpu {
namespace {

const std::string kOwn =
    "simgpu-module 1\n# comment\n\nkernel deep local=4096 regs=64 params=8,4,8\n"
    "global table 1024\nglobal shared 64 managed\n";
const std::string kPtx =
    ".version 8.0\n.target sm_90\n.global .align 4 .b8 g[64];\n"
    ".visible .entry k(\n.param .u64 a,\n.param .f32 b)\n{\n.local .align 8 .b8 d[40];\n"
    "ld.global.u32 %r1, [%rd1];\nret;\n}\n";

TEST(ModuleText, OwnForm) {
  ModuleSpec spec;
  ASSERT_EQ(read_module(kOwn.c_str(), &spec), ModuleVerdict::kOk);
  ASSERT_EQ(spec.kernels.size(), 1u);
  EXPECT_STREQ(spec.kernels[0].name, "deep");
  EXPECT_EQ(spec.kernels[0].local_bytes, 4096u);
  EXPECT_EQ(spec.kernels[0].registers, 64u);
  ASSERT_EQ(spec.kernels[0].parameter_count, 3u);
  EXPECT_EQ(spec.kernels[0].parameters[1].offset, 8u);
  EXPECT_EQ(spec.kernels[0].parameters[2].offset, 16u);
  ASSERT_EQ(spec.globals.size(), 2u);
  EXPECT_EQ(spec.globals[0].bytes, 1024u);
  EXPECT_TRUE(spec.globals[1].managed);
}

TEST(ModuleText, Ptx) {
  ModuleSpec spec;
  ASSERT_EQ(read_module(kPtx.c_str(), &spec), ModuleVerdict::kOk);
  ASSERT_EQ(spec.kernels.size(), 1u);
  EXPECT_STREQ(spec.kernels[0].name, "k");
  EXPECT_EQ(spec.kernels[0].parameter_count, 2u);
  EXPECT_EQ(spec.kernels[0].local_bytes, 40u);
  ASSERT_EQ(spec.globals.size(), 1u);
  EXPECT_EQ(spec.globals[0].bytes, 64u);
}

TEST(ModuleText, WhatIsNotAModuleIsRefused) {
  for (const char* text : {"", "hello", "simgpu-module 2\n", "\x7f"}) {
    ModuleSpec spec;
    EXPECT_EQ(read_module(text, &spec), ModuleVerdict::kNotAModule) << text;
  }
  for (const char* line : {"kernel\n", "kernel k local=\n", "kernel k what=1\n", "global g\n",
                           "global g 0\n", "global g 99999999999999999999\n", "table t 5\n"}) {
    ModuleSpec spec;
    const std::string text = std::string("simgpu-module 1\n") + line;
    EXPECT_EQ(read_module(text.c_str(), &spec), ModuleVerdict::kBadText) << line;
  }
}

TEST(ModuleText, DamagedTextNeverReadsPastItsEnd) {
  std::mt19937 random(7);
  for (const std::string& whole : {kOwn, kPtx}) {
    for (int round = 0; round < 20000; round++) {
      std::string text = whole.substr(0, random() % (whole.size() + 1));
      for (uint64_t i = random() % 4; i > 0 && !text.empty(); i--)
        text[random() % text.size()] = static_cast<char>(1 + random() % 126);
      ModuleSpec spec;
      (void)read_module(std::string(text).c_str(), &spec);  // a copy of its own: ASan sees its end
    }
  }
}

}  // namespace
}  // namespace simgpu
