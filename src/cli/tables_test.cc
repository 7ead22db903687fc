// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>

#include "cli/cards_table.h"
#include "cli/ps_table.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/topology.h"
#include "core/request/gpu.h"
#include "node/nvml_text.h"
#include "runner/ungranted.h"
#include "wire/job_text.h"

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

std::string ps_table(const std::vector<wire::JobView>& jobs, WallTime now, PsWishes wishes = {},
                     std::optional<std::size_t> width = {}) {
  PsTable table(now, wishes);
  for (const wire::JobView& view : jobs) table.add(view);
  return table.text(width);
}

// The line of the table with this number.
std::string line_of(const std::string& table, std::size_t number) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < number; ++i) begin = table.find('\n', begin) + 1;
  return table.substr(begin, table.find('\n', begin) - begin);
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  for (const std::string_view line : base::split(text, '\n'))
    width = std::max(width, base::columns_of(line));
  return width;
}

constexpr WallTime kNow{1'101'000};

wire::JobView waiting(std::uint64_t id, std::uint64_t place) {
  wire::JobView view = job(id, core::JobState::kPending, "0.4");
  core::Wait wait;
  wait.room.needs = core::CardNeed{1, *core::parse_gpu("40%"), {}, {}, 0};
  view.wait = wait;
  view.place = place;
  view.forecast = core::Forecast{{}, WallTime{1'200'000}, WallTime{1'300'000}};
  return view;
}

class PsTables : public testing::Test {
 protected:
  void SetUp() override { setenv("TZ", "UTC", 1); }
};

TEST_F(PsTables, WaitingJobsSayWhenAndWhy) {
  const std::string table = ps_table({waiting(7, 3), waiting(8, 1)}, kNow);
  EXPECT_EQ(line_of(table, 0),
            "ID  NAME   STATE    GPU  CARD  USED  TIME  NOTE             COMMAND");
  EXPECT_EQ(line_of(table, 1),
            " 7  train  pending  0.4  -        -  1:41  ~00:20, 2 ahead  python train.py");
  EXPECT_EQ(line_of(table, 2),
            " 8  train  pending  0.4  -        -  1:41  ~00:20, next     python train.py");
  const std::string wide = ps_table({waiting(7, 3)}, kNow, {.wide = true});
  EXPECT_EQ(line_of(wide, 0),
            "ID  USER   NAME   STATE    GPU  CARD  USED  TIME  COMMAND          STARTS  REASON");
  EXPECT_TRUE(line_of(wide, 1).ends_with("~00:20  resources: 40% of one card")) << wide;
}

TEST_F(PsTables, EveryWaitHasAFewWords) {
  const auto note = [](const std::function<void(core::Wait&)>& change) {
    wire::JobView view = waiting(7, 3);
    view.forecast.reset();
    core::Wait wait = *view.wait;
    change(wait);
    view.wait = wait;
    return wire::brief_reason(view, view.place, kNow);
  };
  EXPECT_EQ(note([](core::Wait&) {}), "2 ahead");
  EXPECT_EQ(note([](core::Wait& wait) {
              wait.reason = core::Reason::kHeld;
              wait.release = core::JobId{7};
            }),
            "held");
  EXPECT_EQ(note([](core::Wait& wait) {
              wait.after = {{{12}, core::When::kOk}, {{13}, core::When::kOk}};
            }),
            "after 12 and 1 more");
  EXPECT_EQ(note([](core::Wait& wait) {
              wait.reason = core::Reason::kBegin;
              wait.until = WallTime{3'600'000};
            }),
            "begins 01:00");
  EXPECT_EQ(note([](core::Wait& wait) {
              wait.reason = core::Reason::kRetry;
              wait.until = WallTime{3'600'000};
            }),
            "retries 01:00");
  EXPECT_EQ(note([](core::Wait& wait) {
              wait.reason = core::Reason::kBegin;
              wait.until = WallTime{24LL * 3600 * 1000};
            }),
            "begins 00:00")
      << "within a day";
  EXPECT_EQ(note([](core::Wait& wait) {
              wait.reason = core::Reason::kBegin;
              wait.until = WallTime{3 * 24LL * 3600 * 1000};
            }),
            "begins Jan 4");
  EXPECT_EQ(note([](core::Wait& wait) { wait.array = {{7}, 4, 4}; }), "4 at a time");
  EXPECT_EQ(note([](core::Wait& wait) { wait.parking = {{3}}; }), "parks job 3");
  EXPECT_EQ(note([](core::Wait& wait) { wait.reason = core::Reason::kDrained; }), "card drained");
  EXPECT_EQ(note([](core::Wait& wait) { wait.cpus = {8, 8}; }), "CPUs in use");
}

