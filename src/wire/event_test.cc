// SPDX-License-Identifier: Apache-2.0
// The log outlives the program that wrote it. Every file of tests/data/events is a line that some
// version has written; this one must read all of them, and write what it says it writes. A change
// of the format adds a file and leaves the old one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "wire/job.h"

namespace mete::wire {
namespace {

using core::Happened;
using core::JobId;

core::JobSpec spec() {
  core::JobSpec spec;
  spec.name = "train";
  spec.uid = 1000;
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu("2x8G");
  spec.request.devices = {"3", "GPU-01234567"};
  spec.request.gpu_type = "H200";
  spec.request.procs = 4;
  spec.request.or_cpu = true;
  spec.request.cpus = 8;
  spec.request.ram = Bytes::from_gib(16);
  spec.command = {"python", "train.py", "--name", "caf\xc3\xa9 \"x\"\n"};
  spec.folder = "/home/alice";
  spec.time_s = 3600;
  return spec;
}

core::JobSpec plain_spec() {
  core::JobSpec spec;
  spec.name = "true";
  spec.command = {"true"};
  spec.folder = "/";
  return spec;
}

core::Exit exit_of(std::optional<int> code, std::optional<int> signal) {
  core::Exit exit;
  exit.code = code;
  exit.signal = signal;
  return exit;
}

core::Exit full_exit() {
  core::Exit exit = exit_of(1, std::nullopt);
  exit.not_started = exit.timed_out = exit.gpu_oom = true;
  exit.peaks = {Bytes::from_gib(8), Bytes::from_bytes(UINT64_MAX)};
  return exit;
}

// File (its name begins with the type) and meaning.
const std::map<std::string, Happened>& golden() {
  static const std::map<std::string, Happened> all = {
      {"job.submitted-full.json", core::JobSubmitted{{12}, spec(), core::ProcessRef{412, 99}}},
      {"job.submitted-plain.json", core::JobSubmitted{{1}, plain_spec(), {}}},
      {"job.granted-cards.json",
       core::JobGranted{{12},
                        {{3, "GPU-01234567-89ab-cdef-fedc-ba9876543210", Bytes::from_gib(8), false},
                         {0, "GPU-0", Bytes::from_gib(140), true}}}},
      {"job.granted-none.json", core::JobGranted{{1}, {}}},
      {"job.started-one.json", core::JobStarted{{12}, {413, UINT64_MAX}, 0}},
      {"job.started-ago.json", core::JobStarted{{12}, {413, 98765}, 1500}},
      {"job.stopping-cancelled.json", core::JobStopping{{12}, core::Outcome::kCancelled}},
      {"job.stopping-lost.json", core::JobStopping{{12}, core::Outcome::kLost}},
      {"job.ended-ok.json", core::JobEnded{{12}, core::Outcome::kOk, exit_of(0, std::nullopt)}},
      {"job.ended-signal.json",
       core::JobEnded{{12}, core::Outcome::kSignal, exit_of(std::nullopt, 9)}},
      {"job.ended-full.json", core::JobEnded{{12}, core::Outcome::kLaunchFailed, full_exit()}},
      {"job.ended-cancelled.json", core::JobEnded{{12}, core::Outcome::kCancelled, {}}},
      {"card.lost-one.json", core::CardLost{"GPU-0"}},
      {"card.back-one.json", core::CardBack{"GPU-0"}},
  };
  return all;
}

std::filesystem::path folder() {
  const char* root = std::getenv("METE_SOURCE_DIR");
  return std::filesystem::path(root == nullptr ? "." : root) / "tests/data/events";
}

std::string type_in(const std::string& file) { return file.substr(0, file.find('-')); }

TEST(Events, AreReadAndWrittenAsPinned) {
  for (const auto& [name, what] : golden()) {
    std::ifstream file(folder() / name);
    ASSERT_TRUE(file) << folder() / name << " is missing; it would say: " << encode(what);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    ASSERT_FALSE(text.empty());
    text.pop_back();  // the newline
    const Result<Happened> read = decode_event(type_in(name), text);
    ASSERT_TRUE(read.ok()) << name << ": " << read.error().message;
    EXPECT_EQ(*read, what) << name;
    EXPECT_EQ(encode(what), text) << name;
    EXPECT_EQ(core::type_of(what), type_in(name));
  }
}

TEST(Events, EveryPinnedFileIsLookedAt) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_TRUE(golden().contains(entry.path().filename().string())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, golden().size());
}

TEST(Events, EveryKindIsPinned) {
  std::set<std::size_t> kinds;
  for (const auto& [name, what] : golden()) kinds.insert(what.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Happened>);
}

TEST(Events, SayWhichJobTheyAreAbout) {
  EXPECT_EQ(job_of(core::JobStopping{{12}, core::Outcome::kLost}), "12");
  EXPECT_EQ(job_of(core::CardLost{"GPU-0"}), "");
}

TEST(Events, UnknownFieldsAreIgnoredAndUnknownTypesAreNot) {
  EXPECT_EQ(*decode_event("card.lost", R"({"card":"GPU-0","why":["new"]})"),
            Happened(core::CardLost{"GPU-0"}));
  EXPECT_EQ(decode_event("job.abducted", R"({"id":"1"})").error().code, ErrorCode::kUnsupported);
}

TEST(Events, WrongKindsAreRefused) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"job.submitted",
       R"({"id":"0","spec":{"name":"a","command":[],"uid":1,"user":"u","request":{}}})"},
      {"job.submitted", R"({"id":"1","spec":{"name":"a","command":[],"request":{}}})"},
      {"job.submitted", R"({"id":"1"})"},
      {"job.granted", R"({"id":12,"grant":[]})"},
      {"job.granted", R"({"id":"12","grant":[{"card":"GPU-0","index":4294967296,"bytes":1}]})"},
      {"job.granted", R"({"id":"12","grant":[{"card":"GPU-0","index":0,"bytes":-1}]})"},
      {"job.started", R"({"id":"12"})"},
      {"job.started", R"({"id":"12","program":{"pid":0,"start_ticks":1}})"},
      {"job.started", R"({"id":"12","program":{"pid":1,"start_ticks":1},"ago_ms":1000000000001})"},
      {"job.stopping", R"({"id":"12","why":"boredom"})"},
      {"job.ended", R"({"id":"12"})"},
      {"job.ended", R"({"id":"12","outcome":"ok","exit":[]})"},
      {"card.lost", R"({"card":0})"},
      {"card.back", R"([])"},
      {"card.back", ""}};
  for (const auto& [type, text] : cases) EXPECT_FALSE(decode_event(type, text).ok()) << text;
}

}  // namespace
}  // namespace mete::wire
