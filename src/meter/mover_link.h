// SPDX-License-Identifier: Apache-2.0
// The connection of a process to the mover of one card (abi/park.h). It stays open while the mover
// holds anything for the process; when it closes, the mover drops everything of that process.
#pragma once

#include <cstdint>

#include "abi/park.h"

namespace mete::meter {

struct MoverAnswer {
  abi::ParkReason reason = abi::ParkReason::kNone;  // kNone: done
  uint32_t detail = 0;
  uint64_t on_disk = 0;  // bytes of a piece that went out
};

class MoverLink {
 public:
  bool is_open() const { return one_more_ > 0; }
  // The connection is open and the mover lives.
  bool is_alive() const;
  // Connects and announces up to `bytes`.
  MoverAnswer open(const abi::GrantHeader& grant, int card, uint64_t bytes);
  // Sends a message with a descriptor beside it. False: the mover is gone.
  bool send(abi::MoverMessage::Kind kind, uint64_t id, uint64_t bytes, int descriptor);
  // Receives the answer to the oldest unanswered message. Waits as long as the mover lives: it may
  // hold the only copy of our bytes, and be slow (a disk, a card that is in use).
  MoverAnswer receive();
  void close();

 private:
  int fd() const { return one_more_ - 1; }

  int one_more_ = 0;    // the descriptor + 1; 0: none
  uint32_t asked_ = 0;  // serials of the last message and of the last answer
  uint32_t heard_ = 0;
};

}  // namespace mete::meter
