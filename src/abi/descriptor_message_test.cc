// SPDX-License-Identifier: Apache-2.0
#include "abi/descriptor_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace mete::abi {
namespace {

TEST(DescriptorMessage, CarriesDataAndADescriptor) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const int file = open("/dev/null", O_RDONLY);
  for (const int given : {file, -1}) {
    DescriptorMessage out("data", 4, given);
    ASSERT_EQ(sendmsg(ends[0], out.header(), 0), 4);
    char data[8] = {};
    DescriptorMessage in(data, sizeof data);
    ASSERT_EQ(recvmsg(ends[1], in.header(), MSG_CMSG_CLOEXEC), 4);
    EXPECT_STREQ(data, "data");
    EXPECT_EQ(in.descriptor() >= 0, given >= 0);
    if (in.descriptor() >= 0) {
      EXPECT_NE(fcntl(in.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
      close(in.descriptor());
    }
  }
  close(file);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace mete::abi
