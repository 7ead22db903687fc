// SPDX-License-Identifier: Apache-2.0
// STATE/meted.address: where the daemon of a state folder listens, for clients whose environment
// leads elsewhere (docs/formats/address.md). The daemon holds a lock on the file for its life, so
// that a client can distinguish a living daemon from a killed one. The file stays.
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

// not_found: no daemon has written one. denied: the file is not ours. corrupt: it is not an address
// file.
Result<Address> read_address(const std::string& state_dir);

// Publishes that we listen at this socket, and keeps the previous content as former places. The
// descriptor holds the lock: keep it as long as that is true. Close it only after the next call.
Result<Fd> write_address(const std::string& state_dir, const std::string& socket);

}  // namespace mete::net
