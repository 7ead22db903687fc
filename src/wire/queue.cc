// SPDX-License-Identifier: Apache-2.0
// See queue.h. One list of fields for each request and document. Quotas, reservations and JOB are
// parts of several documents, with their lists in values.h and view.cc. Requests refuse unknown
// fields, answers ignore them.
#include "wire/queue.h"

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

// ---- jobs --------------------------------------------------------------------------------------

void fields_of(auto& list, Is<ChangedDocument> auto& document) {
  list.schema("mete.jobs/1");
  list.must("at", document.at);
  list.put("changed", document.changed);
}

std::string encode(const ChangedDocument& document) { return to_json(document); }
Result<ChangedDocument> decode_changed(std::string_view text) {
  return decode<ChangedDocument>(text, "the answer");
}

void fields_of(auto& list, Is<WaitDocument> auto& document) {
  list.schema("mete.wait/1");
  list.must("at", document.at);
  jobs_field(list, document.jobs, Words::kNone);  // the client knows what it waited for
}

std::string encode(const WaitDocument& document) { return to_json(document); }
Result<WaitDocument> decode_wait(std::string_view text) {
  return decode<WaitDocument>(text, "the answer");
}

void fields_of(auto& list, Is<ParkDocument> auto& document) {
  list.schema("mete.park/1");
  list.must("at", document.at);
  jobs_field(list, document.jobs, Words::kSome);
}

std::string encode(const ParkDocument& document) { return to_json(document); }

namespace {

struct PriorityRequest {
  std::int32_t priority = 0;
};

}  // namespace

void fields_of(auto& list, Is<PriorityRequest> auto& request) {
  list.must("priority", request.priority);
  check_priority(list, request.priority);
}

std::string encode_priority(std::int32_t priority) { return to_json(PriorityRequest{priority}); }
Result<std::int32_t> decode_priority(std::string_view text) {
  const auto request = decode<PriorityRequest>(text, "the request", Unknown::kRefused);
  if (!request) return request.error();
  return request->priority;
}

// ---- quotas ------------------------------------------------------------------------------------

void fields_of(auto& list, Is<QuotaRequest> auto& request) {
  list.must("user", request.user);
  fields_of(list, request.quota);
}

std::string encode(const QuotaRequest& request) { return to_json(request); }
Result<QuotaRequest> decode_quota_request(std::string_view text) {
  return decode<QuotaRequest>(text, "the request", Unknown::kRefused);
}

void fields_of(auto& list, Is<QuotaDocument::User> auto& user) {
  list.must("user", user.user);
  list.must("own", object("the limits", user.own));
  list.must("limits", object("the limits", user.limits));
  list.inside("used", "what is used", [&user](auto& used) {
    used.must("cards", user.held.cards);
    used.must("bytes", user.held.bytes);
    used.must("running", user.held.running);
    used.must("jobs", user.jobs);
    used.opt("disk_bytes", user.disk);
  });
}

void fields_of(auto& list, Is<QuotaDocument> auto& document) {
  list.schema("mete.quota/1");
  list.must("at", document.at);
  list.must("default", object("the limits", document.everybody));
  list.put("users", each("the user", document.users));
}

std::string encode(const QuotaDocument& document) { return to_json(document); }
Result<QuotaDocument> decode_quota(std::string_view text) {
  return decode<QuotaDocument>(text, "the quotas");
}

// ---- reservations ------------------------------------------------------------------------------

void fields_of(auto& list, Is<ReserveRequest> auto& request) {
  list.must("user", request.user);
  fields_of(list, request.request);
  list.must("from", request.from);
  list.must("until", request.until);
}

std::string encode(const ReserveRequest& request) { return to_json(request); }
Result<ReserveRequest> decode_reserve_request(std::string_view text) {
  return decode<ReserveRequest>(text, "the request", Unknown::kRefused);
}

void fields_of(auto& list, Is<ReservationsDocument> auto& document) {
  list.schema("mete.reservations/1");
  list.must("at", document.at);
  list.put("reservations", each("the reservation", document.reservations));
}

std::string encode(const ReservationsDocument& document) { return to_json(document); }
Result<ReservationsDocument> decode_reservations(std::string_view text) {
  return decode<ReservationsDocument>(text, "the reservations");
}

// ---- statistics --------------------------------------------------------------------------------

void fields_of(auto& list, Is<StatsDocument::User> auto& user) {
  list.must("user", user.user);
  list.must("pending", user.pending);
  list.must("running", user.running);
  list.must("ended", user.ended);
  list.must("mib_seconds", user.mib_seconds);
}

void fields_of(auto& list, Is<StatsDocument::Waits> auto& waits) {
  list.must("count", waits.count);
  list.opt("median_s", waits.median_s);
  list.opt("p90_s", waits.p90_s);
  list.opt("longest_s", waits.longest_s);
}

namespace {

std::optional<unsigned> held_pct(const StatsDocument::Forecasts& forecasts) {
  if (forecasts.given == 0 || forecasts.held > forecasts.given) return std::nullopt;
  return static_cast<unsigned>(static_cast<double>(forecasts.held) * 100.0 /
                               static_cast<double>(forecasts.given));
}

}  // namespace

void fields_of(auto& list, Is<StatsDocument::Forecasts> auto& forecasts) {
  list.must("given", forecasts.given);
  list.must("held", forecasts.held);
  list.tell("held_pct", held_pct(forecasts));
  list.tell("confidence_pct", core::kForecastPct);
  list.must("factor_milli", forecasts.factor_milli);
}

void fields_of(auto& list, Is<StatsDocument> auto& document) {
  list.schema("mete.stats/1");
  list.must("at", document.at);
  list.put("states", document.states);
  list.put("outcomes", document.outcomes);
  list.put("users", each("the user", document.users));
  list.must("waits", object("the waits", document.waits));
  list.must("forecasts", object("the forecasts", document.forecasts));
}

std::string encode(const StatsDocument& document) { return to_json(document); }
Result<StatsDocument> decode_stats(std::string_view text) {
  return decode<StatsDocument>(text, "the statistics");
}

void outline_queue(Outlines& all) {
  outline<ChangedDocument>(all["jobs"]);
  outline<WaitDocument>(all["wait"]);
  outline<ParkDocument>(all["park"]);
  outline<QuotaRequest>(all["QuotaRequest"]);
  outline<QuotaDocument>(all["quota"]);
  outline<ReserveRequest>(all["ReserveRequest"]);
  outline<ReservationsDocument>(all["reservations"]);
  outline<StatsDocument>(all["stats"]);
}

}  // namespace mete::wire
