// SPDX-License-Identifier: Apache-2.0
// Fd: a file descriptor that is owned by one place and closed there. Every descriptor that we make
// is close-on-exec from birth: a job must not inherit our files by accident, not even when another
// thread forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace mete::base {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.number_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  explicit operator bool() const { return valid(); }
  // Gives up ownership; the caller closes it.
  int release() { return std::exchange(number_, -1); }
  // Closes what is held (errno is kept) and holds `number` instead.
  void reset(int number = -1);

 private:
  int number_ = -1;
};

// open(2) with O_CLOEXEC added; retried on EINTR.
Result<Fd> open_fd(const std::string& path, int flags, mode_t mode = 0);

// Writes all bytes, and waits for room where the descriptor would block. False: errno says why not.
bool write_all(int fd, std::string_view bytes);
// At this offset of a file, all of it. False: errno says why not; EIO also where the file ends.
bool write_at(int fd, std::string_view bytes, std::uint64_t offset);
bool read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset);

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();

// First of all in a program: whoever starts us with 0, 1 or 2 closed must not have what we say
// written into the next file that we open. Writing to a 1 that was closed fails, as it should. A
// program that we start still finds them closed.
void fill_standard_descriptors();

// Early in a program: a file that may not grow any more (ulimit -f) is an error of the write that
// found it (EFBIG), and not our end by SIGXFSZ. Programs that we start find the signal as we did.
void outlive_file_size_limit();

}  // namespace mete::base

namespace mete {
using base::Fd;
}  // namespace mete
