// SPDX-License-Identifier: Apache-2.0
// `mete drain CARD...` and `mete undrain CARD...`: whether new jobs may start on a card. Running
// jobs continue.
#include <array>

#include "base/text.h"
#include "cli/named_jobs.h"
#include "cli/verbs.h"
#include "net/http.h"
#include "runner/daemon_client.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

constexpr std::array kDrainOptions{kOutputOption};

// The card that the daemon has just found by this word: by number, or by a prefix of its UUID.
const wire::CardView* find(const wire::CardsDocument& document, const std::string& word) {
  for (const wire::CardView& card : document.cards)
    if (std::to_string(card.index) == word || card.uuid.starts_with(word)) return &card;
  return nullptr;
}

std::string said(const wire::CardsDocument& document, const std::string& word, bool drain) {
  const wire::CardView* card = find(document, word);
  const std::string name = "card " + (card != nullptr ? std::to_string(card->index) : word);
  if (!drain) return name + " takes jobs again";
  const std::size_t jobs = card != nullptr ? card->jobs.size() : 0;
  if (jobs == 0) return name + " is drained: no job runs there";
  return name + " is drained: no new job starts there, " + std::to_string(jobs) +
         (jobs == 1 ? " runs on" : " run on");
}

int change_cards(const Parsed& parsed, const Output& output, bool drain) {
  const std::string verb = drain ? "drain" : "undrain";
  if (parsed.rest.empty())
    return output.fail(Error::invalid("which card is not said")
                           .with_hint("mete " + verb + " 0; mete cards lists them"));
  // The drained state outlives the daemon: one is started if none runs.
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  std::string last;
  for (const std::string& word : parsed.rest) {
    const Result<std::string> body =
        client->call("POST", "/v1/cards/" + net::percent_encode(word) + "/" + verb);
    const Result<wire::CardsDocument> cards = body ? wire::decode_cards(*body) : body.error();
    if (!cards) {
      failures.add(cards.error());
      if (client->silent()) break;  // each of the others would wait as long
      continue;
    }
    last = *body;
    if (!output.json()) output.say(said(*cards, word, drain));
  }
  if (output.json() && !last.empty()) output.data(last);
  return failures.exit_code();
}

int run_drain(const Parsed& parsed, const Output& output) {
  return change_cards(parsed, output, true);
}

int run_undrain(const Parsed& parsed, const Output& output) {
  return change_cards(parsed, output, false);
}

}  // namespace

const Verb kDrainVerb{
    "drain",
    "keep new jobs off a card",
    "mete drain CARD... [-o json]",
    "mete drain 0\n"
    "mete drain GPU-5d7c         # by the beginning of its UUID\n"
    "mete undrain 0",
    "Use it before maintenance. Running jobs continue; jobs that need this card wait until it is "
    "undrained. The card stays drained across restarts of the daemon. Only administrators may "
    "drain a card.",
    kDrainOptions,
    Rest::kWords,
    run_drain,
};

const Verb kUndrainVerb{
    "undrain",
    "allow new jobs on a drained card",
    "mete undrain CARD... [-o json]",
    "mete undrain 0",
    "Only administrators may undrain a card.",
    kDrainOptions,
    Rest::kWords,
    run_undrain,
};

}  // namespace mete::cli
