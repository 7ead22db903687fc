// SPDX-License-Identifier: Apache-2.0
// What `mete doctor` looks at, one function for each group. They look and never change anything;
// each runs in a helper process of its own, since a driver, a network disk or a preload may hang.
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
void check_daemon(Checks& checks);   // socket, and who answers there
void check_system(Checks& checks);   // runtime folder, cgroups, limits, /proc

// Between the helper and us: lines of fields between tabs.
std::string encode_checks(const Checks& checks);
Result<Checks> decode_checks(std::string_view text);

// "cpu memory" of this process's cgroup, for people. Pure, for tests: /proc/self/cgroup in.
struct CgroupView {
  enum class Kind { kNone, kV1, kV2 } kind = Kind::kNone;
  std::string path;  // of version 2, "/user.slice/..."
};
CgroupView parse_cgroup(std::string_view proc_self_cgroup);

// The hidepid= of /proc, from /proc/self/mountinfo; "": not set.
std::string parse_hidepid(std::string_view mountinfo);

// The names in LD_PRELOAD or /etc/ld.so.preload that are known to stand in the driver's way as we
// do.
std::vector<std::string> rival_preloads(std::string_view list);

}  // namespace mete::cli
