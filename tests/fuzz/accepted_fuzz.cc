// SPDX-License-Identifier: Apache-2.0
// Requests that are valid by construction, with any content, through the whole engine. Most mutated
// documents are refused by the first check and say nothing about what lies behind it; here the
// bytes choose the *values* of a request. Each one is written as `mete submit` writes it, read as
// the daemon reads it, decided, recorded, shown to its user, and found again after a crash.
//
// How: the input is a tape of choices. Each step takes one byte for what happens (submit, a verb,
// an end, time, a crash) and further bytes for its values; a tape that is at its end gives zeros.
// After each step the grants of a card must fit into it, and a crash must lead to the state from
// before.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/content_hash.h"
#include "engine/engine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_launcher.h"
#include "tests/support/mem_store.h"
#include "wire/job.h"
#include "wire/show.h"
#include "wire/submit.h"

namespace {

using namespace mete;

constexpr std::size_t kMostSteps = 64;
constexpr std::uint64_t kCardGib = 80;
constexpr std::array<std::uint32_t, 3> kUsers{0, 1000, 1001};

class Tape {
 public:
  Tape(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool at_end() const { return at_ == size_; }
  std::uint8_t byte() { return at_end() ? 0 : data_[at_++]; }
  // 0..most, most < 2^32
  std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    for (std::uint64_t reach = most; reach > 0; reach >>= 8) value = value << 8 | byte();
    return value % (most + 1);
  }
  bool flag() { return (byte() & 1) != 0; }
  // Any bytes but NUL, which ends a word.
  std::string word(std::size_t most) {
    std::string text;
    for (std::uint64_t left = number(most); left > 0; --left) {
      const char c = static_cast<char>(byte());
      text += c == '\0' ? '0' : c;
    }
    return text;
  }
  template <typename T, std::size_t N>
  const T& one_of(const std::array<T, N>& list) {
    return list[number(N - 1)];
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

core::Request some_request(Tape& tape) {
  static constexpr std::array<std::string_view, 14> kShares{
      "0",  "all",    "grow",  "1",        "2",      "40%",     "0.125",
      "8G", "8000MB", "2x30%", "allx512M", "1G..8G", "2G..all", "3x1"};
  core::Request request;
  if (Result<core::GpuRequest> gpu = core::parse_gpu(tape.one_of(kShares))) request.gpu = *gpu;
  if (tape.byte() % 8 == 1) request.devices = {std::to_string(tape.number(4))};
  if (tape.byte() % 8 == 1) request.gpu_type = tape.flag() ? "H200" : "A100";
  request.procs = static_cast<std::uint32_t>(1 + tape.number(3));
  request.or_cpu = tape.byte() % 8 == 1;
  return request;
}

// Times around now and at the ends of what can be written.
WallTime some_time(Tape& tape, WallTime now) {
  switch (tape.byte() % 4) {
    case 0:
      return {now.ms + static_cast<std::int64_t>(tape.number(100'000))};
    case 1:
      return {now.ms - static_cast<std::int64_t>(tape.number(100'000))};
    case 2:
      return {0};
    default:
      return {253'402'300'799'999};  // the last of the year 9999
  }
}

void some_terms(Tape& tape, core::JobSpec& spec, WallTime now, std::uint64_t jobs) {
  static constexpr std::array<std::string_view, 6> kArrays{
      "0", "0-9", "1-7:3%2", "5,3,1", "9999990-9999999", "0-99%4"};
  if (tape.byte() % 4 == 1) spec.array = *core::parse_array(tape.one_of(kArrays));
  if (tape.byte() % 4 == 1) spec.time_s = tape.number(UINT32_MAX);
  if (tape.byte() % 4 == 1)
    spec.priority =
        static_cast<std::int32_t>(tape.number(2 * core::kMaxPriority)) - core::kMaxPriority;
  for (std::uint64_t left = tape.byte() % 4; left > 0; --left)
    spec.after.push_back(
        {{1 + tape.number(jobs), {}}, tape.flag() ? core::When::kAny : core::When::kOk});
  if (tape.byte() % 4 == 1) spec.retries = static_cast<std::uint32_t>(tape.number(1000));
  if (tape.byte() % 8 == 1)
    spec.retry_gpu_pct = static_cast<std::uint32_t>(101 + tape.number(9899));
  spec.requeue = tape.byte() % 4 == 1;
  spec.held = tape.byte() % 4 == 1;
  spec.no_preempt = tape.byte() % 8 == 1;
  spec.shed = tape.byte() % 8 == 1;
  if (tape.byte() % 4 == 1) spec.preemptible = tape.flag();
  if (tape.byte() % 8 == 1) spec.begin = some_time(tape, now);
  if (tape.byte() % 8 == 1) spec.deadline = some_time(tape, now);
  if (tape.byte() % 8 == 1) spec.idle_s = tape.number(100ull * 365 * 86'400);  // the most
}

wire::SubmitRequest some_submit(Tape& tape, WallTime now, std::uint64_t jobs) {
  wire::SubmitRequest request;
  core::JobSpec& spec = request.spec;
  spec.name = tape.word(300);
  spec.command.push_back("p" + tape.word(20));
  for (std::uint64_t left = tape.byte() % 4; left > 0; --left)
    spec.command.push_back(tape.word(64));
  // One long word now and then: it must not make lists, logs or snapshots fail.
  if (tape.byte() % 16 == 1) spec.command.push_back(std::string(tape.number(200'000), 'x'));
  spec.folder = "/" + tape.word(20);
  spec.request = some_request(tape);
  some_terms(tape, spec, now, jobs);
  for (std::uint64_t left = tape.byte() % 3; left > 0; --left)
    spec.labels["k" + std::to_string(tape.byte())] = std::string(tape.number(300), 'v');
  spec.detached = core::Detached{};
  spec.detached->umask = static_cast<std::uint32_t>(tape.number(0777));
  spec.detached->log = tape.word(30);
  spec.detached->err = tape.word(30);
  spec.detached->tty = tape.flag();
  for (std::uint64_t left = tape.byte() % 4; left > 0; --left)
    request.environment.push_back("N" + tape.word(10) + "=" + tape.word(40));
  request.script = tape.word(50);
  request.wait = tape.byte() % 8 != 1;
  return request;
}

class World {
 public:
  explicit World(Tape& tape) : tape_(tape) {
    options_.snapshot_every = 7;
    for (std::uint32_t i = 0; i < 3; ++i) {
      core::PoolCard card;
      card.card = {i, "GPU-" + std::to_string(i), "H200", Bytes::from_gib(kCardGib)};
      machine_.cards.push_back(std::move(card));
    }
    begin();
  }

  void step() {
    switch (tape_.byte() % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        submit();
        break;
      case 5:
      case 6:
        begin_or_end();
        break;
      case 7:
        clock_.advance(seam::Milliseconds(tape_.number(10'000'000)));
        turn(core::Look{});
        break;
      case 8:
        crash();
        break;
      case 9:
        show();
        break;
      default:
        verb();
        break;
    }
    check_cards();
  }

 private:
  void begin() {
    engine_ = std::make_unique<engine::Engine>(clock_, store_, launcher_, options_);
    METE_ASSERT(engine_->recover().ok());
    engine_->see(machine_);
    turn(core::Look{});
  }

  void turn(core::Input input, std::vector<std::pair<std::string, std::string>> blobs = {}) {
    clock_.advance(seam::Milliseconds(1));
    std::vector<engine::Asked> asked;
    asked.push_back({1, std::move(input), std::move(blobs)});
    const Result<std::vector<engine::Answer>> answers = engine_->turn(std::move(asked));
    METE_ASSERT(answers.ok() && answers->size() == 1);
    const Result<core::JobId>& result = answers->front().result;
    METE_ASSERT(result.ok() || !result.error().message.empty());
  }

  void submit() {
    const wire::SubmitRequest said = some_submit(
        tape_, clock_.wall(), static_cast<std::uint64_t>(engine_->state().jobs().size()));
    const std::string text = wire::encode(said);
    Result<wire::SubmitRequest> read = wire::decode_submit_request(text);
    if (!read) (void)std::fprintf(stderr, "%s\n", read.error().message.c_str());
    METE_ASSERT(read.ok());  // valid by construction
    METE_ASSERT(wire::encode(*read) == text);
    core::Submit submit;
    submit.spec = std::move(read->spec);
    submit.spec.uid = tape_.one_of(kUsers);
    submit.spec.user = std::to_string(submit.spec.uid);
    submit.wait = read->wait;
    submit.admin = submit.spec.uid == 0;
    const std::string content = read->script + "!";
    submit.spec.detached->environment = base::content_hash(content);
    turn(std::move(submit), {{base::content_hash(content), content}});
  }

  // Any job there is, or one that is not.
  core::JobId some_job() {
    const auto& jobs = engine_->state().jobs();
    const std::uint64_t at = tape_.number(jobs.size());
    if (at == jobs.size()) return {tape_.number(99), {}};
    auto found = jobs.begin();
    std::advance(found, static_cast<std::ptrdiff_t>(at));
    return tape_.byte() % 4 == 1 ? core::JobId{found->first.number, {}} : found->first;
  }

  void begin_or_end() {
    const core::Job* job = engine_->state().find(some_job());
    if (job == nullptr) return;
    const core::JobId id = job->id;
    const std::uint32_t uid = job->spec->uid;
    const core::ProcessRef program{static_cast<std::int32_t>(id.number + 5000), 3};
    switch (tape_.byte() % 4) {
      case 0:
        turn(core::Started{id, uid, program, tape_.number(1000), core::ProcessRef{77, 1}});
        break;
      case 1:
      case 2: {
        core::Exit exit;
        exit.code = static_cast<int>(tape_.byte());
        exit.gpu_oom = tape_.flag();
        exit.note = tape_.word(40);
        turn(core::Ended{id, uid, exit, program, tape_.number(1000)});
        break;
      }
      default:
        turn(core::NotLaunched{id, tape_.flag() ? "" : tape_.word(40)});
        break;
    }
  }

  void verb() {
    const core::JobId id = some_job();
    const std::uint32_t uid = tape_.one_of(kUsers);
    const core::Caller by{uid, uid == 0, std::to_string(uid)};
    switch (tape_.byte() % 8) {
      case 0:
        turn(core::Cancel{id, by});
        break;
      case 1:
        turn(core::Hold{id, by});
        break;
      case 2:
        turn(core::Release{id, by});
        break;
      case 3:
        turn(core::Requeue{id, by});
        break;
      case 4:
        turn(core::SetPriority{id, by, static_cast<std::int32_t>(tape_.number(1000)) - 500});
        break;
      case 5:
        turn(core::ParkJob{id, by, tape_.flag()});
        break;
      case 6:
        turn(core::UnparkJob{id, by});
        break;
      default:
        turn(core::JobGone{id});
        break;
    }
  }

  // What its user and other programs are told of a job can be read.
  void show() {
    const core::Job* job = engine_->state().find(some_job());
    if (job == nullptr) return;
    wire::ShowDocument reply;
    reply.at = clock_.wall();
    reply.view.job = *job;
    reply.view.wait = engine_->wait_of(job->id);
    METE_ASSERT(wire::decode_show(wire::encode(reply)).ok());
    const core::Explanation explanation = engine_->explain(*job);
    (void)explanation;
    core::Submit again;
    again.spec = *job->spec;
    (void)engine_->try_out(again);
  }

  void crash() {
    const core::State before = engine_->state();
    engine_.reset();
    store_.forget_uncommitted();
    launcher_.crash();
    engine_ = std::make_unique<engine::Engine>(clock_, store_, launcher_, options_);
    METE_ASSERT(engine_->load().ok());
    METE_ASSERT(engine_->state() == before);
    begin();
  }

  void check_cards() const {
    for (const core::PoolCard& card : engine_->pool().cards) {
      Bytes granted;
      for (const core::Holder& holder : card.holders) granted = granted.plus(holder.bytes);
      METE_ASSERT(granted <= card.card.capacity);
    }
  }

  Tape& tape_;
  tests::FakeClock clock_;
  tests::MemStore store_;
  tests::FakeLauncher launcher_;
  engine::Options options_;
  core::Pool machine_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Tape tape(data, size);
  World world(tape);
  for (std::size_t i = 0; i < kMostSteps && !tape.at_end(); ++i) world.step();
  return 0;
}
