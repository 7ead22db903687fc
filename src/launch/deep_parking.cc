// SPDX-License-Identifier: Apache-2.0
// See deep_parking.h. A state machine around two parts: the meter's parking (launch::Parking) and
// the program mete-checkpoint, which is spawned with "out" or "in" and the pids of the job and
// prints one line as its answer. step() advances whichever part is at work. A program that dies
// without an answer is started again, up to kTries times; a driver that hangs is given up after
// kLimitNs.
#include "launch/deep_parking.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "abi/process.h"
#include "abi/reserve.h"
#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr int kTries = 3;                          // of a program that ends without an answer
constexpr std::uint64_t kFreshNs = 3'000'000'000;  // the maximum age of a usable card reading
constexpr std::size_t kMaxSaid = 4096;
// The driver takes 0.6 s for each GiB, and two seconds for the rest (measured). After ten times
// that, the driver hangs.
constexpr std::uint64_t kLimitNs = 60'000'000'000;
constexpr std::uint64_t kLimitNsPerGib = 6'000'000'000;

// What prevents the driver's checkpoint, by bit in Slot::unparkable.
constexpr abi::ParkReason kInTheWay[] = {abi::ParkReason::kManaged, abi::ParkReason::kShared,
                                         abi::ParkReason::kMulticast, abi::ParkReason::kGraphics,
                                         abi::ParkReason::kForeign};

std::uint32_t pid_of(std::uint64_t owner) { return abi::OwnerWord::unpack(owner).pid; }

std::string with_pid(const std::string& text, std::uint32_t pid) {
  return text + " (pid " + std::to_string(pid) + ")";
}

// The value of a key in the one line that the program prints: a number or a plain string.
std::string value_of(const std::string& line, const std::string& key) {
  std::size_t at = line.find("\"" + key + "\":");
  if (at == std::string::npos) return "";
  at += key.size() + 3;
  const bool quoted = at < line.size() && line[at] == '"';
  if (quoted) ++at;
  const std::size_t end = line.find_first_of(quoted ? "\"" : ",}", at);
  return end == std::string::npos ? "" : line.substr(at, end - at);
}

std::string words_of(const std::string& line) {
  const std::string step = value_of(line, "step");
  std::string error = value_of(line, "error");
  if (step == "lock" && value_of(line, "end") == "busy")
    return "its work on the card did not end in time (pid " + value_of(line, "pid") + ")";
  if (step == "open") return error;
  return "the driver refused to " + step + " it: " + error + " (pid " + value_of(line, "pid") + ")";
}

bool holds_anything(const abi::Slot& slot) {
  for (const abi::SlotCard& card : slot.cards)
    if (abi::ChargeWord::unpack(card.charge.load()).units > 0 || card.nvml_bytes.load() > 0)
      return true;
  return false;
}

}  // namespace

DeepParking::DeepParking(abi::Grant& grant, Parking& meter, Options options)
    : grant_(grant),
      meter_(meter),
      options_(std::move(options)),
      viewer_(abi::owner_of(grant, abi::read_self())) {}

// Calls visit(index, slot, owner) for each living process of the job that holds memory on a card.
template <class Visit>
void DeepParking::each_process(Visit visit) const {
  const std::uint64_t high = std::min<std::uint64_t>(grant_.header.slot_high, abi::kSlots);
  for (std::uint64_t i = 0; i < high; ++i) {
    const abi::Slot& slot = grant_.slots[i];
    const std::uint64_t owner = slot.owner.load();
    if (owner == 0 || slot.role.load() != static_cast<std::uint64_t>(abi::SlotRole::kProcess) ||
        abi::process_is_gone(owner, viewer_) || !holds_anything(slot))
      continue;
    visit(i, slot, owner);
  }
}

// ---- what is known beforehand -------------------------------------------------------------------

