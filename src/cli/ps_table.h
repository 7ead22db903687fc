// SPDX-License-Identifier: Apache-2.0
// Jobs for people. Pure: jobs in, a table out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/table.h"
#include "wire/job.h"

namespace mete::cli {

class PsTable {
 public:
  explicit PsTable(WallTime now);

  void add(const wire::JobView& view);
  // Of the lines that are about to be added.
  void expect(std::string_view lines);
  bool empty() const { return table_.empty(); }
  std::string text(std::optional<std::size_t> width);

 private:
  const std::string& starts(const wire::JobView& view);

  WallTime now_;
  Table table_;
  bool reasons_ = false;
  // Jobs of one array are told the same time.
  std::optional<WallTime> last_start_;
  std::string start_text_;
};

}  // namespace mete::cli
