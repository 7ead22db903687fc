// SPDX-License-Identifier: Apache-2.0
// See spool.h.
#include "proxy/spool.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace mete::proxy {

Result<void> Spool::append(std::string_view bytes) {
  memory_.append(bytes);
  return memory_.size() <= kInMemory ? Result<void>() : flush();
}

Result<void> Spool::flush() {
  if (!file_.valid()) {
    Result<Fd> file = base::open_fd(folder_, O_TMPFILE | O_RDWR, 0600);
    if (!file) return std::move(file).error();
    file_ = std::move(*file);
  }
  if (!base::write_at(file_.get(), memory_, in_file_))
    return Error::from_errno("keep a body in " + folder_, errno);
  in_file_ += memory_.size();
  memory_ = std::string();
  return {};
}

Result<void> Spool::read(std::uint64_t offset, std::size_t most, std::string& out) const {
  if (offset >= in_file_) {
    const std::uint64_t from = std::min<std::uint64_t>(offset - in_file_, memory_.size());
    out.append(memory_, from, most);
    return {};
  }
  const std::size_t wanted = std::min<std::uint64_t>(most, in_file_ - offset);
  const std::size_t before = out.size();
  out.resize(before + wanted);
  if (!base::read_at(file_.get(), out.data() + before, wanted, offset))
    return Error::from_errno("read a body back", errno);
  return {};
}

void Spool::clear() {
  file_.reset();
  in_file_ = 0;
  memory_ = std::string();  // `= {}` would keep its memory
}

}  // namespace mete::proxy
