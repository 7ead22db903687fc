// SPDX-License-Identifier: Apache-2.0
// See queue.h.
#include "wire/queue.h"

#include "wire/values.h"

namespace mete::wire {

namespace {

void open_document(JsonText& out, std::string_view schema, WallTime at) {
  out.open();
  out.put("schema", schema);
  out.put("at", at);
}

std::string closed(JsonText& out) {
  out.close();
  return out.take();
}

void put_limits(JsonText& out, std::string_view key, const core::Quota& quota) {
  out.key(key).open();
  put_quota(out, quota);
  out.close();
}

core::Quota limits_from(Fields& fields, std::string_view key) {
  Fields limits(fields.child(key), "the limits");
  const core::Quota quota = quota_from(limits);
  if (!limits.ok()) fields.fail(limits.error());
  return quota;
}

}  // namespace

// ---- jobs --------------------------------------------------------------------------------------

std::string encode(const ChangedDocument& document) {
  JsonText out;
  open_document(out, "mete.jobs/1", document.at);
  out.key("changed").open_list();
  for (const core::JobId id : document.changed) out.value(to_string(id));
  out.close_list();
  return closed(out);
}

Result<ChangedDocument> decode_changed(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  ChangedDocument document{fields.time("at"), {}};
  for (const std::string& word : fields.texts("changed")) {
    const Result<core::JobId> id = core::parse_job_id(word);
    if (!id) return id.error();
    document.changed.push_back(*id);
  }
  if (!fields.ok()) return fields.error();
  return document;
}

std::string encode(const WaitDocument& document) {
  JsonText out;
  open_document(out, "mete.wait/1", document.at);
  put_jobs(out, document.jobs, Words::kNone);  // who waits knows what for
  return closed(out);
}

Result<WaitDocument> decode_wait(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  WaitDocument document{fields.time("at"), {}};
  Result<std::vector<JobView>> jobs = jobs_from(fields);
  if (!jobs) return jobs.error();
  document.jobs = *std::move(jobs);
  return document;
}

std::string encode(const ParkDocument& document) {
  JsonText out;
  open_document(out, "mete.park/1", document.at);
  put_jobs(out, document.jobs, Words::kSome);
  return closed(out);
}

std::string encode_priority(std::int32_t priority) {
  JsonText out;
  out.open();
  out.put("priority", priority);
  return closed(out);
}

Result<std::int32_t> decode_priority(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the request", Unknown::kRefused);
  const auto priority = fields.number<std::int32_t>("priority");
  if (priority > core::kMaxPriority || priority < -core::kMaxPriority)
    fields.fail("priority", "between -1000 and 1000");
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return priority;
}

// ---- quotas ------------------------------------------------------------------------------------

std::string encode(const QuotaRequest& request) {
  JsonText out;
  out.open();
  out.put("user", request.user);
  put_quota(out, request.quota);
  return closed(out);
}

Result<QuotaRequest> decode_quota_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the request", Unknown::kRefused);
  QuotaRequest request{fields.text("user"), quota_from(fields)};
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return request;
}

std::string encode(const QuotaDocument& document) {
  JsonText out;
  open_document(out, "mete.quota/1", document.at);
  put_limits(out, "default", document.everybody);
  out.key("users").open_list();
  for (const QuotaDocument::User& user : document.users) {
    out.open();
    out.put("user", user.user);
    put_limits(out, "own", user.own);
    put_limits(out, "limits", user.limits);
    out.key("used").open();
    out.put("cards", user.held.cards);
    out.put("bytes", user.held.bytes);
    out.put("running", user.held.running);
    out.put("jobs", user.jobs);
    out.put_if("disk_bytes", user.disk);
    out.close();
    out.close();
  }
  out.close_list();
  return closed(out);
}

Result<QuotaDocument> decode_quota(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the quotas");
  QuotaDocument document{fields.time("at"), limits_from(fields, "default"), {}};
  for (const Json& element : fields.list("users")) {
    Fields of_user(element, "the user");
    Fields used(of_user.child("used"), "what is used");
    QuotaDocument::User user;
    user.user = of_user.text("user");
    user.own = limits_from(of_user, "own");
    user.limits = limits_from(of_user, "limits");
    user.held = {used.number<std::uint32_t>("cards"), used.bytes("bytes"),
                 used.number<std::uint32_t>("running")};
    user.jobs = used.number<std::uint32_t>("jobs");
    user.disk = used.bytes_if("disk_bytes");
    if (!used.ok()) fields.fail(used.error());
    if (!of_user.ok()) fields.fail(of_user.error());
    document.users.push_back(std::move(user));
  }
  if (!fields.ok()) return fields.error();
  return document;
}

