// SPDX-License-Identifier: Apache-2.0
// STATE/meted.address: where the daemon of a state folder listens, for clients whose environment
// leads elsewhere (docs/formats/address.md). The daemon holds a lock on the file for its life, so
// that a client can tell a daemon that is alive from one that was killed. The file stays.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace mete::net {

struct Address {
  std::string socket;
  std::vector<std::string> former;  // where daemons of this folder listened before, newest first
  bool alive = false;               // the daemon that wrote it still runs

  // Whether a client that looks for a daemon at this path means the daemon of this folder.
  bool was_at(const std::string& path) const;
};

inline constexpr std::size_t kMaxFormer = 8;

// not_found: no daemon has written one. denied: the file is not ours. corrupt: it is not one.
Result<Address> read_address(const std::string& state_dir);

// Says that we listen at this socket, and keeps what the file said before as former places. The
// descriptor holds the lock: keep it as long as that is so. Close it after the next call only.
Result<Fd> write_address(const std::string& state_dir, const std::string& socket);

}  // namespace mete::net
