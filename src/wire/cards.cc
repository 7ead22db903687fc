// SPDX-License-Identifier: Apache-2.0
#include "wire/cards.h"

#include "wire/values.h"

namespace mete::wire {

namespace {

void put(Json& json, const char* key, const std::optional<Bytes>& bytes) {
  if (bytes) json[key] = bytes->count();
}

template <class Number>
void put_number(Json& json, const char* key, const std::optional<Number>& number) {
  if (number) json[key] = *number;
}

std::optional<double> real_if(Fields& fields, std::string_view key) {
  const Json& value = fields.child(key);
  if (value.is_number()) return value.get<double>();
  if (!value.is_null()) fields.fail(key, "a number");
  return std::nullopt;
}

}  // namespace

Json card_json(const CardView& card) {
  Json json = {{"index", card.index},
               {"uuid", card.uuid},
               {"name", card.name},
               {"type", card.type},
               {"state", card.state}};
  if (!card.unusable.empty()) json["unusable"] = card.unusable;
  put(json, "total_bytes", card.total);
  put(json, "capacity_bytes", card.capacity);
  json["granted_bytes"] = card.granted.count();
  put(json, "used_bytes", card.used);
  put(json, "foreign_bytes", card.foreign);
  if (!card.over.is_zero()) json["over_bytes"] = card.over.count();
  json["grantable_bytes"] = card.grantable.count();
  put_number(json, "utilisation_pct", card.utilisation_pct);
  put_number(json, "temperature_c", card.temperature_c);
  put_number(json, "power_w", card.power_w);
  put_number(json, "power_limit_w", card.power_limit_w);
  put_number(json, "reading_age_s", card.reading_age_s);
  put_number(json, "numa", card.numa);
  Json links = Json::array();
  for (const CardView::Link& link : card.links)
    links.push_back({{"to", link.to}, {"kind", "nvlink"}, {"count", link.count}});
  json["links"] = links;
  Json jobs = Json::array();
  for (const CardView::JobShare& job : card.jobs) {
    Json share = {{"id", job.id}, {"user", job.user}, {"bytes", job.bytes.count()}};
    if (job.whole) share["whole"] = true;
    put(share, "used_bytes", job.used);
    if (!job.outside.is_zero()) share["outside_bytes"] = job.outside.count();
    if (!job.name.empty()) share["name"] = job.name;
    if (job.idle_since) share["idle_since"] = to_string(*job.idle_since);
    if (!job.over.is_zero()) share["over_bytes"] = job.over.count();
    jobs.push_back(share);
  }
  json["jobs"] = jobs;
  Json foreign = Json::array();
  for (const CardView::Foreign& other : card.foreign_list) {
    Json entry = Json::object();
    put_number(entry, "pid", other.pid);
    entry["user"] = other.user;
    if (!other.name.empty()) entry["name"] = other.name;
    put(entry, "used_bytes", other.used);
    put_number(entry, "utilisation_pct", other.utilisation_pct);
    foreign.push_back(entry);
  }
  json["foreign"] = foreign;
  return json;
}

Result<CardView> card_from(const Json& json) {
  Fields fields(json, "the card");
  CardView card;
  card.index = fields.number<std::uint32_t>("index");
  card.uuid = fields.text("uuid");
  card.name = fields.text("name");
  card.type = fields.text("type");
  card.state = fields.text("state");
  card.unusable = fields.text_if("unusable").value_or("");
  card.total = fields.bytes_if("total_bytes");
  card.capacity = fields.bytes_if("capacity_bytes");
  card.granted = fields.bytes_if("granted_bytes").value_or(Bytes());
  card.used = fields.bytes_if("used_bytes");
  card.foreign = fields.bytes_if("foreign_bytes");
  card.over = fields.bytes_if("over_bytes").value_or(Bytes());
  card.grantable = fields.bytes_if("grantable_bytes").value_or(Bytes());
  card.utilisation_pct = fields.number_if<unsigned>("utilisation_pct");
  card.temperature_c = fields.number_if<int>("temperature_c");
  card.power_w = real_if(fields, "power_w");
  card.power_limit_w = real_if(fields, "power_limit_w");
  card.reading_age_s = real_if(fields, "reading_age_s");
  card.numa = fields.number_if<unsigned>("numa");
  for (const Json& element : fields.list("links")) {
    Fields link(element, "the link");
    card.links.push_back({link.number<std::uint32_t>("to"), link.number<std::uint32_t>("count")});
    if (!link.ok()) fields.fail(link.error());
  }
  for (const Json& element : fields.list("jobs")) {
    Fields job(element, "the job");
    card.jobs.push_back({job.text("id"), job.text("user"), Bytes::from_bytes(job.number("bytes")),
                         job.flag("whole"), job.bytes_if("used_bytes"),
                         job.bytes_if("outside_bytes").value_or(Bytes()),
                         job.text_if("name").value_or(""), job.time_if("idle_since"),
                         job.bytes_if("over_bytes").value_or(Bytes())});
    if (!job.ok()) fields.fail(job.error());
  }
  for (const Json& element : fields.list("foreign")) {
    Fields other(element, "the process");
    CardView::Foreign foreign;
    foreign.pid = other.number_if<std::int32_t>("pid");
    foreign.user = other.text("user");
    foreign.used = other.bytes_if("used_bytes");
    foreign.name = other.text_if("name").value_or("");
    foreign.utilisation_pct = other.number_if<unsigned>("utilisation_pct");
    if (!other.ok()) fields.fail(other.error());
    card.foreign_list.push_back(foreign);
  }
  if (!fields.ok()) return fields.error();
  return card;
}

std::string encode(const CardsDocument& document) {
  Json cards = Json::array();
  for (const CardView& card : document.cards) cards.push_back(card_json(card));
  Json json = {{"schema", "mete.cards/1"}, {"at", to_string(document.at)}};
  if (!document.trouble.empty()) json["trouble"] = document.trouble;
  json["cards"] = cards;
  return write_json(json);
}

Result<CardsDocument> decode_cards(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the list of cards");
  CardsDocument document;
  document.at = fields.time("at");
  document.trouble = fields.text_if("trouble").value_or("");
  for (const Json& element : fields.list("cards")) {
    Result<CardView> card = card_from(element);
    if (!card) return card.error();
    document.cards.push_back(*std::move(card));
  }
  if (!fields.ok()) return fields.error();
  return document;
}

Json daemon_json(const DaemonView& view) {
  Json json = {{"version", view.version},
               {"pid", view.pid},
               {"mode", view.mode},
               {"socket", view.socket},
               {"state_dir", view.state_dir},
               {"uptime_s", view.uptime_s},
               {"policy", view.policy},
               {"jobs", {{"pending", view.pending}, {"running", view.running}}}};
  if (!view.simulated.empty()) json["simulated"] = view.simulated;
  if (!view.trouble.empty()) json["trouble"] = view.trouble;
  if (view.disk_full) json["disk_full"] = true;
  if (view.idle_end_s) json["idle_end_s"] = *view.idle_end_s;
  if (!view.metrics.empty()) json["metrics"] = view.metrics;
  if (!view.metrics_trouble.empty()) json["metrics_trouble"] = view.metrics_trouble;
  json["escapes"] = view.escapes;
  json["notify"] = {{"waiting", view.notify.waiting},
                    {"sent", view.notify.sent},
                    {"failed", view.notify.failed},
                    {"dropped", view.notify.dropped}};
  return json;
}

std::string encode(const DaemonView& view, WallTime at) {
  Json json = {{"schema", "mete.daemon/1"}, {"at", to_string(at)}, {"running", true}};
  json.update(daemon_json(view));
  return write_json(json);
}

Result<DaemonView> decode_daemon(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return daemon_from(*json);
}

Result<DaemonView> daemon_from(const Json& json) {
  Fields fields(json, "the daemon's answer");
  DaemonView view;
  view.version = fields.text("version");
  view.pid = fields.number<std::int32_t>("pid");
  view.mode = fields.text("mode");
  view.socket = fields.text("socket");
  view.state_dir = fields.text("state_dir");
  view.simulated = fields.text_if("simulated").value_or("");
  view.uptime_s = fields.number("uptime_s");
  view.policy = fields.text("policy");
  view.trouble = fields.text_if("trouble").value_or("");
  view.disk_full = fields.flag("disk_full");
  view.idle_end_s = fields.number_if("idle_end_s");
  view.metrics = fields.text_if("metrics").value_or("");
  view.metrics_trouble = fields.text_if("metrics_trouble").value_or("");
  view.escapes = fields.text_if("escapes").value_or("warn");
  if (fields.has("notify")) {
    Fields notify(fields.child("notify"), "the notifications");
    view.notify = {notify.number("waiting"), notify.number("sent"), notify.number("failed"),
                   notify.number("dropped")};
    if (!notify.ok()) fields.fail(notify.error());
  }
  Fields jobs(fields.child("jobs"), "the jobs");
  view.pending = jobs.number("pending");
  view.running = jobs.number("running");
  if (!jobs.ok()) fields.fail(jobs.error());
  if (!fields.ok()) return fields.error();
  return view;
}

}  // namespace mete::wire
