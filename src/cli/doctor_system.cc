// SPDX-License-Identifier: Apache-2.0
// mete doctor: what the machine allows: runtime folder, control groups, limits, /proc. Mostly for
// information, since mete works without most of it. The parsers of /proc files are pure functions
// with tests.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/bytes.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "launch/cgroup.h"

namespace mete::cli {

namespace {

constexpr std::uint64_t kMostPids = 4'194'304;  // the kernel's own limit; grant files rely on it

void check_runtime_dir(Checks& checks) {
  const std::string path = base::variable("XDG_RUNTIME_DIR");
  if (path.empty()) {
    checks.push_back({Verdict::kInfo, "runtime folder",
                      "XDG_RUNTIME_DIR is not set: the socket is in the state folder"});
    return;
  }
  struct stat info {};
  std::string wrong;
  if (stat(path.c_str(), &info) != 0)
    wrong = Error::from_errno(path, errno).message;
  else if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    wrong = path + " is not a folder of ours";
  else if ((info.st_mode & 077) != 0)
    wrong = path + " is open to others";
  else if (access(path.c_str(), W_OK | X_OK) != 0)
    wrong = path + " is not writable";
  if (wrong.empty())
    checks.push_back({Verdict::kOk, "runtime folder", path});
  else
    checks.push_back({Verdict::kWarn, "runtime folder", wrong, "unset XDG_RUNTIME_DIR"});
}

// Version 1: a group can be made below our own if that is writable (mostly for root).
std::string version1_evidence(const std::string& own) {
  const Result<std::string> mounts = base::read_all("/proc/self/mountinfo");
  if (mounts) {
    const Result<launch::CgroupPlace> place =
        launch::find_cgroup(launch::Controller::kMemory, own, *mounts);
    if (place && access((place->mount + place->group).c_str(), W_OK) == 0)
      return "version 1, ours to use: --cpus and --ram are enforced";
  }
  return "version 1, not ours to use: --cpus and --ram cannot be enforced";
}

void check_cgroups(Checks& checks) {
  const Result<std::string> text = base::read_all("/proc/self/cgroup");
  const CgroupView view = text ? parse_cgroup(*text) : CgroupView{};
  Check check{Verdict::kInfo, "cgroups", ""};
  if (view.kind == CgroupView::Kind::kNone) {
    check.evidence = "none: --cpus and --ram cannot be enforced";
  } else if (view.kind == CgroupView::Kind::kV1) {
    check.evidence = version1_evidence(*text);
  } else {
    const std::string folder = "/sys/fs/cgroup" + (view.path == "/" ? "" : view.path);
    const Result<std::string> controllers = base::read_all(folder + "/cgroup.controllers");
    const std::string have = controllers ? std::string(base::trim(*controllers)) : "";
    const bool writable = access((folder + "/cgroup.procs").c_str(), W_OK) == 0 &&
                          access((folder + "/cgroup.subtree_control").c_str(), W_OK) == 0;
    const bool both =
        have.find("cpu") != std::string::npos && have.find("memory") != std::string::npos;
    if (writable && both) {
      check = {Verdict::kOk, "cgroups", "version 2, delegated (" + have + ")"};
    } else {
      check.evidence = writable ? "version 2, without the controllers cpu and memory (" + have + ")"
                                : "version 2, not delegated: " + folder + " is not ours";
      check.evidence += ": --cpus and --ram cannot be enforced";
      check.fix = "systemd-run --user --scope -p Delegate=yes bash";
    }
  }
  checks.push_back(std::move(check));
}

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
}

void check_limits(Checks& checks) {
  rlimit files{};
  (void)getrlimit(RLIMIT_NOFILE, &files);
  const bool few = files.rlim_cur != RLIM_INFINITY && files.rlim_cur < 1024;
  checks.push_back({few ? Verdict::kWarn : Verdict::kOk, "open files",
                    limit_text(files.rlim_cur) + " of at most " + limit_text(files.rlim_max),
                    few ? "ulimit -n 4096" : ""});
  rlimit locked{};
  (void)getrlimit(RLIMIT_MEMLOCK, &locked);
  checks.push_back({Verdict::kInfo, "locked memory",
                    locked.rlim_cur == RLIM_INFINITY
                        ? "unlimited"
                        : to_string(Bytes::from_bytes(locked.rlim_cur))});
  const Result<std::string> text = base::read_all("/proc/sys/kernel/pid_max");
  const Result<std::uint64_t> most =
      text ? base::parse_uint(base::trim(*text)) : Result<std::uint64_t>(text.error());
  if (!most)
    checks.push_back({Verdict::kWarn, "pid_max", most.error().message});
  else if (*most > kMostPids)
    checks.push_back({Verdict::kFail, "pid_max", std::to_string(*most),
                      "sudo sysctl kernel.pid_max=" + std::to_string(kMostPids)});
  else
    checks.push_back({Verdict::kOk, "pid_max", std::to_string(*most)});
}

void check_proc(Checks& checks) {
  const Result<std::string> mounts = base::read_all("/proc/self/mountinfo", 4 << 20);
  const std::string hidden = mounts ? parse_hidepid(*mounts) : "";
  if (!mounts)
    checks.push_back({Verdict::kWarn, "/proc", mounts.error().message});
  else if (hidden.empty() || hidden == "0" || hidden == "off")
    checks.push_back({Verdict::kOk, "/proc", "shows all processes"});
  else
    checks.push_back({geteuid() == 0 ? Verdict::kInfo : Verdict::kWarn, "/proc",
                      "hidepid=" + hidden + ": other users on a card are seen without their names",
                      geteuid() == 0 ? "" : "a daemon of the whole machine (root) sees them"});
}

}  // namespace

CgroupView parse_cgroup(std::string_view text) {
  CgroupView view;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with("0::")) {
      if (view.kind != CgroupView::Kind::kV1)
        view = {CgroupView::Kind::kV2, std::string(line.substr(3))};
    } else if (line.find(":memory") != std::string_view::npos ||
               line.find("cpu") != std::string_view::npos) {
      view.kind = CgroupView::Kind::kV1;  // hybrid: the controllers that we need are in version 1
    }
  }
  return view;
}

std::string parse_hidepid(std::string_view mountinfo) {
  std::string found;
  for (const std::string_view line : base::split(mountinfo, '\n')) {
    // "36 35 0:32 / /proc rw,nosuid shared:13 - proc proc rw,hidepid=2": the last mount applies.
    const std::vector<std::string_view> fields = base::split(line, ' ');
    if (fields.size() < 7 || fields[4] != "/proc") continue;
    found.clear();
    for (const std::string_view option : base::split(fields.back(), ','))
      if (option.starts_with("hidepid=")) found = option.substr(8);
  }
  return found;
}

void check_system(Checks& checks) {
  check_runtime_dir(checks);
  check_cgroups(checks);
  check_limits(checks);
  check_proc(checks);
}

}  // namespace mete::cli
