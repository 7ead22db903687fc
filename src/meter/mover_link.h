// SPDX-License-Identifier: Apache-2.0
// The connection of a process to the mover of one card (abi/park.h). It stays open while the mover
// keeps anything for the process: when it closes, the mover forgets it.
#pragma once

#include <cstdint>

#include "abi/park.h"

namespace mete::meter {

struct MoverAnswer {
  abi::ParkReason reason = abi::ParkReason::kNone;  // kNone: done
  uint32_t detail = 0;
};

class MoverLink {
 public:
  bool is_open() const { return fd_ > 0; }
  // Connects and says that up to `bytes` will come.
  MoverAnswer open(const abi::GrantHeader& grant, int card, uint64_t bytes);
  // A message with a descriptor beside it. False: the mover is gone.
  bool send(abi::MoverMessage::Kind kind, uint64_t id, uint64_t bytes, int descriptor);
  // The answer to the oldest message that has none yet.
  MoverAnswer receive();
  void close();

 private:
  int fd_ = 0;  // 0: none
};

}  // namespace mete::meter
