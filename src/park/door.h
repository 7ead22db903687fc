// SPDX-License-Identifier: Apache-2.0
// The mover's socket, made so that there is one mover behind it: the lock PATH.lock (flock, for
// life) decides, and only its holder replaces a socket that a dead mover left behind.
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
  uint32_t uid;  // as the kernel reports it
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
  // nullopt if no client waits (any more).
  std::optional<Visitor> answer() const;
  // Removes the socket, while the lock is still ours; not a socket that another mover has put
  // there.
  void close();

 private:
  Door() = default;

  std::string path_;
  Fd lock_;
  Fd socket_;
  std::optional<base::FileId> file_;  // of the socket
};

// A connection to the mover at `path`, blocking, with this limit for each call; 0: non-blocking.
// not_found, busy (no process listens), denied: as for any file; denied also when neither we nor
// root listen there.
Result<Fd> connect_to_mover(const std::string& path, int timeout_ms);

}  // namespace mete::park
