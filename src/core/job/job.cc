// SPDX-License-Identifier: Apache-2.0
// See job.h. Names of an enum are an array in the order of the enum, used for writing and for
// reading. may_follow() has the allowed successors of each state as a bit set. The rest answers
// questions about one job from its fields alone.
#include "core/job/job.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::core {

// Measured on an H200: 54 GB/s, and a tenth of a second for the processes to come to rest.
std::uint64_t move_ms(Bytes bytes) { return 100 + bytes.count() / 50'000'000; }

namespace {

// Names by position in the enum.
constexpr std::array<std::string_view, 8> kStates = {"pending", "starting",  "running",  "parking",
                                                     "parked",  "unparking", "stopping", "ended"};
constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {
    "ok",   "failed",        "signal",     "gpu-oom",  "ram-oom", "timeout", "cancelled",
    "lost", "launch-failed", "dependency", "deadline", "escaped", "unknown"};
constexpr std::array<std::string_view, 9> kReasons = {"resources",   "priority",   "quota",
                                                      "reservation", "dependency", "held",
                                                      "begin",       "drained",    "retry"};
constexpr std::array<std::string_view, 3> kWhens = {"ok", "any", "fail"};
constexpr std::array<std::string_view, 3> kGrowths = {"free", "asked", "tight"};
constexpr std::array<std::string_view, 3> kIdleSteps = {"seen", "warned", "notified"};
constexpr std::array<std::string_view, 3> kCauses = {"asked", "preempted", "idle"};

template <class Enum, std::size_t kCount>
std::optional<Enum> by_name(const std::array<std::string_view, kCount>& names,
                            std::string_view text) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

constexpr unsigned bit(JobState state) { return 1u << static_cast<unsigned>(state); }

}  // namespace

std::string to_string(JobId id) {
  std::string text = std::to_string(id.number);
  if (id.element) text += "_" + std::to_string(*id.element);
  return text;
}

std::string to_string(const ProcessRef& process) {
  return std::to_string(process.pid) + "." + std::to_string(process.start_ticks);
}

Result<JobId> parse_job_id(std::string_view text) {
  const std::size_t bar = text.find('_');
  const Result<std::uint64_t> number = base::parse_uint(text.substr(0, bar));
  const Error none =
      Error::invalid(base::quote(text) + " is no job").with_hint("mete ps lists the jobs");
  if (!number || *number == 0) return none;
  if (bar == std::string_view::npos) return JobId{*number};
  const Result<std::uint64_t> element = base::parse_uint(text.substr(bar + 1));
  if (!element || *element > kMaxElement) return none;
  return JobId{*number, static_cast<std::uint32_t>(*element)};
}

std::string_view to_string(JobState state) { return kStates[static_cast<std::size_t>(state)]; }
std::optional<JobState> parse_job_state(std::string_view text) {
  return by_name<JobState>(kStates, text);
}

bool may_follow(JobState before, JobState after) {
  using S = JobState;
  static constexpr std::array<unsigned, 8> kNext = {
      bit(S::kStarting) | bit(S::kEnded),
      bit(S::kRunning) | bit(S::kPending) | bit(S::kStopping) | bit(S::kEnded),
      bit(S::kParking) | bit(S::kStopping) | bit(S::kEnded),
      bit(S::kParked) | bit(S::kRunning) | bit(S::kStopping) | bit(S::kEnded),
      bit(S::kUnparking) | bit(S::kStopping) | bit(S::kEnded),
      bit(S::kRunning) | bit(S::kParked) | bit(S::kStopping) | bit(S::kEnded),
      bit(S::kEnded),
      0,
  };
  return (kNext[static_cast<std::size_t>(before)] & bit(after)) != 0;
}

std::string_view to_string(Outcome outcome) {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}
std::optional<Outcome> parse_outcome(std::string_view text) {
  return by_name<Outcome>(kOutcomeNames, text);
}

std::string_view to_string(When when) { return kWhens[static_cast<std::size_t>(when)]; }
std::optional<When> parse_when(std::string_view text) { return by_name<When>(kWhens, text); }

std::string_view to_string(ParkCause cause) { return kCauses[static_cast<std::size_t>(cause)]; }
std::optional<ParkCause> parse_park_cause(std::string_view text) {
  return by_name<ParkCause>(kCauses, text);
}

std::string_view to_string(Growth growth) { return kGrowths[static_cast<std::size_t>(growth)]; }
std::optional<Growth> parse_growth(std::string_view text) {
  return by_name<Growth>(kGrowths, text);
}

std::string_view to_string(IdleStep step) { return kIdleSteps[static_cast<std::size_t>(step)]; }
std::optional<IdleStep> parse_idle_step(std::string_view text) {
  return by_name<IdleStep>(kIdleSteps, text);
}

bool is_its_own_runner(const Job& job) { return job.runner && job.runner == job.program; }

bool has_grown(const Job& job) {
  return std::any_of(job.grant.begin(), job.grant.end(), [](const GrantedCard& card) {
    return !card.least.is_zero() && card.bytes > card.least;
  });
}

bool is_parkable(const JobSpec& spec) {
  const bool grows = spec.request.gpu && std::holds_alternative<Growing>(spec.request.gpu->memory);
  const bool has_cards = spec.request.gpu != no_gpu();
  return has_cards && (spec.preemptible.value_or(false) || grows || parks_itself(spec));
}

bool parks_itself(const JobSpec& spec) { return spec.idle_s.value_or(0) != 0; }

Request request_of(const Job& job) {
  Request request = job.spec->request;
  if (job.gpu) request.gpu = job.gpu;
  request.parkable = is_parkable(*job.spec);
  return request;
}

bool is_away(const Job& job) {
  return job.park && !job.park->held.empty() &&
         (job.state == JobState::kParked || job.state == JobState::kStopping);
}

bool is_being_parked(const Job& job) {
  return job.state == JobState::kParking || job.growth == Growth::kAsked;
}

std::vector<GrantedCard> held_now(const Job& job) {
  std::vector<GrantedCard> cards = job.grant;
  if (!is_away(job)) return cards;
  for (std::size_t i = 0; i < cards.size() && i < job.park->held.size(); ++i) {
    cards[i].bytes = std::min(cards[i].bytes, job.park->held[i]);
    cards[i].whole = false;
  }
  return cards;
}

std::uint64_t parked_ms(const Job& job, WallTime now) {
  const bool parked = job.state == JobState::kParked && job.park && now > job.park->since;
  return job.parked_ms + (parked ? static_cast<std::uint64_t>(now.ms - job.park->since.ms) : 0);
}

std::string_view to_string(Reason reason) { return kReasons[static_cast<std::size_t>(reason)]; }

}  // namespace mete::core
