// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/cards_table.h"
#include "cli/ps_table.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/topology.h"
#include "core/request/gpu.h"
#include "node/nvml_text.h"
#include "runner/ungranted.h"

namespace mete::cli {
namespace {

TEST(Table, NumbersStandToTheRightAndNothingTrails) {
  Table table({{"N", Align::kRight}, {"NAME"}});
  table.add({"1", "short"});
  table.add({"123", "x"});
  EXPECT_EQ(table.text({}), "  N  NAME\n  1  short\n123  x");
}

TEST(Table, EmptyCellsShowAndEmptyColumnsDoNot) {
  Table table({{"A"}, {"B"}, {"C"}});
  table.add({"a", "", ""});
  table.add({"", "b", ""});
  EXPECT_EQ(table.text({}), "A  B\na  -\n-  b");
}

TEST(Table, CutsToItsWidthAndCannotBeMovedBySomebodysName) {
  Table table({{"A", Align::kLeft, 6}, {"B"}});
  table.add({"äöüäöüäöü", "\033[2J\n"});
  EXPECT_EQ(table.text({}), "A       B\näöüäö…  \\x1b[2J\\x0a");
  EXPECT_EQ(table.text(9), "A       B\näöüäö…  …");
  Table others({{"A"}});
  others.add({"\xc2\x9b\u202e\xff"});
  EXPECT_EQ(others.text({}), "A\n\\xc2\\x9b\\xe2\\x80\\xae\\xff");
}

TEST(Table, WideCharactersStandInTwoColumns) {
  Table table({{"A", Align::kLeft, 5}, {"B"}});
  table.add({"模型训练", "x"});
  table.add({"ab", "y"});
  EXPECT_EQ(table.text({}), "A      B\n模型…  x\nab     y");
}

TEST(SubWord, NamesTheNearest) {
  EXPECT_EQ(*sub_word("daemon", {"stop"}, {"status", "stop"}), "stop");
  EXPECT_EQ(sub_word("daemon", {"stpo"}, {"status", "stop"}).error().hint,
            "did you mean mete daemon stop?");
  EXPECT_EQ(sub_word("daemon", {}, {"status", "stop"}).error().hint,
            "mete daemon status or mete daemon stop");
  EXPECT_FALSE(no_more_than(1, {"a", "b"}).ok());
}

wire::JobView job(std::uint64_t id, core::JobState state, std::string_view gpu) {
  core::JobSpec spec;
  spec.name = "train";
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu(gpu);
  spec.command = {"python", "train.py"};
  wire::JobView view;
  view.job.id = {id};
  view.job.state = state;
  view.job.spec = spec;
  view.job.submitted = WallTime{1'000'000};
  return view;
}

std::string ps_table(const std::vector<wire::JobView>& jobs, WallTime now) {
  PsTable table(now);
  for (const wire::JobView& view : jobs) table.add(view);
  return table.text({});
}

// The line of the table that begins with these words.
std::string line_of(const std::string& table, std::size_t number) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < number; ++i) begin = table.find('\n', begin) + 1;
  return table.substr(begin, table.find('\n', begin) - begin);
}

TEST(PsTable, PendingJobsSayWhy) {
  wire::JobView view = job(7, core::JobState::kPending, "0.4");
  core::Wait wait;
  wait.words = "40% of a card";
  view.wait = wait;
  const std::string table = ps_table({view}, WallTime{1'090'000});
  EXPECT_EQ(line_of(table, 0),
            "ID  NAME   USER   STATE    GPU        TIME  COMMAND          REASON");
  EXPECT_EQ(
      line_of(table, 1),
      " 7  train  alice  pending  0.4  1 min 30 s  python train.py  resources: 40% of a card");
}

TEST(PsTable, RunningJobsShowTheirBytesAndCards) {
  wire::JobView view = job(12, core::JobState::kRunning, "2x8G");
  view.job.started = WallTime{1'001'000};
  view.job.grant = {{0, "GPU-0", Bytes::from_gib(8), false},
                    {3, "GPU-3", Bytes::from_gib(8), false}};
  view.used = {Bytes::from_gib(1), Bytes::from_gib(2)};
  const std::string table = ps_table({view}, WallTime{1'002'000});
  EXPECT_EQ(line_of(table, 1),
            "12  train  alice  running  2x8G → 2x 8 GiB  0,3    3 GiB   1 s  python train.py");
  view.job.grant[1].bytes = Bytes::from_gib(4);
  view.used[1] = std::nullopt;
  EXPECT_EQ(line_of(ps_table({view}, WallTime{1'002'000}), 1),
            "12  train  alice  running  2x8G → 8 GiB + 4 GiB  0,3     1 s  python train.py");
}

