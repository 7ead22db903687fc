// SPDX-License-Identifier: Apache-2.0
// See plain.h.
#include "top/plain.h"

#include "base/brief.h"
#include "base/moment.h"
#include "base/text.h"
#include "base/time.h"
#include "top/rows.h"
#include "wire/job_text.h"

namespace mete::top {

namespace {

using wire::CardView;
using Kind = Row::Kind;

// One thing: its name, the part whose change is worth a new sentence, and the whole text.
struct Sentence {
  std::string key;
  std::string name;
  std::string about;
  std::string words;
};

// In tenths of the whole; "?" if one of them is unknown.
std::string tenths(const std::optional<Bytes>& part, const std::optional<Bytes>& whole) {
  if (!part || !whole || whole->is_zero()) return "?";
  return std::to_string(part->checked_scale(10, whole->count()).value_or(Bytes()).count());
}

std::string gib(const std::optional<Bytes>& bytes) {
  return bytes ? base::tenths_of_gib(*bytes) : "an unknown number";
}

Sentence about_card(const CardView& card) {
  Sentence said;
  said.key = "card " + std::to_string(card.index);
  said.name = "Card " + std::to_string(card.index) + ", " + card.name;
  std::vector<std::string> parts;
  if (card.state != "ok") parts.push_back(card.state);
  if (!card.unusable.empty()) parts.push_back("unusable: " + card.unusable);
  said.about = base::join(parts, " ") + " " + tenths(card.used, card.total);
  if (card.utilisation_pct) parts.push_back(std::to_string(*card.utilisation_pct) + " % busy");
  if (card.temperature_c) parts.push_back(std::to_string(*card.temperature_c) + " °C");
  parts.push_back(gib(card.used) + " of " + gib(card.total) + " GiB used");
  parts.push_back(base::tenths_of_gib(card.grantable) + " GiB free for jobs");
  said.words = base::join(parts, ", ");
  return said;
}

std::string job_words(const Row& row, WallTime now) {
  std::vector<std::string> parts{state_of(row)};
  if (!row.waits && !row.cards.empty())
    parts.push_back((row.cards.size() == 1 ? "card " : "cards ") + base::number_ranges(row.cards));
  if (row.granted)
    parts.push_back("uses " + gib(row.used) + " of " + base::tenths_of_gib(*row.granted) + " GiB");
  if (row.utilisation_pct) parts.push_back(std::to_string(*row.utilisation_pct) + " % busy");
  if (const std::optional<WallTime> idle = idle_since(row); idle)
    parts.push_back("idle for " + base::duration_in_words((now.ms - idle->ms) / 1000));
  if (const std::optional<std::int64_t> seconds = seconds_of(row, now); seconds)
    parts.push_back("for " + base::duration_in_words(*seconds));
  if (row.job != nullptr) {
    if (const std::string why = wire::reason_text(row.job->view, now); !why.empty())
      parts.push_back(why);
    if (row.waits && row.job->view.forecast)
      parts.push_back("starts about " + base::moment(row.job->view.forecast->at, now));
  }
  return base::join(parts, ", ");
}

Sentence about_row(const Row& row, WallTime now) {
  Sentence said;
  said.key = row.key;
  const std::string id = row.job != nullptr     ? "Job " + to_string(row.job->view.job.id)
                         : row.share != nullptr ? "Job " + row.share->id
                         : row.foreign->pid     ? "Process " + std::to_string(*row.foreign->pid)
                                                : "A daemon";
  said.name = id;
  if (!name_of(row).empty()) said.name += ", " + name_of(row);
  said.name += " of " + user_of(row);
  said.about = state_of(row) + " " + tenths(row.used, row.granted) +
               (idle_since(row) ? " idle " : " ") + base::number_ranges(row.cards);
  if (row.job != nullptr && row.job->view.wait) said.about += to_string(row.job->view.wait->reason);
  said.words = job_words(row, now);
  return said;
}

std::vector<Sentence> all_of(const Scene& scene) {
  std::vector<Sentence> sentences;
  const std::string& trouble =
      scene.setting.trouble.empty() ? scene.snapshot.trouble : scene.setting.trouble;
  if (!trouble.empty())
    sentences.push_back(
        {"trouble", "Trouble", scene.setting.trouble.empty() ? trouble : "daemon", trouble});
  for (const CardView& card : scene.snapshot.cards) sentences.push_back(about_card(card));
  for (const Row& row : rows_of(scene.snapshot, {}))
    if (row.kind != Kind::kSection) sentences.push_back(about_row(row, scene.snapshot.at));
  return sentences;
}

}  // namespace

std::vector<std::string> Announcer::next(const Scene& scene) {
  std::vector<std::string> lines;
  std::map<std::string, Said> now;
  const auto say = [&lines](const std::string& text) { lines.push_back(base::printable(text)); };
  for (const Sentence& sentence : all_of(scene)) {
    const auto before = said_.find(sentence.key);
    if (before == said_.end() || before->second.about != sentence.about)
      say(sentence.name + ": " + sentence.words + ".");
    now[sentence.key] = {sentence.about, sentence.name};
  }
  for (const auto& [key, said] : said_)
    if (!now.contains(key)) say(said.name + (key == "trouble" ? ": over." : ": gone."));
  if (first_ && scene.snapshot.jobs.empty()) say("No job waits or runs.");
  first_ = false;
  said_ = std::move(now);
  return lines;
}

}  // namespace mete::top
