// SPDX-License-Identifier: Apache-2.0
// `mete sweep`: many trials of one command, each with other parameters, on shares of cards. A word
// that is a subverb (show, report, ...) ends the options of the start, and the words after it are
// parsed again, with options between them. After "--" every word belongs to the command. The parts
// are in sweep_start.cc, sweep_report.cc, sweep_change.cc and sweep_follow.cc.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cli/dispatch.h"
#include "cli/help.h"
#include "cli/subword.h"
#include "cli/sweep_client.h"
#include "cli/sweep_follow.h"
#include "cli/sweep_options.h"
#include "cli/sweep_verbs.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

int follow_by_name(const Parsed& words, const Output& output) {
  if (words.rest.empty())
    return output.fail(Error::invalid("which sweep is not said")
                           .with_hint("mete sweep follow NAME; mete sweep ls lists them"));
  if (const Result<void> r = no_more_than(1, words.rest); !r) return output.fail(r.error());
  const Result<SweepRef> ref = sweep_ref(words, words.rest.front());
  if (!ref) return output.fail(ref.error());
  Result<runner::DaemonClient> client = open_for_sweeps(ref->name);
  if (!client) return output.fail(client.error());
  const std::string* csv = words.find("--csv");
  if (csv != nullptr)
    if (const Result<void> r = check_csv(*csv); !r) return output.fail(r.error());
  return follow_sweep(*std::move(client), *ref, csv == nullptr ? "" : *csv, output);
}

int run_subverb(std::string_view subverb, const Parsed& words, bool csv, const Output& output) {
  if (subverb == "ls") return list_sweeps(words, output);
  if (subverb == "show") return show_sweep(words, output);
  if (subverb == "follow") return follow_by_name(words, output);
  if (subverb == "report") return report_sweep(words, csv, output);
  if (subverb == "best") return best_of_sweep(words, output);
  if (subverb == "logs") return logs_of_sweep(words, output);
  if (subverb == "extend") return extend_sweep(words, output);
  return change_sweeps(subverb, words, output);
}

// The words after the subverb, behind the options that came before it.
Result<Parsed> parse_words(const Parsed& before) {
  std::vector<std::string> words;
  for (const auto& [option, value] : before.options) {
    const auto specs = sweep_options();
    const auto spec =
        std::find_if(specs.begin(), specs.end(),
                     [&name = option](const OptionSpec& each) { return each.name == name; });
    words.push_back(std::string(option) + (spec->value.empty() ? "" : "=" + value));
  }
  words.insert(words.end(), before.rest.begin() + 1, before.rest.end());
  std::vector<OptionSpec> specs(sweep_options().begin(), sweep_options().end());
  specs.push_back(kHelpOption);
  return parse_options(specs, words, Rest::kWords);
}

int dispatch_subverb(std::string_view subverb, const Parsed& parsed, const Output& output) {
  const Result<Parsed> words = parse_words(parsed);
  if (!words) return Output(wanted_format(parsed.rest)).fail(words.error());
  if (words->has(kHelpOption.name)) {
    output.data(verb_help(kSweepVerb));
    return kExitOk;
  }
  const std::string* format_text = words->find(kOutputOption.name);
  const bool csv = subverb == "report" && format_text != nullptr && *format_text == "csv";
  Format format = Format::kText;
  if (format_text != nullptr && !csv) {
    const Result<Format> wanted = parse_format(*format_text);
    if (!wanted) return output.fail(wanted.error());
    format = *wanted;
  }
  // What came before the subverb is all that the caller has looked at.
  const Output own(format);
  if (const Result<void> r = check_sweep_options(subverb, *words); !r) return own.fail(r.error());
  if (csv && words->has("--html"))
    return own.fail(
        Error::invalid("--html and -o csv exclude each other").with_hint("give one of them"));
  return own.finish(run_subverb(subverb, *words, csv, own));
}

