// SPDX-License-Identifier: Apache-2.0
// See values.h.
#include "wire/values.h"

#include "base/text.h"
#include "core/request/gpu.h"

namespace mete::wire {

using core::After;
using core::Exit;
using core::GrantedCard;
using core::JobId;
using core::ProcessRef;
using core::Request;

// ---- requests ----------------------------------------------------------------------------------

void put_gpu_if(JsonText& out, std::string_view key, const std::optional<core::GpuRequest>& gpu) {
  if (!gpu) return;
  const std::string text = to_string(*gpu);
  out.put(key, text);
  if (as_written(*gpu) != text) out.put(std::string(key) + "_written", gpu->written);
}

void read_written(Fields& fields, std::string_view key, core::GpuRequest& gpu) {
  const std::optional<std::string> text = fields.text_if(std::string(key) + "_written");
  if (!text) return;
  // What asks for something else is no way of writing this.
  const Result<core::GpuRequest> written = core::parse_gpu(*text);
  if (written && *written == gpu) gpu.written = written->written;
}

std::optional<core::GpuRequest> gpu_if(Fields& fields, std::string_view key) {
  const std::optional<std::string> text = fields.text_if(key);
  if (!text) return std::nullopt;
  core::GpuRequest gpu = fields.take(core::parse_gpu(*text));
  read_written(fields, key, gpu);
  return gpu;
}

std::optional<core::Query> where_if(Fields& fields, std::string_view key) {
  const std::optional<std::string> text = fields.text_if(key);
  if (!text) return std::nullopt;
  Result<core::Query> query = core::Query::parse(*text);
  if (query) return *std::move(query);
  fields.fail(std::move(query).error());
  return std::nullopt;
}

void put_request(JsonText& out, const Request& request) {
  put_gpu_if(out, "gpu", request.gpu);
  if (!request.devices.empty()) out.put("devices", request.devices);
  out.put_if("gpu_type", request.gpu_type);
  if (request.where) out.put("where", request.where->text());
  if (request.procs != 1) out.put("procs", request.procs);
  out.flag_if("or_cpu", request.or_cpu);
  out.put_if("cpus", request.cpus);
  out.put_if("ram_bytes", request.ram);
}

Request request_of(Fields& fields) {
  Request request;
  request.gpu = gpu_if(fields, "gpu");
  request.devices = fields.texts("devices");
  request.gpu_type = fields.text_if("gpu_type");
  request.where = where_if(fields, "where");
  request.procs = fields.number_if<std::uint32_t>("procs").value_or(1);
  if (request.procs < 1 || request.procs > 1024) fields.fail("procs", "between 1 and 1024");
  request.or_cpu = fields.flag("or_cpu");
  request.cpus = fields.number_if<unsigned>("cpus");
  request.ram = fields.bytes_if("ram_bytes");
  return request;
}

Result<Request> request_from(const Json& json, Unknown unknown) {
  Fields fields(json, "the request", unknown);
  Request request = request_of(fields);
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return request;
}

// ---- processes, cards, ends --------------------------------------------------------------------

void put_process(JsonText& out, const ProcessRef& process) {
  out.put("pid", process.pid);
  out.put("start_ticks", process.start_ticks);
}

void put_process_if(JsonText& out, std::string_view key, const std::optional<ProcessRef>& process) {
  if (!process) return;
  out.key(key).open();
  put_process(out, *process);
  out.close();
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

std::optional<ProcessRef> process_if(Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  return fields.take(process_from(fields.child(key)));
}

std::uint64_t ago_from(Fields& fields) {
  const std::uint64_t ago_ms = fields.number_if("ago_ms").value_or(0);
  if (ago_ms > 1'000'000'000'000) fields.fail("ago_ms", "a time that can be");
  return ago_ms;
}

void put_card(JsonText& out, const GrantedCard& card) {
  out.put("card", card.uuid);
  out.put("index", card.index);
  out.put("bytes", card.bytes);
  out.flag_if("whole", card.whole);
  if (card.most.is_zero()) return;
  out.put("least_bytes", card.least);
  out.put("most_bytes", card.most);
}

void put_cards(JsonText& out, std::string_view key, const std::vector<GrantedCard>& cards) {
  out.key(key).open_list();
  for (const GrantedCard& card : cards) {
    out.open();
    put_card(out, card);
    out.close();
  }
  out.close_list();
}

std::vector<GrantedCard> cards_from(Fields& fields, std::string_view key) {
  std::vector<GrantedCard> cards;
  for (const Json& element : fields.list(key)) {
    Fields of_card(element, "the grant");
    GrantedCard card;
    card.uuid = of_card.text("card");
    card.index = of_card.number<std::uint32_t>("index");
    card.bytes = of_card.bytes("bytes");
    card.whole = of_card.flag("whole");
    card.least = of_card.bytes_if("least_bytes").value_or(Bytes());
    card.most = of_card.bytes_if("most_bytes").value_or(Bytes());
    if (!of_card.ok()) fields.fail(of_card.error());
    cards.push_back(std::move(card));
  }
  return cards;
}

void put_bytes_list(JsonText& out, std::string_view key, const std::vector<Bytes>& list) {
  out.key(key).open_list();
  for (const Bytes bytes : list) out.value(bytes);
  out.close_list();
}

std::vector<Bytes> bytes_list_from(Fields& fields, std::string_view key) {
  std::vector<Bytes> list;
  for (const Json& element : fields.list(key)) {
    if (!element.is_number_unsigned()) {
      fields.fail(key, "a list of bytes");
      break;
    }
    list.push_back(Bytes::from_bytes(element.get<std::uint64_t>()));
  }
  return list;
}

std::optional<JobId> id_if(Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  return id_from(fields, key);
}

void put_park(JsonText& out, const core::Park& park) {
  out.open();
  out.put("cause", to_string(park.cause));
  if (park.for_job) put_id(out, "for", *park.for_job);
  out.put_if("by", std::string_view(park.by));
  out.flag_if("deep", park.deep);
  out.flag_if("returns", park.wants_back);
  out.put("since", park.since);
  if (!park.held.empty()) {
    put_bytes_list(out, "held_bytes", park.held);
    out.put("moved_bytes", park.moved);
    if (!park.on_disk.is_zero()) out.put("disk_bytes", park.on_disk);
  }
  out.put_if("why", std::string_view(park.why));
  out.flag_if("lost", park.lost);
  out.close();
}

core::ParkCause cause_from(Fields& fields, std::string_view key) {
  const std::optional<core::ParkCause> cause = core::parse_park_cause(fields.text(key));
  if (!cause) fields.fail(key, "a reason to park");
  return cause.value_or(core::ParkCause::kAsked);
}

Result<core::Park> park_from(const Json& json) {
  Fields fields(json, "the park");
  core::Park park;
  park.cause = cause_from(fields, "cause");
  park.for_job = id_if(fields, "for");
  park.by = fields.text_if("by").value_or("");
  park.deep = fields.flag("deep");
  park.wants_back = fields.flag("returns");
  park.since = fields.time("since");
  park.held = bytes_list_from(fields, "held_bytes");
  park.moved = fields.bytes_if("moved_bytes").value_or(Bytes());
  park.on_disk = fields.bytes_if("disk_bytes").value_or(Bytes());
  park.why = fields.text_if("why").value_or("");
  park.lost = fields.flag("lost");
  if (!fields.ok()) return fields.error();
  return park;
}

void put_escape(JsonText& out, const core::Escape& escape) {
  out.put("pid", escape.pid);
  out.put("start_ticks", escape.start_ticks);
  out.put("card", escape.card);
  out.put("index", escape.index);
  out.put("bytes", escape.bytes);
  out.put("charged_bytes", escape.charged);
  out.put("command", escape.command);
}

core::Escape escape_of(Fields& fields) {
  core::Escape escape;
  escape.pid = fields.number<std::int32_t>("pid");
  escape.start_ticks = fields.number("start_ticks");
  escape.card = fields.text("card");
  escape.index = fields.number<std::uint32_t>("index");
  escape.bytes = fields.bytes("bytes");
  escape.charged = fields.bytes("charged_bytes");
  escape.command = fields.text("command");
  return escape;
}

void put_escapes(JsonText& out, const core::Job& job) {
  if (job.escapes.empty()) return;
  out.key("escapes").open_list();
  for (const core::Escape& escape : job.escapes) {
    out.open();
    put_escape(out, escape);
    out.close();
  }
  out.close_list();
}

std::vector<core::Escape> escapes_from(Fields& fields) {
  std::vector<core::Escape> escapes;
  for (const Json& element : fields.list("escapes")) {
    Fields of_one(element, "the escape");
    escapes.push_back(escape_of(of_one));
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  return escapes;
}

void put_idle(JsonText& out, const core::IdleSpan& span) {
  out.put("since", span.since);
  out.put("step", to_string(span.step));
}

core::IdleSpan idle_of(Fields& fields) {
  const std::optional<core::IdleStep> step = core::parse_idle_step(fields.text("step"));
  if (!step) fields.fail("step", "seen, warned or notified");
  return {fields.time("since"), step.value_or(core::IdleStep::kSeen)};
}

void put_refusal(JsonText& out, const core::ParkRefusal& refusal) {
  out.open();
  out.put("at", refusal.at);
  out.put("why", refusal.why);
  out.flag_if("standing", refusal.standing);
  out.close();
}

Result<core::ParkRefusal> refusal_from(const Json& json) {
  Fields fields(json, "the refusal");
  core::ParkRefusal refusal{fields.time("at"), fields.text("why"), fields.flag("standing")};
  if (!fields.ok()) return fields.error();
  return refusal;
}

void put_exit(JsonText& out, const Exit& exit) {
  out.put_if("exit_code", exit.code);
  out.put_if("signal", exit.signal);
  out.flag_if("not_started", exit.not_started);
  out.flag_if("not_now", exit.not_now);
  out.flag_if("timed_out", exit.timed_out);
  out.flag_if("gpu_oom", exit.gpu_oom);
  out.flag_if("ram_oom", exit.ram_oom);
  if (!exit.peaks.empty()) {
    out.key("peak_bytes").open_list();
    for (const Bytes peak : exit.peaks) out.value(peak);
    out.close_list();
  }
  out.put_if("ran_ms", exit.ran_ms);
  out.put_if("log_bytes", exit.log_bytes);
  if (!exit.note.empty()) out.key("note").exact(exit.note);
}

Result<Exit> exit_from(const Json& json) {
  Fields fields(json, "the end");
  Exit exit;
  exit.code = fields.number_if<int>("exit_code");
  exit.signal = fields.number_if<int>("signal");
  exit.not_started = fields.flag("not_started");
  exit.not_now = fields.flag("not_now");
  exit.timed_out = fields.flag("timed_out");
  exit.gpu_oom = fields.flag("gpu_oom");
  exit.ram_oom = fields.flag("ram_oom");
  for (const Json& peak : fields.list("peak_bytes")) {
    if (peak.is_number_unsigned())
      exit.peaks.push_back(Bytes::from_bytes(peak.get<std::uint64_t>()));
    else
      fields.fail("peak_bytes", "a list of numbers");
  }
  exit.ran_ms = fields.number_if("ran_ms");
  exit.log_bytes = fields.bytes_if("log_bytes");
  exit.note = fields.exact_if("note").value_or("");
  if (!fields.ok()) return fields.error();
  return exit;
}

void put_exit_if(JsonText& out, std::string_view key, const std::optional<Exit>& exit) {
  if (!exit) return;
  out.key(key).open();
  put_exit(out, *exit);
  out.close();
}

std::optional<Exit> exit_if(Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  return fields.take(exit_from(fields.child(key)));
}

// ---- the queue ---------------------------------------------------------------------------------

void put_forecast(JsonText& out, const core::Forecast& forecast, Owner owner) {
  out.open();
  if (owner == Owner::kSaid) out.put("made", forecast.made);
  out.put("at", forecast.at);
  out.put("by", forecast.by);
  if (owner == Owner::kUnsaid) out.put("confidence_pct", core::kForecastPct);
  out.close();
}

core::Forecast forecast_from(Fields& fields, std::string_view key, Owner owner) {
  Fields of_forecast(fields.child(key), "the forecast");
  core::Forecast forecast;
  if (owner == Owner::kSaid) forecast.made = of_forecast.time("made");
  forecast.at = of_forecast.time("at");
  forecast.by = of_forecast.time_if("by").value_or(forecast.at);
  if (!of_forecast.ok()) fields.fail(of_forecast.error());
  return forecast;
}

void put_after(JsonText& out, std::string_view key, const std::vector<After>& after) {
  out.key(key).open_list();
  for (const After& one : after) {
    out.open();
    put_id(out, "id", one.id);
    out.put("when", to_string(one.when));
    out.close();
  }
  out.close_list();
}

After after_of(const Json& json, Fields& fields) {
  Fields of_one(json, "a job to come after", fields.unknown());
  After after{id_from(of_one, "id"), core::When::kOk};
  if (const auto when = core::parse_when(of_one.text("when")))
    after.when = *when;
  else
    of_one.fail("when", "ok, any or fail");
  of_one.refuse_unknown();
  if (!of_one.ok()) fields.fail(of_one.error());
  return after;
}

std::vector<After> after_from(Fields& fields, std::string_view key) {
  std::vector<After> after;
  for (const Json& element : fields.list(key)) after.push_back(after_of(element, fields));
  return after;
}

void put_quota(JsonText& out, const core::Quota& quota) {
  out.put_if("cards", quota.cards);
  out.put_if("bytes", quota.bytes);
  out.put_if("running", quota.running);
  out.put_if("jobs", quota.jobs);
  out.put_if("disk_bytes", quota.disk);
}

core::Quota quota_from(Fields& fields) {
  core::Quota quota;
  quota.cards = fields.number_if<std::uint32_t>("cards");
  quota.bytes = fields.bytes_if("bytes");
  quota.running = fields.number_if<std::uint32_t>("running");
  quota.jobs = fields.number_if<std::uint32_t>("jobs");
  quota.disk = fields.bytes_if("disk_bytes");
  return quota;
}

void put_reservation(JsonText& out, const core::Reservation& reservation) {
  out.put("id", std::to_string(reservation.id));
  out.put("user", reservation.user);
  out.put("from", reservation.from);
  out.put("until", reservation.until);
  out.put("by", reservation.by);
  put_cards(out, "cards", reservation.cards);
}

std::uint64_t reservation_id_from(Fields& fields, std::string_view key) {
  const Result<std::uint64_t> id = base::parse_uint(fields.text(key));
  if (!id || *id == 0) fields.fail(key, "the number of a reservation");
  return id ? *id : 0;
}

Result<core::Reservation> reservation_from(const Json& json) {
  Fields fields(json, "the reservation");
  core::Reservation reservation;
  reservation.id = reservation_id_from(fields, "id");
  reservation.user = fields.text("user");
  reservation.from = fields.time("from");
  reservation.until = fields.time("until");
  reservation.by = fields.text("by");
  reservation.cards = cards_from(fields, "cards");
  if (!fields.ok()) return fields.error();
  return reservation;
}

// ---- names -------------------------------------------------------------------------------------

void append_id(std::string& out, JobId id) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, id.number).ptr);
  if (!id.element) return;
  out += '_';
  out.append(digits, std::to_chars(digits, digits + sizeof digits, *id.element).ptr);
}

void put_id(JsonText& out, std::string_view key, JobId id) {
  out.key(key).raw("\"");
  append_id(out.out(), id);
  out.out() += '"';
}

JobId id_from(Fields& fields, std::string_view key) {
  const Result<JobId> id = core::parse_job_id(fields.text(key));
  if (!id) fields.fail(key, "the number of a job");
  return id ? *id : JobId{};
}

core::JobState state_from(Fields& fields, std::string_view key) {
  const std::optional<core::JobState> state = core::parse_job_state(fields.text(key));
  if (!state) fields.fail(key, "a state");
  return state.value_or(core::JobState::kPending);
}

core::Outcome outcome_from(Fields& fields, std::string_view key) {
  const std::optional<core::Outcome> outcome = core::parse_outcome(fields.text(key));
  if (!outcome) fields.fail(key, "an outcome");
  return outcome.value_or(core::Outcome::kLost);
}

std::optional<core::Reason> reason_of(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(core::Reason::kRetry); ++i)
    if (to_string(static_cast<core::Reason>(i)) == text) return static_cast<core::Reason>(i);
  return std::nullopt;
}

}  // namespace mete::wire
