// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace mete {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

TEST(Fd, ClosesWhatItOwnsExactlyOnce) {
  int number = -1;
  {
    Result<Fd> fd = base::open_fd("/dev/null", O_RDONLY);
    ASSERT_TRUE(fd);
    number = fd->get();
    Fd moved = *std::move(fd);
    EXPECT_FALSE(fd->valid());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, IsCloseOnExecFromBirth) {
  const Result<Fd> fd = base::open_fd("/dev/null", O_RDONLY);
  ASSERT_TRUE(fd);
  EXPECT_EQ(fcntl(fd->get(), F_GETFD), FD_CLOEXEC);
  const Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  EXPECT_EQ(fcntl(pipe->read.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(pipe->write.get(), F_GETFD), FD_CLOEXEC);
}

TEST(Fd, ClosingKeepsErrno) {
  Result<Fd> fd = base::open_fd("/dev/null", O_RDONLY);
  ASSERT_TRUE(fd);
  errno = EXDEV;
  fd->reset();
  EXPECT_EQ(errno, EXDEV);
}

TEST(Fd, SaysWhichFileDidNotOpen) {
  const Result<Fd> fd = base::open_fd("/nowhere/at/all", O_RDONLY);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().message, "open /nowhere/at/all: No such file or directory");
}

}  // namespace
}  // namespace mete
