// SPDX-License-Identifier: Apache-2.0
// NvmlDriver, the sampler and the context probe end to end: over the simulated libraries, and over
// an old NVML. A holder process takes memory on a simulated card; the test reads what the driver
// reports about it.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "base/fd.h"
#include "node/nvml_driver.h"
#include "node/probe.h"
#include "node/probe_cache.h"
#include "node/sampler.h"

extern char** environ;

namespace mete::node {
namespace {

using seam::CardReading;
using seam::CardState;
using seam::Milliseconds;

constexpr Milliseconds kPlenty{60000};

std::string build(const std::string& path) {
  const char* folder = std::getenv("METE_BUILD_DIR");
  return std::string(folder != nullptr ? folder : ".") + "/" + path;
}

struct StepClock final : seam::Clock {
  seam::Nanoseconds now{0};
  seam::Nanoseconds step{0};
  seam::Nanoseconds monotonic() override { return now += step; }
  WallTime wall() override { return {}; }
};

// Holds a context and some memory on a card until it is released.
class Holder {
 public:
  Holder(unsigned card, Bytes bytes) {
    base::Pipe input = std::move(*base::make_pipe()), output = std::move(*base::make_pipe());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.read.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.write.get(), STDOUT_FILENO);
    std::vector<std::string> words = {build("tests/nvml_holder"), build("simgpu/libcuda.so.1"),
                                      std::to_string(card), std::to_string(bytes.count()), "0"};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    output.write.reset();
    input_ = std::move(input.write);
    output_ = std::move(output.read);
    char ready[6] = {};
    EXPECT_EQ(read(output_.get(), ready, sizeof(ready)), 6) << "the holder did not get its memory";
  }
  ~Holder() {
    input_.reset();
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  void work() {
    char done[5] = {};
    EXPECT_EQ(write(input_.get(), "x", 1), 1);
    EXPECT_EQ(read(output_.get(), done, sizeof(done)), 5);
  }

 private:
  pid_t pid_ = -1;
  Fd input_;
  Fd output_;
};

class SimulatedCards : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-driver-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    setenv("METE_SIM_DIR", name, 1);
    setenv("METE_SIM", "2xH200", 1);
  }
  void TearDown() override {
    driver_.reset();
    control("stop");
    ASSERT_EQ(std::system(("rm -rf " + folder_).c_str()), 0);
  }
  void control(const std::string& words) {
    ASSERT_EQ(
        std::system((build("simgpu/mete-simgpu") + " --ctl " + words + " > /dev/null").c_str()), 0)
        << words;
  }
  NvmlDriver& driver() {
    if (!driver_) {
      Result<std::unique_ptr<NvmlDriver>> opened =
          NvmlDriver::open(build("simgpu/libnvidia-ml.so.1"));
      EXPECT_TRUE(opened) << opened.error().message;
      driver_ = std::move(*opened);
    }
    return *driver_;
  }
  std::string folder_;
  std::unique_ptr<NvmlDriver> driver_;
};

TEST_F(SimulatedCards, AreReadCompletely) {
  EXPECT_EQ(driver().identity()->version, "580.159.04");
  EXPECT_EQ(driver().identity()->cuda_version, 13000);
  const Result<std::vector<CardReading>> cards = driver().read_all(kPlenty);
  ASSERT_TRUE(cards) << cards.error().message;
  ASSERT_EQ(cards->size(), 2u);
  const CardReading& card = (*cards)[1];
  EXPECT_EQ(card.index, 1u);
  EXPECT_TRUE(seam::parse_uuid(card.uuid)) << card.uuid;
  EXPECT_EQ(card.name, "NVIDIA H200");
  EXPECT_EQ(card.type, "H200");
  EXPECT_EQ(card.pci.size(), 16u) << card.pci;
  EXPECT_EQ(card.state, CardState::kOk);
  EXPECT_EQ(*card.total, *card.reserved + *card.used + *card.free);
  EXPECT_EQ(*card.capacity(), *card.total - *card.reserved);
  EXPECT_TRUE(card.utilisation_pct && card.temperature_c && card.power_mw && card.power_limit_mw &&
              card.numa);
  EXPECT_EQ(card.compute_mode, seam::ComputeMode::kDefault);
  EXPECT_EQ(card.mig, false);
  EXPECT_EQ(card.links, (std::vector<seam::CardLink>{{0, 18}}));
  ASSERT_TRUE(card.processes);
  EXPECT_TRUE(card.processes->empty());
}

