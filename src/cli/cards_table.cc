// SPDX-License-Identifier: Apache-2.0
// See cards_table.h.
#include "cli/cards_table.h"

#include <array>

#include "base/text.h"
#include "base/time.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

using wire::CardView;

constexpr double kStaleS = 5;  // then the daemon grants nothing; it reads at least once a second

std::string bytes_if(const std::optional<Bytes>& bytes) { return bytes ? to_string(*bytes) : ""; }

bool stale(const CardView& card) { return card.reading_age_s.value_or(0) > kStaleS; }

std::string state_of(const CardView& card) {
  if (card.state == "ok" && !card.unusable.empty()) return "unusable";
  if (card.state == "ok" && stale(card)) return "stale";
  return card.state;
}

// "12,13 alice:412 bob": our jobs, then processes of others, then other daemons' claims.
std::string jobs_of(const CardView& card) {
  std::vector<std::string> jobs;
  for (const CardView::JobShare& job : card.jobs) jobs.push_back(job.id + (job.whole ? "!" : ""));
  std::vector<std::string> parts;
  if (!jobs.empty()) parts.push_back(base::join(jobs, ","));
  for (const CardView::Foreign& other : card.foreign_list)
    parts.push_back(other.user + (other.pid ? ":" + std::to_string(*other.pid) : " (its mete)"));
  return base::join(parts, " ");
}

std::string note_of(const CardView& card) {
  std::vector<std::string> notes;
  if (card.state == "lost") notes.emplace_back("fell off the bus or needs a reset");
  if (card.state == "drained") notes.emplace_back("no new jobs");
  if (!card.unusable.empty()) notes.push_back(card.unusable);
  for (const CardView::JobShare& job : card.jobs)
    if (!job.outside.is_zero())
      notes.push_back("job " + job.id + " holds " + to_string(job.outside) + " outside its meter");
  if (stale(card))
    notes.push_back(
        "read " + base::duration_in_words(static_cast<std::int64_t>(*card.reading_age_s)) + " ago");
  return base::join(notes, "; ");
}

}  // namespace

std::string cards_table(const wire::CardsDocument& document, std::optional<std::size_t> width) {
  Table table({{"CARD", Align::kRight},
               {"NAME", Align::kLeft, 28},
               {"STATE"},
               {"TOTAL", Align::kRight},
               {"GRANTED", Align::kRight},
               {"USED", Align::kRight},
               {"GRANTABLE", Align::kRight},
               {"UTIL", Align::kRight},
               {"TEMP", Align::kRight},
               {"JOBS"},
               {"NOTE"}});
  for (const CardView& card : document.cards) {
    table.add({std::to_string(card.index), card.name, state_of(card), bytes_if(card.total),
               to_string(card.granted), bytes_if(card.used), to_string(card.grantable),
               card.utilisation_pct ? std::to_string(*card.utilisation_pct) + "%" : "",
               card.temperature_c ? std::to_string(*card.temperature_c) + " C" : "", jobs_of(card),
               note_of(card)});
  }
  return table.text(width);
}

std::string driver_advice(std::string_view trouble) {
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
  for (const Known& known : kKnown)
    if (lower.find(known.said) != std::string::npos) return std::string(known.helps);
  return "";
}

}  // namespace mete::cli
