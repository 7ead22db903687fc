// SPDX-License-Identifier: Apache-2.0
// `mete where EXPR`: the nodes that match an expression of the query language. With --nodes they
// come from a file, and no daemon is needed or started; without, from this machine.
#include <algorithm>
#include <array>
#include <set>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "core/where/card_facts.h"
#include "runner/daemon_client.h"
#include "wire/cards.h"
#include "wire/nodes.h"

namespace mete::cli {

namespace {

constexpr std::array kWhereOptions{
    OptionSpec{"--nodes", "FILE",
               "the nodes, as JSON: {\"NAME\": {\"attributes\": {\"stack\": \"prod\"}, …}, …} "
               "(default: this machine)"},
    kOutputOption,
};
constexpr std::size_t kMaxFile = 64 << 20;

// This machine: each of its cards as a node with the name of the machine.
Result<std::vector<wire::NamedNode>> this_machine() {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return client.error();
  if (Result<void> r = client->check_simulated(); !r) return std::move(r).error();
  const Result<std::string> body = client->call("GET", "/v1/cards");
  if (!body) return body.error();
  const Result<wire::CardsDocument> cards = wire::decode_cards(*body);
  if (!cards) return cards.error();
  std::set<std::string> jobs;
  for (const wire::CardView& card : cards->cards)
    for (const auto& job : card.jobs) jobs.insert(job.id);
  std::vector<wire::NamedNode> nodes;
  for (const wire::CardView& card : cards->cards)
    nodes.push_back(
        {base::host_name(),
         core::facts_of(core::CardFacts{card.type, card.total.value_or(Bytes()), card.grantable},
                        cards->cards.size(), jobs.size())});
  if (nodes.empty()) nodes.push_back({base::host_name(), core::facts_of(std::nullopt, 0, 0)});
  return nodes;
}

Result<std::vector<wire::NamedNode>> nodes_of(const Parsed& parsed) {
  const std::string* path = parsed.find("--nodes");
  if (path == nullptr) return this_machine();
  const Result<std::string> text = base::read_all(*path, kMaxFile);
  if (!text) return text.error();
  Result<std::vector<wire::NamedNode>> nodes = wire::decode_nodes(*text);
  if (nodes) return nodes;
  Error error = std::move(nodes).error();
  error.message = *path + ": " + error.message;
  return error;
}

int run(const Parsed& parsed, const Output& output) {
  if (parsed.rest.size() != 1)
    return output.fail(
        Error::invalid("one expression belongs here")
            .with_evidence(std::to_string(parsed.rest.size()) + " words")
            .with_hint("put it in quotes: mete where 'attribute:gpu.memory >= 16G'"));
  const Result<core::Query> query = core::Query::parse(parsed.rest.front());
  if (!query) return output.fail(query.error());
  const Result<std::vector<wire::NamedNode>> nodes = nodes_of(parsed);
  if (!nodes)
    return parsed.has("--nodes") ? output.fail(nodes.error(), kExitBadFile)
                                 : output.fail(nodes.error());
  std::vector<std::string> match;
  for (const auto& [name, facts] : *nodes)
    if (query->matches(facts) && (match.empty() || match.back() != name)) match.push_back(name);
  if (output.json()) {
    output.data(wire::encode_where(match));
  } else if (match.empty()) {
    output.say("no node matches");
  } else {
    std::string lines;
    for (const std::string& name : match)
      lines += (lines.empty() ? "" : "\n") + base::printable(name);
    output.data(lines);
  }
  return kExitOk;
}

}  // namespace

const Verb kWhereVerb{
    "where",
    "list the nodes that match an ECS cluster query expression",
    "mete where EXPRESSION [--nodes FILE] [-o FORMAT]",
    "mete where 'attribute:gpu.memory >= 16G and attribute:gpu.type != T4'\n"
    "mete where 'attribute:stack == prod' --nodes nodes.json -o json",
    "Prints the names of the matching nodes, one on each line. With --nodes it neither needs nor "
    "starts a daemon.",
    kWhereOptions,
    Rest::kWords,
    run,
};

}  // namespace mete::cli
