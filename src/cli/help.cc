// SPDX-License-Identifier: Apache-2.0
// `mete`, `mete help`, `mete help VERB`, `mete VERB --help`.
#include "cli/help.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::cli {

namespace {

void pad_to(std::string& line, std::size_t column) {
  line.append(line.size() < column ? column - line.size() : 1, ' ');
}

std::string option_lines(const OptionSpec& option) {
  constexpr std::size_t kColumn = 24;
  std::string line = "  ";
  if (!option.short_name.empty()) line.append(option.short_name).append(", ");
  line.append(option.name);
  if (option.value_optional)
    line.append("[=").append(option.value).append("]");
  else if (!option.value.empty())
    line.append(" ").append(option.value);
  pad_to(line, kColumn);
  bool first = true;
  for (const std::string_view part : base::split(option.help, '\n')) {
    if (!first) line.append("\n").append(kColumn, ' ');
    line.append(part);
    first = false;
  }
  return line + "\n";
}

void append_block(std::string& text, std::string_view title, std::string_view lines) {
  if (lines.empty()) return;
  text.append(title).append("\n");
  for (const std::string_view line : base::split(lines, '\n'))
    text.append(line.empty() ? "" : "  ").append(line).append("\n");
  text.append("\n");
}

// Words on lines of their own that fit a narrow screen.
std::string wrapped(const std::string& words) {
  constexpr std::size_t kWidth = 76;
  std::string text;
  std::size_t column = kWidth;
  for (const std::string_view word : base::split(words, ' ')) {
    if (word.empty()) continue;
    if (column + 1 + word.size() > kWidth) {
      text += "\n ";
      column = 1;
    }
    text.append(" ").append(word);
    column += 1 + word.size();
  }
  return text;
}

constexpr std::array kHelpOptions{OptionSpec{"--all", "", "all verbs, with what each does", "-a"}};

int run_help(const Parsed& parsed, const Output& output) {
  if (parsed.rest.empty()) {
    output.data(overview(parsed.has("--all")));
    return kExitOk;
  }
  const Verb* verb = find_verb(parsed.rest.front());
  if (verb == nullptr) return output.fail(no_such_verb(parsed.rest.front()));
  output.data(verb_help(*verb));
  return kExitOk;
}

}  // namespace

std::string overview(bool all) {
  // What most people need most days; a screen.
  static constexpr std::array<std::string_view, 10> kCommon{
      "run", "submit", "ps", "top", "explain", "logs", "cancel", "cards", "cap", "doctor"};
  std::string text =
      "mete shares GPUs between programs that know nothing of each other.\n"
      "\n"
      "  mete run --gpu 0.4 -- python train.py    wait for 40% of a card, then run inside it\n"
      "  mete submit --gpu 1 -- python train.py   the same without you: queued, logged, kept\n"
      "  mete cap --gpu 16G -- python train.py    run inside 16 GiB now, without reserving them\n"
      "\n";
  std::string others;
  for (const Verb* verb : verbs()) {
    if (!all && std::find(kCommon.begin(), kCommon.end(), verb->name) == kCommon.end()) {
      others.append(" ").append(verb->name);
      continue;
    }
    std::string line = "  ";
    line.append(verb->name);
    pad_to(line, 14);
    text.append(line).append(verb->summary).append("\n");
  }
  if (!all) text += "\nmete help --all says what the others do:" + wrapped(others) + "\n";
  text +=
      "\nmete VERB --help shows examples and options; man mete has the rest.\n"
      "Without a GPU: METE_SIM=4xH200 simulates cards.";
  return text;
}

std::string verb_help(const Verb& verb) {
  std::string text;
  append_block(text, "Examples:", verb.examples);
  append_block(text, "Usage:", verb.usage);
  append_block(text, "About:", verb.about);
  text += "Options:\n";
  for (const OptionSpec& option : verb.options)
    if (option.offered()) text += option_lines(option);
  text += option_lines(kHelpOption);
  text.pop_back();
  return text;
}

const Verb kHelpVerb{
    "help",
    "show help, also for a verb",
    "mete help [--all] [verb]",
    "mete help cap\n"
    "mete help --all             # every verb, with what it does",
    "",
    kHelpOptions,
    Rest::kWords,
    run_help,
};

}  // namespace mete::cli
