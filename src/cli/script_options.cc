// SPDX-License-Identifier: Apache-2.0
// See script_options.h.
#include "cli/script_options.h"

#include <algorithm>

#include "base/text.h"
#include "cli/slurm_options.h"

namespace mete::cli {

namespace {

enum class Kind { kNone, kMete, kSlurm };

// What kind of line it is; `rest` is then what follows the mark.
Kind kind_of(std::string_view line, std::string_view& rest) {
  const auto has_mark = [&](std::string_view mark) {
    if (!line.starts_with(mark)) return false;
    rest = line.substr(mark.size());
    return rest.empty() || rest.front() == ' ' || rest.front() == '\t';
  };
  if (has_mark("#METE")) return Kind::kMete;
  if (has_mark("#SBATCH")) return Kind::kSlurm;
  return Kind::kNone;
}

Result<void> add_mete_line(std::string_view rest, const std::string& where,
                           std::vector<Word>& words) {
  const Result<std::vector<std::string>> args = split_words(rest);
  if (!args) return args.error();
  const std::span<const OptionSpec> specs = submit_options();
  const Result<Parsed> parsed = parse_options(specs, *args, Rest::kNothing);
  if (!parsed) return parsed.error();
  for (const auto& given : parsed->options) {
    const std::string_view option = given.first;
    if (is_of_command_line(option))
      return Error::invalid(std::string(option) + " has its place on the command line alone")
          .with_hint("take it out of the script");
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&](const OptionSpec& each) { return each.name == option; });
    const auto before = std::find_if(words.begin(), words.end(),
                                     [&](const Word& word) { return word.option == option; });
    if (!spec->repeats && before != words.end())
      return Error::invalid(std::string(option) + " is given twice")
          .with_evidence("the first is at " + before->where)
          .with_hint("give it once");
    words.push_back({spec->name, given.second, where});
  }
  return {};
}

Error no_shebang(const std::string& name) {
  return Error::invalid(name + " has lines for mete and no shebang")
      .with_evidence("its first line must say what runs it")
      .with_hint("begin it with #!/bin/bash, or with #!/usr/bin/env python3");
}

Error dos_lines(const std::string& where) {
  return Error::invalid(where + ": its lines end as DOS has them")
      .with_hint("sed -i 's/\\r$//' FILE takes that away");
}

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char each = line[i];
    const bool blank = each == ' ' || each == '\t';
    if (quote == 0 && blank) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
      continue;
    }
    if (!in_word && each == '#') return words;
    in_word = true;
    if (quote == 0 && (each == '\'' || each == '"')) {
      quote = each;
    } else if (each == quote) {
      quote = 0;
    } else if (each == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += each;
    }
  }
  if (quote != 0)
    return Error::invalid("a quote is not closed").with_hint(std::string("add a ") + quote);
  if (in_word) words.push_back(std::move(word));
  return words;
}

Result<ScriptOptions> read_script_options(std::string_view text, const std::string& name,
                                          const SlurmOptions& over) {
  ScriptOptions options;
  std::vector<Word> ours;
  SlurmOptions slurm;
  bool header = true;
  bool told = false;
  std::size_t number = 0;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string where = name + ":" + std::to_string(++number);
    std::string_view rest;
    const Kind kind = kind_of(line, rest);
    const bool shebang = number == 1 && line.starts_with("#!");
    if ((shebang || kind != Kind::kNone) && line.ends_with('\r')) return dos_lines(where);
    if (!line.starts_with("#") && !base::trim(line).empty()) header = false;
    if (kind == Kind::kNone) continue;
    if (!header) {
      if (!told)
        options.warnings.push_back(where + ": lines for mete after the first command are not read");
      told = true;
      continue;
    }
    Result<void> added = kind == Kind::kMete ? add_mete_line(rest, where, ours) : Result<void>();
    if (kind == Kind::kSlurm) {
      const Result<std::vector<std::string>> args = split_words(rest);
      added = args ? slurm.add(*args, where) : Result<void>(args.error());
    }
    if (!added) return std::move(added).error().within(where);
    options.slurm = options.slurm || kind == Kind::kSlurm;
  }
  if ((options.slurm || !ours.empty()) && !text.starts_with("#!")) return no_shebang(name);
  slurm.add(over);
  Result<std::vector<Word>> theirs = slurm.words(options.warnings);
  if (!theirs) return std::move(theirs).error();
  options.words = merge(*std::move(theirs), std::move(ours));
  return options;
}

}  // namespace mete::cli
