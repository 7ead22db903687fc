// SPDX-License-Identifier: Apache-2.0
// The options of sbatch, and which of three each is. See slurm_options.h.
#include "cli/slurm_options.h"

#include <array>
#include <optional>

#include "base/text.h"
#include "cli/slurm_words.h"

namespace mete::cli {

namespace {

using Takes = SlurmOption::Takes;
using Here = SlurmOption::Here;

constexpr std::string_view kProcs = "a job has one task here; mete submit --procs N starts several";

constexpr std::array kKnown{
    SlurmOption{"job-name", 'J', Takes::kValue, Here::kMeant},
    SlurmOption{"time", 't', Takes::kValue, Here::kMeant},
    SlurmOption{"output", 'o', Takes::kValue, Here::kMeant},
    SlurmOption{"error", 'e', Takes::kValue, Here::kMeant},
    SlurmOption{"gres", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"gpus", 'G', Takes::kValue, Here::kMeant},
    SlurmOption{"gpus-per-node", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"gpus-per-task", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mem", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mem-per-cpu", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mem-per-gpu", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"cpus-per-task", 'c', Takes::kValue, Here::kMeant},
    SlurmOption{"cpus-per-gpu", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"array", 'a', Takes::kValue, Here::kMeant},
    SlurmOption{"dependency", 'd', Takes::kValue, Here::kMeant},
    SlurmOption{"begin", 'b', Takes::kValue, Here::kMeant},
    SlurmOption{"deadline", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"nice", 0, Takes::kMaybe, Here::kMeant},
    SlurmOption{"priority", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"requeue", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"no-requeue", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"chdir", 'D', Takes::kValue, Here::kMeant},
    SlurmOption{"export", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"hold", 'H', Takes::kNothing, Here::kMeant},
    SlurmOption{"comment", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mail-type", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mail-user", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"nodes", 'N', Takes::kValue, Here::kMustBeOne, "mete knows this machine alone"},
    SlurmOption{"ntasks", 'n', Takes::kValue, Here::kMustBeOne, kProcs},
    SlurmOption{"ntasks-per-node", 0, Takes::kValue, Here::kMustBeOne, kProcs},
    SlurmOption{"ntasks-per-gpu", 0, Takes::kValue, Here::kMustBeOne, kProcs},
    SlurmOption{"ntasks-per-socket", 0, Takes::kValue, Here::kMustBeOne, kProcs},
    SlurmOption{"ntasks-per-core", 0, Takes::kValue, Here::kMustBeOne, kProcs},
    SlurmOption{"exclusive", 0, Takes::kMaybe, Here::kRefused, "--gpu all takes every card"},
    SlurmOption{"input", 'i', Takes::kValue, Here::kRefused, "write < FILE in the script"},
    SlurmOption{"export-file", 0, Takes::kValue, Here::kRefused, "set the variables in the script"},
    SlurmOption{"container", 0, Takes::kValue, Here::kRefused, "start the container in the script"},
    SlurmOption{"gpus-per-socket", 0, Takes::kValue, Here::kRefused, "say --gpus"},
    SlurmOption{"gid", 0, Takes::kValue, Here::kRefused, "a job runs as who submits it"},
    SlurmOption{"uid", 0, Takes::kValue, Here::kRefused, "a job runs as who submits it"},
    SlurmOption{"wrap", 0, Takes::kValue, Here::kRefused, "mete submit -- sh -c COMMAND"},
    SlurmOption{"test-only", 0, Takes::kNothing, Here::kRefused, "mete submit --dry-run"},
    SlurmOption{"account", 'A'},
    SlurmOption{"acctg-freq"},
    SlurmOption{"batch"},
    SlurmOption{"bb"},
    SlurmOption{"bbf"},
    SlurmOption{"cluster-constraint"},
    SlurmOption{"clusters", 'M'},
    SlurmOption{"constraint", 'C'},
    SlurmOption{"contiguous", 0, Takes::kNothing},
    SlurmOption{"core-spec", 'S'},
    SlurmOption{"cores-per-socket"},
    SlurmOption{"cpu-freq"},
    SlurmOption{"delay-boot"},
    SlurmOption{"distribution", 'm'},
    SlurmOption{"exclude", 'x'},
    SlurmOption{"extra-node-info", 'B'},
    SlurmOption{"get-user-env", 0, Takes::kMaybe},
    SlurmOption{"gpu-bind"},
    SlurmOption{"gpu-freq"},
    SlurmOption{"gres-flags"},
    SlurmOption{"hint"},
    SlurmOption{"ignore-pbs", 0, Takes::kNothing},
    SlurmOption{"kill-on-invalid-dep"},
    SlurmOption{"licenses", 'L'},
    SlurmOption{"mcs-label"},
    SlurmOption{"mem-bind"},
    SlurmOption{"mincpus"},
    SlurmOption{"network"},
    SlurmOption{"no-kill", 'k', Takes::kMaybe},
    SlurmOption{"nodefile", 'F'},
    SlurmOption{"nodelist", 'w'},
    SlurmOption{"open-mode"},
    SlurmOption{"overcommit", 'O', Takes::kNothing},
    SlurmOption{"oversubscribe", 's', Takes::kMaybe},
    SlurmOption{"parsable", 0, Takes::kMaybe},
    SlurmOption{"partition", 'p'},
    SlurmOption{"power"},
    SlurmOption{"prefer"},
    SlurmOption{"profile"},
    SlurmOption{"propagate", 0, Takes::kMaybe},
    SlurmOption{"qos", 'q'},
    SlurmOption{"quiet", 'Q', Takes::kNothing},
    SlurmOption{"reboot", 0, Takes::kNothing},
    SlurmOption{"reservation"},
    SlurmOption{"signal"},
    SlurmOption{"sockets-per-node"},
    SlurmOption{"spread-job", 0, Takes::kNothing},
    SlurmOption{"switches"},
    SlurmOption{"thread-spec"},
    SlurmOption{"threads-per-core"},
    SlurmOption{"time-min"},
    SlurmOption{"tmp"},
    SlurmOption{"use-min-nodes", 0, Takes::kNothing},
    SlurmOption{"verbose", 'v', Takes::kNothing},
    SlurmOption{"wait", 'W', Takes::kNothing},
    SlurmOption{"wait-all-nodes"},
    SlurmOption{"wckey"},
};

const SlurmOption* find_known(std::string_view word) {
  for (const SlurmOption& known : kKnown) {
    const bool is_letter = word.size() == 1 && known.letter == word.front();
    if (is_letter || known.name == word) return &known;
  }
  return nullptr;
}

Error unknown(const std::string& written) {
  std::vector<std::string_view> names;
  for (const SlurmOption& known : kKnown) names.push_back(known.name);
  const std::string_view near =
      written.starts_with("--") ? base::nearest(written.substr(2), names) : std::string_view();
  return Error::invalid("#SBATCH " + base::quote(written) + ": sbatch has no such option")
      .with_hint(near.empty() ? "take it out, or write a #METE line"
                              : "did you mean --" + std::string(near) + "?");
}

}  // namespace

Result<void> SlurmOptions::add(const std::vector<std::string>& args, const std::string& where) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    const bool is_long = arg.starts_with("--") && arg.size() > 2;
    if (!is_long && (arg.size() < 2 || arg.front() != '-' || arg[1] == '-'))
      return Error::invalid("#SBATCH " + base::quote(arg) + " is no option")
          .with_hint("write #SBATCH --option=value");
    const std::size_t equals = is_long ? arg.find('=') : std::string::npos;
    const std::string written = is_long ? arg.substr(0, equals) : arg.substr(0, 2);
    const SlurmOption* known = find_known(std::string_view(written).substr(is_long ? 2 : 1));
    if (known == nullptr) return unknown(written);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = arg.substr(equals + 1);
    if (!is_long && arg.size() > 2) value = arg.substr(2);
    if (value && known->takes == Takes::kNothing)
      return Error::invalid("#SBATCH " + written + " takes no value").with_hint("write it alone");
    if (!value && known->takes == Takes::kValue) {
      if (i + 1 == args.size())
        return Error::invalid("#SBATCH " + written + " needs a value")
            .with_hint("write " + written + (is_long ? "=VALUE" : " VALUE"));
      value = args[++i];
    }
    std::erase_if(given_, [&](const SlurmGiven& before) { return before.option == known; });
    given_.push_back({known, value.value_or(""), where});
  }
  return {};
}

Result<std::vector<Word>> SlurmOptions::words(std::vector<std::string>& warnings) const {
  for (const auto& [option, value, where] : given_) {
    const std::string name = "--" + std::string(option->name);
    if (option->here == Here::kRefused) return slurm_refused(name, option->instead).within(where);
    if (option->here == Here::kMustBeOne && value != "1" && !value.starts_with("1-"))
      return slurm_refused(name + " " + base::quote(value), option->instead).within(where);
    if (option->here == Here::kNothing)
      warnings.push_back(where + ": #SBATCH " + name + " has no meaning here and was left out");
  }
  return slurm_words(given_, warnings);
}

}  // namespace mete::cli
