// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <gtest/gtest.h>

namespace mete::cli {
namespace {

TEST(Doctor, ChecksSurviveTheWayFromTheHelper) {
  const Checks checks{{Verdict::kOk, "a", "b"},
                      {Verdict::kInfo, "", "", ""},
                      {Verdict::kWarn, "c", "d", "e"},
                      {Verdict::kFail, "f", "g", "h"}};
  EXPECT_EQ(*decode_checks(encode_checks(checks)), checks);
  EXPECT_EQ(decode_checks(encode_checks({{Verdict::kOk, "a\tb\nc", "d"}}))->front().what, "a b c");
  EXPECT_FALSE(decode_checks("ok\ta\n").ok());
}

TEST(Doctor, TellsCgroupsApart) {
  EXPECT_EQ(parse_cgroup("").kind, CgroupView::Kind::kNone);
  EXPECT_EQ(parse_cgroup("0::/user.slice/x\n").kind, CgroupView::Kind::kV2);
  EXPECT_EQ(parse_cgroup("0::/user.slice/x\n").path, "/user.slice/x");
  EXPECT_EQ(parse_cgroup("5:memory:/a\n1:name=systemd:/\n").kind, CgroupView::Kind::kV1);
  EXPECT_EQ(parse_cgroup("5:memory:/a\n0::/b\n").kind, CgroupView::Kind::kV1) << "hybrid";
  EXPECT_EQ(parse_cgroup("1:name=systemd:/\n0::/b\n").kind, CgroupView::Kind::kV2);
}

TEST(Doctor, FindsHiddenProcesses) {
  EXPECT_EQ(parse_hidepid("36 35 0:32 / /proc rw,nosuid shared:13 - proc proc rw\n"), "");
  EXPECT_EQ(parse_hidepid("36 35 0:32 / /proc rw - proc proc rw,hidepid=invisible\n"), "invisible");
  EXPECT_EQ(parse_hidepid("36 35 0:32 / /proc rw - proc proc rw,hidepid=2\n"
                          "40 36 0:33 / /proc rw - proc proc rw\n"),
            "")
      << "the last mount is the one that is seen";
  EXPECT_EQ(parse_hidepid("36 35 0:32 / /mnt rw - proc proc rw,hidepid=2\nshort\n"), "");
}

TEST(Doctor, KnowsWhoElseStandsBeforeTheDriver) {
  EXPECT_TRUE(rival_preloads("/usr/lib/libjemalloc.so.2:/x/libasan.so").empty());
  EXPECT_EQ(rival_preloads("/a/libjemalloc.so:/usr/local/vgpu/libvgpu.so"),
            std::vector<std::string>{"/usr/local/vgpu/libvgpu.so"});
  EXPECT_EQ(rival_preloads("libnvshare.so\n"), std::vector<std::string>{"libnvshare.so"});
}

}  // namespace
}  // namespace mete::cli