TEST_F(SimulatedCards, AreLinkedByWiresWhereThereIsNoSwitch) {
  // Each V100 has six links: two to each of the other two. The T4 has none.
  std::ofstream(folder_ + "/machine") << "V100 nvlinks=2\nV100 nvlinks=2\nT4\nV100 nvlinks=2\n";
  setenv("METE_SIM", (folder_ + "/machine").c_str(), 1);
  const std::vector<CardReading> cards = *driver().read_all(kPlenty);
  ASSERT_EQ(cards.size(), 4u);
  EXPECT_EQ(cards[0].links, (std::vector<seam::CardLink>{{1, 2}, {3, 2}}));
  EXPECT_EQ(cards[3].links, (std::vector<seam::CardLink>{{0, 2}, {1, 2}}));
  EXPECT_TRUE(cards[2].links.empty());
  EXPECT_EQ(cards[2].mig, std::nullopt);
}

TEST_F(SimulatedCards, ShowWhoHoldsWhat) {
  const Holder small(0, Bytes::from_mib(64)), large(0, Bytes::from_mib(320)),
      other(1, Bytes::from_mib(64));
  const Result<Sample> sample = take_sample(driver(), seam::system_clock(), kPlenty);
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(sample->processes.size(), 3u);
  const ProcessSample *a = sample->find(small.pid()), *b = sample->find(large.pid()),
                      *c = sample->find(other.pid());
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*b->used[0] - *a->used[0], Bytes::from_mib(256));
  EXPECT_EQ(a->used[1], std::nullopt);
  EXPECT_EQ(c->used[1], a->used[0]);
  EXPECT_EQ(*sample->cards[0].used, *a->used[0] + *b->used[0]);
}

