// SPDX-License-Identifier: Apache-2.0
#include "node/probe.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "node/probe_cache.h"

namespace mete::node {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";
const ContextCost kCost = {Bytes::from_mib(518), Bytes::from_kib(536166)};

TEST(ProbeLine, ReadsWhatItWrites) {
  const Result<ProbeLine> line = parse_probe_line(format_probe_line(kCost, "580.159.04"));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->cost, kCost);
  EXPECT_EQ(line->driver, "580.159.04");
}

TEST(ProbeLine, RefusesEverythingElse) {
  for (const char* text :
       {"", "mete-probe", "mete-probe 2 1 1 580", "mete-probe 1 0 1 580", "mete-probe 1 x 1 580",
        "mete-probe 1 1 -1 580", "mete-probe 1 1 1 580 more", "hello\nmete-probe 1 1 1 580"})
    EXPECT_FALSE(parse_probe_line(text)) << text;
}

TEST(ProbeCache, ReadsWhatItWrites) {
  const std::vector<CacheEntry> entries = {
      {{kCard, "H200", "580.1", false}, kCost},
      {{kCard, "H200", "580.1", true}, {kCost.more, kCost.first}}};
  const Result<std::vector<CacheEntry>> back = parse_cache(format_cache(entries));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[1].key, entries[1].key);
  EXPECT_EQ((*back)[1].cost, entries[1].cost);
  EXPECT_TRUE(parse_cache(format_cache({}))->empty());
}

TEST(ProbeCache, RefusesACutOrForeignFile) {
  const std::string good = format_cache({{{kCard, "H200", "580.1", false}, kCost}});
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("mete-context-cost 2\n"), good + "more\n",
        good.substr(0, good.size() - 1), good.substr(0, good.size() - 5), good + "\n"})
    EXPECT_FALSE(parse_cache(text)) << text;
}

// A folder with a stand-in for mete-probe that counts how often it is run.
class ContextCostTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-probe-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    request_.key = {kCard, "H200", "580.159.04", false};
    request_.program = folder_ + "/probe";
    request_.cache = folder_ + "/state/context-cost";
    request_.environment = {"PATH=/usr/bin:/bin", "LD_PRELOAD=/no/such/library.so",
                            "CUDA_VISIBLE_DEVICES=3", "OTHER=1"};
    request_.timeout = seam::Milliseconds(60000);
    probe_says("echo mete-probe 1 1000 2000 580.159.04");
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf " + folder_).c_str()), 0); }

  void probe_says(const std::string& script) {
    std::ofstream(request_.program) << "#!/bin/sh\necho run >> " << folder_ << "/runs\n"
                                    << script << "\n";
    chmod(request_.program.c_str(), 0700);
  }
  std::size_t runs() {
    const Result<std::string> text = base::read_all(folder_ + "/runs");
    return text ? text->size() / 4 : 0;
  }
  Result<ContextCost> ask() { return context_cost(request_, seam::system_clock()); }

  std::string folder_;
  ProbeRequest request_;
};

TEST_F(ContextCostTest, IsMeasuredOncePerKey) {
  ASSERT_TRUE(ask());
  EXPECT_EQ(ask()->first, Bytes::from_bytes(1000));
  EXPECT_EQ(runs(), 1u);
  request_.key.mps = true;
  EXPECT_EQ(ask()->more, Bytes::from_bytes(2000));
  EXPECT_EQ(runs(), 2u);
  request_.key.mps = false;
  ASSERT_TRUE(ask());
  EXPECT_EQ(runs(), 2u) << "the other key is still known";
  request_.key.type = "A100";
  ASSERT_TRUE(ask());
  EXPECT_EQ(runs(), 3u) << "a simulated machine may give the same UUID to another card";
}

TEST_F(ContextCostTest, ACorruptCacheIsMeasuredOver) {
  ASSERT_TRUE(ask());
  std::ofstream(request_.cache) << "rubbish";
  EXPECT_TRUE(ask());
  EXPECT_EQ(runs(), 2u);
  EXPECT_TRUE(find_cached(request_.cache, request_.key));
}

TEST_F(ContextCostTest, ACacheThatCannotBeWrittenIsIgnored) {
  request_.cache = "/proc/no/such/place";
  EXPECT_TRUE(ask());
}

TEST_F(ContextCostTest, TheProbeSeesOneCardAndNoMeter) {
  probe_says("test \"$CUDA_VISIBLE_DEVICES\" = " + std::string(kCard) +
             " && test -z \"$LD_PRELOAD\" && test \"$OTHER\" = 1 && test \"$1 $2\" = '--card " +
             kCard + "' && echo mete-probe 1 1 1 580.159.04");
  EXPECT_TRUE(ask());
}

TEST_F(ContextCostTest, AFailureSaysWhatTheProbeSaid) {
  probe_says("echo 'mete-probe: cuInit failed with 999' >&2; exit 1");
  const Result<ContextCost> cost = ask();
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().evidence, "mete-probe: cuInit failed with 999 (exit 1)");
  EXPECT_FALSE(find_cached(request_.cache, request_.key));
}

TEST_F(ContextCostTest, AWedgedDriverIsBusy) {
  probe_says("exec sleep 1000");
  request_.timeout = seam::Milliseconds(200);
  EXPECT_EQ(ask().error().code, ErrorCode::kBusy);
}

TEST_F(ContextCostTest, AnotherDriverMeanwhileIsNotCached) {
  probe_says("echo mete-probe 1 1 1 590.0");
  EXPECT_EQ(ask().error().code, ErrorCode::kBusy);
  EXPECT_FALSE(find_cached(request_.cache, request_.key));
}

TEST_F(ContextCostTest, MpsIsActiveWhereItsControlPipeIs) {
  EXPECT_FALSE(mps_is_active(folder_));
  std::ofstream(folder_ + "/control") << "";
  EXPECT_TRUE(mps_is_active(folder_));
}

}  // namespace
}  // namespace mete::node
