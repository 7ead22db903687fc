// SPDX-License-Identifier: Apache-2.0
// See top_signals.h. The descriptor of a process is opened before its start time is compared. If
// the process ends later and its number is used again, the signal reaches no other process.
#include "cli/top_signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "node/proc.h"

namespace mete::cli {

namespace {

Result<Fd> open_process(std::int32_t pid) {
  Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process) return process;
  if (errno == ESRCH) return Error::not_found("process " + std::to_string(pid) + " has ended");
  return Error::from_errno("open process " + std::to_string(pid), errno);
}

// The start time of the process, if it belongs to this user and is the one that was shown.
Result<std::uint64_t> check(const top::Target& target) {
  const std::string name = "process " + std::to_string(target.pid);
  const Result<node::ProcessStat> stat = node::read_stat(target.pid);
  if (!stat) return Error::not_found(name + " has ended");
  if (target.start_ticks != 0 && stat->start_ticks != target.start_ticks)
    return Error::not_found(name + " has ended; another has its number");
  const Result<node::ProcessStatus> status = node::read_status(target.pid);
  if (!status) return Error::not_found(name + " has ended");
  if (status->real_uid != getuid() || target.pid <= 1)
    return Error::denied(name + " is not yours; c cancels a job by the daemon");
  return stat->start_ticks;
}

}  // namespace

Result<void> aim(top::Deed& deed) {
  for (top::Target& target : deed.targets) {
    const Result<std::uint64_t> start = check(target);
    if (!start) return start.error();
    target.start_ticks = *start;
  }
  return {};
}

Result<std::size_t> send_signals(const top::Deed& deed) {
  std::size_t sent = 0;
  for (const top::Target& target : deed.targets) {
    const Result<Fd> process = open_process(target.pid);
    if (!process && process.error().code == ErrorCode::kNotFound) continue;
    if (!process) return process.error();
    const Result<std::uint64_t> start = check(target);
    if (!start && start.error().code == ErrorCode::kNotFound) continue;
    if (!start) return start.error();
    if (syscall(SYS_pidfd_send_signal, process->get(), deed.signal, nullptr, 0) == 0)
      ++sent;
    else if (errno != ESRCH)
      return Error::from_errno("signal process " + std::to_string(target.pid), errno);
  }
  return sent;
}

}  // namespace mete::cli
