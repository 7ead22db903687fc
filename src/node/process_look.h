// SPDX-License-Identifier: Apache-2.0
// The processes on the cards, as /proc shows them: the facts on which attribution.h decides. May
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

// The value of NAME in the bytes of /proc/PID/environ; "" if unset.
std::string variable_in(const std::string& environment, const std::string& name);

class ProcessLook {
 public:
  // Facts of every process on these cards and of all their ancestors, by pid. A process that ends
  // meanwhile is left out; a process that is hidden from us is marked as hidden.
  std::vector<ProcessFacts> take(const std::vector<seam::CardReading>& cards);

 private:
  using Found = std::map<pid_t, ProcessFacts>;
  // Adds the process and its ancestors to `found`.
  void climb(pid_t pid, Found& found);
  void look_inside(ProcessFacts& facts);
  const std::string& user_name(std::uint32_t uid);
  pid_t first_of_namespace(std::uint64_t name_space);

  MeterLook meters_;
  std::map<std::uint32_t, std::string> users_;
  std::map<std::uint64_t, pid_t> firsts_;  // pid namespace → its first process
};

}  // namespace mete::node
