// SPDX-License-Identifier: Apache-2.0
// See place_text.h. Both forms are made from one PlaceReport: first the decision, then where the
// copies and moved jobs are, then, without room, what would help, and with --explain the cause per
// node. in_words() has the sentence for each cause.
#include "cli/place_text.h"

#include "base/bytes.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/table.h"
#include "simulate/asks.h"

namespace mete::cli {

using core::cluster::Cause;

namespace {

constexpr std::size_t kMostNodes = 100;  // listed in the text

std::string_view word_of(PlaceReport::Decision decision) {
  switch (decision) {
    case PlaceReport::Decision::kPlaced:
      return "placed";
    case PlaceReport::Decision::kWait:
      return "wait";
    case PlaceReport::Decision::kNever:
      return "never";
  }
  return "";
}

std::string placed_json(const PlaceReport::Placed& placed) {
  std::vector<std::string> cards;
  for (const std::uint32_t card : placed.cards) cards.push_back(std::to_string(card));
  JsonObject json;
  json.text("node", placed.node).raw("cards", json_array(cards));
  if (!placed.cards.empty()) {
    json.text("card_type", placed.card_type);
    json.number("share_milli", static_cast<std::uint64_t>(placed.share));
    if (placed.share_bytes > 0)
      json.number("share_bytes", static_cast<std::uint64_t>(placed.share_bytes));
  }
  return json.str();
}

std::string placed_text(const PlaceReport::Placed& placed) {
  std::string text = base::printable(placed.node);
  if (placed.cards.empty()) return text + ", without a card";
  text += placed.cards.size() == 1 ? ", card " : ", cards ";
  for (std::size_t i = 0; i < placed.cards.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(placed.cards[i]);
  text += " (" + base::printable(placed.card_type) + "): ";
  if (placed.share == core::cluster::kWholeCard) return text + "whole";
  const std::int32_t tenths = placed.share;
  text += std::to_string(tenths / 10) +
          (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + " %";
  if (placed.share_bytes > 0)
    text += ", " + to_string(Bytes::from_bytes(static_cast<std::uint64_t>(placed.share_bytes)));
  return text + (placed.cards.size() > 1 ? " of each" : "");
}

}  // namespace

std::string in_words(Cause cause) {
  switch (cause) {
    case Cause::kType:
      return "has no card of such a type";
    case Cause::kTooSmall:
      return "too small, even empty";
    case Cause::kCpu:
      return "too little CPU left";
    case Cause::kRam:
      return "too little memory left";
    case Cause::kCards:
      return "too few cards with that much left";
    case Cause::kHasRoom:
      return "has room";
  }
  return "";
}

std::string place_json(const PlaceReport& report, const std::string& at) {
  std::vector<std::string> placed;
  for (const PlaceReport::Placed& each : report.placed) placed.push_back(placed_json(each));
  JsonObject causes;
  for (std::size_t i = 0; i < core::cluster::kCauses; ++i)
    causes.number(to_string(static_cast<Cause>(i)), report.nodes.nodes[i]);
  std::vector<std::string> changes;
  for (const core::cluster::Change& change : report.changes) {
    std::vector<std::string> aspects;
    for (const core::cluster::Aspect aspect : change.aspects)
      aspects.push_back(json_string(to_string(aspect)));
    changes.push_back(JsonObject()
                          .raw("aspects", json_array(aspects))
                          .text("request", simulate::words_of(change.ask))
                          .str());
  }
  std::vector<std::string> moves;
  for (const PlaceReport::Moved& move : report.moves)
    moves.push_back(JsonObject()
                        .text("job", move.job)
                        .raw("from", placed_json(move.from))
                        .raw("to", placed_json(move.to))
                        .str());
  std::vector<std::string> nodes;
  for (const PlaceReport::OnNode& node : report.on)
    nodes.push_back(
        JsonObject().text("name", node.name).text("cause", to_string(node.cause)).str());
  JsonObject json;
  json.text("schema", "mete.place/1").text("at", at).text("policy", report.policy);
  json.text("request", report.request).text("decision", word_of(report.decision));
  if (report.copies > 1) {
    json.number("copies", report.copies);
    if (report.placed.empty())
      json.number("copies_fit", report.fit_now).number("copies_fit_empty", report.fit_empty);
  }
  json.raw("placed", json_array(placed)).raw("moves", json_array(moves));
  json.raw("causes", causes.str());
  json.raw("changes", json_array(changes)).raw("nodes", json_array(nodes));
  return json.str();
}

namespace {

// A node with room for one copy does not explain why there is no room for all.
std::string why_on(const PlaceReport& report, Cause cause) {
  const bool some = cause == Cause::kHasRoom && report.placed.empty() && report.copies > 1;
  return some ? "has room, but not for all copies" : in_words(cause);
}

}  // namespace

std::string place_text(const PlaceReport& report) {
  std::string text;
  for (const PlaceReport::Moved& move : report.moves)
    text += "move " + base::printable(move.job) + " from " + placed_text(move.from) + "\n  to " +
            placed_text(move.to) + "\n";
  if (!report.moves.empty()) text += "then there is room:\n";
  for (const PlaceReport::Placed& placed : report.placed) text += placed_text(placed) + "\n";
  const bool several = report.copies > 1;
  const std::string what =
      (several ? std::to_string(report.copies) + " copies of " : "") + report.request;
  if (report.decision == PlaceReport::Decision::kWait)
    text += "no room now for " + what +
            (several ? ": " + std::to_string(report.fit_now) + " would fit" : "") + "\n";
  if (report.decision == PlaceReport::Decision::kNever)
    text += what + " can never fit in this pool" +
            (several ? ": " + std::to_string(report.fit_empty) + " would, if it were empty" : "") +
            "\n";
  if (report.placed.empty() || !report.on.empty()) {
    text += "\n";
    bool any = false;
    for (std::size_t i = 0; i < core::cluster::kCauses; ++i)
      if (const std::uint32_t count = report.nodes.nodes[i]; count > 0) {
        any = true;
        text += std::to_string(count) + (count == 1 ? " node: " : " nodes: ") +
                why_on(report, static_cast<Cause>(i)) + "\n";
      }
    if (!any) text += "--where leaves no node of it\n";
  }
  if (!report.changes.empty()) {
    text += "\nwhat would fit now:\n";
    for (const core::cluster::Change& change : report.changes)
      text += "  " + simulate::words_of(change.ask) + "\n";
  }
  if (!report.on.empty()) {
    Table table({{"NODE"}, {"WHY"}});
    for (std::size_t i = 0; i < std::min(report.on.size(), kMostNodes); ++i)
      table.add({report.on[i].name, why_on(report, report.on[i].cause)});
    text += "\n" + table.text(std::nullopt) + "\n";
    if (report.on.size() > kMostNodes)
      text += "and " + std::to_string(report.on.size() - kMostNodes) + " more\n";
  }
  text.pop_back();
  return text;
}

}  // namespace mete::cli