TEST(PsTable, EndedJobsSayHow) {
  wire::JobView view = job(1, core::JobState::kEnded, "0");
  view.job.started = WallTime{1'000'000};
  view.job.ended = WallTime{1'005'000};
  view.job.outcome = core::Outcome::kFailed;
  view.job.exit.emplace();
  view.job.exit->code = 3;
  EXPECT_NE(ps_table({view}, WallTime{9'000'000}).find("ended failed 3  0     5 s"),
            std::string::npos);
  view.job.exit->code.reset();
  view.job.exit->signal = 9;
  view.job.outcome = core::Outcome::kSignal;
  EXPECT_NE(ps_table({view}, WallTime{9'000'000}).find("ended signal 9"), std::string::npos);
}

TEST(PsTable, AClockThatWasSetBackShowsNoNegativeTime) {
  EXPECT_NE(ps_table({job(1, core::JobState::kPending, "1")}, WallTime{0}).find(" 0 s "),
            std::string::npos);
}

wire::CardView card(std::uint32_t index) {
  wire::CardView view;
  view.index = index;
  view.name = "NVIDIA H200";
  view.total = Bytes::from_gib(140);
  view.granted = Bytes::from_gib(8);
  view.used = Bytes::from_gib(1);
  view.grantable = Bytes::from_gib(130);
  view.utilisation_pct = 5;
  view.temperature_c = 41;
  return view;
}

TEST(CardsTable, ShowsWhoIsOnACard) {
  wire::CardView view = card(0);
  view.jobs = {{"12", "alice", Bytes::from_gib(8), false, {}}, {"13", "alice", Bytes(), true, {}}};
  view.foreign_list = {{412, "bob", {}}, {std::nullopt, "carol", Bytes::from_gib(1)}};
  const std::string table = cards_table({{}, "", {view}}, {}, {});
  EXPECT_EQ(line_of(table, 0),
            "CARD  NAME         STATE    TOTAL  GRANTED   USED  GRANTABLE  UTIL  TEMP  JOBS");
  EXPECT_EQ(line_of(table, 1),
            "   0  NVIDIA H200  ok     140 GiB    8 GiB  1 GiB    130 GiB    5%  41 C  12,13! "
            "bob:412 carol (its mete)");
}

TEST(CardsTable, SaysWhyACardCannotBeUsed) {
  wire::CardView mig = card(0);
  mig.unusable = "split into MIG slices";
  wire::CardView lost = card(1);
  lost.state = "lost";
  wire::CardView old = card(2);
  old.reading_age_s = 75.5;
  const std::string table = cards_table({{}, "", {mig, lost, old}}, {}, {});
  EXPECT_NE(line_of(table, 1).find("unusable"), std::string::npos);
  EXPECT_TRUE(line_of(table, 1).ends_with("split into MIG slices"));
  EXPECT_TRUE(line_of(table, 2).ends_with("fell off the bus or needs a reset"));
  EXPECT_NE(line_of(table, 3).find("stale"), std::string::npos);
  EXPECT_TRUE(line_of(table, 3).ends_with("read 1 min 15 s ago"));
}

TEST(CardsTable, OnlyTheColumnsThatAreNamed) {
  wire::CardView view = card(3);
  view.links = {{0, 18}, {1, 18}, {2, 18}};
  const auto columns = parse_columns("used,CARD, links,power", kCardColumns);
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(cards_table({{}, "", {view}}, *columns, {}),
            " USED  CARD  LINKS      POWER\n1 GiB     3  18 to 0-2      -");
  const auto wrong = parse_columns("card,pwr", kCardColumns);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "--columns 'pwr': there is no such column");
}