TEST_F(PsTables, ParkedAndRemarkableJobsSayWhy) {
  wire::JobView view = job(7, core::JobState::kParked, "8G");
  view.job.park.emplace();
  EXPECT_EQ(wire::brief_reason(view, {}, kNow), "until unparked");
  view.job.park->for_job = core::JobId{14};
  EXPECT_EQ(wire::brief_reason(view, {}, kNow), "for job 14");
  view.wait = core::Wait();
  EXPECT_EQ(wire::brief_reason(view, {}, kNow), "for job 14, comes back");
  view.job.park->lost = true;
  EXPECT_EQ(wire::brief_reason(view, {}, kNow), "cannot come back");
  wire::JobView running = job(7, core::JobState::kRunning, "8G");
  EXPECT_EQ(wire::brief_reason(running, {}, kNow), "");
  running.remark.said = "escape: process 412 holds 2 GiB";
  EXPECT_EQ(wire::brief_reason(running, {}, kNow), "escape: process 412 holds 2 GiB");
}

TEST_F(PsTables, RunningJobsShowTheirCardsAndUse) {
  wire::JobView view = job(12, core::JobState::kRunning, "2x8G");
  view.job.started = WallTime{1'001'000};
  view.job.grant = {{0, "GPU-0", Bytes::from_gib(8), false},
                    {3, "GPU-3", Bytes::from_gib(8), false}};
  view.used = {Bytes::from_gib(1), Bytes::from_gib(2)};
  const std::string table = ps_table({view}, WallTime{1'002'000});
  EXPECT_EQ(line_of(table, 0), "ID  NAME   STATE    GPU   CARD  USED  TIME  COMMAND");
  EXPECT_EQ(line_of(table, 1), "12  train  running  2x8G  0,3   3.0G  0:01  python train.py");
  EXPECT_NE(ps_table({view}, WallTime{1'002'000}, {.wide = true}).find("2x8G → 2x 8 GiB"),
            std::string::npos);
  view.used[1] = std::nullopt;
  EXPECT_EQ(line_of(ps_table({view}, WallTime{1'002'000}), 1),
            "12  train  running  2x8G  0,3      -  0:01  python train.py");
}

TEST_F(PsTables, EndedJobsSayHow) {
  wire::JobView view = job(1, core::JobState::kEnded, "0");
  view.job.started = WallTime{1'000'000};
  view.job.ended = WallTime{1'005'000};
  view.job.outcome = core::Outcome::kFailed;
  view.job.exit.emplace();
  view.job.exit->code = 3;
  EXPECT_NE(ps_table({view}, WallTime{9'000'000}).find("failed 3  0    -        -  0:05"),
            std::string::npos);
  view.job.exit->code.reset();
  view.job.exit->signal = 9;
  view.job.outcome = core::Outcome::kSignal;
  EXPECT_NE(ps_table({view}, WallTime{9'000'000}).find("signal 9"), std::string::npos);
}

TEST_F(PsTables, AClockThatWasSetBackShowsNoNegativeTime) {
  EXPECT_NE(ps_table({job(1, core::JobState::kPending, "1")}, WallTime{0}).find(" 0:00 "),
            std::string::npos);
}

TEST_F(PsTables, UsersAreShownWhereThereAreOthers) {
  EXPECT_EQ(ps_table({job(1, core::JobState::kPending, "1")}, kNow).find("USER"),
            std::string::npos);
  // A job of another user may have no name, no command and no request.
  core::JobSpec spec;
  spec.user = "bob";
  spec.uid = 1001;
  wire::JobView other = job(2, core::JobState::kRunning, "1");
  other.job.spec = spec;
  other.job.grant = {{0, "GPU-0", Bytes::from_gib(8), false}};
  const std::string table = ps_table({job(1, core::JobState::kPending, "1"), other}, kNow);
  EXPECT_EQ(line_of(table, 0), "ID  USER   NAME   STATE    GPU   CARD  USED  TIME  COMMAND");
  EXPECT_EQ(line_of(table, 2), " 2  bob    -      running  8.0G  0        -  1:41  -");
}

