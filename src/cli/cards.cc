// SPDX-License-Identifier: Apache-2.0
// `mete cards`: the cards of this machine, what is granted on them and what is free. Starts the
// daemon: without its readings there would be nothing to show.
#include "wire/cards.h"

#include <array>

#include "cli/cards_table.h"
#include "cli/daemon_client.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kOptions{
    OptionSpec{"--no-start", "", "fail (exit code 125) rather than start a daemon"},
    kOutputOption,
};

int run_cards(const Parsed& parsed, const Output& output) {
  const bool may_start = !parsed.has("--no-start");
  Result<DaemonClient> client =
      DaemonClient::open(may_start ? DaemonClient::Start::kIfNeeded : DaemonClient::Start::kNever);
  if (!client && !may_start && nobody_listens(client.error()))
    return output.fail(Error::not_found("no daemon runs").with_hint("leave --no-start out"));
  if (!client) return output.fail(client.error());
  const Result<std::string> document = client->call("GET", "/v1/cards");
  if (!document) return output.fail(document.error());
  const Result<wire::CardsDocument> cards = wire::decode_cards(*document);
  if (!cards) return output.fail(cards.error());
  if (output.json())
    output.data(*document);
  else if (!cards->cards.empty())
    output.data(cards_table(*cards, stdout_width()));
  else if (cards->trouble.empty())
    output.say("this machine has no cards; METE_SIM=4xH200 simulates some");
  if (!output.json() && !cards->trouble.empty()) {
    output.say("warning: " + cards->trouble);
    const std::string advice = driver_advice(cards->trouble);
    output.say("hint: " + (advice.empty() ? "mete doctor looks closer" : advice));
  }
  return kExitOk;
}

}  // namespace

const Verb kCardsVerb{
    "cards",
    "list the cards, what is granted on them and what is free",
    "mete cards [--no-start] [-o json]",
    "mete cards\n"
    "mete cards -o json | jq '.cards[].grantable_bytes'\n"
    "METE_SIM=4xH200 mete cards                         # simulated cards",
    "GRANTED is reserved by jobs, USED is what NVML says is in use by anybody, GRANTABLE what a "
    "new\n"
    "job can get. JOBS are the numbers of jobs, with ! if one has the card for itself, then\n"
    "user:pid of processes outside mete. Starts a daemon if none runs.",
    kOptions,
    Rest::kNothing,
    run_cards,
};

}  // namespace mete::cli
