// SPDX-License-Identifier: Apache-2.0
// See sweep_options.h. An option belongs to the start of a sweep unless kSubverbs gives it to a
// subverb; options of kOfTrial are passed on to the job of each trial, where `mete submit` reads
// them. Options of `mete submit` that would mean nothing for a trial are recognised and refused.
#include "cli/sweep_options.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/job_words.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr OptionSpec of_submit(std::string_view name, std::string_view value,
                               std::string_view short_name = "") {
  return {.name = name, .value = value, .short_name = short_name, .other_verb = "mete submit"};
}

constexpr std::array kSweepOptions{
    OptionSpec{"--space", "FILE", "read the space from a YAML or JSON file; - is standard input"},
    OptionSpec{"--talos", "FILE", "read the space from a parameter dictionary of Talos"},
    OptionSpec{"--grid", "NAME=VALUES",
               "a parameter and its values, such as lr=1e-3,1e-4; repeatable; replaces a parameter "
               "of the file",
               "", true},
    OptionSpec{"--keep", "EXPR", "only points for which this holds, such as 'bs * layers <= 256'"},
    OptionSpec{"--sampler", "NAME",
               "grid, random, sobol, halton, lhs or tpe (default: grid if all parameters have "
               "lists of values, otherwise random; with --trials random)"},
    OptionSpec{"--trials", "N", "run N trials at most"},
    OptionSpec{"--fraction", "F", "run this part of a finite space: 0.1 or 10%"},
    OptionSpec{"--for", "TIME", "begin no trial after this time: 90m, 2h, 1d"},
    OptionSpec{"--until", "TIME",
               "begin no trial after this moment: 18:00, \"tomorrow 08:00\", now+2h"},
    OptionSpec{"--seed", "N",
               "seed of the sampler; equal seeds give equal trials (default: random, and shown; "
               "sobol and halton without a seed are the published sequences)"},
    OptionSpec{"--metric", "NAME=REGEX",
               "a metric in the output: the number in the group of REGEX, such as 'loss=loss: "
               "(\\S+)'; NAME=last is the last line that is a number; repeatable. Programs that "
               "append JSON lines to the file METE_METRICS need no --metric",
               "", true},
    OptionSpec{"--minimize", "METRIC", "a lower value of this metric is better"},
    OptionSpec{"--maximize", "METRIC", "a higher value of this metric is better"},
    OptionSpec{"--target", "EXPR",
               "end the sweep when a trial reaches this, such as 'val_loss < 0.1'"},
    OptionSpec{.name = "--asha",
               .value = "RULE",
               .help = "stop weak trials early by successive halving: metric=val_loss,min=1,max=81,"
                       "eta=3 (each part is optional; a trial that reaches step max is ended, and "
                       "counts as ok; without max it runs to its own end)",
               .value_optional = true,
               .next_assigns = true},
    OptionSpec{.name = "--reduce",
               .value = "RULE",
               .help = "drop values of parameters that go with bad results: method=spearman,"
                       "window=50,interval=10,threshold=0.2 (each part is optional; also pearson "
                       "and kendall)",
               .value_optional = true,
               .next_assigns = true},
    OptionSpec{"--as-flags", "", "add --name value to the command for each parameter"},
    OptionSpec{"--max-parallel", "N", "run at most N trials at once (default: as many as fit)"},
    OptionSpec{"--max-failures", "N", "end the sweep when N trials have failed (default: never)"},
    OptionSpec{"--fail-fast", "", "end the sweep at the first failure; short for --max-failures 1"},
    OptionSpec{"--csv", "FILE",
               "write the results to this file when there are new ones, as long as mete follows "
               "the sweep, and at its end"},
    OptionSpec{"--detach", "", "print the name of the sweep and return at once"},
    OptionSpec{"--name", "NAME",
               "name of the sweep (default: from the name of the program, such as train-2)", "-J"},
    OptionSpec{"--dry-run", "",
               "print the number of points, the first trials with their commands, and where a "
               "trial would start; start nothing"},
    OptionSpec{"--gpu", "SHARE",
               "GPU memory of each trial: 0.25 or 25% of one card, 8G on one card, 2x8G on two; 1 "
               "or 2 for whole cards; 0 for no GPU; auto to measure the first trials and give "
               "later ones what they need"},
    kDevicesOption,
    kGpuTypeOption,
    kWhereOption,
    kCpuOnlyOption,
    kOrCpuOption,
    kTimeOption,
    kPriorityOption,
    kPreemptibleOption,
    kNotPreemptibleOption,
    kIdleOption,
    kNoPreemptOption,
    kShedOption,
    kProcsOption,
    kCpusOption,
    kRamOption,
    kEnvOption,
    kChdirOption,
    kVisibleOption,
    OptionSpec{"--log", "FILE",
               "write the output of each trial to its own file (default: in the state folder; mete "
               "sweep logs prints it). %j is the job, %x the name of the sweep and the number of "
               "the trial (lr-scan.7), %u the user"},
    OptionSpec{"--err", "FILE", "write standard error to this file instead of the log"},
    OptionSpec{"--retries", "N", "retry a trial up to N times after a failure"},
    OptionSpec{"--retry-gpu", "xFACTOR",
               "multiply the share of a trial by this factor when it was too small, such as x1.5; "
               "needs --retries. --gpu auto does it without this"},
    OptionSpec{"--requeue", "", "start the job of a trial again after a reboot"},
    OptionSpec{"--label", "KEY=VALUE", "attach a note to the jobs of the trials; repeatable", "-l",
               true},
    kNotifyOption,
    kNotifyOnOption,
    OptionSpec{"--html", "FILE", "for report: write a page with plots to this file"},
    OptionSpec{"--follow", "", "for logs: continue until the trial has ended", "-f"},
    OptionSpec{"--tail", "N", "for logs: print the last N lines only", "-n"},
    OptionSpec{"--since", "TIME", "for logs: print only output since this time: 10m (ago), 14:05"},
    OptionSpec{"--all", "", "for ls: list the sweeps of all users, as an administrator", "-a"},
    OptionSpec{"--quiet", "", "for ls: print the names only", "-q"},
    OptionSpec{"--user", "NAME", "a sweep of this user, for administrators", "-u"},
    OptionSpec{"--output", "FORMAT", "output format: text (default) or json; for report also csv",
               "-o"},
    of_submit("--array", "RANGE"),
    of_submit("--after", "JOB"),
    of_submit("--begin", "TIME"),
    of_submit("--deadline", "TIME"),
    of_submit("--hold", "", "-H"),
    of_submit("--no-wait", ""),
    of_submit("--tty", ""),
    of_submit("--file", "FILE"),
    of_submit("--print", ""),
    OptionSpec::later("--compute", "SHARE", "it comes with MPS support"),
    OptionSpec::later("--pool", "NAME", "it comes with Slurm support"),
};