TEST_F(PsTables, TheWaitingJobsOfAnArrayAreOneLine) {
  std::vector<wire::JobView> jobs;
  for (std::uint32_t element = 0; element < 10; ++element) {
    wire::JobView view = waiting(45, element + 1);
    view.job.id.element = element;
    if (element < 3) view.job.state = core::JobState::kRunning;
    if (element == 5) {
      core::Wait wait;
      wait.reason = core::Reason::kHeld;
      wait.release = view.job.id;
      view.wait = wait;
    }
    jobs.push_back(view);
  }
  jobs.push_back(waiting(46, 11));
  const std::string table = ps_table(jobs, kNow);
  EXPECT_EQ(base::split(table, '\n').size(), 1u + 3 + 2 + 1) << table;
  EXPECT_TRUE(line_of(table, 4).starts_with("45_[3,4,6-9]  train  pending")) << table;
  EXPECT_NE(line_of(table, 4).find("~00:20, 3 ahead"), std::string::npos) << table;
  EXPECT_TRUE(line_of(table, 5).starts_with("        45_5  train  pending")) << table;
  EXPECT_TRUE(line_of(table, 6).starts_with("          46  train  pending")) << table;
  const std::string expanded = ps_table(jobs, kNow, {.expand = true});
  EXPECT_EQ(base::split(expanded, '\n').size(), 1u + 10 + 1);
  jobs.clear();
  for (std::uint32_t element = 1; element < 200; element += 2) {
    jobs.push_back(waiting(45, element));
    jobs.back().job.id.element = element;
  }
  EXPECT_TRUE(line_of(ps_table(jobs, kNow), 1).starts_with("45_[1,3,5,7,9,11,…]"))
      << "of any length";
}

TEST_F(PsTables, FitAnyWidthAndPipesHaveLinesOfBoundedLength) {
  std::vector<wire::JobView> jobs{waiting(7, 3)};
  core::JobSpec spec = *jobs[0].job.spec;
  spec.name = "模型训练-with-a-very-long-name-of-a-job";
  spec.uid = 1001;
  spec.command = {std::string(500, 'x')};
  jobs[0].job.spec = spec;
  wire::JobView running = job(123'456, core::JobState::kUnparking, "8G..20G");
  running.job.spec = spec;
  running.job.attempt = 12;
  running.job.priority = -100;
  running.idle_since = WallTime{1'000'000};
  running.job.grant = {{0, "GPU-0", Bytes::from_gib(8), false}};
  running.used = {Bytes::from_gib(1)};
  jobs.push_back(running);
  for (std::size_t width = 20; width < 300; ++width)
    EXPECT_LE(widest(ps_table(jobs, kNow, {}, width)), width);
  const std::string narrow = ps_table(jobs, kNow, {}, 80);
  for (const char* title : {"ID", "USER", "NAME", "STATE", "GPU", "CARD", "USED", "TIME", "NOTE"})
    EXPECT_NE(line_of(narrow, 0).find(title), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("~00:20, 2 ahead"), std::string::npos) << narrow;
  EXPECT_EQ(narrow.find("PRIORITY"), std::string::npos) << "there is no room for it\n" << narrow;
  EXPECT_NE(ps_table(jobs, kNow, {}, 160).find("PRIORITY"), std::string::npos);
  EXPECT_LE(widest(ps_table(jobs, kNow)), 220u);
  EXPECT_GT(widest(ps_table(jobs, kNow, {.wide = true}, 80)), 500u) << "--wide cuts nothing";
}

TEST(Wrapped, WordsStandBelowTheirText) {
  const std::string text =
      "job 31: waiting 12 min, third of seven\n"
      "  card 0  needs 32 GiB, 20 GiB free\n"
      "  would start now  with --gpu 20G\n"
      "               or  if job 14 ended";
  EXPECT_EQ(wrapped(text, {}), text);
  EXPECT_EQ(wrapped(text, 80), text);
  EXPECT_EQ(wrapped(text, 28),
            "job 31: waiting 12 min,\n"
            "  third of seven\n"
            "  card 0  needs 32 GiB, 20\n"
            "          GiB free\n"
            "  would start now  with\n"
            "              --gpu 20G\n"
            "               or  if job 14\n"
            "              ended");
  EXPECT_EQ(wrapped("aaaaaaaaaaaaaaaaaaaaaaaaaa b", 20), "aaaaaaaaaaaaaaaaaaaaaaaaaa\n  b")
      << "a long word is not broken";
  EXPECT_EQ(wrapped("", 20), "");
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
  EXPECT_EQ(
      line_of(table, 1),
      "   0  NVIDIA H200  ok     140 GiB    8 GiB  1 GiB    130 GiB    5%  41 C  alice 12,13! "
      "bob:412 carol (its mete)");
  const std::string narrow = cards_table({{}, "", {view}}, {}, 80);
  EXPECT_LE(widest(narrow), 80u) << narrow;
  EXPECT_NE(narrow.find("JOBS"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("alice 12,13! bob:412"), std::string::npos) << narrow;
  view.state = "drained";
  const std::string drained = cards_table({{}, "", {view}}, {}, 80);
  EXPECT_LE(widest(drained), 80u) << drained;
  for (const char* word : {"alice 12,13!", "drained", "no new"})
    EXPECT_NE(drained.find(word), std::string::npos) << drained;
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
