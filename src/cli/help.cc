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

// Appends words to a text that is at `column`, where further lines begin too.
void append_wrapped(std::string& text, std::string_view words, std::size_t column) {
  constexpr std::size_t kWidth = 80;
  std::size_t at = column;
  for (const std::string_view word : base::split(words, ' ')) {
    if (word.empty()) continue;
    if (at > column && at + 1 + word.size() > kWidth) {
      text.append("\n").append(column, ' ');
      at = column;
    }
    if (at > column) {
      text += ' ';
      ++at;
    }
    text.append(word);
    at += word.size();
  }
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
  append_wrapped(line, option.help, kColumn);
  return line + "\n";
}

void append_block(std::string& text, std::string_view title, std::string_view lines, bool wrap) {
  if (lines.empty()) return;
  text.append(title).append("\n");
  for (const std::string_view line : base::split(lines, '\n')) {
    text.append(line.empty() ? "" : "  ");
    if (wrap)
      append_wrapped(text, line, 2);
    else
      text.append(line);
    text.append("\n");
  }
  text.append("\n");
}

constexpr std::array kHelpOptions{OptionSpec{"--all", "", "list all verbs", "-a"}};

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
  // The most common verbs: the overview fits on a screen.
  static constexpr std::array<std::string_view, 10> kCommon{
      "run", "submit", "ps", "top", "explain", "logs", "cancel", "cards", "cap", "doctor"};
  std::string text =
      "mete shares GPUs between programs that know nothing of each other.\n"
      "\n"
      "  mete run --gpu 0.4 -- python train.py    wait for 40% of a card, then run\n"
      "  mete submit --gpu 1 -- python train.py   queue a job and return at once\n"
      "  mete cap --gpu 16G -- python train.py    run now, with a limit of 16 GiB\n"
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
  if (!all) {
    text += "\nmete help --all describes the other verbs:\n  ";
    append_wrapped(text, others, 2);
    text += "\n";
  }
  text +=
      "\nmete VERB --help shows examples and options; man mete has the details.\n"
      "Without a GPU, METE_SIM=4xH200 simulates cards.";
  return text;
}

std::string verb_help(const Verb& verb) {
  std::string text;
  append_block(text, "Examples:", verb.examples, false);
  append_block(text, "Usage:", verb.usage, false);
  append_block(text, "About:", verb.about, true);
  text += "Options:\n";
  for (const OptionSpec& option : verb.options)
    if (option.offered()) text += option_lines(option);
  text += option_lines(kHelpOption);
  text.pop_back();
  return text;
}

const Verb kHelpVerb{
    "help",
    "show help for mete or for a verb",
    "mete help [--all] [verb]",
    "mete help cap\n"
    "mete help --all             # all verbs",
    "",
    kHelpOptions,
    Rest::kWords,
    run_help,
};

}  // namespace mete::cli
