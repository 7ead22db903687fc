// SPDX-License-Identifier: Apache-2.0
#include "wire/job.h"

#include <set>

#include "core/request/gpu.h"
#include "wire/fields.h"

namespace mete::wire {

namespace {

using core::Exit;
using core::GrantedCard;
using core::Job;
using core::JobId;
using core::JobSpec;
using core::ProcessRef;
using core::Request;

// ---- small values ------------------------------------------------------------------------------

Json bytes_json(Bytes bytes) { return bytes.count(); }

Json request_json(const Request& request) {
  Json json = Json::object();
  if (request.gpu) json["gpu"] = to_string(*request.gpu);
  if (!request.devices.empty()) json["devices"] = request.devices;
  if (request.gpu_type) json["gpu_type"] = *request.gpu_type;
  if (request.procs != 1) json["procs"] = request.procs;
  if (request.or_cpu) json["or_cpu"] = true;
  if (request.cpus) json["cpus"] = *request.cpus;
  if (request.ram) json["ram_bytes"] = request.ram->count();
  return json;
}

Result<Request> request_from(const Json& json) {
  Fields fields(json, "the request");
  Request request;
  if (const auto text = fields.text_if("gpu")) {
    Result<core::GpuRequest> gpu = core::parse_gpu(*text);
    if (!gpu) fields.fail(gpu.error());
    if (gpu) request.gpu = *gpu;
  }
  request.devices = fields.texts("devices");
  request.gpu_type = fields.text_if("gpu_type");
  request.procs = fields.number_if<std::uint32_t>("procs").value_or(1);
  if (request.procs < 1 || request.procs > 1024) fields.fail("procs", "between 1 and 1024");
  request.or_cpu = fields.flag("or_cpu");
  request.cpus = fields.number_if<unsigned>("cpus");
  if (const auto ram = fields.number_if("ram_bytes")) request.ram = Bytes::from_bytes(*ram);
  if (!fields.ok()) return fields.error();
  return request;
}

// Whose it is: the log says so, a request does not.
enum class Owner { kSaid, kUnsaid };

Json spec_json(const JobSpec& spec, Owner owner) {
  Json json = {{"name", spec.name}, {"command", spec.command}, {"cwd", spec.folder}};
  if (owner == Owner::kSaid) {
    json["uid"] = spec.uid;
    json["user"] = spec.user;
  }
  json["request"] = request_json(spec.request);
  if (spec.time_s) json["time_s"] = *spec.time_s;
  return json;
}

Result<JobSpec> spec_from(const Json& json, Owner owner) {
  Fields fields(json, "the job");
  JobSpec spec;
  spec.name = fields.text("name");
  spec.command = fields.texts("command");
  spec.folder = fields.text_if("cwd").value_or("");
  if (owner == Owner::kSaid) {
    spec.uid = fields.number<std::uint32_t>("uid");
    spec.user = fields.text("user");
  }
  spec.time_s = fields.number_if("time_s");
  Result<Request> request = request_from(fields.child("request"));
  if (!request) fields.fail(request.error());
  if (!fields.ok()) return fields.error();
  spec.request = *request;
  return spec;
}

Json process_json(const ProcessRef& process) {
  return {{"pid", process.pid}, {"start_ticks", process.start_ticks}};
}

Result<ProcessRef> process_from(const Json& json) {
  Fields fields(json, "the process");
  ProcessRef process;
  process.pid = fields.number<std::int32_t>("pid");
  if (process.pid <= 0) fields.fail("pid", "the number of a process");
  process.start_ticks = fields.number("start_ticks");
  if (!fields.ok()) return fields.error();
  return process;
}

Json start_json(const StartReport& report) {
  Json json = process_json(report.program);
  json["ago_ms"] = report.ago_ms;
  return json;
}

// Nothing here has run for longer than a machine lives: a moment before 1970 helps nobody.
std::uint64_t ago_from(Fields& fields) {
  const std::uint64_t ago_ms = fields.number_if("ago_ms").value_or(0);
  if (ago_ms > 1'000'000'000'000) fields.fail("ago_ms", "a time that can be");
  return ago_ms;
}

Result<StartReport> start_from(const Json& json) {
  const Result<ProcessRef> program = process_from(json);
  if (!program) return program.error();
  Fields fields(json, "the start");
  const std::uint64_t ago_ms = ago_from(fields);
  if (!fields.ok()) return fields.error();
  return StartReport{*program, ago_ms};
}

Json granted_json(const GrantedCard& card) {
  Json json = {{"card", card.uuid}, {"index", card.index}, {"bytes", bytes_json(card.bytes)}};
  if (card.whole) json["whole"] = true;
  return json;
}

Result<GrantedCard> granted_from(const Json& json) {
  Fields fields(json, "the grant");
  GrantedCard card;
  card.uuid = fields.text("card");
  card.index = fields.number<std::uint32_t>("index");
  card.bytes = Bytes::from_bytes(fields.number("bytes"));
  card.whole = fields.flag("whole");
  if (!fields.ok()) return fields.error();
  return card;
}

Json granted_list(const std::vector<GrantedCard>& cards) {
  Json list = Json::array();
  for (const GrantedCard& card : cards) list.push_back(granted_json(card));
  return list;
}

std::vector<GrantedCard> granted_list_from(Fields& fields, std::string_view key) {
  std::vector<GrantedCard> cards;
  for (const Json& element : fields.list(key)) {
    Result<GrantedCard> card = granted_from(element);
    if (!card)
      fields.fail(card.error());
    else
      cards.push_back(*card);
  }
  return cards;
}

Json exit_json(const Exit& exit) {
  Json json = Json::object();
  if (exit.code) json["exit_code"] = *exit.code;
  if (exit.signal) json["signal"] = *exit.signal;
  if (exit.not_started) json["not_started"] = true;
  if (exit.timed_out) json["timed_out"] = true;
  if (exit.gpu_oom) json["gpu_oom"] = true;
  if (exit.ram_oom) json["ram_oom"] = true;
  if (!exit.peaks.empty()) {
    Json peaks = Json::array();
    for (const Bytes peak : exit.peaks) peaks.push_back(peak.count());
    json["peak_bytes"] = peaks;
  }
  return json;
}

Result<Exit> exit_from(const Json& json) {
  Fields fields(json, "the end");
  Exit exit;
  exit.code = fields.number_if<int>("exit_code");
  exit.signal = fields.number_if<int>("signal");
  exit.not_started = fields.flag("not_started");
  exit.timed_out = fields.flag("timed_out");
  exit.gpu_oom = fields.flag("gpu_oom");
  exit.ram_oom = fields.flag("ram_oom");
  for (const Json& peak : fields.list("peak_bytes")) {
    if (peak.is_number_unsigned())
      exit.peaks.push_back(Bytes::from_bytes(peak.get<std::uint64_t>()));
    else
      fields.fail("peak_bytes", "a list of numbers");
  }
  if (!fields.ok()) return fields.error();
  return exit;
}

JobId id_from(Fields& fields, std::string_view key) {
  const Result<JobId> id = core::parse_job_id(fields.text(key));
  if (!id) fields.fail(key, "the number of a job");
  return id ? *id : JobId{};
}

// ---- a job, as documents have it ---------------------------------------------------------------

Json wait_json(const core::Wait& wait) {
  Json holders = Json::array();
  for (const JobId id : wait.holders) holders.push_back(to_string(id));
  return {{"for", wait.text}, {"holders", holders}};
}

Json job_json(const JobView& view) {
  const Job& job = view.job;
  Json json = {{"id", to_string(job.id)},
               {"name", job.spec.name},
               {"user", job.spec.user},
               {"uid", job.spec.uid},
               {"state", to_string(job.state)}};
  if (job.outcome) json["outcome"] = to_string(*job.outcome);
  if (view.wait) json["reason"] = to_string(view.wait->reason);
  json["attempt"] = job.attempt;
  if (job.exit && job.exit->code) json["exit_code"] = *job.exit->code;
  if (job.exit && job.exit->signal) json["signal"] = *job.exit->signal;
  if (job.spec.request.gpu) json["request"] = to_string(*job.spec.request.gpu);
  json["priority"] = 0;
  json["submitted_at"] = to_string(job.submitted);
  if (job.started) json["started_at"] = to_string(*job.started);
  if (job.ended) json["ended_at"] = to_string(*job.ended);
  if (view.wait) json["wait"] = wait_json(*view.wait);
  Json grant = Json::array();
  for (std::size_t i = 0; i < job.grant.size(); ++i) {
    Json card = granted_json(job.grant[i]);
    if (i < view.used.size() && view.used[i]) card["used_bytes"] = view.used[i]->count();
    if (job.exit && i < job.exit->peaks.size()) card["peak_bytes"] = job.exit->peaks[i].count();
    grant.push_back(card);
  }
  json["grant"] = grant;
  json["command"] = job.spec.command;
  json["labels"] = Json::object();
  return json;
}

core::Reason reason_from(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(core::Reason::kRetry); ++i)
    if (to_string(static_cast<core::Reason>(i)) == text) return static_cast<core::Reason>(i);
  return core::Reason::kResources;  // a newer daemon's
}

Result<JobView> view_from(const Json& json) {
  Fields fields(json, "the job");
  JobView view;
  Job& job = view.job;
  job.id = id_from(fields, "id");
  job.spec.name = fields.text("name");
  job.spec.user = fields.text("user");
  job.spec.uid = fields.number<std::uint32_t>("uid");
  job.spec.command = fields.texts("command");
  if (const auto state = core::parse_job_state(fields.text("state")))
    job.state = *state;
  else
    fields.fail("state", "a state");
  if (const auto text = fields.text_if("outcome")) job.outcome = core::parse_outcome(*text);
  job.attempt = fields.number_if<std::uint32_t>("attempt").value_or(1);
  job.submitted = fields.time("submitted_at");
  job.started = fields.time_if("started_at");
  job.ended = fields.time_if("ended_at");
  if (const auto text = fields.text_if("request")) {
    if (const Result<core::GpuRequest> gpu = core::parse_gpu(*text)) job.spec.request.gpu = *gpu;
  }
  Exit exit;
  exit.code = fields.number_if<int>("exit_code");
  exit.signal = fields.number_if<int>("signal");
  if (exit.code || exit.signal) job.exit = exit;
  job.grant = granted_list_from(fields, "grant");
  for (const Json& card : fields.list("grant")) {
    Fields of_card(card, "the grant");
    const std::optional<std::uint64_t> used = of_card.number_if("used_bytes");
    view.used.push_back(used ? std::optional(Bytes::from_bytes(*used)) : std::nullopt);
    const std::optional<std::uint64_t> peak = of_card.number_if("peak_bytes");
    if (peak && job.exit) job.exit->peaks.push_back(Bytes::from_bytes(*peak));
  }
  if (fields.has("wait")) {
    Fields wait(fields.child("wait"), "the wait");
    view.wait.emplace();
    view.wait->reason = reason_from(fields.text_if("reason").value_or(""));
    view.wait->text = wait.text("for");
    for (const std::string& text : wait.texts("holders"))
      if (const Result<JobId> id = core::parse_job_id(text)) view.wait->holders.push_back(*id);
    if (!wait.ok()) fields.fail(wait.error());
  }
  if (!fields.ok()) return fields.error();
  return view;
}

// ---- a job, as the log has it ------------------------------------------------------------------

Json whole_job_json(const Job& job) {
  Json json = {{"id", to_string(job.id)},
               {"spec", spec_json(job.spec, Owner::kSaid)},
               {"state", to_string(job.state)},
               {"attempt", job.attempt},
               {"submitted_at", to_string(job.submitted)},
               {"grant", granted_list(job.grant)}};
  if (job.started) json["started_at"] = to_string(*job.started);
  if (job.ended) json["ended_at"] = to_string(*job.ended);
  if (job.outcome) json["outcome"] = to_string(*job.outcome);
  if (job.exit) json["exit"] = exit_json(*job.exit);
  if (job.runner) json["runner"] = process_json(*job.runner);
  if (job.program) json["program"] = process_json(*job.program);
  return json;
}

std::optional<ProcessRef> process_if(Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  const Result<ProcessRef> process = process_from(fields.child(key));
  if (!process) fields.fail(process.error());
  return process ? std::optional(*process) : std::nullopt;
}

std::optional<Exit> exit_if(Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  const Result<Exit> exit = exit_from(fields.child(key));
  if (!exit) fields.fail(exit.error());
  return exit ? std::optional(*exit) : std::nullopt;
}

core::Outcome outcome_from(Fields& fields, std::string_view key) {
  const std::optional<core::Outcome> outcome = core::parse_outcome(fields.text(key));
  if (!outcome) fields.fail(key, "an outcome");
  return outcome.value_or(core::Outcome::kLost);
}

Result<Job> whole_job_from(const Json& json) {
  Fields fields(json, "the job");
  Job job;
  job.id = id_from(fields, "id");
  Result<JobSpec> spec = spec_from(fields.child("spec"), Owner::kSaid);
  if (!spec) fields.fail(spec.error());
  if (spec) job.spec = *std::move(spec);
  if (const auto state = core::parse_job_state(fields.text("state")))
    job.state = *state;
  else
    fields.fail("state", "a state");
  job.attempt = fields.number<std::uint32_t>("attempt");
  job.submitted = fields.time("submitted_at");
  job.started = fields.time_if("started_at");
  job.ended = fields.time_if("ended_at");
  if (fields.has("outcome")) job.outcome = outcome_from(fields, "outcome");
  if (!job.outcome &&
      (job.state == core::JobState::kStopping || job.state == core::JobState::kEnded))
    fields.fail("outcome", "there, since the job is " + std::string(to_string(job.state)));
  job.exit = exit_if(fields, "exit");
  job.grant = granted_list_from(fields, "grant");
  job.runner = process_if(fields, "runner");
  job.program = process_if(fields, "program");
  if (!fields.ok()) return fields.error();
  return job;
}

}  // namespace

