// SPDX-License-Identifier: Apache-2.0
#include "net/address_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "net/test/support.h"

namespace mete::net {
namespace {

using Paths = std::vector<std::string>;

TEST(AddressFile, SaysWhereADaemonListensAndWhetherItLives) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_address(folder.path()).error().code, ErrorCode::kNotFound);
  {
    const Result<Fd> held = write_address(folder.path(), "/run/a");
    ASSERT_TRUE(held) << held.error().message;
    const Result<Address> address = read_address(folder.path());
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(address->socket, "/run/a");
    EXPECT_EQ(address->former, Paths{});
    EXPECT_TRUE(address->alive);
    EXPECT_TRUE(read_address(folder.path())->alive) << "a look at it takes nothing away";
  }
  EXPECT_FALSE(read_address(folder.path())->alive);
}

TEST(AddressFile, KeepsTheFormerPlacesOnceEachAndNotForEver) {
  const TemporaryFolder folder;
  for (const char* path : {"/a", "/b", "/a"}) ASSERT_TRUE(write_address(folder.path(), path));
  Result<Address> address = read_address(folder.path());
  ASSERT_TRUE(address);
  EXPECT_EQ(address->socket, "/a");
  EXPECT_EQ(address->former, Paths{"/b"});
  EXPECT_TRUE(address->was_at("/a") && address->was_at("/b") && !address->was_at("/c"));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(write_address(folder.path(), "/n" + std::to_string(i)));
  address = read_address(folder.path());
  ASSERT_TRUE(address);
  EXPECT_EQ(address->socket, "/n19");
  EXPECT_EQ(address->former.size(), kMaxFormer);
  EXPECT_EQ(address->former.front(), "/n18");
}

TEST(AddressFile, TheNextOneIsLockedBeforeTheLastOneIsLetGo) {
  const TemporaryFolder folder;
  Result<Fd> held = write_address(folder.path(), "/a");
  ASSERT_TRUE(held);
  Result<Fd> next = write_address(folder.path(), "/b");
  ASSERT_TRUE(next);
  held->reset();
  EXPECT_TRUE(read_address(folder.path())->alive);
}

TEST(AddressFile, IsNotTakenFromAnybodyElse) {
  const TemporaryFolder folder;
  const std::string path = folder / "meted.address";
  ASSERT_TRUE(base::write_atomic(path, "/a\n"));
  ASSERT_TRUE(read_address(folder.path()));
  ASSERT_EQ(chmod(path.c_str(), 0620), 0);
  EXPECT_EQ(read_address(folder.path()).error().code, ErrorCode::kDenied);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 61001, 61001), 0);
    EXPECT_EQ(read_address(folder.path()).error().code, ErrorCode::kDenied);
  }
  ASSERT_EQ(rename(path.c_str(), (folder / "elsewhere").c_str()), 0);
  ASSERT_EQ(symlink((folder / "elsewhere").c_str(), path.c_str()), 0);
  EXPECT_FALSE(read_address(folder.path()));
}

TEST(AddressFile, AnythingElseIsNoAddress) {
  const TemporaryFolder folder;
  for (const char* text : {"", "\n", "/a", "relative\n", "/a\nrelative\n", "/a\n\n"}) {
    ASSERT_TRUE(base::write_atomic(folder / "meted.address", text));
    EXPECT_EQ(read_address(folder.path()).error().code, ErrorCode::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace mete::net
