// SPDX-License-Identifier: Apache-2.0
// See demo_story.h. tell() finds a free card and plays four acts: two programs share a card, a
// third exceeds its share, one has to wait, and all leave. Each act starts players through Stage,
// waits for their lines "NAME: WORD key=value", and compares those facts and the daemon's job list
// with what must be true.
#include "cli/demo_story.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace mete::cli {

namespace {

constexpr unsigned kModestBlocks = 4;
constexpr Bytes kBlock = Bytes::from_mib(256);  // src/demo/program.c
constexpr std::string_view kAway = "starting a daemon of its own";

// The player's last line "NAME: WORD ..."; "": there is none.
std::string_view last_line(const Actor& actor, std::string_view name, std::string_view word) {
  const std::string begin = std::string(name) + ": " + std::string(word) + " ";
  for (auto line = actor.lines.rbegin(); line != actor.lines.rend(); ++line)
    if (line->starts_with(begin)) return *line;
  return "";
}

// "value" of " key=value" in a player's line.
std::string_view fact(std::string_view line, std::string_view key) {
  for (const std::string_view word : base::split(line, ' '))
    if (word.starts_with(key) && word.substr(key.size()).starts_with("="))
      return word.substr(key.size() + 1);
  return "";
}

Bytes bytes_fact(std::string_view line, std::string_view key) {
  const Result<std::uint64_t> number = base::parse_uint(fact(line, key));
  return number ? Bytes::from_bytes(*number) : Bytes();
}

std::string last_of(const std::vector<std::string>& lines) {
  return lines.empty() ? "nothing was said" : lines.back();
}

// The job of a player: its name is the program's first argument.
const wire::JobView* find_job(const std::vector<wire::JobView>& jobs, std::string_view name) {
  for (const wire::JobView& view : jobs)
    if (view.job.spec->command.size() > 1 && view.job.spec->command[1] == name) return &view;
  return nullptr;
}

const core::GrantedCard* first_card(const wire::JobView* view) {
  return view == nullptr || view->job.grant.empty() ? nullptr : &view->job.grant.front();
}

std::string number_of(const core::GrantedCard* card) {
  return card == nullptr ? "no card" : "card " + std::to_string(card->index);
}

// Empty and ungranted: the demo needs nearly the whole card.
bool is_free(const wire::CardView& card) {
  return card.state == "ok" && card.unusable.empty() && card.capacity && card.jobs.empty() &&
         card.foreign_list.empty() && card.granted.is_zero() &&
         card.grantable >= card.capacity->checked_scale(95, 100).value_or(Bytes());
}

}  // namespace

Result<void> DemoStory::tell() {
  if (Result<void> r = look_at_cards(); !r) return r;
  if (Result<void> r = share_a_card(); !r) return r;
  if (Result<void> r = be_greedy(); !r) return r;
  if (Result<void> r = wait_for_a_card(); !r) return r;
  return leave();
}

Result<void> DemoStory::look_at_cards() {
  const Result<std::string> text = stage_.ask(kAway, {"cards", "-o", "json"});
  if (!text) return text.error();
  Result<wire::CardsDocument> document = wire::decode_cards(*text);
  if (!document) return std::move(document).error();
  cards_ = std::move(document->cards);
  if (cards_.empty())
    return Error::io("the demo's daemon sees no cards")
        .with_evidence(document->trouble)
        .with_hint("mete doctor looks for what is wrong; mete demo --sim needs no GPU");
  const auto free = std::find_if(cards_.begin(), cards_.end(), is_free);
  if (free == cards_.end())
    return Error::exhausted("no card is free for the demo")
        .with_evidence("it needs one that nobody uses, for some seconds; mete cards shows them")
        .with_hint("mete demo --sim shows the same on simulated cards");
  card_ = *free;
  if (simulated_)
    report_.intro(std::to_string(cards_.size()) + " simulated cards (" + card_.name + ", " +
                  to_string(*card_.capacity) + " each), all in " + stage_.folder() +
                  "; no GPU is used.");
  else
    report_.intro("Card " + std::to_string(card_.index) + " of this machine (" + card_.name + ", " +
                  to_string(*card_.capacity) + "), for some seconds.");
  report_.intro(
      "The programs are ordinary CUDA programs. They know nothing of mete, nor of each other.");
  return {};
}