// ---- requests and answers ----------------------------------------------------------------------

std::string encode(const RunRequest& request) {
  Json json = {{"job", spec_json(request.spec, Owner::kUnsaid)},
               {"runner_start_ticks", request.runner_start_ticks}};
  if (!request.wait) json["no_wait"] = true;
  return write_json(json);
}

Result<RunRequest> decode_run_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the request");
  RunRequest request;
  Result<JobSpec> spec = spec_from(fields.child("job"), Owner::kUnsaid);
  if (!spec) return spec.error();
  request.spec = *std::move(spec);
  if (request.spec.command.empty()) return Error::invalid("the job has no command");
  request.runner_start_ticks = fields.number("runner_start_ticks");
  request.wait = !fields.flag("no_wait");
  if (!fields.ok()) return fields.error();
  return request;
}

std::string encode_ps(const std::vector<JobView>& jobs, WallTime at) {
  Json list = Json::array();
  for (const JobView& view : jobs) list.push_back(job_json(view));
  return write_json({{"schema", "mete.ps/1"}, {"at", to_string(at)}, {"jobs", list}});
}

Result<std::vector<JobView>> decode_ps(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the list of jobs");
  std::vector<JobView> views;
  for (const Json& element : fields.list("jobs")) {
    Result<JobView> view = view_from(element);
    if (!view) return view.error();
    views.push_back(*std::move(view));
  }
  if (!fields.ok()) return fields.error();
  return views;
}

