// SPDX-License-Identifier: Apache-2.0
// See event.h. Each kind of event has one list of its fields after "id" and "attempt"; read_event()
// finds the list by the type's place in core::kEventTypes. document_of() turns a line of the log
// into what readers get: bytes that are not UTF-8 become readable, secrets and internal fields are
// left out.
#include "wire/event.h"

#include "wire/outline.h"
#include "wire/sweep_plan.h"
#include "wire/values.h"

namespace mete::wire {

using core::JobState;

// ---- events of jobs ----------------------------------------------------------------------------

void fields_of(auto& list, Is<core::JobSubmitted> auto& event) {
  list.must("spec", object("the job", event.spec));
  list.opt("runner", object("the process", event.runner));
}
void fields_of(auto& list, Is<core::JobGranted> auto& event) {
  list.put("grant", each("the grant", event.cards));
}
void fields_of(auto& list, Is<core::JobStarted> auto& event) {
  list.there("program", "a process");
  list.must("program", object("the process", event.program));
  list.opt("ago_ms", event.ago_ms);
  check_ago(list, event.ago_ms);
  list.opt("runner", object("the process", event.runner));
}
void fields_of(auto& list, Is<core::JobStopping> auto& event) {
  list.must("why", event.why);
  list.opt("requeue", event.requeue);
  list.opt("note", event.note);
}
void fields_of(auto& list, Is<core::JobEnded> auto& event) {
  list.must("outcome", event.outcome);
  list.opt("exit", object("the end", event.exit));
}
void fields_of(auto& list, Is<core::JobRequeued> auto& event) {
  list.must("outcome", event.outcome);
  list.opt("exit", object("the end", event.exit));
  gpu_field(list, "gpu", event.gpu);
  list.opt("not_before", event.not_before);
}
void fields_of(auto& list, Is<core::JobUngranted> auto& event) {
  list.opt("why", exact(event.why));
  list.opt("not_before", event.not_before);
}
void fields_of(auto& /*list*/, Is<core::JobHeld> auto& /*event*/) {}
void fields_of(auto& /*list*/, Is<core::JobReleased> auto& /*event*/) {}
void fields_of(auto& list, Is<core::JobPriority> auto& event) {
  list.must("priority", event.priority);
}
void fields_of(auto& list, Is<core::JobForecast> auto& event) {
  list.must("forecast", object("the forecast", event.forecast));
}
void fields_of(auto& list, Is<core::JobParked> auto& event) {
  list.must("state", event.state);
  list.check("state", event.state == JobState::kParking || event.state == JobState::kParked,
             "parking or parked");
  list.must("cause", event.cause);
  list.opt("for", event.for_job);
  list.opt("by", event.by);
  list.opt("deep", event.deep);
  if (list.says(event.state == JobState::kParked)) kept_fields(list, event);
  list.opt("why", event.why);
  list.opt("lost", event.lost);
}
void fields_of(auto& list, Is<core::JobUnparked> auto& event) {
  list.must("state", event.state);
  list.check("state",
             event.state == JobState::kParked || event.state == JobState::kUnparking ||
                 event.state == JobState::kRunning,
             "parked, unparking or running");
  list.opt("why", event.why);
  list.opt("standing", event.standing);
}
void fields_of(auto& list, Is<core::JobGrown> auto& event) {
  list.opt("asked", event.asked);
  if (list.says(!event.asked)) list.put("bytes", event.bytes);
}
void fields_of(auto& list, Is<core::EscapeSeen> auto& event) { fields_of(list, event.escape); }
void fields_of(auto& list, Is<core::JobIdle> auto& event) { fields_of(list, event.span); }
void fields_of(auto& /*list*/, Is<core::JobActive> auto& /*event*/) {}

// ---- events of the machine ---------------------------------------------------------------------

namespace {

// The first version wrote "uuid".
void card_field(Writer& list, const std::string& uuid) { list.put("card", uuid); }
void card_field(Reader& list, std::string& uuid) {
  list.must(list.fields().has("card") ? "card" : "uuid", uuid);
}

}  // namespace

void fields_of(auto& list, Is<core::CardLost> auto& event) { card_field(list, event.uuid); }
void fields_of(auto& list, Is<core::CardBack> auto& event) { card_field(list, event.uuid); }
void fields_of(auto& list, Is<core::CardDrained> auto& event) {
  list.must("card", event.uuid);
  list.must("by", event.by);
}
void fields_of(auto& list, Is<core::CardUndrained> auto& event) { list.must("card", event.uuid); }
void fields_of(auto& list, Is<core::QuotaSet> auto& event) {
  list.must("user", event.user);
  list.must("quota", object("the quota", event.quota));
}
void fields_of(auto& list, Is<core::Reserved> auto& event) {
  list.must("reservation", object("the reservation", event.reservation));
}
void fields_of(auto& list, Is<core::Unreserved> auto& event) {
  reservation_field(list, "reservation", event.id);
}
void fields_of(auto& list, Is<core::Booted> auto& event) { list.must("boot_id", event.boot_id); }
void fields_of(auto& list, Is<core::Repaired> auto& event) {
  list.must("lost_events", event.lost_events);
  list.must("last_job", event.last_job);
}

// ---- events of sweeps --------------------------------------------------------------------------

namespace {

// The plan and the job of its trials.
void plan_fields(Writer& list, const std::shared_ptr<const core::sweep::Plan>& plan) {
  if (!plan) return;
  list.must("plan", object("the plan", *plan));
  list.must("spec", object("the job", plan->job));
}
void plan_fields(Reader& list, std::shared_ptr<const core::sweep::Plan>& plan) {
  if (!list.fields().has("plan") && !list.fields().outlines()) return;
  core::sweep::Plan read;
  list.must("plan", object("the plan", read));
  list.must("spec", object("the job", read.job));
  plan = std::make_shared<const core::sweep::Plan>(std::move(read));
}

}  // namespace

void fields_of(auto& list, Is<core::SweepStarted> auto& event) {
  list.must("sweep", event.sweep);
  plan_fields(list, event.plan);
  list.there("plan", "the plan of a sweep");
}
void fields_of(auto& list, Is<core::SweepChanged> auto& event) {
  list.must("sweep", event.sweep);
  list.must("state", event.state);
  plan_fields(list, event.plan);
}
void fields_of(auto& list, Is<core::SweepRemoved> auto& event) { list.must("sweep", event.sweep); }
template <class List, class Event>
requires requires(Event& event) { event.what; }
void fields_of(List& list, Event& event) {
  list.must("sweep", event.sweep);
  fields_of(list, event.what);
}

// ---- event documents ---------------------------------------------------------------------------

namespace {

void data_field(Writer& list, const std::string& data) { list.out().key("data").raw(data); }
void data_field(Reader& list, std::string& data) {
  const Json& json = list.fields().child("data");
  list.check("data", json.is_object(), "an object");
  data = write_json(json);
}

}  // namespace

void fields_of(auto& list, Is<EventDocument> auto& document) {
  list.schema("mete.event/1");
  list.must("seq", document.seq);
  list.must("at", document.at);
  list.must("type", document.type);
  list.opt("job", document.job);
  list.opt("attempt", document.attempt);
  data_field(list, document.data);
}

void fields_of(auto& list, Is<EventsDocument> auto& document) {
  list.schema("mete.events/1");
  list.must("at", document.at);
  list.put("events", each("the event", document.events));
  list.must("next", document.next);
}

std::string encode(const EventDocument& document) { return to_json(document); }
Result<EventDocument> decode_event_document(std::string_view text) {
  return decode<EventDocument>(text, "the event");
}

std::string encode(const EventsDocument& document) { return to_json(document); }
Result<EventsDocument> decode_events(std::string_view text) {
  return decode<EventsDocument>(text, "the list of events");
}

namespace {

template <class Event>
constexpr bool kOfAJob = requires(const Event& event) {
  { event.id } -> std::convertible_to<core::JobId>;
};

// The event of that type, searched from `Index` on.
template <std::size_t Index = 0>
Result<core::Happened> read_event(std::string_view type, Reader& list) {
  if constexpr (Index == std::variant_size_v<core::Happened>) {
    return Error::unsupported("there is no event " + std::string(type))
        .with_hint("this state was written by a newer mete");
  } else {
    if (type != core::kEventTypes[Index]) return read_event<Index + 1>(type, list);
    std::variant_alternative_t<Index, core::Happened> event = {};
    if constexpr (kOfAJob<decltype(event)>) list.must("id", event.id);
    fields_of(list, event);
    if (!list.fields().ok()) return list.fields().error();
    return core::Happened(std::move(event));
  }
}

Result<core::Happened> event_from(std::string_view type, const Json& json) {
  const std::string what = "event " + std::string(type);
  Fields fields(json, what);
  Reader list(fields, Owner::kSaid);
  return read_event(type, list);
}

// ---- for readers -------------------------------------------------------------------------------

// Turns words that are not UTF-8 into readable text, as in all documents.
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

// Targets of notifications may hold a token: readers get them redacted.
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

std::optional<std::uint64_t> sweep_of(std::string_view data) {
  const Result<Json> json = parse_json(data);
  if (!json || !json->is_object()) return std::nullopt;
  Fields fields(*json, "the event");
  return fields.number_if("sweep");
}

std::string encode(const core::Happened& what, std::uint32_t attempt) {
  JsonText out;
  Writer list(out, Owner::kSaid);
  out.open();
  std::visit(
      [&](const auto& event) {
        if constexpr (kOfAJob<std::decay_t<decltype(event)>>) list.must("id", event.id);
        list.opt("attempt", attempt);
        fields_of(list, event);
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
  // Fields that document_of() redacted or left out, and that the log requires.
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
  const std::string what = "event " + std::string(line.type);
  Fields fields(*json, what);
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

void outline_event(Outlines& all) {
  outline<EventDocument>(all["event"]);
  outline<EventsDocument>(all["events"]);
}

}  // namespace mete::wire