// On real cards everything stays on the card that was found free; on simulated cards mete chooses.
Result<DemoStory::Player> DemoStory::enter(const std::string& name, const std::string& share,
                                           unsigned blocks, bool listens) {
  std::vector<std::string> words{"run", "--gpu", share};
  if (!simulated_) words.insert(words.end(), {"--devices", std::to_string(card_.index)});
  words.insert(words.end(), {"--", "mete-demo-program", name, std::to_string(blocks)});
  report_.command("mete " + base::join(words, " "));
  *(words.end() - 3) = program_;
  const Result<Actor*> actor = stage_.start(words, listens);
  if (!actor) return actor.error();
  return Player{name, *actor};
}

// Also ends when the player does: a program that fails never prints the line.
Result<void> DemoStory::wait_for_line(const Player& player, std::string_view word,
                                      std::size_t times) {
  const std::string begin = player.name + ": " + std::string(word) + " ";
  const auto said = [&] {
    return std::count_if(player.actor->lines.begin(), player.actor->lines.end(),
                         [&](const std::string& line) { return line.starts_with(begin); }) >=
           static_cast<std::ptrdiff_t>(times);
  };
  if (Result<void> r = stage_.wait("waiting for " + player.name,
                                   [&] { return said() || player.actor->ended(); });
      !r)
    return r;
  if (said()) return {};
  return Error::io("the program " + player.name + " failed")
      .with_evidence(base::join(player.actor->talk, "\n"))
      .with_hint("mete doctor looks for what is wrong on this machine");
}

Result<std::vector<wire::JobView>> DemoStory::jobs() {
  const Result<std::string> text = stage_.ask("asking mete ps", {"ps", "-a", "-o", "json"});
  if (!text) return text.error();
  return wire::decode_ps(*text);
}

// ---- 1: two programs share a card ----

Result<void> DemoStory::share_a_card() {
  const std::size_t others = cards_.size() - 1;
  const bool with_big = simulated_ && others > 0;
  report_.step(std::string(with_big ? "Two programs share a card, a third is on the others."
                                    : "Two programs share a card.") +
               " Look at the size that each sees.");
  struct Entry {
    Player& player;
    const char* name;
    std::string share;
  };
  std::vector<Entry> entries;
  if (with_big) entries.push_back({big_, "big", std::to_string(others) + "x75%"});
  entries.push_back({anna_, "anna", "40%"});
  entries.push_back({bert_, "bert", "40%"});
  for (const Entry& entry : entries) {
    Result<Player> player = enter(entry.name, entry.share, kModestBlocks, true);
    if (!player) return std::move(player).error();
    entry.player = *std::move(player);
    if (Result<void> r = wait_for_line(entry.player, "holds", 1); !r) return r;
  }
  const Result<std::vector<wire::JobView>> now = jobs();
  if (!now) return now.error();
  check_sizes(*now);
  return {};
}

void DemoStory::check_sizes(const std::vector<wire::JobView>& jobs) {
  const core::GrantedCard* anna = first_card(find_job(jobs, anna_.name));
  const core::GrantedCard* bert = first_card(find_job(jobs, bert_.name));
  const bool together = anna != nullptr && bert != nullptr && anna->uuid == bert->uuid;
  report_.check(together, "anna and bert are both on " + number_of(anna),
                "anna on " + number_of(anna) + ", bert on " + number_of(bert));
  const Bytes seen_by_anna = bytes_fact(last_line(*anna_.actor, "anna", "sees"), "total_bytes");
  const Bytes seen_by_bert = bytes_fact(last_line(*bert_.actor, "bert", "sees"), "total_bytes");
  report_.check(together && seen_by_anna == anna->bytes && seen_by_bert == bert->bytes,
                "cuMemGetInfo shows each a card of its share: " +
                    (anna ? to_string(anna->bytes) : "?") + " of the " + to_string(*card_.capacity),
                "anna sees " + to_string(seen_by_anna) + ", bert " + to_string(seen_by_bert));
}