std::string encode(const RunReply& reply) {
  Json cards = Json::array();
  for (const RunReply::Card& card : reply.cards)
    cards.push_back({{"name", card.name},
                     {"type", card.type},
                     {"total_bytes", card.total.count()},
                     {"capacity_bytes", card.capacity.count()}});
  Json json = {{"job", job_json(reply.view)}, {"tag", reply.tag}, {"cards", cards}};
  json["driver"] = reply.driver;
  json["readings"] = reply.readings;
  json["simulated"] = reply.simulated;
  return write_json(json);
}

Result<RunReply> decode_run_reply(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  RunReply reply;
  Result<JobView> view = view_from(fields.child("job"));
  if (!view) return view.error();
  reply.view = *std::move(view);
  reply.tag = fields.text("tag");
  reply.driver = fields.text_if("driver").value_or("");
  reply.readings = fields.text_if("readings").value_or("");
  reply.simulated = fields.text_if("simulated").value_or("");
  for (const Json& element : fields.list("cards")) {
    Fields card(element, "the card");
    reply.cards.push_back({card.text("name"), card.text("type"),
                           Bytes::from_bytes(card.number("total_bytes")),
                           Bytes::from_bytes(card.number("capacity_bytes"))});
    if (!card.ok()) return card.error();
  }
  if (!fields.ok()) return fields.error();
  return reply;
}