TEST_F(SimulatedCards, ShowWhoDoesSomething) {
  Holder works(0, Bytes::from_mib(64));
  const Holder sleeps(0, Bytes::from_mib(64));
  const auto load = [&](const Holder& holder) {
    std::optional<unsigned> percent;
    const std::vector<CardReading> cards = *driver().read_all(kPlenty);
    for (const seam::ProcessReading& process : *cards[0].processes)
      if (process.pid == holder.pid()) percent = process.utilisation_pct;
    return percent;
  };
  EXPECT_EQ(load(works), 0u);
  works.work();
  EXPECT_GT(load(works).value_or(0), 0u);
  EXPECT_EQ(load(sleeps), 0u);
  // Recent work is over at some time, long before this loop is.
  for (int i = 0; i < 30'000 && load(works) != 0u; ++i) usleep(1000);
  ASSERT_EQ(load(works), 0u);
  setenv("METE_SIM_NVML_NO_PROCESS_LOAD", "1", 1);
  EXPECT_EQ(load(works), std::nullopt) << "what a driver does not say is not zero";
  unsetenv("METE_SIM_NVML_NO_PROCESS_LOAD");
}

TEST_F(SimulatedCards, ALostCardIsKnownButEmpty) {
  const std::string uuid = (*driver().read_all(kPlenty))[1].uuid;
  control("lose-card 1");
  std::vector<CardReading> cards = *driver().read_all(kPlenty);
  EXPECT_EQ(cards[0].state, CardState::kOk);
  EXPECT_EQ(cards[1].state, CardState::kLost);
  EXPECT_EQ(cards[1].uuid, uuid);
  EXPECT_FALSE(cards[1].total || cards[1].processes || cards[1].temperature_c);
  control("restore-card 1");
  EXPECT_EQ((*driver().read_all(kPlenty))[1].state, CardState::kOk);
}

TEST_F(SimulatedCards, ASlowDriverIsBusyAndNotWaitedFor) {
  StepClock clock;
  Result<std::unique_ptr<NvmlDriver>> slow =
      NvmlDriver::open(build("simgpu/libnvidia-ml.so.1"), clock);
  ASSERT_TRUE(slow);
  EXPECT_TRUE((*slow)->read_all(Milliseconds(10)));
  clock.step = Milliseconds(6);
  EXPECT_EQ((*slow)->read_all(Milliseconds(10)).error().code, ErrorCode::kBusy);
}

TEST_F(SimulatedCards, ContextCostIsMeasuredAndRemembered) {
  const CardReading card = (*driver().read_all(kPlenty))[0];
  ProbeRequest request;
  request.key = {card.uuid, card.type, driver().identity()->version, false};
  request.program = build("bin/mete-probe");
  request.cuda = build("simgpu/libcuda.so.1");
  request.nvml = build("simgpu/libnvidia-ml.so.1");
  request.cache = folder_ + "/context-cost";
  request.timeout = kPlenty;
  for (char** variable = environ; *variable != nullptr; ++variable)
    request.environment.push_back(*variable);
  const Result<ContextCost> cost = context_cost(request, seam::system_clock());
  ASSERT_TRUE(cost) << cost.error().message << ": " << cost.error().evidence;
  EXPECT_GT(cost->first, Bytes::from_mib(100));
  EXPECT_GT(cost->more, Bytes::from_mib(100));
  EXPECT_EQ(find_cached(request.cache, request.key), *cost);
  // Nothing is left on the card, and no second process is needed.
  request.program = "/no/such/program";
  EXPECT_EQ(*context_cost(request, seam::system_clock()), *cost);
  request.cache.clear();
  EXPECT_EQ(context_cost(request, seam::system_clock()).error().code, ErrorCode::kNotFound);

  const Holder holder(0, Bytes());
  const Result<Sample> sample = take_sample(driver(), seam::system_clock(), kPlenty);
  EXPECT_EQ(sample->find(holder.pid())->used[0], cost->first)
      << "what the probe says is what a process holds";
}

TEST_F(SimulatedCards, AWedgedDriverDoesNotWedgeWhoeverProbes) {
  const CardReading card = (*driver().read_all(kPlenty))[0];
  ProbeRequest request;
  request.key = {card.uuid, card.type, driver().identity()->version, false};
  request.program = build("bin/mete-probe");
  request.cuda = build("simgpu/libcuda.so.1");
  request.nvml = build("simgpu/libnvidia-ml.so.1");
  request.timeout = Milliseconds(300);
  for (char** variable = environ; *variable != nullptr; ++variable)
    request.environment.push_back(*variable);
  request.environment.push_back("METE_SIM_NVML_HANG=1");
  EXPECT_EQ(context_cost(request, seam::system_clock()).error().code, ErrorCode::kBusy);
}

TEST(NoDriver, IsNotFound) {
  EXPECT_EQ(NvmlDriver::open("/no/such/library.so").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(NvmlDriver::open("libc.so.6").error().code, ErrorCode::kCorrupt);
}

class OldNvml : public testing::Test {
 protected:
  void SetUp() override { unsetenv("OLD_NVML_LOST"); }
  std::vector<CardReading> read() {
    Result<std::unique_ptr<NvmlDriver>> driver = NvmlDriver::open(build("tests/libold_nvml.so"));
    EXPECT_TRUE(driver) << driver.error().message;
    Result<std::vector<CardReading>> cards = (*driver)->read_all(kPlenty);
    EXPECT_TRUE(cards) << cards.error().message;
    return *cards;
  }
};

TEST_F(OldNvml, GivesWhatItHasAndNothingElse) {
  const std::vector<CardReading> cards = read();
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].type, "K80");
  EXPECT_EQ(cards[0].total, Bytes::from_gib(12));
  EXPECT_EQ(cards[0].capacity(), Bytes::from_gib(12));
  EXPECT_FALSE(cards[0].reserved || cards[0].utilisation_pct || cards[0].temperature_c ||
               cards[0].power_mw || cards[0].compute_mode || cards[0].mig);
  EXPECT_TRUE(cards[0].links.empty());
  EXPECT_TRUE(cards[1].processes->empty());
}

TEST_F(OldNvml, AGrowingListIsReadWhole) {
  const std::vector<CardReading> cards = read();
  ASSERT_TRUE(cards[0].processes);
  ASSERT_EQ(cards[0].processes->size() % 100, 0u);
  EXPECT_GE(cards[0].processes->size(), 200u) << "the first answer said 100, and more came";
  EXPECT_EQ((*cards[0].processes)[0].used, std::nullopt) << "not available is not zero";
  EXPECT_EQ((*cards[0].processes)[7].used, Bytes::from_bytes(7));
  EXPECT_EQ((*cards[0].processes)[7].utilisation_pct, std::nullopt);
}

TEST_F(OldNvml, ACardThatWasNeverReadCanBeLost) {
  setenv("OLD_NVML_LOST", "1", 1);
  const std::vector<CardReading> cards = read();
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].state, CardState::kOk);
  EXPECT_EQ(cards[1].state, CardState::kLost);
  EXPECT_EQ(cards[1].index, 1u);
  EXPECT_TRUE(cards[1].uuid.empty());
}

}  // namespace
}  // namespace mete::node
