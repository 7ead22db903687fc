// SPDX-License-Identifier: Apache-2.0
// Asks every question of tests/data/place/*.txt again and compares the answers. The grammar is in
// the README there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "core/place/hold.h"
#include "core/place/place.h"

namespace mete::core {
namespace {

constexpr std::string_view kAnswer = "  => ";

// The words of a line, taken from the left.
class Words {
 public:
  explicit Words(const std::string& line) : in_(line) {}
  std::string next() {
    std::string word;
    if (!(in_ >> word)) ADD_FAILURE() << "a word is missing in: " << in_.str();
    return word;
  }
  bool more() { return !(in_ >> std::ws).eof(); }
  std::string rest() {
    std::string text;
    std::getline(in_ >> std::ws, text);
    return text;
  }
  std::uint64_t number() { return base::parse_uint(next()).value(); }
  Bytes bytes() { return base::parse_bytes(next()).value(); }

 private:
  std::istringstream in_;
};

Request read_request(Words& words) {
  Request request;
  while (words.more()) {
    const std::string option = words.next();
    if (option == "--gpu") {
      request.gpu = parse_gpu(words.next()).value();
    } else if (option == "--devices") {
      const std::string list = words.next();
      for (const std::string_view name : base::split(list, ',')) request.devices.emplace_back(name);
    } else if (option == "--gpu-type") {
      request.gpu_type = words.next();
    } else if (option == "--procs") {
      request.procs = static_cast<std::uint32_t>(words.number());
    } else if (option == "--or-cpu") {
      request.or_cpu = true;
    } else {
      ADD_FAILURE() << "no such option: " << option;
    }
  }
  return request;
}

PoolCard read_card(Words& words) {
  PoolCard card;
  card.card.index = static_cast<std::uint32_t>(words.number());
  card.card.uuid = "GPU-" + std::to_string(card.card.index);
  card.card.type = words.next();
  card.card.capacity = words.bytes();
  while (words.more()) {
    const std::string word = words.next();
    if (word == "context")
      card.context = words.bytes();
    else if (word == "lost")
      card.lost = true;
    else if (word == "drained")
      card.drained = true;
    else if (word == "stale")
      card.stale = true;
    else if (word == "one-process")
      card.one_process = true;
    else
      ADD_FAILURE() << "no such word of a card: " << word;
  }
  return card;
}

std::string answer(const std::string& text) { return std::string(kAnswer) + text + "\n"; }

std::string answer(const Decision& decision) {
  std::string text;
  if (const auto* placement = std::get_if<Placement>(&decision)) {
    for (const GrantedCard& card : placement->cards)
      text += answer("card " + std::to_string(card.index) + ": " + to_exact_string(card.bytes) +
                     (card.whole ? " whole" : ""));
    return text.empty() ? answer("no card") : text;
  }
  if (const auto* wait = std::get_if<Wait>(&decision)) {
    text = answer("wait, " + std::string(to_string(wait->reason)) + ": " + wait->text);
    std::string jobs;
    for (const JobId job : wait->holders) jobs.append(" ").append(to_string(job));
    return jobs.empty() ? text : text + answer("would help:" + jobs);
  }
  const Error& error = std::get<Error>(decision);
  text = answer(std::string(to_string(error.code)) + ": " + error.message);
  if (!error.evidence.empty()) text += answer("because: " + error.evidence);
  if (!error.hint.empty()) text += answer("try: " + error.hint);
  return text;
}

class Story {
 public:
  int questions = 0;

  // What follows from a line: its answer, or "".
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
    return answer(decision);
  }

  Pool pool_;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The file as it would be with today's answers.
std::string told_again(const std::string& text) {
  Story story;
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kAnswer)) continue;
    out += line + "\n" + story.read(line);
  }
  EXPECT_GT(story.questions, 0) << "the file asks nothing";
  return out;
}

TEST(Golden, EveryFileIsAnsweredAsItSays) {
  const char* root = std::getenv("METE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest, or set METE_SOURCE_DIR to the source tree";
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(root) / "tests/data/place"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  ASSERT_FALSE(files.empty()) << "there is nothing to compare with";
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename());
    const std::string before = contents(file);
    const std::string after = told_again(before);
    if (std::getenv("METE_GOLDEN_UPDATE") != nullptr) std::ofstream(file) << after;
    EXPECT_EQ(before, after);
  }
}

}  // namespace
}  // namespace mete::core
