// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace mete {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

// In a child, which has its own signals. 0: a write past the limit is an error, and a program that
// is run then would die of it (or not, if the signal was ignored before).
int write_past_the_limit(bool ignored) {
  const pid_t child = fork();
  if (child != 0) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }
  (void)signal(SIGXFSZ, ignored ? SIG_IGN : SIG_DFL);
  base::outlive_file_size_limit();
  const rlimit none{0, 0};
  FILE* file = tmpfile();
  if (file == nullptr || setrlimit(RLIMIT_FSIZE, &none) != 0) _exit(1);
  if (write(fileno(file), "x", 1) != -1 || errno != EFBIG) _exit(2);
  const char* script = "kill -XFSZ $$; exit 3";
  execl("/bin/sh", "sh", "-c", script, nullptr);
  _exit(4);
}

TEST(FileSizeLimit, IsAnErrorOfAWriteForUsAndWhatItWasForWhatWeStart) {
  int status = write_past_the_limit(false);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  status = write_past_the_limit(true);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

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
