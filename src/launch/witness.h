// SPDX-License-Identifier: Apache-2.0
// Was a signal sent to us only, or to our whole process group? The kernel does not say: `kill %1`,
// timeout(1) and many supervisors signal the group, the program below us has then got it already,
// and a second copy would harm it (servers take a second TERM for "now"). The witness is a process
// in the group with every signal blocked: a signal that is pending there was sent to the group.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "launch/helper_process.h"

namespace mete::launch {

class Witness {
 public:
  static Result<Witness> start();

  pid_t pid() const { return process_.pid(); }
  void was_reaped() { process_.was_reaped(); }

  // To be asked once for each signal that we got. The kernel signals the youngest process of a
  // group first, so the witness, younger than us, has its copy when we see ours. False when the
  // witness is gone: better twice than never.
  bool group_got(int signal_number);

 private:
  explicit Witness(HelperProcess process) : process_(std::move(process)) {}

  HelperProcess process_;
};

}  // namespace mete::launch
