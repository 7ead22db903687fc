// SPDX-License-Identifier: Apache-2.0
// The mover's messages on their way through a SOCK_SEQPACKET socket: one message a packet, beside
// it at most one descriptor. Nothing of what comes in is trusted; sockets do not block.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "abi/park.h"
#include "base/fd.h"

namespace mete::park {

// The request that these bytes are; nothing when they have another size, magic or version.
std::optional<abi::MoverMessage> read_request(std::span<const std::byte> bytes);

abi::MoverMessage make_message(abi::MoverMessage::Kind kind);

struct Packet {
  std::optional<abi::MoverMessage> message;  // nothing: it was none of ours
  Fd descriptor;
  bool too_many = false;  // descriptors; the kernel has closed the others
};

enum class Received { kPacket, kNothing, kEnd };
// An empty packet cannot be told from the end of the connection and counts as one. Without
// `with_descriptor` the kernel closes what comes along, before it is ours.
Received receive(int socket, bool with_descriptor, Packet* packet);

enum class Sent { kDone, kFull, kEnd };
Sent send(int socket, const abi::MoverMessage& message, int descriptor = -1);

// Whether a descriptor can be memory of a card: a device, or something without a path. The file of
// somebody's file system, or a socket into the network, may make whoever closes it wait for its
// owner's pleasure; this looks without asking the file system.
bool may_be_memory(int descriptor);

}  // namespace mete::park
