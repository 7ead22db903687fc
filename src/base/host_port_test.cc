// SPDX-License-Identifier: Apache-2.0
#include "base/host_port.h"

#include <gtest/gtest.h>

namespace mete::base {
namespace {

TEST(HostPort, ReadsNumbers) {
  EXPECT_EQ(*parse_host_port("127.0.0.1:9411"), (HostPort{"127.0.0.1", 9411}));
  EXPECT_EQ(*parse_host_port("0.0.0.0:1"), (HostPort{"0.0.0.0", 1}));
  EXPECT_EQ(*parse_host_port("[::1]:65535"), (HostPort{"::1", 65535}));
  EXPECT_TRUE(parse_host_port("[::]:80")->ipv6());
}

TEST(HostPort, AnythingElseIsRefused) {
  for (const char* text : {"",
                           ":",
                           "9411",
                           ":9411",
                           "localhost:9411",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:0",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:+1",
                           "127.0.0.1: 1",
                           "127.0.0.1:000001",
                           "::1:9411",
                           "[127.0.0.1]:9411",
                           "[]:1",
                           "[::1:9411",
                           "127.1:80",
                           "256.0.0.1:80",
                           "1.2.3.4:8x"})
    EXPECT_FALSE(parse_host_port(text).ok()) << text;
  EXPECT_FALSE(parse_host_port(std::string_view("127.0.0.1\0x:80", 14)).ok());
}

}  // namespace
}  // namespace mete::base
