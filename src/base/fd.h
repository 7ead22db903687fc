// SPDX-License-Identifier: Apache-2.0
// Fd: a file descriptor with one owner, which closes it. Every descriptor that we make is
// close-on-exec from birth: a job must not inherit our files by accident, not even when another
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
  int release() { return std::exchange(number_, -1); }
  // Closes the present descriptor (errno is kept) and holds `number` instead.
  void reset(int number = -1);

 private:
  int number_ = -1;
};

// open(2) with O_CLOEXEC added; retried on EINTR.
Result<Fd> open_fd(const std::string& path, int flags, mode_t mode = 0);

// Writes all bytes, and waits while the descriptor would block. False: errno has the reason.
bool write_all(int fd, std::string_view bytes);
// Writes all bytes at this offset of a file. False: errno has the reason; EIO also at the end of
// the file.
bool write_at(int fd, std::string_view bytes, std::uint64_t offset);
bool read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset);

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();

// Call first in a program: if it was started with 0, 1 or 2 closed, its messages must not go to the
// next file that it opens. Writing to a closed 1 fails, as it should. Programs that we start still
// find them closed.
void fill_standard_descriptors();

// Call early in a program: a write beyond the file size limit (ulimit -f) fails with EFBIG instead
// of killing us by SIGXFSZ. Programs that we start inherit the signal's original setting.
void outlive_file_size_limit();

}  // namespace mete::base

namespace mete {
using base::Fd;
}  // namespace mete
