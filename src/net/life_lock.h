// SPDX-License-Identifier: Apache-2.0
// A lock file held for the life of a process (flock): its holder is the daemon, or the client that
// may start it. The kernel releases it on any death. The file itself stays: removing it would let
// two holders lock two files of one name. A child forked without exec shares the lock and must
// close it.
#pragma once

#include <string>

#include "base/fd.h"
#include "net/unix_socket.h"

namespace mete::net {

// Mode 0600, close-on-exec, symbolic links not followed. Waits until `deadline`, or until
// `interrupt` (-1: none) is readable. busy: another process holds it; io: the wait was interrupted.
Result<Fd> take_lock(const std::string& path, const Deadline& deadline, int interrupt = -1);

// Whether the file at the path still is the one that was locked. Otherwise another process can hold
// a lock of this name.
bool lock_is_in_place(int lock, const std::string& path);

}  // namespace mete::net
