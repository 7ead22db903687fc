// SPDX-License-Identifier: Apache-2.0
// The mover's messages on a SOCK_SEQPACKET socket: one message per packet, with at most one
// descriptor. Received data is not trusted; sockets do not block.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "abi/park.h"
#include "base/fd.h"

namespace mete::park {

// Parses a request; nullopt if the bytes have another size, magic or version.
std::optional<abi::MoverMessage> read_request(std::span<const std::byte> bytes);

abi::MoverMessage make_message(abi::MoverMessage::Kind kind);

struct Packet {
  std::optional<abi::MoverMessage> message;  // nullopt: not a request
  Fd descriptor;
  bool too_many = false;  // descriptors; the kernel has closed the others
};

enum class Received { kPacket, kNothing, kEnd };
// An empty packet cannot be distinguished from the end of the connection and counts as one. Without
// `with_descriptor` the kernel closes descriptors before they reach us.
Received receive(int socket, bool with_descriptor, Packet* packet);

enum class Sent { kDone, kFull, kEnd };
Sent send(int socket, const abi::MoverMessage& message, int descriptor = -1);

// Whether a descriptor can be memory of a card: a device, or something without a path. Closing a
// file of a user's own file system, or a network socket, may block for as long as its owner likes;
// this check does not call the file system.
bool may_be_memory(int descriptor);

}  // namespace mete::park