std::string encode(const StartReport& report) { return write_json(start_json(report)); }

Result<StartReport> decode_start(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return start_from(*json);
}

std::string encode(const EndReport& report) {
  Json json = exit_json(report.exit);
  if (report.start) json["started"] = start_json(*report.start);
  return write_json(json);
}

Result<EndReport> decode_end(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Result<Exit> exit = exit_from(*json);
  if (!exit) return std::move(exit).error();
  EndReport report{*std::move(exit), {}};
  Fields fields(*json, "the end");
  if (fields.has("started")) {
    const Result<StartReport> start = start_from(fields.child("started"));
    if (!start) return start.error();
    report.start = *start;
  }
  return report;
}

// ---- the log -----------------------------------------------------------------------------------

std::string job_of(const core::Happened& what) {
  return std::visit(
      [](const auto& event) -> std::string {
        if constexpr (requires { event.id; })
          return to_string(event.id);
        else
          return "";
      },
      what);
}

std::string encode(const core::Happened& what) {
  Json json = Json::object();
  if (const std::string id = job_of(what); !id.empty()) json["id"] = id;
  if (const auto* submitted = std::get_if<core::JobSubmitted>(&what)) {
    json["spec"] = spec_json(submitted->spec, Owner::kSaid);
    if (submitted->runner) json["runner"] = process_json(*submitted->runner);
  } else if (const auto* granted = std::get_if<core::JobGranted>(&what)) {
    json["grant"] = granted_list(granted->cards);
  } else if (const auto* started = std::get_if<core::JobStarted>(&what)) {
    json["program"] = process_json(started->program);
    if (started->ago_ms != 0) json["ago_ms"] = started->ago_ms;
  } else if (const auto* stopping = std::get_if<core::JobStopping>(&what)) {
    json["why"] = to_string(stopping->why);
  } else if (const auto* ended = std::get_if<core::JobEnded>(&what)) {
    json["outcome"] = to_string(ended->outcome);
    if (ended->exit) json["exit"] = exit_json(*ended->exit);
  } else if (const auto* lost = std::get_if<core::CardLost>(&what)) {
    json["card"] = lost->uuid;
  } else if (const auto* back = std::get_if<core::CardBack>(&what)) {
    json["card"] = back->uuid;
  }
  return write_json(json);
}

