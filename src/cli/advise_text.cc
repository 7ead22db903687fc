// SPDX-License-Identifier: Apache-2.0
// See advise_text.h.
#include "cli/advise_text.h"

#include "base/bytes.h"
#include "cli/json.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

std::uint64_t bytes_of(std::int64_t mib) { return static_cast<std::uint64_t>(mib) << 20; }

std::string share_text(std::int32_t thousandths) {
  if (thousandths == 0) return "";
  return std::to_string(thousandths / 10) +
         (thousandths % 10 != 0 ? "." + std::to_string(thousandths % 10) : "") + " %";
}

std::string cards_text(const core::cluster::NodeSpec& node) {
  return std::to_string(node.cards) + " x " + node.card_type + ", " +
         to_string(Bytes::from_mib(static_cast<std::uint64_t>(node.card_mib)));
}

}  // namespace

std::string advise_json(const AdviseReport& report, const std::string& at) {
  std::vector<std::string> list;
  for (const AdviseReport::Option& option : report.options) {
    const core::cluster::NodeSpec& node = option.node;
    JsonObject json;
    if (!report.own_cards) json.text("name", node.name);
    json.number("cards", node.cards).text("card_type", node.card_type);
    json.number("card_bytes", bytes_of(node.card_mib));
    if (!report.own_cards)
      json.number("cpus", static_cast<std::uint64_t>(node.cpu_milli / 1000))
          .number("ram_bytes", bytes_of(node.ram_mib));
    json.number("share_milli", static_cast<std::uint64_t>(option.share));
    list.push_back(json.str());
  }
  JsonObject json;
  json.text("schema", "mete.advise/1").text("at", at).text("request", report.request);
  if (!report.job.empty()) json.text("job", report.job);
  if (!report.gpu.empty()) json.text("gpu", report.gpu);
  if (!report.why.empty()) json.text("why", report.why);
  json.raw("instances", report.own_cards ? "[]" : json_array(list));
  json.raw("cards", report.own_cards ? json_array(list) : "[]");
  return json.str();
}

std::string advise_text(const AdviseReport& report) {
  std::string text;
  if (!report.job.empty())
    text += "job " + report.job + ": " +
            (report.gpu.empty() ? report.why : "--gpu " + report.gpu + ", since " + report.why) +
            "\n\n";
  text += "for " + report.request + "\n\n";
  if (report.own_cards) {
    Table table({{"CARDS"}, {"OF EACH", Align::kRight}});
    for (const AdviseReport::Option& option : report.options)
      table.add({cards_text(option.node), share_text(option.share)});
    return text + table.text(std::nullopt);
  }
  Table table({{"TYPE"},
               {"CARDS"},
               {"CPUS", Align::kRight},
               {"MEMORY", Align::kRight},
               {"OF EACH CARD", Align::kRight}});
  for (const AdviseReport::Option& option : report.options) {
    const core::cluster::NodeSpec& node = option.node;
    table.add({node.name, node.cards == 0 ? "" : cards_text(node),
               std::to_string(node.cpu_milli / 1000),
               to_string(Bytes::from_mib(static_cast<std::uint64_t>(node.ram_mib))),
               share_text(option.share)});
  }
  return text + table.text(std::nullopt);
}

}  // namespace mete::cli