// ---- 2: one asks for too much ----

Result<void> DemoStory::be_greedy() {
  const Bytes share = card_.capacity->checked_scale(15, 100).value_or(Bytes());
  // Twice its share: it stops there even if the cap does not hold.
  const auto blocks = static_cast<unsigned>(share.count() * 2 / kBlock.count());
  report_.step("A greedy one beside them may have 15% and wants " + to_string(kBlock * blocks) +
               ". Look at who is refused.");
  const Result<Player> greedy = enter("greedy", "15%", blocks, false);
  if (!greedy) return greedy.error();
  if (Result<void> r = stage_.wait("waiting for greedy", [&] { return greedy->actor->ended(); });
      !r)
    return r;
  const Result<std::vector<wire::JobView>> now = jobs();
  if (!now) return now.error();
  const core::GrantedCard* granted = first_card(find_job(*now, "greedy"));
  if (granted == nullptr)
    return Error::io("greedy did not run").with_evidence(base::join(greedy->actor->talk, "\n"));
  check_refusal(*greedy, granted->bytes);
  return check_neighbours();
}

void DemoStory::check_refusal(const Player& greedy, Bytes share) {
  const std::vector<std::string>& talk = greedy.actor->talk;
  const auto hint = std::find_if(talk.begin(), talk.end(), [](const std::string& line) {
    return line.starts_with("mete: hint: ");
  });
  if (hint != talk.end()) report_.quote(*hint);
  const std::string_view refused = last_line(*greedy.actor, "greedy", "refused");
  const Bytes held = bytes_fact(refused, "held_bytes");
  const bool at_its_cap = fact(refused, "error") == "CUDA_ERROR_OUT_OF_MEMORY" && held <= share &&
                          bytes_fact(refused, "free_bytes") < kBlock;
  report_.check(at_its_cap,
                "greedy is refused at its cap of " + to_string(share) +
                    ": CUDA_ERROR_OUT_OF_MEMORY" +
                    (at_its_cap ? " (it got " + to_string(held) + ")" : ""),
                last_of(greedy.actor->lines));
  report_.check(hint != talk.end(), "mete run tells its user why", last_of(talk));
}

Result<void> DemoStory::check_neighbours() {
  bool fine = true;
  std::string seen;
  for (const Player& player : {anna_, bert_}) {
    stage_.nudge(*player.actor);
    if (Result<void> r = wait_for_line(player, "holds", 2); !r) {
      if (stage_.signal() != 0) return r;
      fine = false;
    }
    const std::string_view line = last_line(*player.actor, player.name, "holds");
    fine = fine && fact(line, "intact") == "1" &&
           bytes_fact(line, "held_bytes") == kBlock * (kModestBlocks + 1);
    seen += (seen.empty() ? "" : "; ") + last_of(player.actor->lines);
  }
  report_.check(fine, "anna and bert go on: each takes another block, and their bytes are intact",
                seen);
  return {};
}

// ---- 3: one has to wait ----