Result<core::Happened> decode_event(std::string_view type, std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "event " + std::string(type));
  core::Happened what;
  if (type == "job.submitted") {
    core::JobSubmitted event{id_from(fields, "id"), {}, process_if(fields, "runner")};
    Result<JobSpec> spec = spec_from(fields.child("spec"), Owner::kSaid);
    if (!spec) return spec.error();
    event.spec = *std::move(spec);
    what = std::move(event);
  } else if (type == "job.granted") {
    const JobId id = id_from(fields, "id");
    what = core::JobGranted{id, granted_list_from(fields, "grant")};
  } else if (type == "job.started") {
    const JobId id = id_from(fields, "id");
    const std::optional<ProcessRef> program = process_if(fields, "program");
    if (!program) fields.fail("program", "a process");
    what = core::JobStarted{id, program.value_or(ProcessRef{}), ago_from(fields)};
  } else if (type == "job.stopping") {
    const JobId id = id_from(fields, "id");
    what = core::JobStopping{id, outcome_from(fields, "why")};
  } else if (type == "job.ended") {
    const JobId id = id_from(fields, "id");
    const core::Outcome outcome = outcome_from(fields, "outcome");
    what = core::JobEnded{id, outcome, exit_if(fields, "exit")};
  } else if (type == "card.lost") {
    what = core::CardLost{fields.text("card")};
  } else if (type == "card.back") {
    what = core::CardBack{fields.text("card")};
  } else {
    return Error::unsupported("there is no event " + std::string(type))
        .with_hint("this state was written by a newer mete");
  }
  if (!fields.ok()) return fields.error();
  return what;
}

