// SPDX-License-Identifier: Apache-2.0
// Asks every question of tests/data/place/*.txt again and compares the answers. The grammar is in
// the README there.
#include "core/test/golden.h"

#include "core/place/hold.h"
#include "core/place/place.h"
#include "wire/wait_text.h"

namespace mete::core {
namespace {

std::string decision_answer(const Decision& decision) {
  std::string text;
  if (const auto* placement = std::get_if<Placement>(&decision)) {
    for (const GrantedCard& card : placement->cards)
      text += answer("card " + std::to_string(card.index) + ": " + to_exact_string(card.bytes) +
                     (card.whole ? " whole" : ""));
    return text.empty() ? answer("no card") : text;
  }
  if (const auto* wait = std::get_if<Wait>(&decision)) {
    text = answer("wait, " + std::string(to_string(wait->reason)) + ": " + wire::wait_text(*wait));
    std::string jobs;
    for (const JobId job : wait->holders) jobs.append(" ").append(to_string(job));
    return jobs.empty() ? text : text + answer("would help:" + jobs);
  }
  return error_answer(std::get<Error>(decision));
}

class Story {
 public:
  int questions = 0;

  // The answer to a line, or "".
  std::string read(const std::string& line) {
    if (line.empty() || line.front() == '#') return "";
    Words words(line);
    const std::string verb = words.next();
    if (verb == "card") {
      pool_.cards.push_back(read_card(words));
    } else if (line.front() == ' ') {
      read_part(verb, words);
    } else if (verb == "end") {
      const JobId job{words.number()};
      for (PoolCard& card : pool_.cards)
        std::erase_if(card.holders, [job](const Holder& holder) { return holder.job == job; });
    } else {
      return ask(verb, words);
    }
    return "";
  }

 private:
  void read_part(const std::string& verb, Words& words) {
    ASSERT_FALSE(pool_.cards.empty()) << "no card for: " << verb;
    PoolCard& card = pool_.cards.back();
    if (verb == "job") {
      Holder holder;
      holder.job = {words.number()};
      holder.user = words.next();
      holder.name = words.next();
      holder.bytes = words.bytes();
      holder.whole = words.more() && words.next() == "whole";
      card.holders.push_back(holder);
    } else if (verb == "claim" || verb == "foreign") {
      const Bytes bytes = words.bytes();
      (verb == "claim" ? card.claimed : card.foreign).push_back({words.rest(), bytes});
    } else if (verb == "unusable") {
      card.unusable = words.rest();
    } else {
      ADD_FAILURE() << "no such line below a card: " << verb;
    }
  }

  std::string ask(const std::string& verb, Words& words) {
    ++questions;
    Holder who;
    if (verb == "run") {
      who.job = {words.number()};
      who.user = words.next();
      who.name = words.next();
    }
    const Policy policy = parse_policy(words.next()).value();
    const Request request = read_request(words);
    if (verb == "hold") {
      pool_ = hold_for(pool_, request, policy);
      std::string text;
      for (const PoolCard& card : pool_.cards)
        if (!card.kept.is_zero())
          text += answer("card " + std::to_string(card.card.index) + " keeps " +
                         to_exact_string(card.kept));
      return text.empty() ? answer("nothing is kept") : text;
    }
    EXPECT_TRUE(verb == "place" || verb == "run") << "no such question: " << verb;
    const Decision decision = place(pool_, request, policy);
    const auto* placement = std::get_if<Placement>(&decision);
    if (verb == "run" && placement != nullptr) add_grant(pool_, who, placement->cards);
    return decision_answer(decision);
  }

  Pool pool_;
};

TEST(Golden, EveryFileIsAnsweredAsItSays) { compare_files<Story>("tests/data/place"); }

}  // namespace
}  // namespace mete::core
