// SPDX-License-Identifier: Apache-2.0
// The checks of `mete doctor`, one function per group. They only look; each runs in its own helper
// process, since a driver, a network disk or a preload may hang.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::cli {

enum class Verdict { kOk, kInfo, kWarn, kFail };
std::string_view to_string(Verdict verdict);  // "ok", "info", "warn", "fail"

struct Check {
  Verdict verdict = Verdict::kOk;
  std::string what;      // "state folder"
  std::string evidence;  // what was seen
  std::string fix = {};  // the command that helps, or what to do
  bool operator==(const Check&) const = default;
};
using Checks = std::vector<Check>;

void check_driver(Checks& checks);   // libraries, versions, device files, cards and their modes
void check_program(Checks& checks);  // our own parts, and what is preloaded
void check_state(Checks& checks);    // state folder, claims, configuration
void check_daemon(Checks& checks);   // the socket, and the daemon behind it
void check_system(Checks& checks);   // runtime folder, cgroups, limits, /proc

// All of it as text, as `mete doctor` prints it.
std::string doctor_text();

// Between the helper and us: one line per check, fields separated by tabs.
std::string encode_checks(const Checks& checks);
Result<Checks> decode_checks(std::string_view text);

// "cpu memory" of this process's cgroup, as text. Pure, for tests: takes /proc/self/cgroup.
struct CgroupView {
  enum class Kind { kNone, kV1, kV2 } kind = Kind::kNone;
  std::string path;  // version 2: "/user.slice/..."
};
CgroupView parse_cgroup(std::string_view proc_self_cgroup);

// The hidepid= of /proc, from /proc/self/mountinfo; "": not set.
std::string parse_hidepid(std::string_view mountinfo);

// The names in LD_PRELOAD or /etc/ld.so.preload that are known to intercept the driver as we do.
std::vector<std::string> rival_preloads(std::string_view list);

}  // namespace mete::cli
