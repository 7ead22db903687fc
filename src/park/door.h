// SPDX-License-Identifier: Apache-2.0
// The mover's socket, made so that there is one mover behind it: the lock PATH.lock (flock, for
// life) decides, and only its holder replaces a socket that a dead one left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace mete::park {

struct Visitor {
  Fd socket;     // does not block
  uint32_t uid;  // as the kernel says
  pid_t pid;
};

class Door {
 public:
  // busy: another mover holds the lock. invalid: the path is relative or too long, or holds
  // something that is not a socket.
  static Result<Door> open(const std::string& path, mode_t mode);
  Door(Door&& other) noexcept = default;
  Door& operator=(Door&&) = delete;

  int socket() const { return socket_.get(); }
  // Nothing when nobody is there (any more).
  std::optional<Visitor> answer() const;
  // Removes the socket, while the lock is still ours; not what another mover has put in its place.
  void close();

 private:
  Door() = default;

  std::string path_;
  Fd lock_;
  Fd socket_;
  std::optional<base::FileId> file_;  // of the socket
};

// A connection to the mover at `path`, blocking, with this limit for each call; 0: one that never
// waits. not_found, busy (nobody listens), denied: as for any file; denied also when neither we nor
// root listen there.
Result<Fd> connect_to_mover(const std::string& path, int timeout_ms);

}  // namespace mete::park
