// SPDX-License-Identifier: Apache-2.0
// See packets.h.
#include "park/packets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

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
  std::byte bytes[sizeof(MoverMessage) + 1];  // one more, to notice a message that is too long
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part{bytes, sizeof bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (with_descriptor) {
    header.msg_control = control;
    // CMSG_SPACE would have room for a second descriptor in its padding.
    header.msg_controllen = CMSG_LEN(sizeof(int));
  }
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Received::kNothing : Received::kEnd;
  for (const cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr;
       item = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(item))) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(item), sizeof number);
    packet->descriptor.reset(number);
  }
  if (got == 0) return Received::kEnd;
  packet->too_many = (header.msg_flags & MSG_CTRUNC) != 0;
  packet->message = read_request({bytes, static_cast<std::size_t>(got)});
  return Received::kPacket;
}

Sent send(int socket, const MoverMessage& message, int descriptor) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{const_cast<MoverMessage*>(&message), sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(item), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
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
