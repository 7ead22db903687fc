// SPDX-License-Identifier: Apache-2.0
// FOLDER/meted.mark: which database this folder has, and its last event that was reported as
// stored. Written in place after each commit, without a sync: it survives the death of the process,
// and after a power failure it is behind the database or even with it, never ahead. So a database
// that ends before its mark has lost something that was reported. docs/formats/store.md has its
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace mete::store {

struct MarkContent {
  std::string database;  // its identity, 32 hexadecimal digits
  std::uint64_t seq = 0;
  std::uint64_t version = 0;  // of its tables, at most 9999
  bool operator==(const MarkContent&) const = default;
};
std::string encode_mark(const MarkContent& content);  // always of the same length

std::string mark_path(const std::string& folder);
// nullopt: there is none. corrupt: the file is no mark, or a damaged one.
Result<std::optional<MarkContent>> read_mark(const std::string& folder);

class Mark {
 public:
  explicit Mark(const std::string& folder) : folder_(folder) {}
  // Makes the file if it is missing, 0600 and with its space on the disk. To be called again after
  // a failure.
  Result<void> open(MarkContent content);
  // A failure is ignored: a mark that is behind detects less, and refuses nothing that is whole.
  void write(std::uint64_t seq);
  bool is_open() const { return file_.valid(); }

 private:
  std::string folder_;
  MarkContent content_;
  Fd file_;
};

}  // namespace mete::store
