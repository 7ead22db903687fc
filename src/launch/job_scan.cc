// SPDX-License-Identifier: Apache-2.0
// See job_scan.h. Each pass lists /proc, and looks at every process of the job's user that it has
// not looked at yet, the newest first: the runner, its mark in the environment, a mapping of the
// job's grant file, and last descent from a process already found. /proc/PID/status and stat never
// block; environ and maps may, so the pid is reported before they are read.
#include "launch/job_scan.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <vector>

#include "abi/process.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::size_t kMaxFile = 16 << 20;

struct Seen {
  std::uint64_t start = 0;
  pid_t parent = 0;
};

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// A thread group leader that has ended while other threads of it go on is a living zombie.
bool is_remains(const abi::ProcessStat& stat) {
  return stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
}

std::optional<std::uint64_t> number_after(const std::string& text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return std::nullopt;
  const Result<std::uint64_t> value = base::parse_uint(
      std::string_view(text).substr(begin, text.find_first_not_of("0123456789", begin) - begin));
  return value ? std::optional(*value) : std::nullopt;
}

// A living process of this user. Reads nothing that could block. `whole` becomes false if it could
// not be read.
std::optional<Seen> look(pid_t pid, std::uint32_t uid, bool* whole) {
  const Result<std::string> status = base::read_all(proc(pid, "status"));
  if (!status && status.error().code == ErrorCode::kBusy) *whole = false;
  if (!status || number_after(*status, "\nUid:") != uid) return std::nullopt;
  abi::ProcessStat stat;
  const abi::StatResult result = abi::read_stat(static_cast<std::uint32_t>(pid), &stat);
  if (result == abi::StatResult::kUnknown &&
      (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    *whole = false;
  if (result != abi::StatResult::kRead || is_remains(stat)) return std::nullopt;
  return Seen{stat.start, static_cast<pid_t>(number_after(*status, "\nPPid:").value_or(0))};
}

// The text begins and ends with a zero byte, as between variables.
bool has_variable(const std::string& environment, const std::string& variable) {
  return environment.find('\0' + variable + '\0') != std::string::npos;
}

// The grant file that a marked process names; "" if none.
std::string grant_of(const std::string& environment) {
  const std::string key("\0METE_GRANT=", 12);
  const std::size_t at = environment.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size();
  return environment.substr(begin, environment.find('\0', begin) - begin);
}

class Scan {
 public:
  Scan(const JobScan& scan, const ScanReport& report) : scan_(scan), report_(report) {}

  bool run() {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      const std::optional<std::uint64_t> before = processes_made();
      const std::vector<pid_t> fresh = new_processes();
      const std::size_t grants = grants_.size();
      by_runner();
      for (const pid_t pid : fresh) by_environment(pid);
      if (grants_.size() > grants)
        for (const auto& [pid, seen] : seen_) by_mapping(pid);
      else
        for (const pid_t pid : fresh) by_mapping(pid);
      by_descent();
      if (fresh.empty() && pass > 0 && processes_made() == before) break;
    }
    return whole_;
  }

 private:
  static constexpr int kMaxPasses = 100;

  // Processes of the job's user that have not been looked at yet. A pid is not reused that soon.
  // The newest comes first: it may be gone in a moment. Processes that hang come last.
  std::vector<pid_t> new_processes() {
    std::vector<pid_t> numbers;
    bool listed = true;
    for (const pid_t pid : all_processes(&listed))
      if (looked_.insert(pid).second) numbers.push_back(pid);
    whole_ = whole_ && listed;
    std::sort(numbers.rbegin(), numbers.rend());
    std::stable_partition(numbers.begin(), numbers.end(),
                          [&](pid_t pid) { return !scan_.later.contains(pid); });
    std::erase_if(numbers, [&](pid_t pid) {
      const std::optional<Seen> seen = look(pid, scan_.job.uid, &whole_);
      if (!seen || is_outsider(pid, scan_.outsiders)) return true;
      seen_[pid] = *seen;
      return false;
    });
    return numbers;
  }

  void take(pid_t pid) {
    if (members_.insert(pid).second) report_.found({pid, seen_.at(pid).start});
  }

  // A runner that lives and does not end its job counts, with everything that it has started.
  void by_runner() {
    const auto runner = seen_.find(scan_.job.runner.pid);
    if (runner != seen_.end() && runner->second.start == scan_.job.runner.start_ticks)
      take(runner->first);
  }

  void by_environment(pid_t pid) {
    report_.looking(pid);
    const Result<std::string> text = base::read_all(proc(pid, "environ"), kMaxFile);
    if (!text && text.error().code == ErrorCode::kBusy) whole_ = false;
    if (!text) return;
    const std::string environment = '\0' + *text + '\0';
    if (!has_variable(environment, "METE_JOB_ID=" + to_string(scan_.job.id)) ||
        !has_variable(environment, "METE_JOB_TOKEN=" + to_string(scan_.job.runner)))
      return;
    take(pid);
    if (const std::string grant = grant_of(environment); !grant.empty()) grants_.insert(grant);
  }

  void by_mapping(pid_t pid) {
    if (grants_.empty() || members_.contains(pid)) return;
    report_.looking(pid);
    const Result<std::string> maps = base::read_all(proc(pid, "maps"), kMaxFile);
    if (!maps && maps.error().code == ErrorCode::kBusy) whole_ = false;
    for (const std::string& grant : grants_)
      if (maps && maps->find(" " + grant + "\n") != std::string::npos) take(pid);
  }

  void by_descent() {
    for (bool more = true; more;) {
      more = false;
      for (const auto& [pid, seen] : seen_)
        if (!members_.contains(pid) && members_.contains(seen.parent)) {
          take(pid);
          more = true;
        }
    }
  }

  const JobScan& scan_;
  const ScanReport& report_;
  std::set<pid_t> looked_;
  std::map<pid_t, Seen> seen_;
  std::set<pid_t> members_;
  std::set<std::string> grants_;
  bool whole_ = true;
};

}  // namespace

bool scan_job(const JobScan& scan, const ScanReport& report) { return Scan(scan, report).run(); }

std::optional<std::uint64_t> processes_made() {
  const Result<std::string> text = base::read_all("/proc/stat", kMaxFile);
  return text ? number_after(*text, "\nprocesses ") : std::nullopt;
}

bool is_living(const core::ProcessRef& process) {
  abi::ProcessStat stat;
  switch (abi::read_stat(static_cast<std::uint32_t>(process.pid), &stat)) {
    case abi::StatResult::kRead:
      return stat.start == process.start_ticks && !is_remains(stat);
    case abi::StatResult::kNoSuchProcess:
      // A /proc that hides the processes of other users looks alike.
      return kill(process.pid, 0) != 0 && errno == EPERM;
    case abi::StatResult::kUnknown:
      break;
  }
  return true;
}

bool signal_process(const core::ProcessRef& process, std::uint32_t uid, int signal_number) {
  // First a handle on the process that has the pid, then check that it is the right one. By number:
  // glibc 2.36 declares pidfd_open() as a C++ function.
  const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!handle) return false;
  bool whole = true;
  const std::optional<Seen> seen = look(process.pid, uid, &whole);
  if (!seen || seen->start != process.start_ticks) return false;
  return syscall(SYS_pidfd_send_signal, handle.get(), signal_number, nullptr, 0) == 0;
}

}  // namespace mete::launch