// A first word that is neither a subverb nor, without a space, the command of a sweep.
Error no_such_subverb(const std::string& word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOthers = {
      {{"list", "ls"},
       {"status", "show"},
       {"delete", "rm"},
       {"remove", "rm"},
       {"plot", "report"},
       {"attach", "follow"}}};
  std::string_view near = base::nearest(word, sweep_words());
  for (const auto& [theirs, ours] : kOthers)
    if (word == theirs) near = ours;
  if (!near.empty())
    return Error::invalid("there is no mete sweep " + base::quote(word))
        .with_hint("did you mean mete sweep " + std::string(near) + "?");
  return Error::invalid("the sweep has no parameters")
      .with_hint("--grid lr=0.1,0.01, or --space FILE, before the command");
}

Error nothing_said() {
  return Error::invalid("what to run is not said")
      .with_evidence(
          "mete sweep --gpu 8G --grid lr=1e-3,1e-4 --minimize loss \\\n"
          "  --metric 'loss=loss: (\\S+)' -- python train.py --lr {lr}\n"
          "runs a trial for each lr; mete sweep ls, show NAME and report NAME show sweeps")
      .with_hint("mete sweep --help has more examples, and all options");
}

int run_sweep(const Parsed& parsed, const Output& output) {
  if (!parsed.dashes && !parsed.rest.empty())
    if (const std::string_view subverb = sweep_subverb(parsed.rest.front()); !subverb.empty())
      return dispatch_subverb(subverb, parsed, output);
  if (const Result<void> r = check_sweep_options("", parsed); !r) return output.fail(r.error());
  const bool has_space = parsed.has("--space") || parsed.has("--talos") || parsed.has("--grid");
  if (!has_space && parsed.rest.empty()) return output.fail(nothing_said());
  if (!has_space && !parsed.dashes) return output.fail(no_such_subverb(parsed.rest.front()));
  return start_sweep(parsed, output);
}

}  // namespace

const Verb kSweepVerb{
    "sweep",
    "run many trials of a command, each with other parameters",
    "mete sweep [options] [--] command [argument...]\n"
    "mete sweep ls | show NAME | report NAME | best NAME | logs NAME [TRIAL...]\n"
    "mete sweep follow NAME | pause NAME | resume NAME | stop NAME | rm NAME\n"
    "mete sweep extend NAME --trials N | --space FILE",
    "mete sweep --gpu 0.25 --grid lr=1e-3,1e-4 --grid bs=32,64 --minimize loss \\\n"
    "  --metric 'loss=loss: (\\S+)' -- python train.py --lr {lr} --bs {bs}\n"
    "mete sweep --gpu auto --space space.yaml --trials 100 --sampler tpe \\\n"
    "  --maximize acc --asha --as-flags -- python train.py\n"
    "mete sweep show train              # how far it is, the best trials, a plot\n"
    "mete sweep report train --html report.html\n"
    "mete sweep best train              # the command of the best trial",
    "Each trial is a job of the queue: as many run at once as fit. {name} in the command is the "
    "value of a parameter; a program also finds the values in METE_PARAM_NAME and in the JSON file "
    "METE_PARAMS. The sweep belongs to the daemon: Ctrl-C stops following it, mete sweep follow "
    "comes back, and it goes on after a crash or a reboot. A trial that has ended never runs again."
    "\n"
    "\n"
    "--grid lists values; a space file (--space) also has ranges, logarithmic and integer ones, "
    "and conditions. A trial's result is a metric: found in its output by --metric, or appended "
    "by the program as JSON lines to the file METE_METRICS.\n"
    "\n"
    "pause begins no new trial; stop also ends running ones, which run again after resume. extend "
    "adds trials. rm removes a sweep that is over, and its results. After --, the first word is "
    "the command, also if it is called show.",
    sweep_options(),
    Rest::kCommand,
    run_sweep,
    sweep_words(),
};

}  // namespace mete::cli
