// SPDX-License-Identifier: Apache-2.0
// The physical memory of the simulated cards: which client took which piece, which others hold it,
// and its content. Pure bookkeeping: no sockets, no clock. A piece lives while it has a holder:
// clients (each with a count), exported descriptors, and memory of dead clients whose teardown is
// not over.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "simgpu/protocol.h"
#include "simgpu/server/contents.h"
#include "simgpu/server/machine.h"

namespace simgpu {

using PieceId = uint64_t;
using ClientId = uint64_t;  // 0 = none

struct Piece {
  uint32_t card = 0;
  uint64_t bytes = 0;
  MemoryClass use = MemoryClass::kPlain;
  ClientId owner = 0;  // 0 once the owner has released it or died
  bool owner_died = false;
  std::vector<ClientId> openers;  // by legacy IPC, in order of opening
  uint64_t holders = 0;           // references of all kinds
  bool away = false;              // its process is checkpointed: it takes no room
  std::unique_ptr<Contents> contents;
};

struct IpcToken {
  PieceId piece = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t secret = 0;
};

class Store {
 public:
  Machine machine;
  HostBudget host;

  // Each returns a CUresult: 0, 1 (bad argument), 2 (no room), 46 (the card is lost).
  int take(ClientId client, uint32_t card, uint64_t bytes, MemoryClass use, PieceId* id);
  int give(ClientId client, PieceId id);
  int resize(ClientId client, PieceId id, uint64_t bytes);
  int hold(ClientId client, PieceId id);  // one more reference for that client
  int usage(uint32_t card, uint64_t* used, uint64_t* capacity) const;
  int write(ClientId client, PieceId id, uint64_t offset, const void* data, uint64_t bytes);
  int read(ClientId client, PieceId id, uint64_t offset, void* data, uint64_t bytes) const;
  struct Fill {
    uint64_t offset, pitch, width, rows;
    uint32_t element, value;
  };
  int fill(ClientId client, PieceId id, const Fill& what);
  struct Place {
    PieceId id;
    uint64_t offset;
  };
  int copy(ClientId client, Place to, Place from, uint64_t bytes);
  int ipc_export(ClientId client, PieceId id, uint64_t offset, uint64_t bytes, uint64_t token[2]);
  int ipc_open(ClientId client, const uint64_t token[2], IpcToken* found);

  // What an ended client held; its tokens die with it, its pieces lose their owner. The references
  // stay until release() is called with them (at once, or after the teardown delay).
  using Held = std::map<PieceId, uint64_t>;
  Held forget_client(ClientId client);
  void release(const Held& held);

  // checkpoint.cc: takes a process's memory off the cards, all of it or (false) nothing: it shares
  // some, or has managed memory. And puts it back, if there is room.
  bool put_away(ClientId client);
  bool bring_back(ClientId client);
  // What stays of a checkpointed process on each card.
  std::map<uint32_t, uint64_t> left_of(ClientId client) const {
    const auto found = left_.find(client);
    return found == left_.end() ? std::map<uint32_t, uint64_t>{} : found->second;
  }

  void hold_piece(PieceId id, uint64_t count);  // descriptors
  void drop_piece(PieceId id, uint64_t count);

  const Piece* find(PieceId id) const;
  // The client for which NVML counts a piece: its owner; after the owner's death the first that has
  // it open by legacy IPC (driver 580; memory shared by descriptor is then counted for no process).
  static ClientId counted_to(const Piece& piece);
  bool holds(ClientId client, PieceId id) const;
  const std::map<PieceId, Piece>& pieces() const { return pieces_; }
  const std::map<ClientId, Held>& held() const { return held_; }

 private:
  int check(ClientId client, PieceId id, uint64_t offset, uint64_t bytes) const;
  void drop_left(ClientId client);

  std::map<PieceId, Piece> pieces_;
  std::map<ClientId, Held> held_;
  std::map<uint64_t, IpcToken> tokens_;
  std::map<ClientId, std::map<uint32_t, uint64_t>> left_;
  PieceId next_piece_ = 1;
  uint64_t next_token_ = 1;
};

}  // namespace simgpu
