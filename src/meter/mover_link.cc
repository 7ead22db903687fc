// SPDX-License-Identifier: Apache-2.0
// See mover_link.h.
#include "meter/mover_link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/cuda_card.h"
#include "abi/descriptor_message.h"
#include "abi/process.h"

namespace mete::meter {
namespace {

constexpr time_t kHelloS = 8;  // a mover that pins memory for us answers within five
constexpr int kHighFd = 200;   // leaves low numbers to programs that rely on them

void set_patience(int fd, time_t seconds) {
  const timeval patience{seconds, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

// FOLDER/GPU-8-4-4-4-12.
bool socket_path(const abi::GrantHeader& grant, int card, char* out, size_t size) {
  const size_t folder = strnlen(grant.movers, sizeof(grant.movers));
  if (folder == 0 || folder + 42 > size) return false;
  memcpy(out, grant.movers, folder);
  out[folder] = '/';
  const abi::UuidText name = abi::uuid_text(grant.cards[card].uuid);
  memcpy(out + folder + 1, name.text, sizeof(name.text));
  return true;
}

}  // namespace

MoverAnswer MoverLink::open(const abi::GrantHeader& grant, int card, uint64_t bytes) {
  const MoverAnswer nobody{abi::ParkReason::kNoMover, 0};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!socket_path(grant, card, address.sun_path, sizeof(address.sun_path))) return nobody;
  const int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (low < 0) return {abi::ParkReason::kNoMover, static_cast<uint32_t>(errno)};
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kHighFd);  // fails where the limit is lower
  const int fd = high < 0 ? low : high;
  if (high >= 0) abi::close_quietly(low);
  set_patience(fd, kHelloS);
  abi::MoverMessage hello{};
  hello.magic = abi::kMoverMagic;
  hello.version = abi::kMoverVersion;
  hello.kind = abi::MoverMessage::kHello;
  hello.bytes = bytes;
  hello.serial = asked_ = 1;
  heard_ = 0;
  memcpy(hello.token, grant.park_token, sizeof(hello.token));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(hello))) {
    const MoverAnswer failed{abi::ParkReason::kNoMover, static_cast<uint32_t>(errno)};
    abi::close_quietly(fd);
    return failed;
  }
  one_more_ = fd + 1;
  const MoverAnswer said = receive();
  if (said.reason == abi::ParkReason::kNone)
    set_patience(fd, 0);
  else
    close();
  return said;
}

bool MoverLink::is_alive() const {
  if (!is_open()) return false;
  char byte = 0;
  const ssize_t got = recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool MoverLink::send(abi::MoverMessage::Kind kind, uint64_t id, uint64_t bytes, int descriptor) {
  abi::MoverMessage message{};
  message.magic = abi::kMoverMagic;
  message.version = abi::kMoverVersion;
  message.kind = kind;
  message.id = id;
  message.bytes = bytes;
  message.serial = ++asked_;
  abi::DescriptorMessage packet(&message, sizeof(message), descriptor);
  ssize_t sent = 0;
  do {
    sent = sendmsg(fd(), packet.header(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(message));
}

MoverAnswer MoverLink::receive() {
  abi::MoverMessage said{};
  ssize_t got = 0;
  do {
    got = recv(fd(), &said, sizeof(said), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return {abi::ParkReason::kSilent, 0};
  if (got != static_cast<ssize_t>(sizeof(said)) || said.magic != abi::kMoverMagic ||
      said.version != abi::kMoverVersion || said.serial != ++heard_)
    return {abi::ParkReason::kNoMover, 0};
  if (said.kind == abi::MoverMessage::kDone) return {abi::ParkReason::kNone, 0, said.used};
  const auto reason = static_cast<abi::ParkReason>(said.reason);
  return {reason == abi::ParkReason::kNone ? abi::ParkReason::kNoMover : reason, said.detail};
}

void MoverLink::close() {
  if (is_open()) abi::close_quietly(fd());
  one_more_ = 0;
}

}  // namespace mete::meter
