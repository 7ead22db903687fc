// SPDX-License-Identifier: Apache-2.0
// `mete`, `mete help`, `mete help VERB`, `mete VERB --help`.
#include "cli/help.h"

#include <algorithm>

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
  if (!option.value.empty()) line.append(" ").append(option.value);
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

int run_help(const Parsed& parsed, const Output& output) {
  if (parsed.rest.empty()) {
    output.data(overview());
    return kExitOk;
  }
  const Verb* verb = find_verb(parsed.rest.front());
  if (verb == nullptr) return output.fail(no_such_verb(parsed.rest.front()));
  output.data(verb_help(*verb));
  return kExitOk;
}

}  // namespace

std::string overview() {
  std::string text =
      "mete shares GPUs between programs that know nothing of each other.\n"
      "\n"
      "  mete run --gpu 0.4 -- python train.py    wait for 40% of a card, then run inside it\n"
      "  mete cap --gpu 16G -- python train.py    run inside 16 GiB now, without reserving them\n"
      "\n";
  for (const Verb* verb : verbs()) {
    std::string line = "  ";
    line.append(verb->name);
    pad_to(line, 14);
    text.append(line).append(verb->summary).append("\n");
  }
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
    "mete help [verb]",
    "mete help cap",
    "",
    {},
    Rest::kWords,
    run_help,
};

}  // namespace mete::cli
