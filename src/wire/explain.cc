// SPDX-License-Identifier: Apache-2.0
// See explain.h.
#include "wire/explain.h"

#include "wire/values.h"

namespace mete::wire {

namespace {

using Card = ExplainDocument::Card;
using Change = ExplainDocument::Change;
using Holder = ExplainDocument::Holder;
using Outside = ExplainDocument::Outside;
using Reserved = ExplainDocument::Reserved;

void put_holder(JsonText& out, const Holder& holder) {
  out.open();
  put_id(out, "id", holder.id);
  out.put("user", holder.user);
  out.put("bytes", holder.bytes);
  out.put_if("ends_at", holder.ends_at);
  out.put_if("by", std::string_view(holder.by));
  out.put_if("idle_since", holder.idle_since);
  out.close();
}

void put_one(JsonText& out, const Card& card) {
  out.open();
  out.put("index", card.index);
  out.put("uuid", card.uuid);
  out.put("name", card.name);
  out.put("state", card.state);
  out.put_if("needs_bytes", card.needs);
  out.put_if("free_bytes", card.free);
  out.key("holders").open_list();
  for (const Holder& holder : card.holders) put_holder(out, holder);
  out.close_list();
  out.key("reserved").open_list();
  for (const Reserved& reserved : card.reserved) {
    out.open();
    out.put("user", reserved.user);
    out.put("until", reserved.until);
    out.put("bytes", reserved.bytes);
    out.close();
  }
  out.close_list();
  out.put("text", card.text);
  out.key("outside").open_list();
  for (const Outside& outside : card.outside) {
    out.open();
    out.put("who", outside.who);
    out.put("bytes", outside.bytes);
    if (outside.job) put_id(out, "job", *outside.job);
    out.close();
  }
  out.close_list();
  out.close();
}

void put_change(JsonText& out, const Change& change) {
  out.open();
  out.put("kind", change.kind);
  out.put("text", change.text);
  out.put_if("argument", std::string_view(change.argument));
  if (change.job) put_id(out, "job", *change.job);
  out.close();
}

Card card_from(const Json& json, Fields& outer) {
  Fields fields(json, "the card");
  Card card;
  card.index = fields.number<std::uint32_t>("index");
  card.uuid = fields.text("uuid");
  card.name = fields.text("name");
  card.state = fields.text("state");
  card.needs = fields.bytes_if("needs_bytes");
  card.free = fields.bytes_if("free_bytes");
  for (const Json& element : fields.list("holders")) {
    Fields of_one(element, "the holder");
    card.holders.push_back({id_from(of_one, "id"), of_one.text("user"), of_one.bytes("bytes"),
                            of_one.time_if("ends_at"), of_one.text_if("by").value_or(""),
                            of_one.time_if("idle_since")});
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  for (const Json& element : fields.list("reserved")) {
    Fields of_one(element, "the reservation");
    card.reserved.push_back({of_one.text("user"), of_one.time("until"), of_one.bytes("bytes")});
    if (!of_one.ok()) fields.fail(of_one.error());
  }
  card.text = fields.text("text");
  // A daemon of before does not say.
  if (fields.has("outside"))
    for (const Json& element : fields.list("outside")) {
      Fields of_one(element, "what is outside");
      Outside outside{of_one.text("who"), of_one.bytes("bytes"), {}};
      if (of_one.has("job")) outside.job = id_from(of_one, "job");
      if (!of_one.ok()) fields.fail(of_one.error());
      card.outside.push_back(std::move(outside));
    }
  if (!fields.ok()) outer.fail(fields.error());
  return card;
}

Change change_from(const Json& json, Fields& outer) {
  Fields fields(json, "the change");
  Change change{
      fields.text("kind"), fields.text("text"), fields.text_if("argument").value_or(""), {}};
  if (fields.has("job")) change.job = id_from(fields, "job");
  if (!fields.ok()) outer.fail(fields.error());
  return change;
}

// What both documents have.
void put_why(JsonText& out, const ExplainDocument& document) {
  if (document.reason) out.put("reason", to_string(*document.reason));
  out.put_if("place", document.place);
  out.put_if("in_line", document.in_line);
  if (document.forecast) {
    out.key("start_forecast");
    put_forecast(out, *document.forecast, Owner::kUnsaid);
  }
  out.key("cards").open_list();
  for (const Card& card : document.cards) put_one(out, card);
  out.close_list();
  out.key("changes").open_list();
  for (const Change& change : document.changes) put_change(out, change);
  out.close_list();
  out.put("text", document.text);
}

void take_why(Fields& fields, ExplainDocument& document) {
  document.reason = reason_of(fields.text_if("reason").value_or(""));
  document.place = fields.number_if("place");
  document.in_line = fields.number_if("in_line");
  if (fields.has("start_forecast"))
    document.forecast = forecast_from(fields, "start_forecast", Owner::kUnsaid);
  for (const Json& card : fields.list("cards")) document.cards.push_back(card_from(card, fields));
  for (const Json& change : fields.list("changes"))
    document.changes.push_back(change_from(change, fields));
  document.text = fields.text("text");
}

}  // namespace

std::string encode(const ExplainDocument& document) {
  JsonText out;
  out.open();
  out.put("schema", "mete.explain/1");
  out.put("at", document.at);
  put_id(out, "id", document.id);
  out.put("state", to_string(document.state));
  out.put_if("waiting_s", document.waiting_s);
  put_why(out, document);
  out.close();
  return out.take();
}

Result<ExplainDocument> decode_explain(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  ExplainDocument document;
  document.at = fields.time("at");
  document.id = id_from(fields, "id");
  document.state = state_from(fields, "state");
  document.waiting_s = fields.number_if("waiting_s");
  take_why(fields, document);
  if (!fields.ok()) return fields.error();
  return document;
}

std::string encode(const DryRunDocument& document) {
  JsonText out;
  out.open();
  out.put("schema", "mete.dry-run/1");
  out.put("at", document.at);
  out.put("starts", document.starts);
  put_cards(out, "grant", document.grant);
  out.key("parked").open_list();
  for (const core::JobId id : document.parked) out.value(to_string(id));
  out.close_list();
  put_why(out, document.why);
  out.close();
  return out.take();
}

Result<DryRunDocument> decode_dry_run(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the answer");
  DryRunDocument document;
  document.at = fields.time("at");
  document.starts = fields.flag("starts");
  document.grant = cards_from(fields, "grant");
  for (const std::string& id : fields.texts("parked"))
    document.parked.push_back(fields.take(core::parse_job_id(id)));
  take_why(fields, document.why);
  document.why.at = document.at;
  if (!fields.ok()) return fields.error();
  return document;
}

}  // namespace mete::wire
