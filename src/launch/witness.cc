// SPDX-License-Identifier: Apache-2.0
// See witness.h.
#include "launch/witness.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/file.h"

namespace mete::launch {

namespace {

// Clears the pending signals on each request, and ends with the launcher.
void sit(HelperProcess::Pipes pipes) {
  sigset_t all;
  sigfillset(&all);
  char byte = 0;
  while (read(pipes.alive, &byte, 1) == 1) {
    const timespec now{};
    while (sigtimedwait(&all, nullptr, &now) > 0) {
    }
    if (write(pipes.reply, &byte, 1) != 1) return;
  }
}

// The pending signals of a whole process, as in "ShdPnd:\t0000000000004000".
unsigned long long pending(pid_t pid) {
  const Result<std::string> status = base::read_all("/proc/" + std::to_string(pid) + "/status");
  if (!status) return 0;
  const std::size_t line = status->find("\nShdPnd:");
  if (line == std::string::npos) return 0;
  return std::strtoull(status->c_str() + line + 8, nullptr, 16);
}

}  // namespace

Result<Witness> Witness::start() {
  Result<HelperProcess> process = HelperProcess::start("mete-witness", sit);
  if (!process) return std::move(process).error();
  return Witness(*std::move(process));
}

bool Witness::group_got(int signal_number) {
  const bool got = (pending(process_.pid()) >> (signal_number - 1) & 1) != 0;
  return got && process_.ask();
}

}  // namespace mete::launch