std::string encode(const core::State::Parts& parts) {
  Json jobs = Json::array();
  for (const Job& job : parts.jobs) jobs.push_back(whole_job_json(job));
  return write_json({{"schema", "mete.state/1"},
                     {"last_seq", parts.last_seq},
                     {"last_job", parts.last_job},
                     {"jobs", jobs},
                     {"lost", parts.lost}});
}

Result<core::State::Parts> decode_parts(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the snapshot");
  core::State::Parts parts;
  parts.last_seq = fields.number("last_seq");
  parts.last_job = fields.number("last_job");
  std::set<JobId> ids;
  for (const Json& element : fields.list("jobs")) {
    Result<Job> job = whole_job_from(element);
    if (!job) return job.error();
    if (job->id.number > parts.last_job || !ids.insert(job->id).second)
      return Error::corrupt("the snapshot: there cannot be a job " + to_string(job->id));
    parts.jobs.push_back(*std::move(job));
  }
  parts.lost = fields.texts("lost");
  if (!fields.ok()) return fields.error();
  return parts;
}

// ---- errors ------------------------------------------------------------------------------------

std::string encode_error(const Error& error, int exit_code) {
  Json json = {{"code", to_string(error.code)}, {"message", error.message}};
  if (!error.evidence.empty()) json["evidence"] = error.evidence;
  if (!error.hint.empty()) json["hint"] = error.hint;
  json["exit"] = exit_code;
  return write_json({{"error", json}});
}

Error decode_error(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return Error::corrupt("the daemon's answer is not JSON");
  Fields outer(*json, "the answer");
  Fields fields(outer.child("error"), "the error");
  Error error{ErrorCode::kIo, fields.text("message"), fields.text_if("evidence").value_or(""),
              fields.text_if("hint").value_or("")};
  const std::string code = fields.text("code");
  if (!fields.ok()) return Error::corrupt("the daemon's answer is no error that we understand");
  for (const ErrorCode known : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kDenied,
                                ErrorCode::kBusy, ErrorCode::kExhausted, ErrorCode::kInfeasible,
                                ErrorCode::kIo, ErrorCode::kCorrupt, ErrorCode::kUnsupported})
    if (base::to_string(known) == code) error.code = known;
  return error;
}

}  // namespace mete::wire
