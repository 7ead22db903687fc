// SPDX-License-Identifier: Apache-2.0
// `mete cards`: the cards of this machine, what is granted on them and what is free. Starts the
// daemon: without its readings there would be nothing to show.
#include "wire/cards.h"

#include <array>
#include <cstdlib>

#include "base/text.h"
#include "cli/cards_table.h"
#include "cli/table.h"
#include "cli/topology.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "runner/daemon_client.h"

namespace mete::cli {

namespace {

constexpr std::array kCardsOptions{
    OptionSpec{"--one-line", "", "print one line for each card, to paste into a chat", "-1"},
    OptionSpec{"--columns", "NAMES",
               "print only these columns, separated by commas: card,used,jobs,power,links"},
    OptionSpec{"--topology", "", "show the NVLinks between cards, and their NUMA nodes"},
    kWatchOption,
    OptionSpec{"--no-start", "", "fail with exit code 125 instead of starting a daemon"},
    kOutputOption,
};

Result<Columns> parse_words(const Parsed& parsed) {
  const std::string* names = parsed.find("--columns");
  if (parsed.has("--topology") && (names != nullptr || parsed.has("--one-line")))
    return Error::invalid("--topology is a table of its own")
        .with_hint("leave --columns and -1 out");
  if (names == nullptr) return Columns();
  Result<std::vector<std::size_t>> columns = parse_columns(*names, kCardColumns);
  if (!columns) return std::move(columns).error();
  return Columns(*std::move(columns));
}

std::string text_of(const wire::CardsDocument& cards, const Parsed& parsed,
                    const Columns& columns) {
  if (parsed.has("--topology")) return topology_table(cards, stdout_width());
  if (parsed.has("--one-line")) {
    std::vector<std::string> lines;
    for (const wire::CardView& card : cards.cards)
      lines.push_back(card_line(card, columns, cards.at));
    return base::join(lines, "\n");
  }
  const std::string table = cards_table(cards, columns, stdout_width());
  const std::string links = columns ? "" : topology_lines(cards);
  return links.empty() ? table : table + "\n\n" + links;
}

int print_cards(const Parsed& parsed, const Output& output) {
  const Result<Columns> columns = parse_words(parsed);
  if (!columns) return output.fail(columns.error());
  const bool may_start = !parsed.has("--no-start");
  Result<runner::DaemonClient> client = runner::DaemonClient::open(
      may_start ? runner::DaemonClient::Start::kIfNeeded : runner::DaemonClient::Start::kNever);
  if (!client && !may_start && runner::nobody_listens(client.error()))
    return output.fail(Error::io("no daemon runs").with_hint("leave --no-start out"));
  if (!client) return output.fail(client.error());
  if (const Result<void> r = client->check_simulated(); !r) return output.fail(r.error());
  const Result<std::string> document = client->call("GET", "/v1/cards");
  if (!document) return output.fail(document.error());
  const Result<wire::CardsDocument> cards = wire::decode_cards(*document);
  if (!cards) return output.fail(cards.error());
  if (output.json())
    output.data(*document);
  else if (!cards->cards.empty())
    output.data(text_of(*cards, parsed, *columns));
  else if (cards->trouble.empty())
    output.say("this machine has no cards; METE_SIM=4xH200 simulates some");
  if (!output.json() && !cards->trouble.empty()) {
    output.say("warning: " + cards->trouble);
    const std::string advice = driver_advice(cards->trouble, std::getenv("METE_SIM"));
    output.say("hint: " + (advice.empty() ? "mete doctor looks closer" : advice));
  }
  return kExitOk;
}

int run_cards(const Parsed& parsed, const Output& output) {
  if (const Result<Columns> columns = parse_words(parsed); !columns)
    return output.fail(columns.error());
  return run_or_watch(parsed, output, print_cards);
}

}  // namespace

const Verb kCardsVerb{
    "cards",
    "list the cards, their granted memory and their free memory",
    "mete cards [-1] [--columns NAMES] [--topology] [--watch[=SECONDS]]\n"
    "           [-o json]",
    "mete cards\n"
    "mete cards -1                        # to paste into a chat\n"
    "mete cards --watch\n"
    "mete cards -o json | jq '.cards[].grantable_bytes'\n"
    "METE_SIM=4xH200 mete cards           # simulated cards",
    "GRANTED is reserved by jobs, USED is all memory in use according to NVML, GRANTABLE is what a "
    "new job can get. JOBS lists users with their job numbers, with ! for a job that has the whole "
    "card, and user:pid for processes outside mete. Starts a daemon if none runs.",
    kCardsOptions,
    Rest::kNothing,
    run_cards,
};

}  // namespace mete::cli
