// SPDX-License-Identifier: Apache-2.0
// See cards_table.h.
#include "cli/cards_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/brief.h"
#include "base/text.h"
#include "base/time.h"

namespace mete::cli {

namespace {

using wire::CardView;

constexpr std::size_t kStateColumn = 2, kJobsColumn = 9;
static_assert(kCardColumns[kStateColumn].title == "STATE" &&
              kCardColumns[kJobsColumn].title == "JOBS");
constexpr double kStaleS = 5;  // then the daemon grants nothing; it reads at least once a second

std::string bytes_of(Bytes bytes) { return bytes.is_zero() ? "0" : to_string(bytes); }
std::string bytes_if(const std::optional<Bytes>& bytes) { return bytes ? bytes_of(*bytes) : ""; }

bool stale(const CardView& card) { return card.reading_age_s.value_or(0) > kStaleS; }

std::string state_of(const CardView& card) {
  if (card.state == "ok" && !card.unusable.empty()) return "unusable";
  if (card.state == "ok" && stale(card)) return "stale";
  return card.state;
}

// "alice 12,13! bob 14 carol:412": the jobs of each user, in the order of the first ones; then
// processes outside mete, then claims of other daemons.
std::string jobs_of(const CardView& card) {
  std::vector<std::pair<std::string, std::vector<std::string>>> users;
  for (const CardView::JobShare& job : card.jobs) {
    auto user = std::find_if(users.begin(), users.end(),
                             [&](const auto& known) { return known.first == job.user; });
    if (user == users.end()) user = users.insert(users.end(), {job.user, {}});
    user->second.push_back(job.id + (job.whole ? "!" : ""));
  }
  std::vector<std::string> parts;
  for (const auto& [user, jobs] : users) parts.push_back(user + " " + base::join(jobs, ","));
  for (const CardView::Foreign& other : card.foreign_list)
    parts.push_back(other.user + (other.pid ? ":" + std::to_string(*other.pid) : " (its mete)"));
  return base::join(parts, " ");
}

// "18 to 1-3": the cards that NVLinks lead to, with as many to each as is said before them.
std::string links_of(const CardView& card) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_count;
  for (const CardView::Link& link : card.links) by_count[link.count].push_back(link.to);
  std::vector<std::string> parts;
  for (const auto& [count, cards] : by_count)
    parts.push_back(std::to_string(count) + " to " + base::number_ranges(cards));
  return base::join(parts, ", ");
}

std::string note_of(const CardView& card) {
  std::vector<std::string> notes;
  if (card.state == "lost") notes.emplace_back("fell off the bus or needs a reset");
  if (card.state == "drained") notes.emplace_back("no new jobs");
  if (!card.unusable.empty()) notes.push_back(card.unusable);
  for (const CardView::JobShare& job : card.jobs) {
    std::vector<std::string> holds;
    if (!job.outside.is_zero()) holds.push_back(to_string(job.outside) + " outside its meter");
    if (!job.over.is_zero()) holds.push_back(to_string(job.over) + " beyond its grant");
    if (!holds.empty()) notes.push_back("job " + job.id + " holds " + base::join(holds, ", "));
  }
  if (stale(card))
    notes.push_back(
        "read " + base::duration_in_words(static_cast<std::int64_t>(*card.reading_age_s)) + " ago");
  return base::join(notes, "; ");
}

// In the order of kCardColumns.
using Cells = std::array<std::string, kCardColumns.size()>;
Cells cells_of(const CardView& card) {
  return {std::to_string(card.index),
          card.name,
          state_of(card),
          bytes_if(card.total),
          bytes_of(card.granted),
          bytes_if(card.used),
          bytes_of(card.grantable),
          card.utilisation_pct ? std::to_string(*card.utilisation_pct) + "%" : "",
          card.temperature_c ? std::to_string(*card.temperature_c) + " C" : "",
          jobs_of(card),
          note_of(card),
          card.type,
          card.uuid,
          bytes_if(card.capacity),
          bytes_if(card.foreign),
          card.power_w ? std::to_string(static_cast<int>(*card.power_w)) + " W" : "",
          card.numa ? std::to_string(*card.numa) : "",
          links_of(card)};
}

std::string brief_if(const std::optional<Bytes>& bytes) {
  return bytes ? base::brief(*bytes) : "?";
}

// "61°C, 96 %"
std::string heat_of(const CardView& card) {
  std::vector<std::string> parts;
  if (card.temperature_c) parts.push_back(std::to_string(*card.temperature_c) + "°C");
  if (card.utilisation_pct) parts.push_back(std::to_string(*card.utilisation_pct) + " %");
  return parts.empty() ? "?" : base::join(parts, ", ");
}

// "65.1 / 139.8 GiB"
std::string memory_of(const CardView& card) {
  return (card.used ? base::tenths_of_gib(*card.used) : "?") + " / " +
         (card.total ? base::tenths_of_gib(*card.total) : "?") + " GiB";
}

// "alice/train#12(55.9G of 55.9G) bob#14(9.2G of 14.0G, idle 3h) carol:412(3.1G)"
std::string holders_of(const CardView& card, WallTime now) {
  std::vector<std::string> holders;
  for (const CardView::JobShare& job : card.jobs) {
    std::string text = job.user;
    if (!job.name.empty()) text += "/" + job.name;
    text += "#" + job.id + "(" + brief_if(job.used) + " of " + base::brief(job.bytes);
    if (job.whole) text += ", alone";
    if (!job.outside.is_zero()) text += ", " + base::brief(job.outside) + " outside its cap";
    if (!job.over.is_zero()) text += ", " + base::brief(job.over) + " beyond its grant";
    if (job.idle_since) text += ", idle " + base::brief_duration(*job.idle_since, now);
    holders.push_back(base::printable(text + ")"));
  }
  for (const CardView::Foreign& other : card.foreign_list) {
    std::string text = other.user;
    if (other.pid) text += ":" + std::to_string(*other.pid);
    text += other.pid ? "(" + brief_if(other.used) + ")" : "(its mete)";
    holders.push_back(base::printable(text));
  }
  return holders.empty() ? "free" : base::join(holders, " ");
}

}  // namespace

