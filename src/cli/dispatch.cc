// SPDX-License-Identifier: Apache-2.0
// Finds the verb, parses what follows, answers --help, and calls the verb. Nothing is done before
// all words are understood.
#include "cli/dispatch.h"

#include <string>
#include <utility>
#include <vector>

#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/slurm.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

int print(std::string text) {
  const Output output(Format::kText);
  output.data(std::move(text));
  return output.finish(kExitOk);
}

int run_verb(const Verb& verb, const std::vector<std::string>& args) {
  std::vector<OptionSpec> specs(verb.options.begin(), verb.options.end());
  specs.push_back(kHelpOption);
  const Result<Parsed> parsed = parse_options(specs, args, verb.rest);
  // --help is answered even if other words are wrong, unless it may belong to the program.
  if (!parsed && !args.empty() && (args.front() == "--help" || args.front() == "-h"))
    return print(verb_help(verb));
  if (!parsed) return Output(wanted_format(args)).fail(parsed.error());
  if (parsed->has(kHelpOption.name)) return print(verb_help(verb));
  Format format = Format::kText;
  if (const std::string* text = parsed->find(kOutputOption.name); text != nullptr) {
    const Result<Format> wanted = parse_format(*text);
    if (!wanted) return Output(format).fail(wanted.error());
    format = *wanted;
  }
  const Output output(format);
  return output.finish(verb.run(*parsed, output));
}

}  // namespace

Format wanted_format(const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const bool next = i + 1 < args.size() && args[i + 1] == "json";
    if (args[i] == "-ojson" || args[i] == "--output=json") return Format::kJson;
    if (next && (args[i] == "-o" || args[i] == "--output")) return Format::kJson;
  }
  return Format::kText;
}

int run(int argc, char** argv) {
  std::vector<std::string> args(argv, argv + argc);
  // mete called by the name of a link to it: share/mete/slurm/srun.
  const std::string called = args.empty() ? "" : args.front().substr(args.front().rfind('/') + 1);
  if (is_slurm_program(called)) {
    args.front() = called;
    return run_verb(kSlurmVerb, args);
  }
  if (!args.empty()) args.erase(args.begin());
  if (args.empty()) return print(overview());
  std::string name = args.front();
  args.erase(args.begin());
  if (name == "--help" || name == "-h") name = kHelpVerb.name;
  if (name == "--version" || name == "-V") name = kVersionVerb.name;
  const Verb* verb = find_verb(name);
  if (verb == nullptr) return Output(wanted_format(args)).fail(no_such_verb(name));
  return run_verb(*verb, args);
}

}  // namespace mete::cli
