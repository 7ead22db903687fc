// SPDX-License-Identifier: Apache-2.0
// Whole screens against files of tests/data/top. With METE_WRITE_FRAMES=1 in its environment the
// test writes them anew, to be reviewed before they are kept. Further tests draw random scenes at
// every size, and check that nothing leaves the screen.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "base/columns.h"
#include "base/text.h"
#include "top/paint.h"
#include "top/test/scenes.h"
#include "top/view.h"

namespace mete::top {
namespace {

std::string path_of(const std::string& name) {
  const char* source = getenv("METE_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/" + name;
}

void expect_file(const std::string& name, const std::string& text) {
  if (getenv("METE_WRITE_FRAMES") != nullptr) std::ofstream(path_of(name)) << text;
  std::ifstream file(path_of(name));
  ASSERT_TRUE(file) << path_of(name);
  std::stringstream wanted;
  wanted << file.rdbuf();
  EXPECT_EQ(text, wanted.str()) << name;
}

void expect_frame(const std::string& name, const std::string& text) {
  expect_file("tests/data/top/" + name, text);
}

// Every row is as wide as the screen or less, counted as a terminal does.
void expect_within(const std::string& text, Size size) {
  std::size_t rows = 0;
  for (const std::string_view line : base::split(text, '\n')) {
    EXPECT_LE(base::columns_of(line), size.columns) << line;
    rows += !line.empty();
  }
  EXPECT_LE(rows, size.rows);
}

class Frames : public testing::Test {
 protected:
  void SetUp() override { setenv("TZ", "UTC", 1); }

  Canvas draw(const wire::Snapshot& snapshot, Size size) {
    Canvas canvas = frame({snapshot, setting_}, view_, size);
    expect_within(canvas.text(), size);
    return canvas;
  }

  Setting setting_{true, false, false, "gpu01", ""};
  View view_;
};

TEST_F(Frames, ABarShowsWhatAJobHoldsBeyondItsGrant) {
  wire::Snapshot snapshot = make_snapshot({1, 0});
  wire::CardView& card = snapshot.cards[0];
  card.jobs = {{"1", "alice", Bytes::from_gib(2), false, Bytes::from_gib(50)}};
  card.used = Bytes::from_gib(50);
  EXPECT_EQ(draw(snapshot, {80, 24}).text().find("▓"), std::string::npos);
  card.jobs[0].over = card.over = Bytes::from_gib(48);
  const std::string text = draw(snapshot, {80, 24}).text();
  EXPECT_NE(text.find("█▓▓▓▓"), std::string::npos) << text;
  EXPECT_NE(text.find("▓ beyond its grant"), std::string::npos) << text;
}

TEST_F(Frames, AreAsInTheFiles) {
  struct Case {
    const char* name;
    SceneSize scene;
    Size size;
  };
  for (const Case& each :
       {Case{"80x24-1-card-0-jobs", {1, 0}, {80, 24}},
        Case{"80x24-4-cards-8-jobs", {4, 8}, {80, 24}},
        Case{"80x24-16-cards-200-jobs", {16, 200}, {80, 24}},
        Case{"80x24-0-cards-3-jobs", {0, 3}, {80, 24}},
        Case{"120x40-1-card-3-jobs", {1, 3}, {120, 40}},
        Case{"120x40-4-cards-20-jobs", {4, 20}, {120, 40}},
        Case{"120x40-8-cards-100-jobs", {8, 100}, {120, 40}},
        Case{"200x60-8-cards-100-jobs", {8, 100}, {200, 60}},
        Case{"200x60-16-cards-200-jobs", {16, 200}, {200, 60}},
        Case{"80x24-wide", {2, 8, true}, {80, 24}}, Case{"120x40-wide", {4, 20, true}, {120, 40}},
        Case{"20x5", {2, 8, true}, {20, 5}}, Case{"40x10", {4, 8}, {40, 10}}})
    expect_frame(std::string(each.name) + ".txt",
                 draw(make_snapshot(each.scene), each.size).text());
}

// The README shows it: tools/ansi-svg docs/images/top.ansi > docs/images/top.svg
TEST_F(Frames, ThePictureIsWhatIsDrawn) {
  view_.selected = "job 13";
  const Canvas canvas = draw(make_snapshot({4, 15}), {120, 31});
  expect_file("docs/images/top.ansi", paint_lines(canvas, Depth::k256));
}

TEST_F(Frames, OfAsciiHaveNothingElse) {
  setting_.unicode = false;
  const std::string text = draw(make_snapshot({4, 20, true}), {120, 40}).text();
  for (const char c : text) ASSERT_LT(static_cast<unsigned char>(c), 0x80u);
  expect_frame("120x40-ascii.txt", text);
}

TEST_F(Frames, TreeDetailHelpFilterAndQuestion) {
  const wire::Snapshot snapshot = make_snapshot({4, 20});
  view_.wanted.tree = true;
  view_.selected = "job 16";
  expect_frame("120x40-tree.txt", draw(snapshot, {120, 40}).text());
  view_.page = Page::kDetail;
  expect_frame("120x40-detail-parked.txt", draw(snapshot, {120, 40}).text());
  view_.selected = "job 14";
  expect_frame("80x24-detail-waiting.txt", draw(snapshot, {80, 24}).text());
  view_.page = Page::kHelp;
  expect_frame("80x24-help.txt", draw(snapshot, {80, 24}).text());
  view_ = {};
  view_.wanted.filter = "bob run";
  view_.wanted.sort = Sort::kMemory;
  view_.asked = Deed{Deed::Kind::kCancel, "13", 0, {}, "cancel job 13 (notebook of bob)?"};
  expect_frame("80x24-question.txt", draw(snapshot, {80, 24}).text());
}

// Whatever the order, the title of its column has the arrow, and a click on it finds the column.
TEST_F(Frames, TheColumnThatSortsHasAnArrow) {
  wire::Snapshot snapshot = make_snapshot({4, 20});
  for (wire::Snapshot::Job& job : snapshot.jobs) {  // narrow columns
    core::JobSpec spec = *job.view.job.spec;
    spec.user = "al";
    spec.name = "x";
    job.view.job.spec = spec;
  }
  for (std::size_t sort = 0; sort < kSorts; ++sort)
    for (const bool reverse : {false, true}) {
      view_.wanted.sort = static_cast<Sort>(sort);
      view_.wanted.reverse = reverse;
      const std::string title(title_of(view_.wanted.sort));
      EXPECT_NE(draw(snapshot, {200, 60}).text().find(title + (reverse ? "▼" : "▲")),
                std::string::npos)
          << title;
    }
}

TEST_F(Frames, OldReadingsAndLostCardsAreSaid) {
  wire::Snapshot snapshot = make_snapshot({4, 8});
  snapshot.trouble = "the driver does not answer";
  snapshot.cards[0].state = "lost";
  snapshot.cards[2].state = "drained";
  snapshot.cards[3].reading_age_s = 75;
  expect_frame("120x40-trouble.txt", draw(snapshot, {120, 40}).text());
  setting_.trouble = "the daemon has gone; this is what was 12 s ago";
  EXPECT_NE(draw(snapshot, {80, 24}).text().find("! the daemon has gone"), std::string::npos);
  EXPECT_NE(draw(snapshot, {20, 5}).text().find("! the da"), std::string::npos);
}

TEST_F(Frames, WithoutACardItIsSaidWhetherOneCouldBeThere) {
  wire::Snapshot snapshot = make_snapshot({0, 0});
  EXPECT_NE(draw(snapshot, {80, 24}).text().find("this machine has no cards"), std::string::npos);
  snapshot.trouble = "nvmlInit: driver not loaded (9)";
  const std::string text = draw(snapshot, {80, 24}).text();
  EXPECT_NE(text.find("no card could be read"), std::string::npos);
  EXPECT_EQ(text.find("has no cards"), std::string::npos);
}

TEST_F(Frames, OfAnySizeAreDrawn) {
  const wire::Snapshot snapshot = make_snapshot({16, 60, true});
  for (std::size_t rows = 1; rows < 30; rows += 3)
    for (std::size_t columns = 1; columns < 130; columns += 9) {
      for (const Page page : {Page::kMain, Page::kDetail, Page::kHelp}) {
        view_.page = page;
        view_.asked = Deed{Deed::Kind::kCancel, "13", 0, {}, "cancel job 13 (notebook of bob)?"};
        const Canvas canvas = draw(snapshot, {columns, rows});
        EXPECT_EQ(canvas.size(), (Size{columns, rows}));
        EXPECT_NE(canvas.text().find_first_not_of(" \n"), std::string::npos)
            << columns << "x" << rows;
        // A question is visible on every page, as far as the screen is wide.
        if (columns > 40 && rows > 1) {
          EXPECT_NE(canvas.text().find("cancel job 13"), std::string::npos)
              << columns << "x" << rows;
        }
      }
    }
}

// Whatever names other users choose, a terminal receives only what we draw.
TEST_F(Frames, HostileTextNeverReachesTheTerminal) {
  const std::string evil = "\033[2J\033]0;title\a\x9b\u202e\n\r\x7f\xff\u2028";
  wire::Snapshot snapshot = make_snapshot({2, 3});
  core::JobSpec spec = *snapshot.jobs[0].view.job.spec;
  spec.name = spec.user = spec.folder = evil;
  spec.command = {evil, evil};
  for (wire::Snapshot::Job& job : snapshot.jobs) {
    job.view.job.spec = spec;
    for (wire::Snapshot::Process& process : job.processes) process.name = evil;
    if (job.view.wait) {
      core::Wait wait = *job.view.wait;
      wait.words = evil;
      job.view.wait = wait;
    }
  }
  for (wire::CardView& card : snapshot.cards) {
    card.name = card.type = evil;
    for (auto& other : card.foreign_list) other.user = other.name = evil;
    for (auto& job : card.jobs) job.user = evil;
  }
  snapshot.trouble = snapshot.driver = setting_.host = setting_.trouble = evil;
  view_.wanted.tree = true;
  view_.message = evil;
  for (const Page page : {Page::kMain, Page::kDetail, Page::kHelp}) {
    view_.page = page;
    view_.asked = Deed{Deed::Kind::kCancel, evil, 0, {}, evil};
    const std::string text = draw(snapshot, {120, 40}).text();
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    EXPECT_EQ(text.find("\u202e"), std::string::npos);
    EXPECT_EQ(text.find("\u2028"), std::string::npos);
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
    EXPECT_EQ(text.find('\x7f'), std::string::npos);
  }
}

TEST(Paint, OnlyWhatChangedIsSent) {
  Canvas before({20, 2});
  before.put({0, 0}, "hello world", {});
  Canvas after = before;
  EXPECT_EQ(paint(before, after, Depth::k256), "");
  after.put({0, 6}, "W", {Colour::kHot, true});
  EXPECT_EQ(paint(before, after, Depth::k256), "\033[1;7H\033[0;1;38;5;167mW\033[0m");
  EXPECT_EQ(paint(before, after, Depth::k16), "\033[1;7H\033[0;1;31mW\033[0m");
  EXPECT_EQ(paint(before, after, Depth::kNone), "\033[1;7H\033[0;1mW\033[0m");
  EXPECT_EQ(paint({}, before, Depth::kNone),
            "\033[0m\033[2J\033[1;1H\033[0mhello\033[1;7Hworld\033[0m");
}

TEST(Paint, AfterAWideCharacterTheCursorIsPutInItsPlace) {
  Canvas before({20, 1});
  Canvas after({20, 1});
  after.put({0, 0}, "模a", {});
  EXPECT_EQ(paint(before, after, Depth::kNone), "\033[1;1H\033[0m模\033[1;3Ha\033[0m");
  // A wide character that is removed takes its right half along.
  EXPECT_EQ(paint(after, before, Depth::kNone), "\033[1;1H\033[0m   \033[0m");
}

}  // namespace
}  // namespace mete::top