// True if its MPS daemon lives: a server then holds its context, and the driver cannot take that
// away.
bool DeepParking::under_mps(std::uint32_t pid) const {
  constexpr std::string_view kName = "CUDA_MPS_PIPE_DIRECTORY=";
  std::string folder = options_.mps;
  const Result<std::string> environment =
      base::read_all("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t at = 0; environment && at < environment->size();) {
    const std::size_t end = std::min(environment->find('\0', at), environment->size());
    const std::string_view line(environment->data() + at, end - at);
    if (line.substr(0, kName.size()) == kName) folder = line.substr(kName.size());
    at = end + 1;
  }
  const Result<std::string> said = base::read_all(folder + "/nvidia-cuda-mps-control.pid");
  if (!said) return false;
  const Result<std::uint64_t> daemon =
      base::parse_uint(said->substr(0, said->find_first_not_of("0123456789")));
  return daemon && *daemon > 0 && *daemon <= 0x3fffff &&
         (kill(static_cast<pid_t>(*daemon), 0) == 0 || errno == EPERM);
}

std::string DeepParking::obstacle() const {
  if (options_.program.empty()) return "mete-checkpoint is not installed";
  if (cannot_ && !cannot_->empty()) return "the driver cannot checkpoint processes: " + *cannot_;
  std::string found;
  each_process([&](std::uint64_t index, const abi::Slot& slot, std::uint64_t owner) {
    if (!found.empty()) return;
    const std::uint32_t pid = pid_of(owner);
    if (abi::OwnerWord::unpack(owner).name_space != abi::OwnerWord::unpack(viewer_).name_space) {
      found = "a process of it is in another pid namespace";
      return;
    }
    for (const abi::ParkReason reason : kInTheWay)
      if ((slot.unparkable.load() >> static_cast<int>(reason) & 1) != 0 && found.empty())
        found = describe(reason, 0, pid);
    for (const abi::Export& entry : grant_.exports) {
      const abi::ExportWord state = abi::ExportWord::unpack(entry.state.load());
      const bool live =
          state.kind == abi::ExportWord::kLive || state.kind == abi::ExportWord::kFreedByOwner;
      if (!live || !found.empty()) continue;
      if ((state.slot == index && entry.owner.load() == owner) ||
          (entry.openers[index / 64].load() >> (index % 64) & 1) != 0)
        found = describe(abi::ParkReason::kForeign, 0, pid);
    }
    if (found.empty() && under_mps(pid)) found = with_pid("it runs under MPS", pid);
  });
  return found;
}

// ---- the program --------------------------------------------------------------------------------

bool DeepParking::start(Program& program, const char* verb) {
  Result<base::Pipe> pipe = base::make_pipe();
  if (!pipe) return false;
  std::vector<std::string> words{options_.program};
  if (!options_.cuda.empty()) words.insert(words.end(), {"--cuda", options_.cuda});
  const std::uint64_t ms = std::clamp<std::uint64_t>(patience_ns_ / 1'000'000, 1, 86'400'000);
  words.insert(words.end(), {"--timeout-ms", std::to_string(ms), verb});
  if (&program == &program_)
    for (const std::uint32_t pid : pids_) words.push_back(std::to_string(pid));
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), STDOUT_FILENO);
  posix_spawnattr_init(&attributes);
  // A process group of its own: Ctrl-C is for the job, and a checkpoint that has begun is finished.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  program = Program{};
  const int failed = posix_spawn(&program.pid, options_.program.c_str(), &actions, &attributes,
                                 arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  program.out = std::move(pipe->read);
  (void)fcntl(program.out.get(), F_SETFL, O_NONBLOCK);
  return true;
}

