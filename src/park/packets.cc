// SPDX-License-Identifier: Apache-2.0
// See packets.h.
#include "park/packets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "abi/descriptor_message.h"

namespace mete::park {

using abi::MoverMessage;

std::optional<MoverMessage> read_request(std::span<const std::byte> bytes) {
  MoverMessage message{};
  if (bytes.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.magic != abi::kMoverMagic || message.version != abi::kMoverVersion)
    return std::nullopt;
  return message;
}

MoverMessage make_message(MoverMessage::Kind kind) {
  MoverMessage message{};
  message.magic = abi::kMoverMagic;
  message.version = abi::kMoverVersion;
  message.kind = kind;
  return message;
}

Received receive(int socket, bool with_descriptor, Packet* packet) {
  std::byte bytes[sizeof(MoverMessage) + 1];  // one more, to notice what is too long
  abi::DescriptorMessage received(bytes, sizeof bytes);
  if (!with_descriptor) received.header()->msg_controllen = 0;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, received.header(), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Received::kNothing : Received::kEnd;
  if (const int number = received.descriptor(); number >= 0) packet->descriptor.reset(number);
  if (got == 0) return Received::kEnd;
  packet->too_many = (received.header()->msg_flags & MSG_CTRUNC) != 0;
  packet->message = read_request({bytes, static_cast<std::size_t>(got)});
  return Received::kPacket;
}

Sent send(int socket, const MoverMessage& message, int descriptor) {
  abi::DescriptorMessage packet(&message, sizeof message, descriptor);
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, packet.header(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(sizeof message)) return Sent::kDone;
  return sent < 0 && (errno == EAGAIN || errno == ENOBUFS) ? Sent::kFull : Sent::kEnd;
}

bool may_be_memory(int descriptor) {
  struct statx info {};
  // DONT_SYNC: cached attributes; a file system in user space is not called.
  if (statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0)
    return false;
  switch (info.stx_mode & S_IFMT) {
    case S_IFCHR:
    case 0:  // not a file (anon_inode, dma-buf)
      return true;
    case S_IFSOCK: {  // simulated cards use one
      int domain = 0;
      socklen_t size = sizeof domain;
      return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
             domain == AF_UNIX;
    }
    default:
      return false;
  }
}

}  // namespace mete::park
