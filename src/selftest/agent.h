// SPDX-License-Identifier: Apache-2.0
// Several processes of one job under the test's control: an agent is a process that follows orders,
// one or a few driver calls at a time, so that a check controls which process holds what when, and
// can kill one of them in between. Orders and answers are short texts over a socket; an answer may
// carry a file descriptor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace mete::selftest {

struct Answer {
  int result = -1;   // the driver's CUresult; -1: the agent is gone, or did not understand
  std::string text;  // the result of the order: an address, a handle in hexadecimal
  Fd fd;
};

class Agent {
 public:
  // Starts `program --agent`, without any driver call yet.
  explicit Agent(const std::string& program);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();  // kills it, if it still lives

  pid_t pid() const { return pid_; }
  void tell(const std::string& order, const Fd* fd = nullptr) const;
  Answer hear() const;  // waits a minute at most
  Answer ask(const std::string& order, const Fd* fd = nullptr) const {
    tell(order, fd);
    return hear();
  }
  // SIGKILL, and waits until the kernel has reaped it.
  void kill();

 private:
  pid_t pid_ = -1;
  Fd channel_;
};

// The other end: follows orders from descriptor `channel` until that is closed.
int run_agent(int channel);

}  // namespace mete::selftest
