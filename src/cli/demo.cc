// SPDX-License-Identifier: Apache-2.0
// `mete demo`: shows on cards what mete does, and checks it. The cards are simulated unless there
// are real ones and the user agrees. Leaves nothing behind. Stage (demo_stage.h) starts and cleans
// up, DemoStory (demo_story.h) plays and checks, DemoReport (demo_report.h) prints.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "cli/cards_reader.h"
#include "cli/demo_report.h"
#include "cli/demo_stage.h"
#include "cli/demo_story.h"
#include "cli/verbs.h"
#include "launch/parts.h"
#include "runner/job_runner.h"

namespace mete::cli {

namespace {

constexpr int kExitNotHeld = 1;
constexpr const char* kSimulated = "4xH200";

constexpr std::array kDemoOptions{
    OptionSpec{"--sim", "", "use four simulated cards"},
    OptionSpec{"--real", "", "use a card of this machine; fail if there is none"},
    OptionSpec{"--yes", "", "use a card of this machine if there is one; do not ask", "-y"},
    kOutputOption,
};

// Asks only if there is a terminal to answer on.
bool user_agrees(const std::string& card) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return false;
  std::fprintf(stderr,
               "This machine has a GPU (%s). Shall the demo use it? It reserves one card that "
               "nobody uses\nfor some seconds. Otherwise it simulates cards. [y/N] ",
               card.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  answer = base::to_lower(base::trim(answer));
  return answer == "y" || answer == "yes";
}

Result<bool> uses_real_cards(const Parsed& parsed) {
  const int choices = parsed.has("--sim") + parsed.has("--real") + parsed.has("--yes");
  if (choices > 1)
    return Error::invalid("--sim, --real and --yes exclude each other").with_hint("give one");
  if (parsed.has("--sim")) return false;
  const Result<CardsRead> machine = read_cards("libnvidia-ml.so.1");
  const bool has_cards = machine && !machine->cards.empty();
  if (parsed.has("--real") && !machine)
    return Error(machine.error()).with_hint("mete demo --sim needs no GPU");
  if (parsed.has("--real") && !has_cards)
    return Error::infeasible("this machine has no card").with_hint("mete demo --sim needs none");
  if (!has_cards) return false;
  return parsed.has("--real") || parsed.has("--yes") || user_agrees(machine->cards.front().name);
}

Result<launch::Parts> demo_parts(bool real) {
  Result<launch::Parts> parts = launch::find_parts();
  if (!parts) return parts;
  if (parts->demo_program.empty() || (!real && parts->simgpu.empty()))
    return Error::io(parts->demo_program.empty() ? "mete-demo-program is missing"
                                                 : "the simulated drivers are missing")
        .with_hint("build or install all of mete: cmake --build --preset release");
  return parts;
}

// The command for this program from the current folder: it may have been built and not installed.
std::string typed(const std::string& path) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string() + "/";
  return path.starts_with(here) ? path.substr(here.size()) : path;
}

void say_goodbye(const DemoReport& report, const launch::Parts& parts, bool real) {
  const std::string all = std::to_string(report.checks());
  if (report.failed() != 0) {
    report.print("\nIt does NOT hold here: " + std::to_string(report.failed()) + " of " + all +
                 " checks failed.");
    return;
  }
  const std::string mete = typed(base::real_path("/proc/self/exe"));
  report.print("\nAll " + all + " checks held. Now with a program of yours:\n   $ " + mete +
               " run --gpu 40% -- python train.py");
  if (!real)
    report.print(
        std::string("Simulated cards are for programs of the CUDA driver API, such as this one:\n"
                    "   $ METE_SIM=") +
        kSimulated + " " + mete + " run --gpu 40% -- " + typed(parts.demo_program) + " anna 4");
}

int run_demo(const Parsed& parsed, const Output& output) {
  if (const Result<void> r = runner::check_not_nested(); !r) return output.fail(r.error());
  const Result<bool> real = uses_real_cards(parsed);
  if (!real) return output.fail(real.error());
  const Result<launch::Parts> parts = demo_parts(*real);
  if (!parts) return output.fail(parts.error());

  DemoReport report(output);
  Result<std::unique_ptr<Stage>> stage =
      Stage::open(*parts, *real ? "" : kSimulated,
                  [&](std::string_view what, int seconds) { report.progress(what, seconds); });
  if (!stage) return output.fail(stage.error());
  DemoStory story(**stage, report, parts->demo_program, !*real);
  const Result<void> told = story.tell();
  report.progress("cleaning up", 0);
  const std::vector<std::string> left = (*stage)->close();
  report.end_progress();
  if (!told) {
    if (const int signal = (*stage)->signal(); signal != 0) {
      output.say("interrupted; nothing is left behind");
      return 128 + signal;
    }
    return output.fail(told.error());
  }
  report.check(left.empty(), "nothing is left: no process, no file", base::join(left, ", "));
  if (output.json())
    output.data(report.document(!*real, story.card().name, *story.card().capacity));
  else
    say_goodbye(report, *parts, *real);
  return report.failed() == 0 ? kExitOk : kExitNotHeld;
}

}  // namespace

const Verb kDemoVerb{
    "demo",
    "show programs that share cards, reach their limits and wait",
    "mete demo [--sim|--real|--yes] [-o json]",
    "mete demo\n"
    "mete demo --sim             # simulated cards, even if there is a GPU\n"
    "mete demo --yes -o json     # a real card if there is one; do not ask",
    "Small programs share a card, one reaches its limit, one waits for a card and sees the reason. "
    "The demo uses mete run, a daemon of its own, and programs that know nothing of mete, and "
    "checks what it shows. Without a GPU, or if you do not agree to use it, the cards are "
    "simulated. It takes some seconds and leaves nothing behind.\n"
    "\n"
    "Exit code: 0 if everything shown was true, 1 if not, 75 if no real card is free.",
    kDemoOptions,
    Rest::kNothing,
    run_demo,
};

}  // namespace mete::cli
