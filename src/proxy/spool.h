// SPDX-License-Identifier: Apache-2.0
// A body that is read whole before it is passed on: in memory up to 1 MiB, then in a file without a
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace mete::proxy {

class Spool {
 public:
  static constexpr std::size_t kInMemory = 1 << 20;

  // `folder`: of the file; it is made only if it is needed.
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}

  // io: there is no room for it, or no such folder.
  Result<void> append(std::string_view bytes);
  std::uint64_t size() const { return in_file_ + memory_.size(); }
  // Appends at most `most` bytes from `offset` on to `out`. io: the file cannot be read.
  Result<void> read(std::uint64_t offset, std::size_t most, std::string& out) const;
  void clear();

 private:
  Result<void> flush();

  std::string folder_;
  Fd file_;
  std::uint64_t in_file_ = 0;
  std::string memory_;  // what follows
};

}  // namespace mete::proxy
