// SPDX-License-Identifier: Apache-2.0
// The options of `mete submit`, and which of two that say the same holds. See submit_job.h.
#include <algorithm>
#include <array>

#include "cli/job_words.h"
#include "cli/submit_job.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kSubmitOptions{
    kGpuOption,
    kDevicesOption,
    kGpuTypeOption,
    kWhereOption,
    kCpuOnlyOption,
    kOrCpuOption,
    kTimeOption,
    kNameOption,
    OptionSpec{"--after", "JOB[:WHEN]",
               "start when that job has ended: ok (default), any or fail; @ is my last job.\n"
               "A list between commas, or more than once: all of them",
               "", true},
    OptionSpec{"--array", "RANGE",
               "a job for each number, as in 0-99, 1,3,5 or 0-99%4 (at most four at a time);\n"
               "METE_ARRAY_INDEX has it"},
    OptionSpec{"--log", "FILE",
               "write the output here (default: in the state folder; mete logs shows it).\n"
               "%j is the job, %A the array, %a the element, %x the name, %u the user"},
    OptionSpec{"--err", "FILE", "the standard error apart, into this file"},
    OptionSpec{"--retries", "N", "try again so often after a failure"},
    OptionSpec{"--retry-gpu", "xFACTOR",
               "when the share was too small, try again with so much more, as in x1.5"},
    OptionSpec{"--requeue", "", "start again after a reboot, instead of being lost"},
    OptionSpec{"--begin", "TIME",
               "not before: 18:00, \"tomorrow 08:00\", \"2026-11-15 18:00\", now+2h"},
    OptionSpec{"--deadline", "TIME", "end it if it has not ended by then"},
    OptionSpec{"--hold", "", "wait for mete release", "-H"},
    kPriorityOption,
    kProcsOption,
    kCpusOption,
    kRamOption,
    OptionSpec{"--tty", "", "give it a terminal, for mete attach"},
    OptionSpec{"--label", "KEY=VALUE", "a note of yours; may be given more than once", "-l", true},
    kEnvOption,
    kChdirOption,
    kVisibleOption,
    kNoWaitOption,
    OptionSpec{"--file", "FILE", "read the job, or several, from a YAML file", "-f"},
    OptionSpec{"--dry-run", "", "print what would be submitted, as a job file"},
    OptionSpec{"--quiet", "", "no warnings", "-q"},
    kOutputOption,
    OptionSpec::later("--compute", "SHARE", "it comes with MPS support"),
    kNotifyOption,
    kNotifyOnOption,
    kPreemptibleOption,
    kNotPreemptibleOption,
    kNoPreemptOption,
    kShedOption,
    OptionSpec::later("--pool", "NAME", "it comes with Slurm support"),
    OptionSpec{.name = "--exec", .other_verb = "mete run"},
};

bool has(const std::vector<Word>& words, std::string_view option) {
  return std::any_of(words.begin(), words.end(),
                     [&](const Word& word) { return word.option == option; });
}

// "A" of "A=1".
std::string_view key_of(const Word& word) {
  return std::string_view(word.value).substr(0, word.value.find('='));
}

bool is_replaced(const Word& below, const std::vector<Word>& over) {
  const std::string_view option = below.option;
  if (option == "--env" || option == "--label")
    return std::any_of(over.begin(), over.end(), [&](const Word& word) {
      return word.option == option && key_of(word) == key_of(below);
    });
  const bool no_gpu = std::any_of(over.begin(), over.end(), [](const Word& word) {
    return (word.option == "--cpu-only" && word.value != kNo) ||
           (word.option == "--gpu" && word.value == "0");
  });
  if (no_gpu && (option == "--devices" || option == "--gpu-type")) return true;
  // Two words about one thing.
  constexpr std::string_view kMay = "--preemptible", kMayNot = "--not-preemptible";
  if (option == kMay || option == kMayNot)
    return std::any_of(over.begin(), over.end(), [&](const Word& word) {
      return word.option == option ||
             (word.option == (option == kMay ? kMayNot : kMay) && word.value != kNo);
    });
  if (option == "--gpu") return no_gpu || has(over, "--gpu");
  if (option == "--cpu-only")
    return has(over, "--gpu") || has(over, "--devices") || has(over, "--cpu-only");
  return has(over, option);
}

}  // namespace

std::span<const OptionSpec> submit_options() { return kSubmitOptions; }

bool is_of_command_line(std::string_view option) {
  return option == "--file" || option == "--dry-run" || option == "--quiet" ||
         option == kOutputOption.name;
}

std::vector<Word> merge(std::vector<Word> under, std::vector<Word> over) {
  std::erase_if(under, [&](const Word& word) { return is_replaced(word, over); });
  under.insert(under.end(), std::make_move_iterator(over.begin()),
               std::make_move_iterator(over.end()));
  return under;
}

}  // namespace mete::cli
