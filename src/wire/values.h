// SPDX-License-Identifier: Apache-2.0
// The smaller values of core as JSON, which several documents and the log share (list.h). Internal
// to wire/.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"
#include "core/request/gpu.h"
#include "core/sweep/fill.h"
#include "core/sweep/trial.h"
#include "wire/cards.h"
#include "wire/job.h"
#include "wire/list.h"
#include "wire/submit.h"

namespace mete::wire {

// ---- names -------------------------------------------------------------------------------------

template <auto Parse>
struct Parsed {
  static constexpr auto parse = Parse;
};

// nullopt for a reason that only a newer daemon has.
std::optional<core::Reason> reason_of(std::string_view text);

template <>
struct TextOf<core::JobId> : Parsed<core::parse_job_id> {
  static constexpr std::string_view kWanted = "the number of a job";
};
template <>
struct TextOf<core::JobState> : Parsed<core::parse_job_state> {
  static constexpr std::string_view kWanted = "a state";
};
template <>
struct TextOf<core::Outcome> : Parsed<core::parse_outcome> {
  static constexpr std::string_view kWanted = "an outcome";
};
template <>
struct TextOf<core::Reason> : Parsed<reason_of> {
  static constexpr std::string_view kWanted = "a reason";
};
template <>
struct TextOf<core::When> : Parsed<core::parse_when> {
  static constexpr std::string_view kWanted = "ok, any or fail";
};
template <>
struct TextOf<core::ParkCause> : Parsed<core::parse_park_cause> {
  static constexpr std::string_view kWanted = "a reason to park";
};
template <>
struct TextOf<core::Growth> : Parsed<core::parse_growth> {
  static constexpr std::string_view kWanted = "free, asked or tight";
};
template <>
struct TextOf<core::IdleStep> : Parsed<core::parse_idle_step> {
  static constexpr std::string_view kWanted = "seen, warned or notified";
};
template <>
struct TextOf<core::NotifyOn> : Parsed<core::parse_notify_on> {
  static constexpr std::string_view kWanted = "start, end, fail, oom, park or idle";
};
template <>
struct TextOf<core::sweep::Value::Kind> : Parsed<core::sweep::parse_value_kind> {
  static constexpr std::string_view kWanted = "text, integer, real or bool";
};
template <>
struct TextOf<core::Array> : Parsed<core::parse_array> {
  static constexpr std::string_view kWanted = "";
};
template <>
struct TextOf<core::Query> : Parsed<core::Query::parse> {
  static constexpr std::string_view kWanted = "";
};

// ---- requests ----------------------------------------------------------------------------------

// The share as canonical text, and "KEY_written" if a user wrote it differently.
void gpu_field(Writer& list, std::string_view key, const std::optional<core::GpuRequest>& gpu);
void gpu_field(Reader& list, std::string_view key, std::optional<core::GpuRequest>& gpu);
void read_written(Fields& fields, std::string_view key, core::GpuRequest& gpu);

// Where a job may run, as `mete show` has it too.
void place_fields(auto& list, Is<core::Request> auto& request) {
  list.opt("devices", request.devices);
  list.opt("gpu_type", request.gpu_type);
  list.opt("where", request.where);
  list.opt("procs", request.procs, 1);
  list.opt("or_cpu", request.or_cpu);
}

void fields_of(auto& list, Is<core::Request> auto& request) {
  gpu_field(list, "gpu", request.gpu);
  place_fields(list, request);
  list.check("procs", request.procs >= 1 && request.procs <= 1024, "between 1 and 1024");
  list.opt("cpus", request.cpus);
  list.opt("ram_bytes", request.ram);
}

void check_priority(auto& list, std::int32_t priority) {
  list.check("priority", priority <= core::kMaxPriority && priority >= -core::kMaxPriority,
             "between -1000 and 1000");
}

void fields_of(auto& list, Is<core::After> auto& after) {
  list.must("id", after.id);
  list.must("when", after.when);
}

// spec.cc; with Owner::kUnsaid without the fields that the daemon adds to a request.
void fields_of(auto& list, Is<core::JobSpec> auto& spec);

void no_wait_field(Writer& list, bool wait);
void no_wait_field(Reader& list, bool& wait);
Result<RunRequest> run_request_from(const Json& json);
Result<SubmitRequest> submit_request_from(const Json& json);

// ---- processes, cards, ends --------------------------------------------------------------------

void fields_of(auto& list, Is<core::ProcessRef> auto& process) {
  list.must("pid", process.pid);
  list.check("pid", process.pid > 0, "the number of a process");
  list.must("start_ticks", process.start_ticks);
}

// How long ago. The bound keeps times after 1970: no machine runs that long.
void check_ago(auto& list, std::uint64_t ago_ms) {
  list.check("ago_ms", ago_ms <= 1'000'000'000'000, "a time that can be");
}

void fields_of(auto& list, Is<core::GrantedCard> auto& card) {
  list.must("card", card.uuid);
  list.must("index", card.index);
  list.must("bytes", card.bytes);
  list.opt("whole", card.whole);
  if (!list.says(!card.most.is_zero())) return;
  list.put("least_bytes", card.least);
  list.put("most_bytes", card.most);
}

// A card, as the runner of a job needs it.
void fields_of(auto& list, Is<core::Card> auto& card) {
  list.must("name", card.name);
  list.must("type", card.type);
  list.must("total_bytes", card.total);
  list.must("capacity_bytes", card.capacity);
}

void fields_of(auto& list, Is<ParkDoor> auto& door) {
  list.must("movers", exact(door.movers));
  list.must("token", door.token);
  list.put("arena_bytes", door.arena);
}

// ---- trials of sweeps --------------------------------------------------------------------------

// Absent: NaN, or infinite.
void real_field(Writer& list, std::string_view key, double value);
void real_field(Reader& list, std::string_view key, double& value);

void fields_of(auto& list, Is<core::sweep::Metric> auto& metric) {
  list.must("name", exact(metric.name));
  real_field(list, "value", metric.value);
}

void fields_of(auto& list, Is<core::sweep::TrialPoint> auto& point) {
  list.opt("step", point.step);
  list.put("metrics", each("the metric", point.metrics));
  list.check("metrics", point.metrics.size() <= core::sweep::kMaxMetrics, "at most 16");
}

void fields_of(auto& list, Is<core::sweep::MetricRule> auto& rule) {
  list.must("name", exact(rule.name));
  list.opt("pattern", exact(rule.pattern));
}

// With its kind, so that it comes back as it was; the number of a text is 0.
void fields_of(auto& list, Is<core::sweep::Value> auto& value) {
  list.must("value", exact(value.text));
  list.opt("kind", value.kind);
  list.opt("number", value.number);
}

// A list of pairs: the order counts.
void params_field(Writer& list, const core::sweep::Params& params);
void params_field(Reader& list, core::sweep::Params& params);

void fields_of(auto& list, Is<core::sweep::TrialOf> auto& trial) {
  list.must("sweep", trial.sweep);
  list.must("name", trial.name);
  list.must("n", trial.n);
  params_field(list, trial.params);
  list.opt("metrics", each("the metric", trial.metrics));
  list.opt("rungs", trial.rungs);
}

// ---- ends --------------------------------------------------------------------------------------

void fields_of(auto& list, Is<core::Exit> auto& exit) {
  list.opt("exit_code", exit.code);
  list.opt("signal", exit.signal);
  list.opt("not_started", exit.not_started);
  list.opt("not_now", exit.not_now);
  list.opt("timed_out", exit.timed_out);
  list.opt("gpu_oom", exit.gpu_oom);
  list.opt("ram_oom", exit.ram_oom);
  list.opt("peak_bytes", exit.peaks);
  list.opt("ran_ms", exit.ran_ms);
  list.opt("log_bytes", exit.log_bytes);
  list.opt("metrics", each("the metric", exit.metrics));
  list.opt("step", exit.step);
  list.opt("note", exact(exit.note));
}

// ---- parking, escapes, idleness ----------------------------------------------------------------

// What is kept of a parked job, in a Park, a ParkReport and an event.
void kept_fields(auto& list, auto& park) {
  list.put("held_bytes", park.held);
  list.put("moved_bytes", park.moved);
  list.opt("disk_bytes", park.on_disk);
}

void fields_of(auto& list, Is<core::Park> auto& park) {
  list.must("cause", park.cause);
  list.opt("for", park.for_job);
  list.opt("by", park.by);
  list.opt("deep", park.deep);
  list.opt("returns", park.wants_back);
  list.must("since", park.since);
  if (list.says(!park.held.empty())) kept_fields(list, park);
  list.opt("why", park.why);
  list.opt("lost", park.lost);
}

void fields_of(auto& list, Is<core::ParkRefusal> auto& refusal) {
  list.must("at", refusal.at);
  list.must("why", refusal.why);
  list.opt("standing", refusal.standing);
}

void fields_of(auto& list, Is<core::Escape> auto& escape) {
  list.must("pid", escape.pid);
  list.must("start_ticks", escape.start_ticks);
  list.must("card", escape.card);
  list.must("index", escape.index);
  list.must("bytes", escape.bytes);
  list.must("charged_bytes", escape.charged);
  list.must("command", escape.command);
}

void fields_of(auto& list, Is<core::IdleSpan> auto& span) {
  list.must("since", span.since);
  list.must("step", span.step);
}

// ---- the queue ---------------------------------------------------------------------------------

void latest_field(Writer& list, const core::Forecast& forecast);
void latest_field(Reader& list, core::Forecast& forecast);

// Only the log has `made`.
void fields_of(auto& list, Is<core::Forecast> auto& forecast) {
  if (list.owner() == Owner::kSaid) list.must("made", forecast.made);
  list.must("at", forecast.at);
  latest_field(list, forecast);
  if (list.owner() == Owner::kUnsaid) list.tell("confidence_pct", core::kForecastPct);
}

void fields_of(auto& list, Is<core::Quota> auto& quota) {
  list.opt("cards", quota.cards);
  list.opt("bytes", quota.bytes);
  list.opt("running", quota.running);
  list.opt("jobs", quota.jobs);
  list.opt("disk_bytes", quota.disk);
}

void reservation_field(Writer& list, std::string_view key, std::uint64_t id);
void reservation_field(Reader& list, std::string_view key, std::uint64_t& id);

void fields_of(auto& list, Is<core::Reservation> auto& reservation) {
  reservation_field(list, "id", reservation.id);
  list.must("user", reservation.user);
  list.must("from", reservation.from);
  list.must("until", reservation.until);
  list.must("by", reservation.by);
  list.put("cards", each("the grant", reservation.cards));
}

// ---- the machine: cards.cc ---------------------------------------------------------------------

void fields_of(auto& list, Is<CardView> auto& card);
void fields_of(auto& list, Is<DaemonView> auto& view);

// ---- a job as its user sees it: view.cc --------------------------------------------------------

// How much of the user's own words: lists, which may have thousands of jobs, leave some out.
enum class Words { kAll, kSome, kNone };
// The members of JOB. The fields of the spec are read into `spec`, to which others add before it is
// shared.
void job_fields(Writer& list, const JobView& view, Words words = Words::kAll);
void job_fields(Reader& list, JobView& view, core::JobSpec& spec);
void fields_of(Writer& list, const JobView& view);
void fields_of(Reader& list, JobView& view);
void jobs_field(Writer& list, const std::vector<JobView>& jobs, Words words);
void jobs_field(Reader& list, std::vector<JobView>& jobs, Words words);
// The command as lists have it: cut after kListedCommand bytes, with "…".
inline constexpr std::size_t kListedCommand = 256;
bool is_listed_whole(const std::vector<std::string>& command);
std::vector<std::string> listed_command(const std::vector<std::string>& command,
                                        std::size_t bytes = kListedCommand);

void append_id(std::string& out, core::JobId id);

}  // namespace mete::wire
