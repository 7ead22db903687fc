// SPDX-License-Identifier: Apache-2.0
// What the meter of a process says it holds, from the grant file that the process uses. The job's
// user can write that file: nothing in it is believed beyond the grant (escape.h), and reading it
// cannot be made to block, to open a device or to follow a link. Runs in the NVML helper.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "abi/grant.h"
#include "node/card_snapshot.h"
#include "node/proc.h"

namespace mete::node {

class MeterLook {
 public:
  // Call before each look at the machine: files are then read anew.
  void begin();
  // For a living process. `environment` is the content of /proc/PID/environ.
  MeterFacts take(const ProcessStat& process, const std::string& environment);

 private:
  // The grant file in the process's mappings: for a process that has overwritten its environment.
  std::string mapped_grant(const ProcessStat& process);
  abi::Grant* open_grant(pid_t pid, const std::string& path);

  struct Mapped {
    std::string path;
    unsigned looks = 0;
  };
  std::map<std::pair<pid_t, std::uint64_t>, Mapped> mapped_;
  // The content of a file. The memory stays for the next look: a grant is near 1 MiB.
  struct Book {
    std::unique_ptr<abi::Grant> grant;
    std::uint64_t look = 0;  // in which it was read
    bool valid = false;
  };
  std::map<std::string, Book> books_;
  std::uint64_t look_ = 0;
};

// The file among the lines of /proc/PID/maps; "" if none.
std::string grant_in_maps(std::string_view maps);

}  // namespace mete::node