TEST(CardLine, IsWhatPeoplePasteIntoAChat) {
  wire::CardView view = card(0);
  view.total = Bytes::from_mib(143'155);
  view.used = Bytes::from_mib(66'764);
  view.temperature_c = 61;
  view.utilisation_pct = 96;
  view.jobs = {
      {"12", "alice", Bytes::from_mib(57'260), false, Bytes::from_mib(57'260), {}, "train"},
      {"14", "bob", Bytes::from_gib(14), false, Bytes::from_mib(9'430), {}, "nb", WallTime{1'000}}};
  const WallTime now{1'000 + 3 * 3'600'000 + 120'000};
  EXPECT_EQ(card_line(view, {}, now),
            "[0] NVIDIA H200 | 61°C, 96 % | 65.1 / 139.7 GiB | "
            "alice/train#12(55.9G of 55.9G) bob/nb#14(9.2G of 14.0G, idle 3h)");
}

TEST(CardLine, WhatIsNotKnownIsNoZeroAndNobodyMovesTheCursor) {
  wire::CardView view;
  view.index = 7;
  view.name = "NVIDIA \033[2JX";
  EXPECT_EQ(card_line(view, {}, {}), "[7] NVIDIA \\x1b[2JX | ? | ? / ? GiB | free");
  view.temperature_c = 40;
  view.state = "drained";
  view.jobs = {{"3", "carol", Bytes::from_mib(512), true, {}}};
  view.foreign_list = {{412, "bob", Bytes::from_gib(1)}, {std::nullopt, "dave", {}}};
  EXPECT_EQ(card_line(view, {}, {}),
            "[7] NVIDIA \\x1b[2JX | 40°C | ? / ? GiB | carol#3(? of 512M, alone) bob:412(1.0G) "
            "dave(its mete) | no new jobs");
  EXPECT_EQ(card_line(view, *parse_columns("temp,power", kCardColumns), {}), "[7] 40 C | ?");
}

TEST(Topology, GroupsOfCardsAndTheirNodes) {
  wire::CardsDocument document;
  for (std::uint32_t i = 0; i < 4; ++i) {
    document.cards.push_back(card(i));
    document.cards.back().numa = i / 2;
    document.cards.back().links = {{i ^ 1, 4}};
  }
  EXPECT_EQ(topology_lines(document),
            "NVLink: cards 0,1, 4 between them; 2,3, 4 between them\n"
            "NUMA: cards 0,1 at node 0, 2,3 at node 1");
  EXPECT_EQ(line_of(topology_table(document, {}), 0), "CARD    0    1    2    3  NUMA");
  EXPECT_EQ(line_of(topology_table(document, {}), 1), "   0    x  NV4  PCI  PCI     0");
  for (std::uint32_t i = 0; i < 4; ++i) {
    document.cards[i].links.clear();
    for (std::uint32_t to = 0; to < 4; ++to)
      if (to != i) document.cards[i].links.push_back({to, 18});
  }
  EXPECT_TRUE(topology_lines(document).starts_with("NVLink: cards 0-3, 18 between any two\n"));
  document.cards.resize(1);
  EXPECT_EQ(topology_lines(document), "");
}

TEST(DriverAdvice, KnowsTheUsualTrouble) {
  for (const nvmlReturn_t result :
       {NVML_ERROR_LIB_RM_VERSION_MISMATCH, NVML_ERROR_NO_PERMISSION, NVML_ERROR_DRIVER_NOT_LOADED,
        NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_OPERATING_SYSTEM, NVML_ERROR_GPU_IS_LOST,
        NVML_ERROR_RESET_REQUIRED})
    EXPECT_FALSE(driver_advice(node::nvml_error("nvmlInit_v2", result).message, nullptr).empty())
        << result;
  EXPECT_FALSE(driver_advice("libnvidia-ml.so.1: cannot open shared object file", "").empty());
  EXPECT_EQ(driver_advice("something new", nullptr), "");
  const std::string not_loaded = "nvmlInit: driver not loaded (9)";
  EXPECT_EQ(driver_advice(not_loaded, nullptr), "sudo modprobe nvidia");
  EXPECT_NE(driver_advice(not_loaded, "64xH200").find("at most 32"), std::string::npos);
}

TEST(Cards, WhatIsHeldBeyondAGrantIsNoted) {
  wire::CardsDocument document;
  wire::CardView& card = document.cards.emplace_back();
  card.uuid = "GPU-1";
  card.jobs = {{"1", "alice", Bytes::from_gib(2), false, Bytes::from_gib(50)}};
  card.jobs[0].outside = Bytes::from_gib(50);
  card.jobs[0].over = card.over = Bytes::from_gib(48);
  EXPECT_NE(cards_table(document, {}, {})
                .find("job 1 holds 50 GiB outside its meter, 48 GiB beyond its grant"),
            std::string::npos);
  card.foreign_list = {{412, "bob", Bytes::from_gib(3), "python", {}}, {{}, "carol", {}}};
  const std::vector<std::string> cards{"GPU-1"};
  EXPECT_EQ(runner::ungranted_on(document, cards, "2"),
            "job 1 of alice holds 48 GiB beyond its grant on card 0, process 412 of bob, outside "
            "mete, holds 3 GiB on card 0");
  EXPECT_EQ(runner::ungranted_on(document, cards, "1"),
            "process 412 of bob, outside mete, holds 3 GiB on card 0");
  EXPECT_EQ(runner::ungranted_on(document, std::vector<std::string>{"GPU-2"}, "2"), "");
}

}  // namespace
}  // namespace mete::cli
