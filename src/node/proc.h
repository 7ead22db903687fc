// SPDX-License-Identifier: Apache-2.0
// Processes as /proc shows them. A pid alone identifies a process only while it lives; with its
// start time it names one process until the machine reboots. The parsers take text and do no I/O;
// the readers return not_found for a process that is gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::node {

// /proc/PID/stat
struct ProcessStat {
  pid_t pid = 0;
  std::string comm;  // as the process named itself: may contain spaces, parentheses and newlines
  char state = '?';  // R S D Z T t X I
  pid_t parent = 0;
  std::uint64_t flags = 0;  // of the kernel (PF_*)
  unsigned threads = 0;
  std::uint64_t start_ticks = 0;  // field 22: clock ticks since boot
  std::uint64_t start_stack = 0;  // field 28; 0 if we may not read it

  // Its memory is freed; its parent has not reaped it yet.
  bool is_dead() const { return state == 'Z' || state == 'X'; }
  // It is ending: its mappings are gone, its memory on cards goes next.
  bool is_exiting() const {
    constexpr std::uint64_t kPfExiting = 4;
    return is_dead() || (flags & kPfExiting) != 0;
  }
};
Result<ProcessStat> parse_stat(std::string_view text);

// /proc/PID/status
struct ProcessStatus {
  uid_t real_uid = 0;
  uid_t effective_uid = 0;
  pid_t group = 0;                    // thread group: the pid of the process
  std::vector<pid_t> namespace_pids;  // outermost first; the last is the one that the process
                                      // itself sees
};
Result<ProcessStatus> parse_status(std::string_view text);

// The inode in "pid:[4026531836]", as the links in /proc/PID/ns read.
std::optional<std::uint64_t> parse_namespace_link(std::string_view text);

// A variable in /proc/PID/environ: NAME=VALUE, each ended by a zero byte.
std::optional<std::string> parse_variable(std::string_view environment, std::string_view name);

Result<ProcessStat> read_stat(pid_t pid);
Result<ProcessStatus> read_status(pid_t pid);
Result<std::uint64_t> read_pid_namespace(pid_t pid);
// As the process was started; later changes do not show. nullopt: not set, or not readable.
std::optional<std::string> read_variable(pid_t pid, std::string_view name);

// All processes that /proc shows.
Result<std::vector<pid_t>> read_all_pids();

// Changes with every boot: "f81d4fae-…".
Result<std::string> read_boot_id();

}  // namespace mete::node
