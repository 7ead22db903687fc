// SPDX-License-Identifier: Apache-2.0
// Who the processes on the cards are, as /proc tells: the facts that attribution.h decides by. May
// block (a process that hangs in the driver can keep its memory locked against readers; user names
// may come over a network), so it runs in the NVML helper.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/card_snapshot.h"
#include "node/meter_look.h"

namespace mete::node {

// The value of NAME in the bytes of /proc/PID/environ; "" without.
std::string variable_in(const std::string& environment, const std::string& name);

class ProcessLook {
 public:
  // Facts of every process on these cards and of all their ancestors, by pid. What ends meanwhile
  // is left out, what is hidden from us is said to be hidden.
  std::vector<ProcessFacts> take(const std::vector<seam::CardReading>& cards);

 private:
  using Found = std::map<pid_t, ProcessFacts>;
  // Puts the process and its ancestors into `found`.
  void climb(pid_t pid, Found& found);
  void look_inside(ProcessFacts& facts);
  const std::string& user_name(std::uint32_t uid);
  pid_t first_of_namespace(std::uint64_t name_space);

  MeterLook meters_;
  std::map<std::uint32_t, std::string> users_;
  std::map<std::uint64_t, pid_t> firsts_;  // pid namespace → its first process
};

}  // namespace mete::node