// The program's answer once it has ended. Another part of this process may have reaped it in a wait
// for all children, so its output counts, not its exit code.
std::optional<DeepParking::Answer> DeepParking::collect(Program& program) {
  if (!program.out.valid()) return std::nullopt;
  char buffer[512];
  for (;;) {
    const ssize_t got = read(program.out.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    if (got <= 0) break;
    if (program.said.size() < kMaxSaid) program.said.append(buffer, static_cast<std::size_t>(got));
  }
  while (waitpid(program.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  const Program ended = std::exchange(program, Program{});
  const std::string line = ended.said.substr(0, ended.said.find('\n'));
  if (ended.said.find('\n') == std::string::npos) return Answer{"", "mete-checkpoint was killed"};
  return Answer{value_of(line, "end"), words_of(line)};
}

// A driver that hangs is not waited for: its program is killed, and the checkpoint is undone.
std::optional<DeepParking::Answer> DeepParking::give_up(std::uint64_t now_ns) {
  if (program_.since_ns == 0) program_.since_ns = now_ns;
  std::uint64_t gib = 0;
  for (std::uint32_t card = 0; card < std::min(grant_.header.card_count, abi::kMaxCards); ++card)
    gib += before(card).count() >> 30;
  const std::uint64_t limit = patience_ns_ + kLimitNs + gib * kLimitNsPerGib;
  if (now_ns < program_.since_ns + limit) return std::nullopt;
  (void)kill(program_.pid, SIGKILL);
  program_ = Program{};  // reaped with the processes of the job, if it ever ends
  return Answer{"hung",
                "the driver did not answer in " + std::to_string(limit / 1'000'000'000) + " s"};
}

void DeepParking::learn() {
  if (!cannot_ && !probe_.out.valid() && !options_.program.empty()) (void)start(probe_, "can");
}

void DeepParking::run(State state, const char* verb) {
  state_ = state;
  if (!pids_.empty() && !start(program_, verb)) program_ = Program{};
}

// ---- out ----------------------------------------------------------------------------------------

void DeepParking::park(std::uint64_t now_ns, std::uint64_t patience_ns) {
  if (state_ != State::kRunning) return;
  patience_ns_ = patience_ns;
  learn();
  if (probe_.out.valid() && !cannot_)
    state_ = State::kAsking;
  else
    begin(now_ns);
}

// It is known what the driver supports, or it cannot be determined.
void DeepParking::begin(std::uint64_t now_ns) {
  state_ = State::kRunning;
  if (const std::string why = obstacle(); !why.empty()) {
    told_ = End{false, why, false};
    return;
  }
  before_.clear();
  for (std::uint32_t part = 0; part < std::min(grant_.header.part_count, abi::kMaxParts); ++part)
    for (const abi::Account& account : grant_.accounts[part])
      before_.push_back(abi::TotalWord::unpack(account.total.load()).units +
                        std::min(account.excess_units.load(), abi::kMaxUnits));
  failed_.reset();
  pids_.clear();
  tries_ = 0;
  was_parked_ = meter_.state() == Parking::State::kParked;
  by_meter_ = was_parked_ || meter_.obstacle().empty();
  // With several cards it is unknown how much of the parked memory belongs to which: then the
  // meter's own return finds out.
  if (was_parked_ && grant_.header.card_count == 1 && !before_.empty())
    before_[0] += meter_.moved().count() / abi::kUnitBytes;
  state_ = State::kMeterOut;
  if (by_meter_) meter_.park(now_ns, patience_ns_);
}

// The meter's part has ended, or there is none.
std::optional<DeepParking::End> DeepParking::meter_ended(const End& end) {
  switch (state_) {
    case State::kMeterOut:
      if (!end.done) {
        state_ = meter_.state() == Parking::State::kParked ? State::kParked : State::kRunning;
        return end;
      }
      pids_.clear();
      each_process([&](std::uint64_t, const abi::Slot&, std::uint64_t owner) {
        pids_.push_back(pid_of(owner));
      });
      if (const std::string why = no_host_room(); !why.empty()) {
        pids_.clear();
        undo(why);
        return std::nullopt;
      }
      run(State::kDriverOut, "out");
      return std::nullopt;
    case State::kMeterIn:
      if (end.done) {
        state_ = State::kRunning;
        return End{true, "", false};
      }
      // The job's memory did not fit and is away again: take the rest off the card too.
      failed_ = end;
      tries_ = 0;
      run(State::kDriverOut, "out");
      return std::nullopt;
    case State::kUndoing: {
      End told = *std::exchange(failed_, std::nullopt);
      if (!end.done) told.why += "; and it could not take its memory back: " + end.why;
      state_ = end.done ? State::kRunning : State::kParked;
      return told;
    }
    default:
      return std::nullopt;
  }
}

// The driver keeps the bytes in the memory of their process: if they do not fit, the kernel would
// kill a process.
std::string DeepParking::no_host_room() const {
  std::uint64_t wanted = kHostMargin.count();
  std::uint64_t least = UINT64_MAX;
  each_process([&](std::uint64_t, const abi::Slot& slot, std::uint64_t owner) {
    for (const abi::SlotCard& card : slot.cards)
      wanted += abi::ChargeWord::unpack(card.charge.load()).units * abi::kUnitBytes;
    least = std::min(least, host_room(pid_of(owner), options_.host).count());
  });
  if (least >= wanted) return "";
  return "the host has too little memory for it: " + to_string(Bytes::from_bytes(wanted)) +
         " needed, " + to_string(Bytes::from_bytes(least)) + " available";
}

DeepParking::End DeepParking::parked_end() {
  state_ = State::kParked;
  if (failed_) return *std::exchange(failed_, std::nullopt);
  return End{true, "", false};
}

void DeepParking::undo(const std::string& why) {
  failed_ = End{false, why, false};
  tries_ = 0;
  run(State::kUndoing, "in");
}

std::optional<DeepParking::End> DeepParking::driver_out(const Answer& answer) {
  if (answer.end == "done") return parked_end();
  if (answer.end.empty() && ++tries_ < kTries) {
    run(State::kDriverOut, "out");
    return std::nullopt;
  }
  // After a failed return the memory stays with the mover and the context on the card.
  if (failed_) return parked_end();
  undo(answer.why);
  return std::nullopt;
}

// ---- in -----------------------------------------------------------------------------------------

Bytes DeepParking::before(std::uint32_t card) const {
  std::uint64_t units = 0;
  for (std::size_t at = card; at < before_.size(); at += abi::kMaxCards) units += before_[at];
  return Bytes::from_bytes(units * abi::kUnitBytes);
}

Bytes DeepParking::needs(std::uint32_t card) const { return before(card); }

std::string DeepParking::no_room(std::uint64_t now_ns) const {
  for (std::uint32_t card = 0; card < std::min(grant_.header.card_count, abi::kMaxCards); ++card) {
    for (std::size_t part = 0; part * abi::kMaxCards + card < before_.size(); ++part) {
      const std::uint64_t limit = grant_.accounts[part][card].limit_bytes.load();
      if (limit / abi::kUnitBytes < before_[part * abi::kMaxCards + card])
        return "its grant is smaller than what it held";
    }
    const abi::GrantCard& facts = grant_.header.cards[card];
    const std::uint64_t published = facts.published_ns.load();
    if (published == 0 || needs(card).is_zero())
      continue;  // no sampler reads it, or the job has nothing there
    // A restore can be tried once only: do not rely on an old reading.
    if (now_ns >= published + kFreshNs) return "the last reading of the card is too old";
    std::uint64_t wanted = needs(card).count() + kReturnMargin.count();
    each_process([&](std::uint64_t, const abi::Slot& slot, std::uint64_t /*owner*/) {
      wanted += abi::lent_units(slot.cards[card]) * abi::kUnitBytes;
    });
    if (facts.free_bytes.load() + held(card).count() < wanted) return "the card has no room for it";
  }
  return "";
}

void DeepParking::unpark(std::uint64_t now_ns) {
  if (state_ != State::kParked) return;
  if (const std::string why = no_room(now_ns); !why.empty()) {
    told_ = End{false, why, true};
    return;
  }
  failed_.reset();
  tries_ = 0;
  run(State::kDriverIn, "in");
}

std::optional<DeepParking::End> DeepParking::driver_in(const Answer& answer) {
  if (answer.end.empty() && ++tries_ < kTries) {
    run(State::kDriverIn, "in");
    return std::nullopt;
  }
  if (answer.end != "done") {
    state_ = State::kParked;
    return End{false, answer.why, answer.end == "busy"};
  }
  state_ = State::kMeterIn;
  if (!by_meter_) return meter_ended(End{true, "", false});
  meter_.unpark();
  return std::nullopt;
}

std::optional<DeepParking::End> DeepParking::undone(const Answer& answer) {
  if (answer.end.empty() && ++tries_ < kTries) {
    run(State::kUndoing, "in");
    return std::nullopt;
  }
  if (answer.end != "done") {
    End told = *std::exchange(failed_, std::nullopt);
    told.why += "; and it could not be brought back: " + answer.why;
    state_ = State::kParked;
    return told;
  }
  if (was_parked_) {
    state_ = State::kRunning;
    return *std::exchange(failed_, std::nullopt);
  }
  if (!by_meter_) return meter_ended(End{true, "", false});
  meter_.unpark();
  return std::nullopt;
}

// ---- looking ------------------------------------------------------------------------------------

std::optional<DeepParking::End> DeepParking::step(std::uint64_t now_ns) {
  if (const std::optional<Answer> said = collect(probe_))
    if (!said->end.empty()) cannot_ = said->end == "done" ? "" : said->why;
  if (state_ == State::kAsking) {
    if (probe_.out.valid() && probe_.since_ns == 0) probe_.since_ns = now_ns;
    if (probe_.out.valid() && now_ns < probe_.since_ns + kLimitNs) return std::nullopt;
    if (probe_.out.valid()) {
      (void)kill(probe_.pid, SIGKILL);
      probe_ = Program{};
      told_ = End{false, "the driver does not report whether it can checkpoint processes", false};
      state_ = State::kRunning;
    } else {
      begin(now_ns);
    }
  }
  if (told_) return *std::exchange(told_, std::nullopt);
  if (!is_busy()) return std::nullopt;
  if (by_meter_ && meter_.is_busy()) {
    const std::optional<End> end = meter_.step(now_ns);
    return end ? meter_ended(*end) : std::nullopt;
  }
  if (state_ == State::kMeterOut) return meter_ended(End{true, "", false});
  // A program that could not be started has not answered either.
  std::optional<Answer> answer = collect(program_);
  if (!answer && program_.out.valid()) {
    answer = give_up(now_ns);
    if (!answer) return std::nullopt;
  }
  if (!answer && pids_.empty()) answer = Answer{"done", ""};
  if (!answer) answer = Answer{"", "mete-checkpoint could not be started"};
  parked_at_ns_ = now_ns;
  if (state_ == State::kDriverOut) return driver_out(*answer);
  if (state_ == State::kDriverIn) return driver_in(*answer);
  return undone(*answer);
}

Bytes DeepParking::held(std::uint32_t card) const {
  if (state_ != State::kParked || failed_) return meter_.held(card);
  std::uint64_t bytes = 0;
  each_process([&](std::uint64_t, const abi::Slot& slot, std::uint64_t owner) {
    if (abi::ChargeWord::unpack(slot.cards[card].charge.load()).units == 0) return;
    const bool away = std::find(pids_.begin(), pids_.end(), pid_of(owner)) != pids_.end();
    const bool read = slot.nvml_ns.load() > parked_at_ns_;
    if (away)
      bytes += read ? std::max(slot.cards[card].nvml_bytes.load(), kLeft.count()) : kLeft.count();
    else
      bytes += abi::ChargeWord::unpack(slot.cards[card].charge.load()).units * abi::kUnitBytes;
  });
  return Bytes::from_bytes(bytes);
}

}  // namespace mete::launch