constexpr std::array<std::string_view, 27> kOfTrial{
    "--gpu",    "--devices",    "--gpu-type",  "--where",       "--cpu-only",
    "--or-cpu", "--time",       "--priority",  "--preemptible", "--not-preemptible",
    "--idle",   "--no-preempt", "--shed",      "--procs",       "--cpus",
    "--ram",    "--env",        "--chdir",     "--visible",     "--log",
    "--err",    "--retries",    "--retry-gpu", "--requeue",     "--label",
    "--notify", "--notify-on"};

// Options of subverbs; --user and --output are for all of them.
struct SubVerb {
  std::string_view name;
  std::string_view alias = {};
  std::array<std::string_view, 5> options = {};
};
constexpr std::array kSubverbs{
    SubVerb{"ls", "list", {"--all", "--quiet"}},
    SubVerb{"show"},
    SubVerb{"follow", "wait", {"--csv"}},
    SubVerb{"report", "", {"--html"}},
    SubVerb{"best"},
    SubVerb{"logs", "log", {"--follow", "--tail", "--since"}},
    SubVerb{"pause"},
    SubVerb{"resume"},
    SubVerb{"stop", "cancel"},
    SubVerb{"extend", "", {"--trials", "--space", "--talos", "--grid", "--keep"}},
    SubVerb{"rm", "remove"},
};

constexpr std::array<std::string_view, 7> kOfSubverbsOnly{"--html", "--follow", "--tail", "--since",
                                                          "--all",  "--quiet",  "--user"};

template <class List>
bool has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// "mete sweep report": a subverb that takes this option; "": none does.
std::string owner_of(std::string_view option) {
  for (const SubVerb& sub : kSubverbs)
    if (has(sub.options, option)) return "mete sweep " + std::string(sub.name);
  return "";
}

}  // namespace

std::span<const OptionSpec> sweep_options() { return kSweepOptions; }

std::vector<std::string_view> sweep_words() {
  std::vector<std::string_view> words;
  for (const SubVerb& sub : kSubverbs) words.push_back(sub.name);
  return words;
}

std::string_view sweep_subverb(std::string_view word) {
  for (const SubVerb& sub : kSubverbs)
    if (!word.empty() && (sub.name == word || sub.alias == word)) return sub.name;
  return {};
}

Result<void> check_sweep_options(std::string_view subverb, const Parsed& parsed) {
  const auto sub = std::find_if(kSubverbs.begin(), kSubverbs.end(),
                                [&](const SubVerb& each) { return each.name == subverb; });
  for (const auto& [option, value] : parsed.options) {
    if (option == kOutputOption.name) continue;
    if (sub == kSubverbs.end()) {
      if (!has(kOfSubverbsOnly, option)) continue;
      const std::string owner = owner_of(option);
      return Error::invalid(std::string(option) + " is not for starting a sweep")
          .with_hint(owner.empty() ? "leave it out" : owner + " has it; or leave it out");
    }
    if (option == "--user" || has(sub->options, option)) continue;
    const std::string owner =
        has(kOfSubverbsOnly, option) ? owner_of(option) : "mete sweep [options] -- COMMAND";
    return Error::invalid(std::string(option) + " is not for mete sweep " + std::string(subverb))
        .with_hint(owner + " has it; or leave it out");
  }
  return {};
}

std::vector<Word> trial_words(const Parsed& parsed) {
  std::vector<Word> words;
  for (const auto& [option, value] : parsed.options) {
    if (option == "--gpu" && value == kGpuAuto) continue;
    if (has(kOfTrial, option)) words.push_back({option, value, ""});
  }
  return words;
}

bool wants_auto_gpu(const Parsed& parsed) {
  const std::string* gpu = parsed.find("--gpu");
  return gpu != nullptr && *gpu == kGpuAuto;
}

}  // namespace mete::cli