// ---- reservations ------------------------------------------------------------------------------

std::string encode(const ReserveRequest& request) {
  JsonText out;
  out.open();
  out.put("user", request.user);
  put_request(out, request.request);
  out.put("from", request.from);
  out.put("until", request.until);
  return closed(out);
}

Result<ReserveRequest> decode_reserve_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the request", Unknown::kRefused);
  ReserveRequest request;
  request.user = fields.text("user");
  request.request = request_of(fields);
  request.from = fields.time("from");
  request.until = fields.time("until");
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return request;
}

std::string encode(const ReservationsDocument& document) {
  JsonText out;
  open_document(out, "mete.reservations/1", document.at);
  out.key("reservations").open_list();
  for (const core::Reservation& reservation : document.reservations) {
    out.open();
    put_reservation(out, reservation);
    out.close();
  }
  out.close_list();
  return closed(out);
}

Result<ReservationsDocument> decode_reservations(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the reservations");
  ReservationsDocument document{fields.time("at"), {}};
  for (const Json& element : fields.list("reservations")) {
    Result<core::Reservation> reservation = reservation_from(element);
    if (!reservation) return reservation.error();
    document.reservations.push_back(*std::move(reservation));
  }
  if (!fields.ok()) return fields.error();
  return document;
}

// ---- statistics --------------------------------------------------------------------------------

std::string encode(const StatsDocument& document) {
  JsonText out;
  open_document(out, "mete.stats/1", document.at);
  out.put("states", document.states);
  out.put("outcomes", document.outcomes);
  out.key("users").open_list();
  for (const StatsDocument::User& user : document.users) {
    out.open();
    out.put("user", user.user);
    out.put("pending", user.pending);
    out.put("running", user.running);
    out.put("ended", user.ended);
    out.put("mib_seconds", user.mib_seconds);
    out.close();
  }
  out.close_list();
  out.key("waits").open();
  out.put("count", document.waits.count);
  out.put_if("median_s", document.waits.median_s);
  out.put_if("p90_s", document.waits.p90_s);
  out.put_if("longest_s", document.waits.longest_s);
  out.close();
  const StatsDocument::Forecasts& forecasts = document.forecasts;
  out.key("forecasts").open();
  out.put("given", forecasts.given);
  out.put("held", forecasts.held);
  if (forecasts.given != 0 && forecasts.held <= forecasts.given)
    out.put("held_pct", static_cast<unsigned>(static_cast<double>(forecasts.held) * 100.0 /
                                              static_cast<double>(forecasts.given)));
  out.put("confidence_pct", core::kForecastPct);
  out.put("factor_milli", forecasts.factor_milli);
  out.close();
  return closed(out);
}

Result<StatsDocument> decode_stats(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the statistics");
  StatsDocument document;
  document.at = fields.time("at");
  document.states = fields.counts("states");
  document.outcomes = fields.counts("outcomes");
  for (const Json& element : fields.list("users")) {
    Fields user(element, "the user");
    document.users.push_back({user.text("user"), user.number("pending"), user.number("running"),
                              user.number("ended"), user.number("mib_seconds")});
    if (!user.ok()) fields.fail(user.error());
  }
  Fields waits(fields.child("waits"), "the waits");
  document.waits = {waits.number("count"), waits.number_if("median_s"), waits.number_if("p90_s"),
                    waits.number_if("longest_s")};
  Fields forecasts(fields.child("forecasts"), "the forecasts");
  document.forecasts = {forecasts.number("given"), forecasts.number("held"),
                        forecasts.number<std::uint32_t>("factor_milli")};
  if (!waits.ok()) fields.fail(waits.error());
  if (!forecasts.ok()) fields.fail(forecasts.error());
  if (!fields.ok()) return fields.error();
  return document;
}

}  // namespace mete::wire
