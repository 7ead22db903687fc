// SPDX-License-Identifier: Apache-2.0
#include "park/packets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace mete::park {
namespace {

using abi::MoverMessage;

class PacketsTest : public testing::Test {
 protected:
  PacketsTest() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    a_.reset(pair[0]);
    b_.reset(pair[1]);
  }
  static std::span<const std::byte> bytes_of(const MoverMessage& message) {
    return std::as_bytes(std::span(&message, 1));
  }
  // Several descriptors beside one message.
  void send_descriptors(int count) const {
    const MoverMessage message = make_message(MoverMessage::kOut);
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    iovec part{const_cast<MoverMessage*>(&message), sizeof message};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (int i = 0; i < count; ++i) {
      const int number = STDERR_FILENO;
      std::memcpy(CMSG_DATA(item) + i * sizeof(int), &number, sizeof number);
    }
    ASSERT_EQ(sendmsg(a_.get(), &header, 0), static_cast<ssize_t>(sizeof message));
  }
  static int open_descriptors() {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  }
  Fd a_, b_;
};

TEST_F(PacketsTest, OnlyAMessageOfThisVersionIsOne) {
  MoverMessage message = make_message(MoverMessage::kHello);
  EXPECT_TRUE(read_request(bytes_of(message)));
  EXPECT_FALSE(read_request(bytes_of(message).first(71)));
  message.version = 2;
  EXPECT_FALSE(read_request(bytes_of(message)));
  message = make_message(MoverMessage::kHello);
  message.magic ^= 1;
  EXPECT_FALSE(read_request(bytes_of(message)));
}

TEST_F(PacketsTest, AMessageAndItsDescriptorArrive) {
  MoverMessage message = make_message(MoverMessage::kOut);
  message.id = 7;
  ASSERT_EQ(send(a_.get(), message, STDERR_FILENO), Sent::kDone);
  Packet packet;
  ASSERT_EQ(receive(b_.get(), true, &packet), Received::kPacket);
  ASSERT_TRUE(packet.message);
  EXPECT_EQ(packet.message->id, 7u);
  EXPECT_TRUE(packet.descriptor);
  EXPECT_FALSE(packet.too_many);
  EXPECT_NE(fcntl(packet.descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(receive(b_.get(), true, &packet), Received::kNothing);
}

TEST_F(PacketsTest, MoreThanOneDescriptorIsNoticedAndNoneStaysOpen) {
  const int before = open_descriptors();
  for (const int count : {2, 3, 8}) {
    send_descriptors(count);
    Packet packet;
    ASSERT_EQ(receive(b_.get(), true, &packet), Received::kPacket);
    EXPECT_TRUE(packet.too_many) << count;
    EXPECT_LE(open_descriptors(), before + 1);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(PacketsTest, ADescriptorThatIsNotWantedIsNeverOurs) {
  const int before = open_descriptors();
  send_descriptors(1);
  Packet packet;
  ASSERT_EQ(receive(b_.get(), false, &packet), Received::kPacket);
  EXPECT_FALSE(packet.descriptor);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(PacketsTest, WhatIsTooLongOrTooShortIsNoMessage) {
  char junk[200] = {};
  for (const std::size_t size : {1u, 71u, 73u, 200u}) {
    const MoverMessage message = make_message(MoverMessage::kHello);
    std::memcpy(junk, &message, sizeof message);
    ASSERT_EQ(::send(a_.get(), junk, size, 0), static_cast<ssize_t>(size));
    Packet packet;
    ASSERT_EQ(receive(b_.get(), true, &packet), Received::kPacket);
    EXPECT_FALSE(packet.message) << size;
  }
  a_.reset();
  Packet packet;
  EXPECT_EQ(receive(b_.get(), true, &packet), Received::kEnd);
  EXPECT_EQ(send(b_.get(), make_message(MoverMessage::kDone)), Sent::kEnd);
}

TEST_F(PacketsTest, AFullSocketIsToldFromABrokenOne) {
  Sent sent = Sent::kDone;
  for (int i = 0; i < 100000 && sent == Sent::kDone; ++i)
    sent = send(a_.get(), make_message(MoverMessage::kDone));
  EXPECT_EQ(sent, Sent::kFull);
}

TEST_F(PacketsTest, FilesAndNetworkSocketsAreNoMemory) {
  const Fd file(open(testing::TempDir().c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  const Fd folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd network(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd device(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(may_be_memory(file.get()));
  EXPECT_FALSE(may_be_memory(folder.get()));
  EXPECT_FALSE(may_be_memory(network.get()));
  EXPECT_TRUE(may_be_memory(device.get()));
  EXPECT_TRUE(may_be_memory(a_.get()));
}

}  // namespace
}  // namespace mete::park
