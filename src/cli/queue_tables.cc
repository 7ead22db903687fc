// SPDX-License-Identifier: Apache-2.0
// See queue_tables.h.
#include "cli/queue_tables.h"

#include "base/moment.h"
#include "base/text.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

std::string number_of(std::uint64_t have, const std::optional<std::uint32_t>& most) {
  return std::to_string(have) + (most ? " of " + std::to_string(*most) : "");
}

std::string bytes_of(const std::optional<Bytes>& have, const std::optional<Bytes>& most) {
  if (!have) return most ? "at most " + to_string(*most) : "";
  return to_string(*have) + (most ? " of " + to_string(*most) : "");
}

std::string limit(const std::optional<std::uint32_t>& most) {
  return most ? "at most " + std::to_string(*most) : "";
}

std::string limit(const std::optional<Bytes>& most) {
  return most ? "at most " + to_string(*most) : "";
}

}  // namespace

std::string quota_table(const wire::QuotaDocument& document, std::optional<std::size_t> width) {
  Table table({{"USER", Align::kLeft, 20},
               {"CARDS", Align::kRight},
               {"GPU MEMORY", Align::kRight},
               {"RUNNING", Align::kRight},
               {"JOBS", Align::kRight},
               {"LOGS", Align::kRight},
               {"FROM"}});
  const core::Quota& all = document.everybody;
  table.add({"everybody", limit(all.cards), limit(all.bytes), limit(all.running), limit(all.jobs),
             limit(all.disk), all == core::Quota{} ? "no limits" : "default"});
  for (const wire::QuotaDocument::User& user : document.users) {
    const core::Quota& most = user.limits;
    table.add({user.user, number_of(user.held.cards, most.cards),
               bytes_of(user.held.bytes, most.bytes), number_of(user.held.running, most.running),
               number_of(user.jobs, most.jobs), bytes_of(user.disk, most.disk),
               user.own == core::Quota{} ? "default" : "own"});
  }
  return table.text(width);
}

std::string reservation_table(const wire::ReservationsDocument& document,
                              std::optional<std::size_t> width) {
  Table table({{"ID", Align::kRight},
               {"USER", Align::kLeft, 16},
               {"FROM"},
               {"UNTIL"},
               {"CARDS"},
               {"BY", Align::kLeft, 16}});
  for (const core::Reservation& made : document.reservations) {
    std::vector<std::string> cards;
    for (const core::GrantedCard& card : made.cards)
      cards.push_back(std::to_string(card.index) + ": " +
                      (card.whole ? "whole" : to_string(card.bytes)));
    table.add({std::to_string(made.id), made.user, moment(made.from, document.at),
               moment(made.until, document.at), base::join(cards, ", "), made.by});
  }
  return table.text(width);
}

}  // namespace mete::cli
