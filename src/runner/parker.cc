// SPDX-License-Identifier: Apache-2.0
// See parker.h. hear() stores what the daemon wants; follow() compares that with the grant file and
// begins to park or unpark; step(), called from the runner's tick, drives launch::Parking or
// launch::DeepParking and reports the end. A report that does not arrive stays in unsent_ and is
// repeated each second. Growth works alike: step() passes the program's requests to the daemon,
// set_growth() writes the answer into the grant file.
#include "runner/parker.h"

#include <algorithm>

#include "runner/daemon_client.h"

namespace mete::runner {

namespace {

using core::JobState;
using launch::DeepParking;
using launch::Parking;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr net::Milliseconds kTellPatience{5'000};
// Time for every process of the job to come to rest.
constexpr std::uint64_t kQuiesceNs = 5'000'000'000;
constexpr int kBusyMs = 1;
constexpr int kGrowingMs = 10;
constexpr int kSleepingMs = 20;
constexpr int kIdleMs = 1'000;
// A program that asks for more memory waits two seconds at most.
constexpr milliseconds kAskFor{1'500};
constexpr milliseconds kAskEvery{50};
// Time for a mover that is being started.
constexpr seconds kMoverStarts{10};
constexpr milliseconds kParkAgain{100};

seam::Nanoseconds now() { return seam::system_clock().monotonic(); }

std::uint64_t count(seam::Nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

// The unused memory that a growing share keeps when it gives the rest back.
Bytes slack_of(const std::pair<Bytes, Bytes>& range) {
  return std::max(Bytes::from_mib(256),
                  Bytes::from_bytes((range.second - range.first).count() / 8));
}

DeepParking::Options deep_options(const Parker::Settings& settings) {
  DeepParking::Options options;
  options.program = settings.checkpoint;
  options.cuda = settings.cuda;
  return options;
}

Bytes round_up(Bytes bytes) {
  const Bytes down = bytes.round_down(core::kGranule);
  return down == bytes ? bytes : down + core::kGranule;
}

}  // namespace

Result<wire::RunReply> tell_daemon(const DaemonAt& where, core::JobId id, const std::string& what,
                                   const std::string& body) {
  Result<DaemonClient> client = DaemonClient::open_again(where, DaemonClient::Start::kNever);
  if (!client) return Error::io(client.error().message);
  const std::string path =
      "/v1/jobs/" + to_string(id) + "/" + what + "?order=" + std::to_string(count(now()));
  const Result<std::string> reply = client->call("POST", path, body, {kTellPatience, -1});
  if (!reply && client->went_away()) return Error::io(reply.error().message);
  if (!reply) return reply.error();
  return wire::decode_run_reply(*reply);
}

Parker::Settings Parker::Settings::of(const JobPlan& plan, const std::string& socket,
                                      core::JobId id) {
  Settings settings;
  settings.cards = plan.cards.size();
  settings.park = plan.park;
  settings.checkpoint = plan.parts.checkpoint;
  settings.procs = std::max(1u, plan.spec.request.procs);
  if (plan.simulated) settings.cuda = driver_library(plan.parts, true, "libcuda.so.1");
  for (const core::CardShare& share : plan.cards)
    if (share.limit > share.from) settings.growth.emplace_back(share.from, share.limit);
  settings.tell = [where = DaemonAt{socket, plan.state}, id](const std::string& what,
                                                             const std::string& body) {
    return tell_daemon(where, id, what, body);
  };
  return settings;
}

Parker::Parker(const launch::GrantFile& grant, Settings settings)
    : grant_(grant.grant()),
      settings_(std::move(settings)),
      parking_(grant_),
      deep_(grant_, parking_, deep_options(settings_)),
      asked_(settings_.cards) {
  if (!settings_.growth.empty()) growth_.emplace(grant_);
}

bool Parker::is_away() const {
  return deep_.state() == DeepParking::State::kParked ||
         (deep_.state() == DeepParking::State::kRunning &&
          parking_.state() == Parking::State::kParked);
}

bool Parker::is_busy() const { return deep_.is_busy() || parking_.is_busy(); }

Bytes Parker::held(std::uint32_t card) const {
  return deep_.state() == DeepParking::State::kParked ? deep_.held(card) : parking_.held(card);
}

int Parker::tick_ms() const {
  if (is_busy() || park_again_.count() != 0) return kBusyMs;
  if (sleeps_ && is_away()) return kSleepingMs;
  return growth_ ? kGrowingMs : kIdleMs;
}

// ---- parking -----------------------------------------------------------------------------------

bool Parker::is_news(const wire::RunReply& reply) {
  if (reply.seq < heard_) return false;
  heard_ = reply.seq;
  return true;
}

void Parker::hear(const wire::RunReply& reply) {
  if (!is_news(reply)) return;
  const core::Job& job = reply.view.job;
  wanted_ = job.state;
  wanted_deep_ = job.park && job.park->deep;
  sleeps_ = job.park && job.park->cause == core::ParkCause::kIdle;
  if (growth_) set_growth(job);
  follow();
}

void Parker::follow() {
  if (is_busy() || park_again_.count() != 0) return;
  const bool away = is_away();
  const bool begins = away ? wanted_ == JobState::kUnparking : wanted_ == JobState::kParking;
  // The unsent report describes the state before this change.
  if (begins) unsent_.reset();
  if (wanted_ == JobState::kParking && !away) {
    if (wanted_deep_)
      deep_.park(count(now()), kQuiesceNs);
    else
      parking_.park(count(now()), kQuiesceNs);
  }
  if (wanted_ == JobState::kUnparking && away) {
    if (deep_.state() == DeepParking::State::kParked)
      deep_.unpark(count(now()));
    else
      parking_.unpark();
  }
  const bool told_wrong = (wanted_ == JobState::kParking && away) ||
                          (wanted_ == JobState::kRunning && away) ||
                          (wanted_ == JobState::kUnparking && !away && !is_busy());
  if (told_wrong) report(how_it_stands());
}

wire::ParkReport Parker::how_it_stands() const {
  wire::ParkReport report;
  report.parked = is_away();
  if (!report.parked) return report;
  for (std::uint32_t card = 0; card < settings_.cards; ++card)
    report.held.push_back(round_up(held(card)));
  report.moved = parking_.moved();
  report.on_disk = parking_.on_disk();
  // Nothing else counts what the driver has taken; needs() includes what stays on the card.
  if (deep_.state() == DeepParking::State::kParked) {
    report.moved = Bytes();
    for (std::uint32_t card = 0; card < settings_.cards; ++card)
      report.moved += deep_.needs(card).minus(deep_.held(card));
  }
  return report;
}

void Parker::report(wire::ParkReport report) {
  unsent_ = std::move(report);
  send_report();
}

void Parker::send_report() {
  if (!unsent_) return;
  const Result<wire::RunReply> reply = settings_.tell("parked", wire::encode(*unsent_));
  // A refused report is not repeated; one that did not reach the daemon is.
  if (!reply && reply.error().code == ErrorCode::kIo) return;
  unsent_.reset();
  if (reply && is_news(*reply)) wanted_ = reply->view.job.state;
}

// Deep parking drives the ordinary parking while it is active.
std::optional<Parking::End> Parker::look(seam::Nanoseconds time) {
  if (const std::optional<Parking::End> end = deep_.step(count(time))) return end;
  if (deep_.state() != DeepParking::State::kRunning) return std::nullopt;
  return parking_.step(count(time));
}

void Parker::step() {
  const seam::Nanoseconds time = now();
  if (park_again_.count() != 0 && time >= park_again_) {
    park_again_ = {};
    follow();
  }
  if (const std::optional<Parking::End> end = look(time)) {
    // The mover may be starting or restarting.
    if (end->no_mover && !end->back && wanted_ == JobState::kParking) {
      if (mover_until_.count() == 0) mover_until_ = time + kMoverStarts;
      if (time < mover_until_) {
        park_again_ = time + kParkAgain;
        return;
      }
    }
    mover_until_ = {};
    wire::ParkReport said = how_it_stands();
    said.why = end->done ? "" : end->why;
    said.standing = end->lost;
    if (!end->done && end->no_room && !end->back && settings_.park)
      said.why +=
          "; of one card " + to_string(settings_.park->arena) + " are kept at most (park.arena)";
    report(std::move(said));
    follow();
  }
  if (sleeps_ && is_away() && parking_.is_wanted()) {
    sleeps_ = false;
    wire::ParkReport woken = how_it_stands();
    woken.wakes = true;
    report(std::move(woken));
  }
  if (growth_ && !is_busy() && !is_away()) look_at_growth(time);
  if (time < next_second_) return;
  next_second_ = time + seconds(1);
  if (unsent_) {
    send_report();
    follow();  // the answer may be an order
  }
  if (settings_.park && !is_away() && !is_busy()) look_for_obstacles();
}

// Why a mover cannot hold this job. Contexts and libraries stay on the card, so a gigabyte per
// process is allowed on top; "": it can.
std::string Parker::too_large() const {
  const Bytes most = settings_.park->arena + Bytes::from_gib(settings_.procs);
  for (std::uint32_t card = 0; card < settings_.cards; ++card)
    if (!settings_.park->arena.is_zero() && held(card) > most)
      return "it holds more of a card than is kept of one: " + to_string(settings_.park->arena) +
             " at most (park.arena)";
  return "";
}

// Tells the daemon early what would prevent parking.
void Parker::look_for_obstacles() {
  std::string obstacle = parking_.obstacle();
  if (obstacle.empty()) obstacle = too_large();
  if (obstacle == obstacle_ || unsent_) return;
  obstacle_ = obstacle;
  wire::ParkReport said;
  said.why = obstacle;
  said.standing = !obstacle.empty();
  report(std::move(said));
}

// ---- growth ------------------------------------------------------------------------------------

// Growth takes effect at once; of a decrease only memory that is not in use.
void Parker::set_growth(const core::Job& job) {
  for (std::uint32_t card = 0; card < settings_.cards && card < job.grant.size(); ++card)
    if (job.grant[card].bytes > growth_->allowed(card))
      (void)growth_->allow(card, job.grant[card].bytes);
  tight_ = job.growth == core::Growth::kTight;
  if (job.growth == core::Growth::kAsked && !is_away() && !is_busy()) give_back();
}

void Parker::give_back() {
  std::vector<Bytes> left;
  for (std::uint32_t card = 0; card < settings_.cards; ++card) {
    const Bytes least = settings_.growth[card].first;
    left.push_back(round_up(growth_->allow(card, std::max(least, round_up(growth_->used(card))))));
  }
  (void)settings_.tell("grow", wire::encode_wanted(left));
}

void Parker::look_at_growth(seam::Nanoseconds time) {
  while (const std::optional<launch::Growth::Ask> ask = growth_->asked()) {
    if (ask->card >= asked_.size()) continue;
    asked_[ask->card] = round_up(ask->wanted);
    ask_until_ = time + kAskFor;
    next_ask_ = time;
  }
  const bool asks =
      std::any_of(asked_.begin(), asked_.end(), [](Bytes bytes) { return !bytes.is_zero(); });
  std::vector<Bytes> wanted;
  bool less = false;
  for (std::uint32_t card = 0; card < settings_.cards; ++card) {
    Bytes bytes = growth_->allowed(card);
    const Bytes slack = tight_ ? Bytes() : slack_of(settings_.growth[card]);
    const Bytes enough =
        std::max(settings_.growth[card].first, round_up(growth_->used(card)) + slack);
    if (!asks && time >= next_second_ && bytes > enough + slack) {
      bytes = round_up(growth_->allow(card, enough));
      less = true;
    }
    wanted.push_back(std::max(bytes, asked_[card]));
  }
  if (!less && (!asks || time < next_ask_)) return;
  next_ask_ = time + kAskEvery;
  const Result<wire::RunReply> reply = settings_.tell("grow", wire::encode_wanted(wanted));
  if (reply && is_news(*reply)) set_growth(reply->view.job);
  for (std::uint32_t card = 0; card < settings_.cards; ++card) {
    if (asked_[card].is_zero()) continue;
    const bool has_it = growth_->allowed(card) >= asked_[card];
    if (!has_it && time < ask_until_ && (reply || reply.error().code == ErrorCode::kIo)) continue;
    if (!has_it) growth_->answer(card);
    asked_[card] = Bytes();
  }
}

}  // namespace mete::runner
