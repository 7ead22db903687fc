// SPDX-License-Identifier: Apache-2.0
// Prints everything about a process that a guest could disturb, after it made a context, allocated,
// was refused and freed: signal handlers and masks, umask, errno, environment, descriptors,
// threads, output. tests/gpu/run compares a run inside a cap with one outside: `state` lines must
// be the same, but for what the cap announces (METE_*).
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/gpu/gpu.h"

using namespace gpu;

namespace {

void state(const std::string& what, const std::string& value) {
  printf("state\t%s\t%s\n", what.c_str(), value.c_str());
}

std::vector<std::string> descriptors() {
  std::vector<std::string> all;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(folder)) continue;
    char target[512];
    const ssize_t n = readlink((std::string("/proc/self/fd/") + entry->d_name).c_str(), target,
                               sizeof target - 1);
    target[n < 0 ? 0 : n] = 0;
    std::string name = target;
    if (name.find(':') != std::string::npos)
      name.resize(name.find(':'));  // pipe:[123] differs every time
    all.push_back(name);
  }
  closedir(folder);
  std::sort(all.begin(), all.end());
  return all;
}

int threads() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

}  // namespace

int main() {
  umask(027);
  setenv("MANNERS", "kept", 1);
  signal(SIGUSR1, SIG_IGN);
  start();
  errno = 1234;
  CUdeviceptr p = 0;
  must(cu.cuMemAlloc_v2(&p, 64 * kMiB), "cuMemAlloc");
  state("errno after an allocation", text("%d", errno));
  errno = 1234;
  CUdeviceptr never = 0;
  const CUresult refused = cu.cuMemAlloc_v2(&never, size_t{1} << 44);
  state("16 TiB", error_name(refused));
  const int after = errno;
  must(cu.cuMemFree_v2(p), "cuMemFree");
  must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
  if (grant() != kNothing) check(after == 1234, "errno after a refusal", text("%d", after));

  for (int number = 1; number < 32; number++) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    state(text("signal %d", number), action.sa_handler == SIG_DFL   ? "default"
                                     : action.sa_handler == SIG_IGN ? "ignored"
                                                                    : "handler");
  }
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  std::string blocked;
  for (int number = 1; number < 64; number++)
    if (sigismember(&mask, number) == 1) blocked += text(" %d", number);
  state("blocked signals", blocked.empty() ? "none" : blocked);
  const mode_t old = umask(0);
  state("umask", text("%03o", static_cast<unsigned>(old)));
  state("threads", text("%d", threads()));
  state("MANNERS", getenv("MANNERS"));
  std::string open;
  for (const std::string& d : descriptors()) open += d + " ";
  state("descriptors", open);
  return failures ? 1 : 0;
}
