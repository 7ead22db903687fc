// SPDX-License-Identifier: Apache-2.0
// A child process for what may block: forked without exec, with one socket. All signals are blocked
// there, descriptors 0 to 2 are /dev/null, 3 is the socket, and there is no other; it is killed
// when the parent dies. For programs with one thread.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/fd.h"
#include "base/result.h"

namespace mete::base {

struct Forked {
  pid_t pid = -1;
  Fd socket;  // non-blocking; at end of file once the child is gone
};

// Runs `body` in the child with its (non-blocking) end of the socket, then leaves by _exit: no
// destructor runs there. `name` is what ps shows (15 characters).
Result<Forked> fork_around_socket(const char* name, const std::function<void(int socket)>& body);

}  // namespace mete::base
