// SPDX-License-Identifier: Apache-2.0
// The options of sbatch and srun, and which of three each is. See slurm_options.h.
#include "cli/slurm_options.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "cli/slurm_words.h"

namespace mete::cli {

namespace {

using Takes = SlurmOption::Takes;
using Here = SlurmOption::Here;

constexpr std::string_view kTasks = "say --ntasks";

// Of both programs.
constexpr std::array kShared{
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
    SlurmOption{"dependency", 'd', Takes::kValue, Here::kMeant},
    SlurmOption{"begin", 'b', Takes::kValue, Here::kMeant},
    SlurmOption{"deadline", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"nice", 0, Takes::kMaybe, Here::kMeant},
    SlurmOption{"priority", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"chdir", 'D', Takes::kValue, Here::kMeant},
    SlurmOption{"export", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"hold", 'H', Takes::kNothing, Here::kMeant},
    SlurmOption{"comment", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mail-type", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"mail-user", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"nodes", 'N', Takes::kValue, Here::kMustBeOne, "mete knows this machine alone"},
    SlurmOption{"ntasks", 'n', Takes::kValue, Here::kMeant},
    SlurmOption{"ntasks-per-node", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"ntasks-per-gpu", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"ntasks-per-socket", 0, Takes::kValue, Here::kMustBeOne, kTasks},
    SlurmOption{"ntasks-per-core", 0, Takes::kValue, Here::kMustBeOne, kTasks},
    SlurmOption{"exclusive", 0, Takes::kMaybe, Here::kRefused, "--gpu all takes every card"},
    SlurmOption{"container", 0, Takes::kValue, Here::kRefused, "start the container in the script"},
    SlurmOption{"gpus-per-socket", 0, Takes::kValue, Here::kRefused, "say --gpus"},
    SlurmOption{"gid", 0, Takes::kValue, Here::kRefused, "a job runs as who submits it"},
    SlurmOption{"uid", 0, Takes::kValue, Here::kRefused, "a job runs as who submits it"},
    SlurmOption{"account", 'A'},
    SlurmOption{"acctg-freq"},
    SlurmOption{"bb"},
    SlurmOption{"bbf"},
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
    SlurmOption{"gpu-bind"},
    SlurmOption{"gpu-freq"},
    SlurmOption{"gres-flags"},
    SlurmOption{"hint"},
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
    SlurmOption{"wckey"},
    SlurmOption{"test-only", 0, Takes::kNothing, Here::kRefused,
                "mete run --dry-run or mete submit --dry-run"},
};

constexpr std::array kOfSbatch{
    SlurmOption{"array", 'a', Takes::kValue, Here::kMeant},
    SlurmOption{"requeue", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"no-requeue", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"export-file", 0, Takes::kValue, Here::kRefused, "set the variables in the script"},
    SlurmOption{"input", 'i', Takes::kValue, Here::kRefused, "write < FILE in the script"},
    SlurmOption{"wrap", 0, Takes::kValue, Here::kRefused, "mete submit -- sh -c COMMAND"},
    SlurmOption{"batch"},
    SlurmOption{"cluster-constraint"},
    SlurmOption{"get-user-env", 0, Takes::kMaybe},
    SlurmOption{"ignore-pbs", 0, Takes::kNothing},
    SlurmOption{"parsable", 0, Takes::kMaybe},
    SlurmOption{"wait", 'W', Takes::kNothing},
    SlurmOption{"wait-all-nodes"},
};

constexpr std::array kOfSrun{
    SlurmOption{"input", 'i', Takes::kValue, Here::kRefused, "write < FILE after srun"},
    SlurmOption{"jobid", 0, Takes::kValue, Here::kRefused, "mete attach shows a running job"},
    SlurmOption{"multi-prog", 0, Takes::kNothing, Here::kRefused,
                "start a script that looks at SLURM_PROCID"},
    SlurmOption{"accel-bind"},
    SlurmOption{"bcast", 0, Takes::kMaybe},
    SlurmOption{"compress", 0, Takes::kMaybe},
    SlurmOption{"cpu-bind"},
    SlurmOption{"disable-status", 'X', Takes::kNothing},
    SlurmOption{"epilog"},
    SlurmOption{"exact", 0, Takes::kNothing},
    SlurmOption{"immediate", 'I', Takes::kMaybe},
    SlurmOption{"interactive", 0, Takes::kNothing},
    SlurmOption{"kill-on-bad-exit", 'K', Takes::kMaybe, Here::kMeant},
    SlurmOption{"label", 'l', Takes::kNothing},
    SlurmOption{"mpi"},
    SlurmOption{"msg-timeout"},
    SlurmOption{"overlap", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"preserve-env", 'E', Takes::kNothing, Here::kMeant},
    SlurmOption{"prolog"},
    SlurmOption{"pty", 0, Takes::kMaybe, Here::kMeant},
    SlurmOption{"quit-on-interrupt", 0, Takes::kNothing},
    SlurmOption{"relative", 'r'},
    SlurmOption{"resv-ports", 0, Takes::kMaybe},
    SlurmOption{"slurmd-debug"},
    SlurmOption{"task-epilog"},
    SlurmOption{"task-prolog"},
    SlurmOption{"threads", 'T'},
    SlurmOption{"unbuffered", 'u', Takes::kNothing, Here::kMeant},
    SlurmOption{"wait", 'W'},
    SlurmOption{"whole", 0, Takes::kNothing},
};

template <std::size_t N>
constexpr auto with_shared(const std::array<SlurmOption, N>& own) {
  std::array<SlurmOption, N + kShared.size()> all{};
  std::copy(own.begin(), own.end(), all.begin());
  std::copy(kShared.begin(), kShared.end(), all.begin() + N);
  return all;
}
constexpr auto kSbatchOptions = with_shared(kOfSbatch);
constexpr auto kSrunOptions = with_shared(kOfSrun);

const SlurmOption* find_known(const SlurmProgram& program, std::string_view word) {
  for (const SlurmOption& known : program.options) {
    const bool is_letter = word.size() == 1 && known.letter == word.front();
    if (is_letter || known.name == word) return &known;
  }
  return nullptr;
}

bool is_line(const SlurmProgram& program) { return program.mark == kSbatchLines.mark; }

Error unknown(const SlurmProgram& program, const std::string& written) {
  std::vector<std::string_view> names;
  for (const SlurmOption& known : program.options) names.push_back(known.name);
  const std::string_view near =
      written.starts_with("--") ? base::nearest(written.substr(2), names) : std::string_view();
  const std::string name = is_line(program) ? "sbatch" : std::string(program.mark);
  return Error::invalid(std::string(program.mark) + " " + base::quote(written) + ": " + name +
                        " has no such option")
      .with_hint(!near.empty()      ? "did you mean --" + std::string(near) + "?"
                 : is_line(program) ? "take it out, or write a #METE line"
                                    : "take it out");
}

}  // namespace

const SlurmProgram kSbatchLines{"#SBATCH", kSbatchOptions};
const SlurmProgram kSbatch{"sbatch", kSbatchOptions};
const SlurmProgram kSrun{"srun", kSrunOptions};

// The option at `at`, with its value; returns where the next word is.
Result<std::size_t> SlurmOptions::take_one(const SlurmProgram& program,
                                           const std::vector<std::string>& args, std::size_t at,
                                           const std::string& where) {
  const std::string mark(program.mark);
  const std::string& arg = args[at];
  const bool is_long = arg.starts_with("--") && arg.size() > 2;
  if (!is_long && (arg.size() < 2 || arg.front() != '-' || arg[1] == '-'))
    return Error::invalid(mark + " " + base::quote(arg) + " is no option")
        .with_hint("write " + mark + " --option=value");
  const std::size_t equals = is_long ? arg.find('=') : std::string::npos;
  std::string written = is_long ? arg.substr(0, equals) : arg.substr(0, 2);
  std::string letters = is_long ? "" : arg.substr(2);
  const SlurmOption* known = find_known(program, std::string_view(written).substr(is_long ? 2 : 1));
  // Letters without a value in one word: "-hl".
  while (known != nullptr && known->takes == Takes::kNothing && !letters.empty() &&
         find_known(program, letters.substr(0, 1)) != nullptr) {
    given_.push_back({known, "", where, program.mark});
    written = "-" + letters.substr(0, 1);
    known = find_known(program, letters.substr(0, 1));
    letters.erase(0, 1);
  }
  if (known == nullptr) return unknown(program, written);
  std::optional<std::string> value;
  if (equals != std::string::npos) value = arg.substr(equals + 1);
  if (!letters.empty()) value = letters;
  if (value && known->takes == Takes::kNothing)
    return Error::invalid(mark + " " + written + " takes no value").with_hint("write it alone");
  if (!value && known->takes == Takes::kValue) {
    if (++at == args.size())
      return Error::invalid(mark + " " + written + " needs a value")
          .with_hint("write " + written + (is_long ? "=VALUE" : " VALUE"));
    value = args[at];
  }
  std::erase_if(given_, [&](const SlurmGiven& before) { return before.option == known; });
  given_.push_back({known, value.value_or(""), where, program.mark});
  return at + 1;
}

Result<void> SlurmOptions::add(const std::vector<std::string>& args, const std::string& where) {
  for (std::size_t at = 0; at < args.size();) {
    const Result<std::size_t> next = take_one(kSbatchLines, args, at, where);
    if (!next) return next.error();
    at = *next;
  }
  return {};
}

Result<std::vector<std::string>> SlurmOptions::take(const SlurmProgram& program,
                                                    const std::vector<std::string>& args) {
  std::size_t at = 0;
  while (at < args.size() && args[at] != "--" && args[at].size() > 1 && args[at].front() == '-') {
    const Result<std::size_t> next = take_one(program, args, at, "");
    if (!next) return next.error();
    at = *next;
  }
  if (at < args.size() && args[at] == "--") ++at;
  return std::vector<std::string>(args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
}

// Options of lines and of the command line are those of one program, in one table.
void SlurmOptions::add(const SlurmOptions& over) {
  for (const SlurmGiven& each : over.given_) {
    remove(each.option->name);
    given_.push_back(each);
  }
}

const SlurmGiven* SlurmOptions::find(std::string_view name) const {
  for (const SlurmGiven& each : given_)
    if (each.option->name == name) return &each;
  return nullptr;
}

std::string SlurmOptions::value_of(std::string_view name) const {
  const SlurmGiven* given = find(name);
  return given == nullptr ? "" : given->value;
}

void SlurmOptions::remove(std::string_view name) {
  std::erase_if(given_, [&](const SlurmGiven& each) { return each.option->name == name; });
}

Result<std::vector<Word>> SlurmOptions::words(std::vector<std::string>& warnings) const {
  const auto at = [](const std::string& where, Error error) {
    return where.empty() ? error : std::move(error).within(where);
  };
  for (const SlurmGiven& given : given_) {
    const auto& [option, value, where, mark] = given;
    if (option->here == Here::kRefused)
      return at(where, slurm_refused(given.written(), option->instead));
    if (option->here == Here::kMustBeOne && value != "1" && !value.starts_with("1-"))
      return at(where, slurm_refused(given.written() + " " + base::quote(value), option->instead));
    if (option->here == Here::kNothing)
      warnings.push_back((where.empty() ? "" : where + ": ") + given.written() +
                         " has no meaning here and was left out");
  }
  return slurm_words(given_, warnings);
}

Result<std::uint64_t> slurm_tasks(const SlurmOptions& options, std::uint64_t cards) {
  struct Way {
    std::string_view name;
    std::uint64_t times;
  };
  for (const Way& way :
       {Way{"ntasks", 1}, Way{"ntasks-per-node", 1}, Way{"ntasks-per-gpu", cards}}) {
    const SlurmGiven* given = options.find(way.name);
    if (given == nullptr) continue;
    const Result<std::uint64_t> number = base::parse_uint(given->value);
    if (!number || *number == 0 || *number > 1024 || way.times == 0 || *number * way.times > 1024) {
      Error error = Error::invalid(given->written() + " " + base::quote(given->value) +
                                   (way.times == 0 ? " without a GPU" : " is no number of tasks"))
                        .with_hint(way.times == 0 ? "add --gpus=1" : "write 4, at most 1024");
      return given->where.empty() ? error : std::move(error).within(given->where);
    }
    return *number * way.times;
  }
  return std::uint64_t{1};
}

}  // namespace mete::cli
