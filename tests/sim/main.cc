// SPDX-License-Identifier: Apache-2.0
// The simulator: whole daemons on fakes, in one thread, checked after every step.
//
//   mete-sim --seed 123 --steps 20000     the same seed is the same run
//
// Ends with what was there to be checked, or with the seed, step and commit of a failure.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/text.h"
#include "tests/sim/checker.h"
#include "tests/sim/where.h"
#include "tests/sim/world.h"

namespace mete::sim {

namespace {

constexpr std::uint64_t kStepsBetweenQuiet = 2500;

const Checker* running = nullptr;
std::uint64_t running_seed = 0;

// METE_ASSERT says what was impossible; this says in which run.
void on_abort(int) {
  if (running != nullptr) report_failure("the daemon died", running_seed, running->step());
  std::_Exit(1);
}

std::string commit() {
  const char* tree = std::getenv("METE_SOURCE_DIR");
  const std::string command =
      "git -C '" + std::string(tree == nullptr ? "." : tree) + "' describe --always --dirty";
  std::string text;
  if (FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    char line[100] = {};
    if (std::fgets(line, sizeof(line), pipe) != nullptr) text = base::trim(line);
    pclose(pipe);
  }
  return text.empty() ? "unknown" : text;
}

int simulate(std::uint64_t seed, std::uint64_t steps) {
  Checker checker(seed);
  running = &checker;
  running_seed = seed;
  World world(seed, checker);
  for (std::uint64_t i = 1; i <= steps; ++i) {
    world.step();
    if ((i % kStepsBetweenQuiet == 0 || i == steps) && !world.drains())
      checker.fail("the world is quiet, and the queue does not drain");
  }
  running = nullptr;
  std::printf("seed %llu:", static_cast<unsigned long long>(seed));
  for (const auto& [what, count] : checker.counts())
    std::printf(" %s %llu,", what.c_str(), static_cast<unsigned long long>(count));
  std::printf(" all is well\n");
  if (steps < 10'000) return 0;
  for (const char* what : {"job.submitted", "job.granted", "job.started", "job.stopping",
                           "job.ended", "card.lost", "card.back", "turn", "unsettled turn",
                           "failed commit", "refused", "overtaken", "stopped", "death"}) {
    if (checker.counts().contains(what)) continue;
    std::printf("there was no %s to look at: that is a failure\n", what);
    return 1;
  }
  return 0;
}

}  // namespace

void report_failure(const char* what, std::uint64_t seed, std::uint64_t step) {
  std::fprintf(stderr, "FAILED: %s\nseed %llu, step %llu, commit %s\n", what,
               static_cast<unsigned long long>(seed), static_cast<unsigned long long>(step),
               commit().c_str());
}

int run(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::uint64_t steps = 10'000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const Result<std::uint64_t> number = base::parse_uint(argv[i + 1]);
    if (number && std::strcmp(argv[i], "--seed") == 0)
      seed = *number;
    else if (number && std::strcmp(argv[i], "--steps") == 0)
      steps = *number;
    else
      argc = 0;
  }
  if (argc % 2 == 0) {
    std::fprintf(stderr, "usage: mete-sim [--seed N] [--steps N]\n");
    return 64;
  }
  std::signal(SIGABRT, on_abort);
  return simulate(seed, steps);
}

}  // namespace mete::sim

int main(int argc, char** argv) { return mete::sim::run(argc, argv); }