std::string cards_table(const wire::CardsDocument& document, const Columns& columns,
                        std::optional<std::size_t> width) {
  std::vector<Column> all(kCardColumns.begin(), kCardColumns.end());
  // A state is worth its column where it is not the usual one.
  const bool usual = std::all_of(document.cards.begin(), document.cards.end(),
                                 [](const CardView& card) { return state_of(card) == "ok"; });
  if (usual) all[kStateColumn].rank = 4;
  Table table(std::move(all));
  table.always(kJobsColumn);
  for (const CardView& card : document.cards) {
    const Cells cells = cells_of(card);
    table.add(std::span<const std::string>(cells));
  }
  if (columns) table.choose(*columns);
  return table.text(width);
}

std::string card_line(const CardView& card, const Columns& columns, WallTime now) {
  std::vector<std::string> parts;
  if (columns) {
    const Cells cells = cells_of(card);
    for (const std::size_t column : *columns)
      parts.push_back(cells[column].empty() ? "?" : base::printable(cells[column]));
  } else {
    parts = {base::printable(card.name), heat_of(card), memory_of(card), holders_of(card, now)};
    if (const std::string note = note_of(card); !note.empty()) parts.push_back(note);
  }
  return "[" + std::to_string(card.index) + "] " + base::join(parts, " | ");
}

std::string driver_advice(std::string_view trouble, const char* sim) {
  struct Known {
    std::string_view said;  // part of what node, the loader or the daemon says, in lower case
    std::string_view helps;
  };
  static constexpr std::array<Known, 10> kKnown{{
      {"different versions",
       "reboot: the driver was updated, and its old kernel module still runs"},
      {"driver not loaded", "sudo modprobe nvidia"},
      {"no permission", "ls -l /dev/nvidia*: you need to be in the group that may use the cards"},
      {"blocked by the operating system", "give the container its devices: --gpus all"},
      {"cannot open", "install the driver, or try METE_SIM=4xH200"},
      {"library not found", "install the driver, or try METE_SIM=4xH200"},
      {"is lost", "sudo nvidia-smi --gpu-reset, or reboot"},
      {"needs a reset", "sudo nvidia-smi --gpu-reset, or reboot"},
      {"does not answer", "nvidia-smi: if it hangs too, reboot; sudo dmesg | grep -i xid says why"},
      {"hangs", "nvidia-smi: if it hangs too, reboot; sudo dmesg | grep -i xid says why"},
  }};
  const std::string lower = base::to_lower(trouble);
  if (sim != nullptr && *sim != '\0' && lower.find("driver not loaded") != std::string::npos)
    return "METE_SIM=" + std::string(sim) + " makes no cards: write it as 4xH200, with at most 32";
  for (const Known& known : kKnown)
    if (lower.find(known.said) != std::string::npos) return std::string(known.helps);
  return "";
}

}  // namespace mete::cli
