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
               "start when that job has ended: ok (default), any or fail; @ is your last job. "
               "Separate several jobs by commas, or repeat the option",
               "", true},
    OptionSpec{"--array", "RANGE",
               "submit one job for each number: 0-99, 1,3,5, or 0-99%4 for at most four at a time. "
               "METE_ARRAY_INDEX holds the number"},
    OptionSpec{"--log", "FILE",
               "write the output to this file (default: in the state folder; mete logs prints it). "
               "%j is the job, %A the array, %a the element, %x the name, %u the user"},
    OptionSpec{"--err", "FILE", "write standard error to this file instead of the log"},
    OptionSpec{"--retries", "N", "retry up to N times after a failure"},
    OptionSpec{
        "--retry-gpu", "xFACTOR",
        "multiply the share by this factor when it was too small, such as x1.5; needs --retries"},
    OptionSpec{"--requeue", "", "start the job again after a reboot"},
    OptionSpec{
        "--begin", "TIME",
        "do not start before this time: 18:00, \"tomorrow 08:00\", \"2026-11-15 18:00\", now+2h"},
    OptionSpec{"--deadline", "TIME", "end the job if it has not ended by this time"},
    OptionSpec{"--hold", "", "submit the job held; mete release lets it start", "-H"},
    kPriorityOption,
    kProcsOption,
    kCpusOption,
    kRamOption,
    OptionSpec{"--tty", "", "give the job a terminal, for mete attach"},
    OptionSpec{"--label", "KEY=VALUE", "attach a note to the job; repeatable", "-l", true},
    kEnvOption,
    kChdirOption,
    kVisibleOption,
    kNoWaitOption,
    OptionSpec{"--file", "FILE", "read one or several jobs from a YAML file", "-f"},
    kDryRunOption,
    OptionSpec{"--print", "", "print the jobs as a job file, and submit nothing"},
    OptionSpec{"--quiet", "", "print no warnings", "-q"},
    kOutputOption,
    OptionSpec::later("--compute", "SHARE", "it comes with MPS support"),
    kNotifyOption,
    kNotifyOnOption,
    kPreemptibleOption,
    kNotPreemptibleOption,
    kIdleOption,
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
  return option == "--file" || option == "--dry-run" || option == "--print" ||
         option == "--quiet" || option == kOutputOption.name;
}

std::vector<Word> merge(std::vector<Word> under, std::vector<Word> over) {
  std::erase_if(under, [&](const Word& word) { return is_replaced(word, over); });
  under.insert(under.end(), std::make_move_iterator(over.begin()),
               std::make_move_iterator(over.end()));
  return under;
}

}  // namespace mete::cli
