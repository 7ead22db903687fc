// SPDX-License-Identifier: Apache-2.0
// See event.h.
#include "wire/event.h"

#include "wire/values.h"

namespace mete::wire {

namespace {

using core::JobId;
using core::ProcessRef;

// ---- writing: one function for each kind, the members after "id" -------------------------------

void put(JsonText& out, const core::JobSubmitted& event) {
  out.key("spec");
  put_spec(out, *event.spec, Owner::kSaid);
  put_process_if(out, "runner", event.runner);
}
void put(JsonText& out, const core::JobGranted& event) { put_cards(out, "grant", event.cards); }
void put(JsonText& out, const core::JobStarted& event) {
  put_process_if(out, "program", event.program);
  if (event.ago_ms != 0) out.put("ago_ms", event.ago_ms);
  put_process_if(out, "runner", event.runner);
}
void put(JsonText& out, const core::JobStopping& event) {
  out.put("why", to_string(event.why));
  out.flag_if("requeue", event.requeue);
  out.put_if("note", std::string_view(event.note));
}
void put(JsonText& out, const core::JobEnded& event) {
  out.put("outcome", to_string(event.outcome));
  put_exit_if(out, "exit", event.exit);
}
void put(JsonText& out, const core::JobRequeued& event) {
  out.put("outcome", to_string(event.outcome));
  put_exit_if(out, "exit", event.exit);
  put_gpu_if(out, "gpu", event.gpu);
  out.put_if("not_before", event.not_before);
}
void put(JsonText& out, const core::JobUngranted& event) {
  if (!event.why.empty()) out.key("why").exact(event.why);
  out.put_if("not_before", event.not_before);
}
void put(JsonText& /*out*/, const core::JobHeld& /*event*/) {}
void put(JsonText& /*out*/, const core::JobReleased& /*event*/) {}
void put(JsonText& out, const core::JobPriority& event) { out.put("priority", event.priority); }
void put(JsonText& out, const core::JobForecast& event) {
  out.key("forecast");
  put_forecast(out, event.forecast, Owner::kSaid);
}
void put(JsonText& out, const core::JobParked& event) {
  out.put("state", to_string(event.state));
  out.put("cause", to_string(event.cause));
  if (event.for_job) put_id(out, "for", *event.for_job);
  out.put_if("by", std::string_view(event.by));
  out.flag_if("deep", event.deep);
  if (event.state == core::JobState::kParked) {
    put_bytes_list(out, "held_bytes", event.held);
    out.put("moved_bytes", event.moved);
    if (!event.on_disk.is_zero()) out.put("disk_bytes", event.on_disk);
  }
  out.put_if("why", std::string_view(event.why));
  out.flag_if("lost", event.lost);
}
void put(JsonText& out, const core::JobUnparked& event) {
  out.put("state", to_string(event.state));
  out.put_if("why", std::string_view(event.why));
  out.flag_if("standing", event.standing);
}
void put(JsonText& out, const core::JobGrown& event) {
  if (event.asked)
    out.put("asked", true);
  else
    put_bytes_list(out, "bytes", event.bytes);
}
void put(JsonText& out, const core::EscapeSeen& event) { put_escape(out, event.escape); }
void put(JsonText& out, const core::JobIdle& event) { put_idle(out, event.span); }
void put(JsonText& /*out*/, const core::JobActive& /*event*/) {}
void put(JsonText& out, const core::CardLost& event) { out.put("card", event.uuid); }
void put(JsonText& out, const core::CardBack& event) { out.put("card", event.uuid); }
void put(JsonText& out, const core::CardDrained& event) {
  out.put("card", event.uuid);
  out.put("by", event.by);
}
void put(JsonText& out, const core::CardUndrained& event) { out.put("card", event.uuid); }
void put(JsonText& out, const core::QuotaSet& event) {
  out.put("user", event.user);
  out.key("quota").open();
  put_quota(out, event.quota);
  out.close();
}
void put(JsonText& out, const core::Reserved& event) {
  out.key("reservation").open();
  put_reservation(out, event.reservation);
  out.close();
}
void put(JsonText& out, const core::Unreserved& event) {
  out.put("reservation", std::to_string(event.id));
}
void put(JsonText& out, const core::Booted& event) { out.put("boot_id", event.boot_id); }

template <class Event>
constexpr bool kOfAJob = requires(const Event& event) {
  { event.id } -> std::convertible_to<JobId>;
};

// ---- reading -----------------------------------------------------------------------------------

core::JobStarted started_from(Fields& fields, JobId id) {
  const std::optional<ProcessRef> program = process_if(fields, "program");
  if (!program) fields.fail("program", "a process");
  return {id, program.value_or(ProcessRef{}), ago_from(fields), process_if(fields, "runner")};
}

core::JobRequeued requeued_from(Fields& fields, JobId id) {
  return {id, outcome_from(fields, "outcome"), exit_if(fields, "exit"), gpu_if(fields, "gpu"),
          fields.time_if("not_before")};
}

core::JobParked parked_from(Fields& fields, JobId id) {
  core::JobParked event;
  event.id = id;
  event.state = state_from(fields, "state");
  if (event.state != core::JobState::kParking && event.state != core::JobState::kParked)
    fields.fail("state", "parking or parked");
  event.cause = cause_from(fields, "cause");
  event.for_job = id_if(fields, "for");
  event.by = fields.text_if("by").value_or("");
  event.deep = fields.flag("deep");
  event.held = bytes_list_from(fields, "held_bytes");
  event.moved = fields.bytes_if("moved_bytes").value_or(Bytes());
  event.on_disk = fields.bytes_if("disk_bytes").value_or(Bytes());
  event.why = fields.text_if("why").value_or("");
  event.lost = fields.flag("lost");
  return event;
}

core::JobUnparked unparked_from(Fields& fields, JobId id) {
  core::JobUnparked event{id, state_from(fields, "state"), fields.text_if("why").value_or(""),
                          fields.flag("standing")};
  if (event.state != core::JobState::kParked && event.state != core::JobState::kUnparking &&
      event.state != core::JobState::kRunning)
    fields.fail("state", "parked, unparking or running");
  return event;
}

core::QuotaSet quota_set_from(Fields& fields) {
  Fields limits(fields.child("quota"), "the quota");
  core::QuotaSet event{fields.text("user"), quota_from(limits)};
  if (!limits.ok()) fields.fail(limits.error());
  return event;
}

std::optional<core::Happened> job_event(std::string_view type, Fields& fields) {
  if (!type.starts_with("job.")) return std::nullopt;
  const JobId id = id_from(fields, "id");
  if (type == "job.submitted") {
    core::JobSpec spec = fields.take(spec_from(fields.child("spec"), Owner::kSaid));
    return core::JobSubmitted{id, std::move(spec), process_if(fields, "runner")};
  }
  if (type == "job.granted") return core::JobGranted{id, cards_from(fields, "grant")};
  if (type == "job.started") return started_from(fields, id);
  if (type == "job.stopping")
    return core::JobStopping{id, outcome_from(fields, "why"), fields.flag("requeue"),
                             fields.text_if("note").value_or("")};
  if (type == "job.ended")
    return core::JobEnded{id, outcome_from(fields, "outcome"), exit_if(fields, "exit")};
  if (type == "job.requeued") return requeued_from(fields, id);
  if (type == "job.ungranted")
    return core::JobUngranted{id, fields.exact_if("why").value_or(""),
                              fields.time_if("not_before")};
  if (type == "job.parked") return parked_from(fields, id);
  if (type == "job.unparked") return unparked_from(fields, id);
  if (type == "job.grown")
    return core::JobGrown{id, bytes_list_from(fields, "bytes"), fields.flag("asked")};
  if (type == "job.idle") return core::JobIdle{id, idle_of(fields)};
  if (type == "job.active") return core::JobActive{id};
  if (type == "job.held") return core::JobHeld{id};
  if (type == "job.released") return core::JobReleased{id};
  if (type == "job.priority") return core::JobPriority{id, fields.number<std::int32_t>("priority")};
  if (type == "job.forecast")
    return core::JobForecast{id, forecast_from(fields, "forecast", Owner::kSaid)};
  return std::nullopt;
}

std::optional<core::Happened> other_event(std::string_view type, Fields& fields) {
  if (type == "escape.seen") return core::EscapeSeen{id_from(fields, "id"), escape_of(fields)};
  // The first version called it uuid.
  if (type == "card.lost" || type == "card.back") {
    std::string card = fields.has("card") ? fields.text("card") : fields.text("uuid");
    if (type == "card.lost") return core::CardLost{std::move(card)};
    return core::CardBack{std::move(card)};
  }
  if (type == "card.drained") return core::CardDrained{fields.text("card"), fields.text("by")};
  if (type == "card.undrained") return core::CardUndrained{fields.text("card")};
  if (type == "quota.set") return quota_set_from(fields);
  if (type == "card.reserved")
    return core::Reserved{fields.take(reservation_from(fields.child("reservation")))};
  if (type == "card.unreserved")
    return core::Unreserved{reservation_id_from(fields, "reservation")};
  if (type == "machine.booted") return core::Booted{fields.text("boot_id")};
  return std::nullopt;
}

// ---- for readers -------------------------------------------------------------------------------

// Words that are no UTF-8 as readers get them everywhere.
void make_readable(Json& json) {
  if (json.is_object() && json.contains("hex")) {
    if (std::optional<std::string> text = exact_text(json)) {
      std::string shown;
      append_json_string(shown, *text);
      json = Json::parse(shown, nullptr, /*allow_exceptions=*/false);
      return;
    }
  }
  if (json.is_structured())
    for (Json& part : json) make_readable(part);
}

// Where notifications go may hold a token: readers get what people are shown.
void hide_secrets(Json& spec) {
  if (!spec.is_object() || !spec.contains("notify") || !spec["notify"].is_object()) return;
  Json& list = spec["notify"]["to"];
  if (!list.is_array()) return;
  for (Json& element : list) {
    const std::optional<std::string> text = exact_text(element);
    const Result<core::NotifyTarget> target = core::parse_notify(text.value_or(""));
    element = target ? core::redacted(*target) : "";
  }
}

void put_document(JsonText& out, const EventDocument& document) {
  out.open();
  out.put("schema", "mete.event/1");
  out.put("seq", document.seq);
  out.put("at", document.at);
  out.put("type", document.type);
  out.put_if("job", std::string_view(document.job));
  out.put_if("attempt", document.attempt);
  out.key("data").raw(document.data);
  out.close();
}

Result<EventDocument> document_from(const Json& json) {
  Fields fields(json, "the event");
  EventDocument document;
  document.seq = fields.number("seq");
  document.at = fields.time("at");
  document.type = fields.text("type");
  document.job = fields.text_if("job").value_or("");
  document.attempt = fields.number_if<std::uint32_t>("attempt");
  const Json& data = fields.child("data");
  if (!data.is_object()) fields.fail("data", "an object");
  if (!fields.ok()) return fields.error();
  document.data = write_json(data);
  return document;
}

Result<core::Happened> event_from(std::string_view type, const Json& json) {
  Fields fields(json, "event " + std::string(type));
  std::optional<core::Happened> what = job_event(type, fields);
  if (!what) what = other_event(type, fields);
  if (!what)
    return Error::unsupported("there is no event " + std::string(type))
        .with_hint("this state was written by a newer mete");
  if (!fields.ok()) return fields.error();
  return *std::move(what);
}

}  // namespace

std::string job_of(const core::Happened& what) {
  return std::visit(
      [](const auto& event) -> std::string {
        if constexpr (kOfAJob<std::decay_t<decltype(event)>>)
          return to_string(event.id);
        else
          return "";
      },
      what);
}

std::string encode(const core::Happened& what, std::uint32_t attempt) {
  JsonText out;
  out.open();
  std::visit(
      [&](const auto& event) {
        if constexpr (kOfAJob<std::decay_t<decltype(event)>>) put_id(out, "id", event.id);
        if (attempt != 0) out.put("attempt", attempt);
        put(out, event);
      },
      what);
  out.close();
  return out.take();
}

Result<core::Happened> decode_event(std::string_view type, std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return event_from(type, *json);
}

Result<core::Happened> decode_event(const EventDocument& document) {
  Result<Json> json = parse_json(document.data);
  if (!json) return std::move(json).error();
  if (!json->is_object()) return Error::corrupt("the data of an event is no object");
  if (!document.job.empty()) (*json)["id"] = document.job;
  // What document_of() has left out has no meaning here, and the log insists on it.
  if (json->contains("spec") && (*json)["spec"].is_object()) (*json)["spec"].erase("notify");
  if (json->contains("spec") && (*json)["spec"].contains("detached")) {
    Json& detached = (*json)["spec"]["detached"];
    for (const char* key : {"gid", "umask"})
      if (detached.is_object() && !detached.contains(key)) detached[key] = 0;
  }
  return event_from(document.type, *json);
}

Result<EventDocument> document_of(const LogLine& line) {
  Result<Json> json = parse_json(line.data);
  if (!json) return json.error();
  Fields fields(*json, "event " + std::string(line.type));
  EventDocument document{line.seq, line.at, std::string(line.type), std::string(line.job), {}, ""};
  document.attempt = fields.number_if<std::uint32_t>("attempt");
  if (!fields.ok()) return fields.error();
  json->erase("id");
  json->erase("attempt");
  if (json->contains("spec") && (*json)["spec"].contains("detached")) {
    Json& detached = (*json)["spec"]["detached"];
    for (const char* key : {"environment", "script", "gid", "groups", "umask", "limits"})
      if (detached.is_object()) detached.erase(key);
  }
  if (json->contains("spec")) hide_secrets((*json)["spec"]);
  make_readable(*json);
  document.data = write_json(*json);
  return document;
}

std::string encode(const EventDocument& document) {
  JsonText out;
  put_document(out, document);
  return out.take();
}

Result<EventDocument> decode_event_document(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return document_from(*json);
}

std::string encode(const EventsDocument& document) {
  JsonText out;
  out.open();
  out.put("schema", "mete.events/1");
  out.put("at", document.at);
  out.key("events").open_list();
  for (const EventDocument& event : document.events) put_document(out, event);
  out.close_list();
  out.put("next", document.next);
  out.close();
  return out.take();
}

Result<EventsDocument> decode_events(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the list of events");
  EventsDocument document;
  document.at = fields.time("at");
  document.next = fields.number("next");
  for (const Json& element : fields.list("events")) {
    Result<EventDocument> event = document_from(element);
    if (!event) return event.error();
    document.events.push_back(*std::move(event));
  }
  if (!fields.ok()) return fields.error();
  return document;
}

}  // namespace mete::wire
