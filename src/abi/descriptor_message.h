// SPDX-License-Identifier: Apache-2.0
// A message of a Unix socket with at most one file descriptor beside it (SCM_RIGHTS), for sendmsg()
// and recvmsg(). Needs libc alone.
#pragma once

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace mete::abi {

class DescriptorMessage {
 public:
  // To receive: the data goes to `data`, and descriptor() is what came with it.
  DescriptorMessage(void* data, size_t bytes) : part_{data, bytes} {
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_;
    header_.msg_controllen = CMSG_LEN(sizeof(int));  // CMSG_SPACE has room for a second descriptor
  }
  // To send, with this descriptor unless it is negative.
  DescriptorMessage(const void* data, size_t bytes, int descriptor)
      : DescriptorMessage(const_cast<void*>(data), bytes) {
    if (descriptor < 0) {
      header_.msg_controllen = 0;
      return;
    }
    cmsghdr* const beside = CMSG_FIRSTHDR(&header_);
    beside->cmsg_level = SOL_SOCKET;
    beside->cmsg_type = SCM_RIGHTS;
    beside->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(beside), &descriptor, sizeof(int));
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  msghdr* header() { return &header_; }
  // After recvmsg(): the receiver's to close; -1: none came.
  int descriptor() const {
    const cmsghdr* const beside = CMSG_FIRSTHDR(&header_);
    int descriptor = -1;
    if (beside != nullptr && beside->cmsg_level == SOL_SOCKET && beside->cmsg_type == SCM_RIGHTS)
      memcpy(&descriptor, CMSG_DATA(beside), sizeof(int));
    return descriptor;
  }

 private:
  iovec part_;
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
  msghdr header_ = {};
};

}  // namespace mete::abi
