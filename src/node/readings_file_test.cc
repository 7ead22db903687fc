// SPDX-License-Identifier: Apache-2.0
// The readings file: values survive the round trip, lists that do not fit count as unknown,
// concurrent readers never see half a reading, a writer that is killed in the middle is replaced,
// and random bytes never crash a reader. A runner uses the driver only while the file is old.
#include "node/readings_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/file.h"
#include "node/sample_source.h"

namespace mete::node {
namespace {

constexpr char kUuid[] = "GPU-00000000-0000-0000-0000-000000000001";

std::vector<seam::CardReading> reading(std::uint64_t salt, std::size_t processes = 2) {
  seam::CardReading card;
  card.index = 7;
  card.uuid = kUuid;
  card.total = Bytes::from_gib(141);
  card.free = Bytes::from_bytes(salt);
  card.processes.emplace();
  for (std::size_t i = 0; i < processes; ++i)
    card.processes->push_back({static_cast<pid_t>(i + 1), Bytes::from_bytes(salt + i), false});
  return {card};
}

class ReadingsFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-readings-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/readings";
  }
  void TearDown() override {
    (void)unlink(path_.c_str());
    EXPECT_EQ(rmdir(folder_.c_str()), 0) << "something was left behind";
  }
  std::string bytes() { return *base::read_all(path_); }
  void put(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string folder_, path_;
};

TEST_F(ReadingsFile, SaysWhatWasRead) {
  EXPECT_EQ(read_readings(path_).error().code, ErrorCode::kNotFound);
  ReadingsWriter writer = *ReadingsWriter::make(path_);
  EXPECT_EQ(read_readings(path_).error().code, ErrorCode::kBusy) << "nothing was read yet";
  seam::CardReading lost;
  lost.state = seam::CardState::kLost;
  std::vector<seam::CardReading> cards = reading(1000);
  cards[0].processes->at(1).used.reset();
  cards.push_back(lost);
  writer.publish(cards, seam::Nanoseconds(77));
  const Result<Sample> sample = read_readings(path_);
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(sample->at, seam::Nanoseconds(77));
  ASSERT_EQ(sample->cards.size(), 2u);
  EXPECT_EQ(sample->cards[0].uuid, kUuid);
  EXPECT_EQ(sample->cards[0].free, Bytes::from_bytes(1000));
  EXPECT_EQ(sample->cards[0].used, std::nullopt);
  EXPECT_TRUE(sample->cards[0].processes_known);
  EXPECT_TRUE(sample->cards[1].lost);
  EXPECT_EQ(sample->find(1)->used[0], Bytes::from_bytes(1000));
  EXPECT_TRUE(sample->find(2)->present[0]);
  EXPECT_EQ(sample->find(2)->used[0], std::nullopt);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(ReadingsFile, AListThatDoesNotFitIsNotKnown) {
  ReadingsWriter writer = *ReadingsWriter::make(path_);
  std::vector<seam::CardReading> cards = reading(1, 4000);
  cards.push_back(reading(1, 97)[0]);
  writer.publish(cards, seam::Nanoseconds(1));
  const Result<Sample> sample = read_readings(path_);
  EXPECT_TRUE(sample->cards[0].processes_known);
  EXPECT_FALSE(sample->cards[1].processes_known);
  writer.publish(std::vector<seam::CardReading>(40, cards[1]), seam::Nanoseconds(1));
  EXPECT_EQ(read_readings(path_)->cards.size(), 32u);
}

TEST_F(ReadingsFile, ReadersNeverSeeHalfAReading) {
  ReadingsWriter writer = *ReadingsWriter::make(path_);
  writer.publish(reading(1, 3000), seam::Nanoseconds(1));
  const pid_t child = fork();
  if (child == 0)
    for (std::uint64_t i = 2;; ++i)
      writer.publish(reading(i, 3000), seam::Nanoseconds(static_cast<std::int64_t>(i)));
  int whole = 0;
  std::set<std::int64_t> seen;
  for (int i = 0; i < 2000; ++i) {
    const Result<Sample> sample = read_readings(path_);
    if (!sample) {
      EXPECT_EQ(sample.error().code, ErrorCode::kBusy);
      continue;
    }
    ++whole;
    seen.insert(sample->at.count());
    const auto salt = static_cast<std::uint64_t>(sample->at.count());
    ASSERT_EQ(sample->cards[0].free->count(), salt);
    ASSERT_EQ(sample->processes.size(), 3000u);
    ASSERT_EQ(sample->processes.back().used[0]->count(), salt + 2999);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_GT(whole, 0);
  EXPECT_GT(seen.size(), 1u) << "the writer did not write meanwhile";
}

TEST_F(ReadingsFile, AWriterKilledInTheMiddleIsReplaced) {
  {
    ReadingsWriter writer = *ReadingsWriter::make(path_);
    writer.publish(reading(5), seam::Nanoseconds(5));
  }
  std::string torn = bytes();
  torn[offsetof(abi::Readings, sequence)] = 3;
  put(torn);
  EXPECT_EQ(read_readings(path_).error().code, ErrorCode::kBusy);
  ReadingsWriter writer = *ReadingsWriter::make(path_);
  writer.publish(reading(6), seam::Nanoseconds(6));
  EXPECT_EQ(read_readings(path_)->at, seam::Nanoseconds(6));
}

TEST_F(ReadingsFile, RefusesHostileBytes) {
  {
    ReadingsWriter writer = *ReadingsWriter::make(path_);
    writer.publish(reading(5), seam::Nanoseconds(5));
  }
  const std::string good = bytes();
  const auto refused = [&](std::size_t offset, std::uint32_t word, ErrorCode code) {
    std::string bad = good;
    std::memcpy(bad.data() + offset, &word, sizeof word);
    put(bad);
    const Result<Sample> sample = read_readings(path_);
    ASSERT_FALSE(sample) << offset;
    EXPECT_EQ(sample.error().code, code) << sample.error().message;
  };
  const std::size_t body = offsetof(abi::Readings, body);
  refused(0, 0, ErrorCode::kCorrupt);
  refused(offsetof(abi::Readings, major), 2, ErrorCode::kUnsupported);
  refused(offsetof(abi::Readings, file_bytes), 10, ErrorCode::kCorrupt);
  refused(offsetof(abi::Readings, boot_id), 0xdeadbeef, ErrorCode::kUnsupported);
  refused(offsetof(abi::Readings, pid_namespace), 1, ErrorCode::kUnsupported);
  refused(body + offsetof(abi::ReadingsBody, card_count), 33, ErrorCode::kCorrupt);
  refused(body + offsetof(abi::ReadingsBody, card_count), 0, ErrorCode::kCorrupt);
  refused(body + offsetof(abi::ReadingsBody, process_count), 4097, ErrorCode::kCorrupt);
  refused(body + offsetof(abi::ReadingsBody, process_count), 3, ErrorCode::kCorrupt);
  for (const std::size_t size : {std::size_t{0}, std::size_t{40}, good.size() - 1}) {
    put(good.substr(0, size));
    EXPECT_EQ(read_readings(path_).error().code, ErrorCode::kCorrupt) << size;
  }
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(read_readings(path_).error().code, ErrorCode::kCorrupt) << "and it did not hang";
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_FALSE(read_readings(path_));
}

struct SetClock final : seam::Clock {
  seam::Nanoseconds now{std::chrono::hours(1)};
  seam::Nanoseconds monotonic() override { return now; }
  WallTime wall() override { return {}; }
};

struct CountingDriver final : seam::Driver {
  explicit CountingDriver(int& count) : open(count) { ++open; }
  ~CountingDriver() override { --open; }
  int& open;
  Result<seam::DriverIdentity> identity() override { return Error::unsupported("none"); }
  Result<std::vector<seam::CardReading>> read_all(seam::Milliseconds) override {
    return reading(42);
  }
};

TEST_F(ReadingsFile, ARunnerAsksTheDriverOnlyWhileReadingsAreOld) {
  SetClock clock;
  int open = 0;
  SampleSource source(
      path_,
      [&]() -> Result<std::unique_ptr<seam::Driver>> {
        return std::unique_ptr<seam::Driver>(new CountingDriver(open));
      },
      clock);
  EXPECT_EQ(source.next(clock.now)->cards[0].free, Bytes::from_bytes(42)) << "no daemon";
  EXPECT_EQ(open, 1);
  EXPECT_EQ(source.next(clock.now).error().code, ErrorCode::kBusy) << "four times a second";
  clock.now += seam::Milliseconds(250);
  EXPECT_TRUE(source.next(clock.now));

  ReadingsWriter writer = *ReadingsWriter::make(path_);
  writer.publish(reading(1), clock.now);
  clock.now += seam::Milliseconds(100);
  EXPECT_EQ(source.next(clock.now).error().code, ErrorCode::kBusy) << "began before we were ready";
  EXPECT_EQ(open, 0) << "let go of the driver";
  EXPECT_EQ(source.next(clock.now - seam::Milliseconds(100))->cards[0].free, Bytes::from_bytes(1));

  clock.now += seam::Milliseconds(1401);
  EXPECT_EQ(source.next(clock.now)->cards[0].free, Bytes::from_bytes(42)) << "1.5 s old";
  EXPECT_EQ(open, 1);
  writer.publish(reading(2), clock.now + seam::Milliseconds(1));
  clock.now += seam::Nanoseconds(1);
  EXPECT_EQ(source.next(clock.now).error().code, ErrorCode::kBusy) << "from the future";
  EXPECT_EQ(open, 1);
}

}  // namespace
}  // namespace mete::node
