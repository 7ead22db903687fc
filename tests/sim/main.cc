// SPDX-License-Identifier: Apache-2.0
// The simulator: whole daemons on fakes, in one thread, checked after every step.
//
//   mete-sim --seed 123 --steps 20000     equal seeds give equal runs
//   mete-sim ... --trace 700              prints what happens from step 700 on
//   mete-sim-planted --plant NAME ...     with a deliberate bug, which has to be found
//
// Ends with the number of checks of each kind, or with the seed, step and commit of a failure.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/text.h"
#include "tests/sim/planted.h"
#include "tests/sim/world.h"

namespace mete::sim {

namespace {

constexpr std::uint64_t kStepsBetweenQuiet = 5000;

const Judge* running = nullptr;

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

// METE_ASSERT prints what was impossible; this prints in which run.
void on_abort(int) {
  if (running != nullptr) end_with_failure("the daemon died", running->seed(), running->step());
  std::_Exit(1);
}

// A simulator in which nothing happens finds nothing.
// clang-format off: one to a line would be two pages
constexpr const char* kMustHappen[] = {
    "job.submitted",
    "job.granted",
    "job.started",
    "job.stopping",
    "job.ended",
    "job.requeued",
    "job.ungranted",
    "job.held",
    "job.released",
    "job.priority",
    "job.forecast",
    "card.lost",
    "card.back",
    "card.drained",
    "card.undrained",
    "card.reserved",
    "card.unreserved",
    "quota.set",
    "machine.booted",
    "turn",
    "unsettled turn",
    "failed commit",
    "refused",
    "stopped",
    "death",
    "death inside of a turn",
    "reboot",
    "first in the queue",
    "advice",
    "a keeper's exit",
    "a run's exit",
    "parked",
    "parked by hand",
    "parked as idle",
    "idle",
    "an escape seen",
    "preempted",
    "refused to park",
    "back from being parked",
    "no room to come back",
    "a program wakes",
    "grown",
    "shrunk",
    "an end while it was not there",
    "death while a job is parking",
    "death while a job is parked",
    "death while a job is unparking",
};
// Checks that must occur in a long run.
constexpr const char* kMustHappenOnce[] = {
    "parked for its growth",
    "asked to shrink",
    "growth given back when asked",
    "overtaken while it is parked",
    "advice to have others parked",
    "first to come back",
    "overtaken",
};
// clang-format on

bool happened(const Judge& judge, const char* what) {
  if (judge.seen().contains(what)) return true;
  std::printf("there was no %s to look at: that is a failure\n", what);
  return false;
}

int check_that_enough_happened(const Judge& judge, std::uint64_t steps) {
  bool enough = true;
  if (steps >= 100'000)
    for (const char* what : kMustHappen) enough = happened(judge, what) && enough;
  if (steps >= 1'000'000)
    for (const char* what : kMustHappenOnce) enough = happened(judge, what) && enough;
  return enough ? 0 : 1;
}

int simulate(std::uint64_t seed, std::uint64_t steps, std::uint64_t trace) {
  Judge judge(seed, trace);
  running = &judge;
  World world(judge);
  for (std::uint64_t i = 1; i <= steps; ++i) {
    world.step();
    if ((i % kStepsBetweenQuiet == 0 || i == steps) && !world.drains())
      judge.fail("the world is quiet, and the queue does not drain: there is " + world.left());
  }
  running = nullptr;
  if (!plant().empty()) {
    std::printf("%s: NOT FOUND in %llu steps of seed %llu\n", plant().c_str(),
                static_cast<unsigned long long>(steps), static_cast<unsigned long long>(seed));
    return 1;
  }
  std::printf("seed %llu:", static_cast<unsigned long long>(seed));
  for (const auto& [what, count] : judge.seen())
    std::printf(" %s %llu,", what.c_str(), static_cast<unsigned long long>(count));
  std::printf(" all is well\n");
  return check_that_enough_happened(judge, steps);
}

}  // namespace

void end_with_failure(const std::string& what, std::uint64_t seed, std::uint64_t step) {
  if (!plant().empty()) {
    std::printf("%s: found at step %llu of seed %llu: %s\n", plant().c_str(),
                static_cast<unsigned long long>(step), static_cast<unsigned long long>(seed),
                what.c_str());
    std::fflush(stdout);
    std::_Exit(0);
  }
  std::fflush(stdout);
  std::fprintf(stderr, "FAILED: %s\nseed %llu, step %llu, commit %s\n", what.c_str(),
               static_cast<unsigned long long>(seed), static_cast<unsigned long long>(step),
               commit().c_str());
  std::_Exit(1);
}

int run(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::uint64_t steps = 10'000;
  std::uint64_t trace = UINT64_MAX;
  for (int i = 1; i + 1 < argc; i += 2) {
    const Result<std::uint64_t> number = base::parse_uint(argv[i + 1]);
    if (number && std::strcmp(argv[i], "--seed") == 0)
      seed = *number;
    else if (number && std::strcmp(argv[i], "--steps") == 0)
      steps = *number;
    else if (number && std::strcmp(argv[i], "--trace") == 0)
      trace = *number;
    else if (std::strcmp(argv[i], "--plant") == 0)
      set_plant(argv[i + 1]);
    else
      argc = 0;
  }
  if (argc % 2 == 0) {
    std::fprintf(stderr,
                 "usage: mete-sim [--seed N] [--steps N] [--trace FROM-STEP] [--plant NAME]\n");
    return 64;
  }
  std::signal(SIGABRT, on_abort);
  return simulate(seed, steps, trace);
}

}  // namespace mete::sim

int main(int argc, char** argv) { return mete::sim::run(argc, argv); }
