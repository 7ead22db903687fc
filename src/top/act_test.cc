// SPDX-License-Identifier: Apache-2.0
// Keys, mouse and sentences of mete top, without a terminal: a scene and a view in, a key, and the
// changed view, question or deed out. The parser of terminal bytes gets sequences in pieces and
// garbage; names of other users must never move the cursor. Deeds that end something need a
// confirmation in every case.
#include "top/act.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "top/plain.h"
#include "top/test/scenes.h"

namespace mete::top {
namespace {

using Code = Key::Code;

class Keys : public testing::Test {
 protected:
  Outcome press(const Key& key) { return act(view_, key, {snapshot_, setting_}, size_); }
  Outcome type(const std::string& text) {
    Outcome last;
    for (const char c : text) last = press({Code::kText, std::string(1, c)});
    return last;
  }
  std::vector<Row> rows() { return rows_of(snapshot_, view_.wanted); }
  const Row& selected() {
    rows_ = rows();
    return rows_[selected_row(rows_, view_).value()];
  }

  wire::Snapshot snapshot_ = make_snapshot({4, 40});
  Setting setting_;
  View view_;
  Size size_{100, 30};
  std::vector<Row> rows_;
};

TEST_F(Keys, ArrowsMoveAndPassHeadings) {
  EXPECT_EQ(selected().key, "job 7");
  press({Code::kDown});
  EXPECT_EQ(selected().key, "job 12");
  press({Code::kUp});
  press({Code::kUp});
  EXPECT_EQ(selected().key, "job 7") << "there is nothing above";
  press({Code::kEnd});
  EXPECT_EQ(selected().key, rows().back().key);
  press({Code::kDown});
  EXPECT_EQ(selected().key, rows().back().key);
  std::size_t steps = 0;
  for (; selected().key != "job 7" && steps < 100; ++steps) press({Code::kUp});
  EXPECT_EQ(steps, rows().size() - 1 - 2) << "two headings are passed";
}

TEST_F(Keys, ASelectedRowIsAlwaysInSight) {
  for (const Code code : {Code::kPageDown, Code::kDown, Code::kEnd, Code::kPageUp, Code::kTab,
                          Code::kWheelDown, Code::kWheelUp, Code::kHome}) {
    press({code, {}, 20, 5});
    const std::vector<Row> all = rows();
    const Geometry geometry = geometry_of({snapshot_, setting_}, size_, all.size());
    const std::size_t first = window_of(all, view_, geometry.list_lines).first;
    const std::size_t at = selected_row(all, view_).value();
    EXPECT_GE(at, first);
    EXPECT_LT(at, first + geometry.list_lines);
  }
}

TEST_F(Keys, TheSameJobStaysSelectedWhenOthersGo) {
  press({Code::kDown});
  press({Code::kDown});
  EXPECT_EQ(selected().key, "job 13");
  snapshot_.jobs.erase(snapshot_.jobs.begin());
  EXPECT_EQ(selected().key, "job 13");
}

TEST_F(Keys, ADeedIsAskedAboutAndOnlyYesDoesIt) {
  view_.selected = "job 13";
  EXPECT_FALSE(type("c").deed);
  ASSERT_TRUE(view_.asked);
  EXPECT_EQ(view_.asked->question, "cancel job 13 (notebook of bob)?");
  EXPECT_FALSE(press({Code::kEnter}).deed) << "Enter is no yes";
  EXPECT_FALSE(view_.asked);
  type("T");
  const Outcome outcome = type("y");
  ASSERT_TRUE(outcome.deed);
  EXPECT_EQ(outcome.deed->signal, SIGTERM);
  ASSERT_EQ(outcome.deed->targets.size(), 2u);
  EXPECT_EQ(outcome.deed->targets[0].pid, 4012) << "the first process on a card";
  EXPECT_EQ(outcome.deed->targets[0].start_ticks, 99u);
}

TEST_F(Keys, ReadonlyAndStrangersJobsAreOnlyLookedAt) {
  view_.selected = "job 7";
  type("c");
  EXPECT_FALSE(view_.asked);
  EXPECT_EQ(view_.message, "only its user and administrators can do that");
  EXPECT_FALSE(type("H").deed);
  EXPECT_FALSE(type("l").deed);
  type("K");
  EXPECT_FALSE(view_.asked);
  for (wire::Snapshot::Job& job : snapshot_.jobs) job.view.row = true;
  view_.selected = "job 13";
  view_.message.clear();
  type("c");
  EXPECT_FALSE(view_.asked) << "a row of another user's job";
  EXPECT_EQ(view_.message, "only its user and administrators can do that");
  setting_.readonly = true;
  view_.selected = "job 13";
  for (const char* key : {"c", "H", "R", "T", "K", "I"}) {
    EXPECT_FALSE(type(key).deed) << key;
    EXPECT_FALSE(view_.asked) << key;
    EXPECT_EQ(view_.message, "--readonly: nothing is changed from here");
  }
}

TEST_F(Keys, HoldReleaseAndLogsAreDoneAtOnceAlsoFromTheDetails) {
  view_.selected = "job 14";
  for (const Page page : {Page::kMain, Page::kDetail}) {
    for (const auto& [key, kind] :
         {std::pair("H", Deed::Kind::kHold), std::pair("R", Deed::Kind::kRelease),
          std::pair("l", Deed::Kind::kLogs)}) {
      view_.page = page;
      const Outcome outcome = type(key);
      ASSERT_TRUE(outcome.deed) << key;
      EXPECT_EQ(outcome.deed->kind, kind) << key;
      EXPECT_EQ(outcome.deed->job, "14") << key;
      EXPECT_FALSE(view_.asked) << key;
    }
  }
  setting_.readonly = true;
  EXPECT_TRUE(type("l").deed) << "a log is only looked at";
}

TEST_F(Keys, RowsThatDoNotFitAreCountedAndNeverSelectedUnseen) {
  for (std::size_t step = 0; step < 60; ++step) {
    const std::vector<Row> all = rows();
    const Geometry geometry = geometry_of({snapshot_, setting_}, size_, all.size());
    const Window window = window_of(all, view_, geometry.list_lines);
    const std::size_t at = selected_row(all, view_).value();
    EXPECT_GE(at, window.first);
    EXPECT_LT(at, window.first + window.rows);
    const std::size_t rest = all.size() - window.first - window.rows;
    EXPECT_EQ(window.below > 0, rest > 0);
    EXPECT_LE(window.below, rest) << "headings do not count";
    const std::string text = frame({snapshot_, setting_}, view_, size_).text();
    EXPECT_EQ(text.find(" more below") != std::string::npos, rest > 0) << text;
    press({Code::kDown});
  }
  EXPECT_EQ(selected().key, rows().back().key);
}

TEST_F(Keys, AClickOnTheCountShowsFurtherRows) {
  const Geometry geometry = geometry_of({snapshot_, setting_}, size_, rows().size());
  const std::size_t line = geometry.list_top + geometry.list_lines - 1;
  press({Code::kClick, {}, line, 6});
  EXPECT_EQ(view_.page, Page::kMain);
  EXPECT_GT(view_.first, 0u);
}

TEST_F(Keys, TheArrowOfTheOrderIsAlwaysThere) {
  for (std::size_t sort = 0; sort < kSorts; ++sort) {
    for (const bool reverse : {false, true}) {
      for (const std::size_t columns : {40u, 60u, 80u, 100u, 120u, 200u}) {
        view_.wanted.sort = static_cast<Sort>(sort);
        view_.wanted.reverse = reverse;
        const std::string text = frame({snapshot_, setting_}, view_, {columns, 30}).text();
        const std::string title = std::string(title_of(view_.wanted.sort)) + (reverse ? "▼" : "▲");
        EXPECT_NE(text.find(title), std::string::npos) << title << " at " << columns << "\n"
                                                       << text;
      }
    }
  }
}

TEST_F(Keys, AFilterIsTypedAndKeptAndDropped) {
  type("/bob run");
  EXPECT_EQ(view_.wanted.filter, "bob run");
  for (const Row& row : rows())
    if (row.kind == Row::Kind::kJob) {
      EXPECT_EQ(user_of(row), "bob");
    }
  press({Code::kBackspace});
  EXPECT_EQ(view_.wanted.filter, "bob ru");
  press({Code::kEnter});
  EXPECT_FALSE(view_.draft);
  EXPECT_FALSE(type("c").quit) << "keys are keys again";
  view_.asked.reset();
  press({Code::kEscape});
  EXPECT_EQ(view_.wanted.filter, "");
}

TEST_F(Keys, OrdersAndTheirReverse) {
  const auto ids = [&] {
    std::vector<std::string> keys;
    for (const Row& row : rows())
      if (row.kind == Row::Kind::kJob && !row.waits) keys.push_back(row.key);
    return keys;
  };
  view_.wanted.sort = Sort::kMemory;
  const std::vector<std::string> down = ids();
  type("r");
  std::vector<std::string> up = ids();
  std::reverse(up.begin(), up.end());
  EXPECT_EQ(down, up);
  for (std::size_t i = 0; i < kSorts; ++i) type("s");
  EXPECT_EQ(view_.wanted.sort, Sort::kMemory) << "once round";
  EXPECT_FALSE(view_.wanted.reverse);
  type("S");
  EXPECT_EQ(view_.wanted.sort, Sort::kCard);
}

TEST_F(Keys, TheMouseSelectsSortsAndOpens) {
  const Geometry geometry = geometry_of({snapshot_, setting_}, size_, rows().size());
  press({Code::kClick, {}, geometry.list_top + 2, 10});
  EXPECT_EQ(selected().key, rows()[2].key);
  EXPECT_EQ(view_.page, Page::kMain);
  press({Code::kClick, {}, geometry.list_top + 2, 10});
  EXPECT_EQ(view_.page, Page::kDetail);
  press({Code::kEscape});
  EXPECT_EQ(view_.page, Page::kMain);
  press({Code::kClick, {}, geometry.list_top - 1, 8});
  EXPECT_EQ(view_.wanted.sort, Sort::kUser);
  press({Code::kClick, {}, 29, 0});  // the keys below are no button
  press({Code::kClick, {}, 500, 500});
}

TEST_F(Keys, PagesScrollWithinTheirEnds) {
  size_ = {60, 10};
  type("h");
  for (int i = 0; i < 100; ++i) press({Code::kPageDown});
  const std::size_t last = view_.page_first;
  EXPECT_GT(last, 0u);
  press({Code::kUp});
  EXPECT_EQ(view_.page_first, last - 1);
  EXPECT_TRUE(type("q").quit);
}

// ---- bytes of a terminal ----

std::vector<Key> read_all(const std::vector<std::string>& pieces) {
  KeyReader reader;
  std::vector<Key> keys;
  for (const std::string& piece : pieces)
    for (const Key& key : reader.read(piece)) keys.push_back(key);
  for (const Key& key : reader.pause()) keys.push_back(key);
  return keys;
}

TEST(KeyReader, KnowsWhatTerminalsSend) {
  using V = std::vector<Key>;
  EXPECT_EQ(read_all({"q"}), (V{{Code::kText, "q"}}));
  EXPECT_EQ(read_all({"模"}), (V{{Code::kText, "模"}}));
  EXPECT_EQ(read_all({"\033[A\033OB\033[1;5C\033[6~\033[H\033[4~\033[Z"}), (V{{Code::kUp},
                                                                              {Code::kDown},
                                                                              {Code::kRight},
                                                                              {Code::kPageDown},
                                                                              {Code::kHome},
                                                                              {Code::kEnd},
                                                                              {Code::kBackTab}}));
  EXPECT_EQ(read_all({"\r\t\x7f\x0c"}),
            (V{{Code::kEnter}, {Code::kTab}, {Code::kBackspace}, {Code::kRedraw}}));
  EXPECT_EQ(
      read_all({"\033[<0;12;7M\033[<0;12;7m\033[<65;1;1M\033[<64;300;200M"}),
      (V{{Code::kClick, "", 6, 11}, {Code::kWheelDown, "", 0, 0}, {Code::kWheelUp, "", 199, 299}}));
}

TEST(KeyReader, PiecesAreOneKeyAndAnEscapeAloneIsOne) {
  using V = std::vector<Key>;
  EXPECT_EQ(read_all({"\033", "[", "A"}), (V{{Code::kUp}}));
  EXPECT_EQ(read_all({"\xe6", "\xa8\xa1"}), (V{{Code::kText, "模"}}));
  EXPECT_EQ(read_all({"\033"}), (V{{Code::kEscape}}));
  EXPECT_EQ(read_all({"\033\033[A"}), (V{{Code::kEscape}, {Code::kUp}}));
}

TEST(KeyReader, WhatNobodyKnowsIsNothing) {
  for (const char* bytes : {"\033[99~", "\033[<9;0;0M", "\033[<1;2M", "\033[<99999999999;1;1M",
                            "\xff\xfe", "\033[200~", "\033O", "\001\002", "\033["})
    EXPECT_TRUE(read_all({bytes}).empty()) << bytes;
  EXPECT_TRUE(read_all({"\033[" + std::string(100, '1')}).empty());
  EXPECT_EQ(read_all({"\033x"}), (std::vector<Key>{{Code::kText, "x"}}));
}

// ---- sentences ----

TEST(Announcer, SaysAllOnceAndThenOnlyChanges) {
  wire::Snapshot snapshot = make_snapshot({2, 3});
  Setting setting;
  Announcer announcer;
  const std::vector<std::string> first = announcer.next({snapshot, setting});
  EXPECT_EQ(first.size(), 2 + 1 + 1 + 3u) << "cards, another's job, a process outside, jobs";
  EXPECT_EQ(
      first[0],
      "Card 0, NVIDIA H200: 0 % busy, 38 °C, 3.9 of 140.4 GiB used, 131.0 GiB free for jobs.");
  EXPECT_TRUE(announcer.next({snapshot, setting}).empty());
  snapshot.jobs[0].utilisation_pct = 77;
  snapshot.at.ms += 60'000;
  EXPECT_TRUE(announcer.next({snapshot, setting}).empty()) << "no chatter";
  snapshot.jobs[0].view.idle_since = snapshot.at;
  const std::vector<std::string> idle = announcer.next({snapshot, setting});
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_TRUE(idle[0].starts_with("Job 12, train of alice: running, card 0,")) << idle[0];
  EXPECT_NE(idle[0].find("idle for 0 s"), std::string::npos);
  snapshot.jobs.pop_back();
  EXPECT_EQ(announcer.next({snapshot, setting}),
            std::vector<std::string>{"Job 14, eval-checkpoints of carol: gone."});
  setting.trouble = "the daemon has gone; this is what was 3 s ago";
  EXPECT_EQ(announcer.next({snapshot, setting}).size(), 1u);
  setting.trouble = "the daemon has gone; this is what was 4 s ago";
  EXPECT_TRUE(announcer.next({snapshot, setting}).empty());
  setting.trouble.clear();
  EXPECT_EQ(announcer.next({snapshot, setting}), std::vector<std::string>{"Trouble: over."});
}

TEST(Announcer, NobodysNameMovesTheCursor) {
  wire::Snapshot snapshot = make_snapshot({1, 1});
  core::JobSpec spec = *snapshot.jobs[0].view.job.spec;
  spec.name = "\033[2J\n";
  snapshot.jobs[0].view.job.spec = spec;
  Announcer announcer;
  for (const std::string& line : announcer.next({snapshot, {}}))
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20u);
}

}  // namespace
}  // namespace mete::top
