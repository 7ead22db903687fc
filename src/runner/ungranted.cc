// SPDX-License-Identifier: Apache-2.0
// See ungranted.h.
#include "runner/ungranted.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/text.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"

namespace mete::runner {

namespace {

constexpr std::chrono::milliseconds kPatience{2'000};
constexpr int kBetweenMs = 100;
constexpr std::size_t kNamed = 3;

struct Held {
  Bytes bytes;
  std::string text;
};

void add_of_card(const wire::CardView& card, const std::string& own, std::vector<Held>& list) {
  const std::string where = " on card " + std::to_string(card.index);
  for (const wire::CardView::JobShare& job : card.jobs)
    if (!job.over.is_zero() && job.id != own)
      list.push_back({job.over, "job " + job.id + " of " + base::printable(job.user) + " holds " +
                                    to_string(job.over) + " beyond its grant" + where});
  for (const wire::CardView::Foreign& other : card.foreign_list)
    if (other.pid && other.used && !other.used->is_zero())
      list.push_back({*other.used, "process " + std::to_string(*other.pid) + " of " +
                                       base::printable(other.user) + ", outside mete, holds " +
                                       to_string(*other.used) + where});
}

// Whether all these cards were read within the last `seconds`.
bool read_within(const wire::CardsDocument& document, std::span<const std::string> uuids,
                 double seconds) {
  return std::none_of(document.cards.begin(), document.cards.end(), [&](const auto& card) {
    return std::find(uuids.begin(), uuids.end(), card.uuid) != uuids.end() &&
           card.reading_age_s.value_or(seconds) >= seconds;
  });
}

}  // namespace

std::string ungranted_on(const wire::CardsDocument& document, std::span<const std::string> uuids,
                         const std::string& own) {
  std::vector<Held> list;
  for (const wire::CardView& card : document.cards)
    if (std::find(uuids.begin(), uuids.end(), card.uuid) != uuids.end())
      add_of_card(card, own, list);
  std::stable_sort(list.begin(), list.end(),
                   [](const Held& a, const Held& b) { return a.bytes > b.bytes; });
  std::vector<std::string> texts;
  for (const Held& held : list)
    if (texts.size() < kNamed) texts.push_back(held.text);
  if (list.size() > kNamed)
    texts.push_back("and " + std::to_string(list.size() - kNamed) + " more");
  return base::join(texts, ", ");
}

std::vector<std::string> uuids_of(const JobPlan& plan) {
  std::vector<std::string> uuids;
  for (const core::CardShare& share : plan.cards) uuids.push_back(share.card.uuid);
  return uuids;
}

std::string who_holds_ungranted(const DaemonAt& where, std::span<const std::string> uuids,
                                const std::string& own) {
  seam::Clock& clock = seam::system_clock();
  const seam::Nanoseconds began = clock.monotonic();
  for (;;) {
    Result<DaemonClient> client = DaemonClient::open_again(where, DaemonClient::Start::kNever);
    if (!client) return "";
    const Result<std::string> body =
        client->call("GET", "/v1/cards", {}, {std::chrono::milliseconds(kPatience), -1});
    if (!body) return "";
    const Result<wire::CardsDocument> document = wire::decode_cards(*body);
    if (!document) return "";
    if (std::string text = ungranted_on(*document, uuids, own); !text.empty()) return text;
    const seam::Nanoseconds since = clock.monotonic() - began;
    if (read_within(*document, uuids, std::chrono::duration<double>(since).count()) ||
        since > kPatience)
      return "";
    (void)poll(nullptr, 0, kBetweenMs);  // until the cards are read again
  }
}

}  // namespace mete::runner
