// SPDX-License-Identifier: Apache-2.0
// The loop of the actor (see actor.h).
#include "actor.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace actor {

std::map<std::string, Command>& commands() {
  static std::map<std::string, Command> all;
  return all;
}

uint64_t number(const std::string& text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 0);
  switch (*end) {
    case 'K':
      return value << 10;
    case 'M':
      return value << 20;
    case 'G':
      return value << 30;
    default:
      return value;
  }
}

// Byte by byte: unread input belongs to the program that an exec puts in our place.
static bool next_line(std::string* line) {
  line->clear();
  for (char c = 0; read(0, &c, 1) == 1;) {
    if (c == '\n') return true;
    line->push_back(c);
  }
  return false;
}

}  // namespace actor

int main(int argc, char** argv) {
  using namespace actor;
  add_bind_commands();
  add_card_commands();
  add_memory_commands();
  add_share_commands();
  add_process_commands();
  add_race_commands();
  // Commands may also be arguments, separated by commas: for programs that other programs start.
  if (argc > 1) {
    std::string all;
    for (int i = 1; i < argc; ++i) all += std::string(i > 1 ? " " : "") + argv[i];
    std::istringstream list(all);
    for (std::string one; std::getline(list, one, ',');) {
      std::istringstream text(one);
      Words words;
      for (std::string word; text >> word;) words.push_back(word);
      if (words.empty()) continue;
      const auto found = commands().find(words[0]);
      std::printf("%s\n", found == commands().end() ? "? unknown" : found->second(words).c_str());
      std::fflush(stdout);
    }
    return 0;
  }
  for (std::string line; next_line(&line);) {
    std::istringstream text(line);
    Words words;
    for (std::string word; text >> word;) words.push_back(word);
    if (words.empty()) continue;
    if (words[0] == "quit") return static_cast<int>(number_or(words, 1, 0));
    const auto found = commands().find(words[0]);
    const std::string reply =
        (found == commands().end() ? "? unknown" : found->second(words)) + "\n";
    if (write(1, reply.data(), reply.size()) != static_cast<ssize_t>(reply.size())) return 1;
  }
  return 0;
}