Result<void> DemoStory::wait_for_a_card() {
  report_.step(big_.actor != nullptr
                   ? "One wants a whole card, and somebody is on each. Look at what it is told."
                   : "One wants the whole card, and others are on it. Look at what it is told.");
  const Result<Player> whole = enter("whole", "1", kModestBlocks, false);
  if (!whole) return whole.error();
  const std::vector<std::string>& talk = whole->actor->talk;
  if (Result<void> r = stage_.wait("waiting for the line",
                                   [&] { return !talk.empty() || whole->actor->ended(); });
      !r)
    return r;
  const bool told = !talk.empty() && talk.front().starts_with("mete: waiting");
  if (told) report_.quote(talk.front());
  Result<std::vector<wire::JobView>> now = jobs();
  if (!now) return std::move(now).error();
  const wire::JobView* job = find_job(*now, "whole");
  report_.check(told && job != nullptr && job->job.state == core::JobState::kPending,
                "it waits in the queue and is told who holds what", last_of(talk));

  Stage::end_input(*anna_.actor);
  Stage::end_input(*bert_.actor);
  if (Result<void> r = stage_.wait(
          "anna and bert end, and whole gets its card",
          [&] { return anna_.actor->ended() && bert_.actor->ended() && whole->actor->ended(); });
      !r)
    return r;
  now = jobs();
  if (!now) return std::move(now).error();
  job = find_job(*now, "whole");
  const wire::JobView* anna = find_job(*now, "anna");
  const wire::JobView* bert = find_job(*now, "bert");
  const bool after = job != nullptr && anna != nullptr && bert != nullptr && job->job.started &&
                     anna->job.ended && bert->job.ended && *job->job.started >= *anna->job.ended &&
                     *job->job.started >= *bert->job.ended;
  const core::GrantedCard* card = first_card(job);
  const Bytes sees = bytes_fact(last_line(*whole->actor, "whole", "sees"), "total_bytes");
  report_.check(after && whole->actor->exit_code == 0 && card != nullptr && sees == card->bytes,
                "anna and bert end, and at once it runs: " + number_of(card) + " for itself, " +
                    to_string(sees),
                last_of(talk) + "; " + last_of(whole->actor->lines));
  return {};
}

// ---- 4: afterwards ----

Result<void> DemoStory::leave() {
  report_.step("All are done. Look at what each had and the most that it used.");
  if (big_.actor != nullptr) {
    Stage::end_input(*big_.actor);
    if (Result<void> r = stage_.wait("waiting for big", [&] { return big_.actor->ended(); }); !r)
      return r;
  }
  report_.command("mete ps -a -o json");
  const Result<std::vector<wire::JobView>> views = jobs();
  if (!views) return views.error();
  std::vector<DemoJob> rows;
  bool within = !views->empty();
  for (const wire::JobView& view : *views) {
    DemoJob row;
    row.name = view.job.spec->command.size() > 1 ? view.job.spec->command[1] : view.job.spec->name;
    if (view.job.spec->request.gpu) row.request = as_written(*view.job.spec->request.gpu);
    if (view.job.outcome) row.outcome = core::to_string(*view.job.outcome);
    if (const core::GrantedCard* card = first_card(&view)) row.share = card->bytes;
    if (view.job.exit && !view.job.exit->peaks.empty())
      row.peak = *std::max_element(view.job.exit->peaks.begin(), view.job.exit->peaks.end());
    // A program that took memory and has no peak was not measured.
    within = within && row.peak && !row.peak->is_zero() && *row.peak <= row.share;
    rows.push_back(std::move(row));
  }
  report_.jobs(std::move(rows));
  report_.check(within, "nobody used more than its share", "see the table");
  report_.command("mete cards");
  const Result<std::string> text = stage_.ask("asking mete cards", {"cards", "-o", "json"});
  if (!text) return text.error();
  const Result<wire::CardsDocument> document = wire::decode_cards(*text);
  if (!document) return document.error();
  Bytes granted;
  for (const wire::CardView& card : document->cards) granted += card.granted;
  report_.check(granted.is_zero() && document->cards.size() == cards_.size(),
                cards_.size() == 1 ? "the card is free again" : "all cards are free again",
                to_string(granted) + " are still granted");
  return {};
}

}  // namespace mete::cli
