// SPDX-License-Identifier: Apache-2.0
// See explain_text.h.
#include "cli/explain_text.h"

#include <algorithm>
#include <vector>

#include "base/moment.h"
#include "base/text.h"
#include "cli/table.h"
#include "wire/job_text.h"

namespace mete::cli {

namespace {

using wire::ExplainDocument;

// "1st", "2nd", "3rd", "11th"
std::string ordinal(std::uint64_t number) {
  const bool teen = number % 100 / 10 == 1;
  const char* ending = teen               ? "th"
                       : number % 10 == 1 ? "st"
                       : number % 10 == 2 ? "nd"
                       : number % 10 == 3 ? "rd"
                                          : "th";
  return std::to_string(number) + ending;
}

// "waiting 12 min · 3rd of 7 in the queue · starts about 14:05, 80% sure by 14:30"
std::string first_line(const ExplainDocument& document) {
  std::vector<std::string> parts;
  if (document.waiting_s)
    parts.push_back("waiting " +
                    base::duration_in_words(static_cast<std::int64_t>(*document.waiting_s)));
  if (document.reason) parts.emplace_back(to_string(*document.reason));
  if (document.place) {
    std::string place = ordinal(*document.place);
    if (document.in_line) place += " of " + std::to_string(*document.in_line);
    parts.push_back(place + " in the queue");
  }
  if (document.forecast)
    parts.push_back("starts about " + wire::forecast_text(*document.forecast, document.at));
  else if (document.state == core::JobState::kPending)
    parts.emplace_back("no forecast of its start");
  return base::join(parts, " · ");
}

// "alice's job 12 with 55.9 GiB (ends about 14:05 by its time limit)"
std::string holder_text(const ExplainDocument::Holder& holder, WallTime now) {
  std::string text = printable(holder.user) + "'s job " + to_string(holder.id) + " with " +
                     to_string(holder.bytes);
  std::vector<std::string> more;
  if (holder.ends_at) {
    const std::string when = moment(*holder.ends_at, now);
    more.push_back(holder.by == "limit" ? "ends by " + when : "ends about " + when);
  }
  if (holder.idle_since)
    more.push_back("idle for " + base::duration_in_words(std::max<std::int64_t>(
                                     0, (now.ms - holder.idle_since->ms) / 1000)));
  return more.empty() ? text : text + " (" + base::join(more, ", ") + ")";
}

std::string outside_text(const ExplainDocument::Outside& outside) {
  return printable(outside.who) + " holds " + to_string(outside.bytes) +
         (outside.job ? " beyond its grant" : "");
}

std::string card_line(const ExplainDocument::Card& card, WallTime now) {
  const std::string name = "  card " + std::to_string(card.index) + "  ";
  // The job does not ask for this card: who is there does not matter.
  if (!card.needs && !card.text.empty()) return name + printable(card.text);
  std::vector<std::string> parts;
  if (card.state != "ok") parts.push_back(card.state);
  if (card.needs && card.free && card.state == "ok")
    parts.push_back("needs " + to_string(*card.needs) + ", " + to_string(*card.free) + " free");
  if (!card.holders.empty()) {
    std::vector<std::string> holders;
    for (const ExplainDocument::Holder& holder : card.holders)
      holders.push_back(holder_text(holder, now));
    parts.push_back("held by " + base::join(holders, ", "));
  }
  for (const ExplainDocument::Outside& outside : card.outside)
    parts.push_back(outside_text(outside));
  for (const ExplainDocument::Reserved& reserved : card.reserved)
    parts.push_back(to_string(reserved.bytes) + " reserved for " + printable(reserved.user) +
                    " until " + moment(reserved.until, now));
  // Where values say nothing, the daemon's own words do.
  if (parts.empty() && !card.text.empty()) parts.push_back(printable(card.text));
  return name + base::join(parts, "; ");
}

// "with --gpu 40% (instead of 80%)", "if job 2 of root ended"
std::string change_text(const ExplainDocument::Change& change) {
  if (change.argument.empty())
    return (change.kind.starts_with("job-") ? "if " : "with ") + change.text;
  return "with " + change.argument + (change.text.empty() ? "" : " (" + change.text + ")");
}

// A document of an older daemon has a text, and no data to make one of.
std::string about(const ExplainDocument& document, wire::Cards cards) {
  const std::string text = wire::explained_text(document, document.at, cards);
  return text.empty() ? document.text : text;
}

// Of one that waits, all but its name.
std::string waits_text(const ExplainDocument& document) {
  std::string text = first_line(document);
  // What is said of each card is on the card's own line.
  const wire::Cards named = document.cards.empty() ? wire::Cards::kNamed : wire::Cards::kLeftOut;
  const std::string why = document.wait && document.wait->release
                              ? wire::waits_for(*document.wait, document.at)
                              : about(document, named);
  if (!why.empty()) text += "\n  " + printable(why);
  for (const ExplainDocument::Card& card : document.cards)
    text += "\n" + card_line(card, document.at);
  for (std::size_t i = 0; i < document.changes.size(); ++i) {
    const ExplainDocument::Change& change = document.changes[i];
    text += i == 0 ? "\n  would start now  " : "\n               or  ";
    text += printable(change_text(change));
    // Of a job that is there already it can be said afterwards.
    if (change.kind == "priority" && document.id.number != 0)
      text += ": mete priority " + to_string(document.id) +
              change.argument.substr(change.argument.rfind(' '));
  }
  return text;
}

// "job 12", "job 12 of alice (40% → 32 GiB, card 0)", "job 13 of alice (--gpu 8G)"
std::string subject(const ExplainDocument& document) {
  const std::string name = "job " + to_string(document.id);
  if (document.user.empty()) return name;
  core::Job job;
  job.gpu = document.request;
  job.grant = document.grant;
  std::string share = (job.grant.empty() && job.gpu ? "--gpu " : "") + wire::gpu_text(job);
  if (!job.grant.empty())
    share += (job.grant.size() == 1 ? ", card " : ", cards ") + wire::cards_text(job);
  return name + " of " + printable(document.user) + (share.empty() ? "" : " (" + share + ")");
}

}  // namespace

std::string explain_text(const ExplainDocument& document) {
  if (document.state != core::JobState::kPending) {
    const std::string text = about(document, wire::Cards::kNamed);
    return subject(document) + " is " + std::string(to_string(document.state)) +
           (text.empty() ? "" : ": " + printable(text));
  }
  return subject(document) + ": " + waits_text(document);
}

// "would start now on card 0 with 56.4 GiB"
std::string dry_run_text(const wire::DryRunDocument& document) {
  if (!document.starts) {
    std::vector<std::string> names;
    for (const core::JobId id : document.parked) names.push_back(to_string(id));
    return "would wait: " + waits_text(document.why) +
           (names.empty()
                ? ""
                : "\n  would be parked for it: " +
                      std::string(names.size() == 1 ? "job " : "jobs ") + base::join(names, ", "));
  }
  std::vector<std::string> cards;
  for (const core::GrantedCard& card : document.grant)
    cards.push_back("card " + std::to_string(card.index) + " with " + to_string(card.bytes) +
                    (card.whole ? ", whole" : ""));
  return "would start now " + (cards.empty() ? "without a card" : "on " + base::join(cards, ", "));
}

}  // namespace mete::cli
