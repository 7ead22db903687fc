// SPDX-License-Identifier: Apache-2.0
// mete-keeper: the parent of one detached job, started by meted with a plan in descriptor 3 and a
// pipe back in descriptor 4. The rest is in keeper.cc.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/exit_code.h"
#include "base/fd.h"
#include "launch/keeper_spawn.h"
#include "runner/keeper.h"
#include "wire/keeper.h"

namespace mete::runner {

namespace {

constexpr off_t kMaxPlan = 256 << 20;

Result<std::string> read_plan(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kMaxPlan)
    return Error::invalid("there is no plan");
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  if (!base::read_at(fd, bytes.data(), bytes.size(), 0))
    return Error::io("the plan cannot be read");
  return bytes;
}

// From the claim on no signal may end the keeper without a record; before it, dying is harmless.
void block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP})
    sigaddset(&set, number);
  (void)sigprocmask(SIG_BLOCK, &set, nullptr);
  // A full disk or a daemon that is gone is a failed write, not a reason to die.
  (void)signal(SIGPIPE, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN);
}

int refuse(int words, const std::string& why) {
  const std::string line = launch::kSaysRefused + why + "\n";
  (void)!write(words, line.data(), line.size());
  (void)std::fprintf(stderr, "mete-keeper: %s\n", why.c_str());
  return base::kExitUsage;
}

}  // namespace

int keeper_main(int argc, char** argv) {
  base::fill_standard_descriptors();
  if (argc == 2 && std::string(argv[1]) == "--version") {
    (void)std::printf("mete-keeper %s\n", METE_VERSION);
    return 0;
  }
  block_signals();
  Fd plan_fd(launch::kPlanFd);
  Fd words(launch::kWordsFd);
  if (fcntl(words.get(), F_SETFD, FD_CLOEXEC) != 0)
    return refuse(STDERR_FILENO, "meted starts it for a job that was submitted; see mete submit");
  const Result<std::string> bytes = read_plan(plan_fd.get());
  if (!bytes) return refuse(words.get(), bytes.error().message);
  plan_fd.reset();
  const Result<wire::KeeperPlan> plan = wire::decode_keeper_plan(*bytes);
  if (!plan) return refuse(words.get(), plan.error().message);
  return keep(*plan, std::move(words));
}

}  // namespace mete::runner
