// SPDX-License-Identifier: Apache-2.0
// See explain.h. One list of fields for each document.
#include "wire/explain.h"

#include "wire/outline.h"
#include "wire/values.h"
#include "wire/wait.h"

namespace mete::wire {

void fields_of(auto& list, Is<ExplainDocument::Holder> auto& holder) {
  list.must("id", holder.id);
  list.must("user", holder.user);
  list.must("bytes", holder.bytes);
  list.opt("ends_at", holder.ends_at);
  list.opt("by", holder.by);
  list.opt("idle_since", holder.idle_since);
}

void fields_of(auto& list, Is<ExplainDocument::Reserved> auto& reserved) {
  list.must("user", reserved.user);
  list.must("until", reserved.until);
  list.must("bytes", reserved.bytes);
}

void fields_of(auto& list, Is<ExplainDocument::Outside> auto& outside) {
  list.must("who", outside.who);
  list.must("bytes", outside.bytes);
  list.opt("job", outside.job);
}

void fields_of(auto& list, Is<ExplainDocument::Card> auto& card) {
  list.must("index", card.index);
  list.must("uuid", card.uuid);
  list.must("name", card.name);
  list.must("state", card.state);
  list.opt("needs_bytes", card.needs);
  list.opt("free_bytes", card.free);
  list.put("holders", each("the holder", card.holders));
  list.put("reserved", each("the reservation", card.reserved));
  list.must("text", card.text);
  list.put("outside", each("what is outside", card.outside));
  list.opt("why", card.why);
}

void fields_of(auto& list, Is<ExplainDocument::Change> auto& change) {
  list.must("kind", change.kind);
  list.must("text", change.text);
  list.opt("argument", change.argument);
  list.opt("job", change.job);
}

void why_fields(auto& list, Is<ExplainDocument> auto& document) {
  list.opt("reason", known(document.reason));
  list.opt("place", document.place);
  wait_field(list, document.wait, document.place);
  list.opt("in_line", document.in_line);
  list.opt("start_forecast", object("the forecast", document.forecast));
  list.put("cards", each("the card", document.cards));
  list.put("changes", each("the change", document.changes));
  list.must("text", document.text);
}

void fields_of(auto& list, Is<ExplainDocument> auto& document) {
  list.schema("mete.explain/1");
  list.must("at", document.at);
  list.must("id", document.id);
  list.must("state", document.state);
  list.opt("started_at", document.started);
  list.opt("ended_at", document.ended);
  list.opt("outcome", known(document.outcome));
  list.opt("lost", document.lost);
  list.opt("user", document.user);
  gpu_field(list, "request", document.request);
  list.opt("grant", each("the grant", document.grant));
  remark_fields(list, document.remark);
  list.opt("waiting_s", document.waiting_s);
  why_fields(list, document);
}

std::string encode(const ExplainDocument& document) { return to_json(document); }
Result<ExplainDocument> decode_explain(std::string_view text) {
  return decode<ExplainDocument>(text, "the answer");
}

void fields_of(auto& list, Is<DryRunDocument> auto& document) {
  list.schema("mete.dry-run/1");
  list.must("at", document.at);
  list.put("starts", document.starts);
  list.put("grant", each("the grant", document.grant));
  list.put("parked", document.parked);
  why_fields(list, document.why);
}

std::string encode(const DryRunDocument& document) { return to_json(document); }
Result<DryRunDocument> decode_dry_run(std::string_view text) {
  Result<DryRunDocument> document = decode<DryRunDocument>(text, "the answer");
  if (document) document->why.at = document->at;
  return document;
}

void outline_explain(Outlines& all) {
  outline<ExplainDocument>(all["explain"]);
  outline<DryRunDocument>(all["dry-run"]);
}

}  // namespace mete::wire
