// SPDX-License-Identifier: Apache-2.0
// Jobs for people. Pure: jobs in, a table out.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cli/table.h"
#include "wire/job.h"

namespace mete::cli {

inline constexpr std::array kPsColumns{
    Column{"ID", Align::kRight},
    Column{"NAME", Align::kLeft, 20},
    Column{"USER", Align::kLeft, 16},
    Column{"STATE"},
    Column{"TRY", Align::kRight},
    Column{"PRIORITY", Align::kRight},
    Column{"GPU"},
    Column{"CARDS"},
    Column{"USED", Align::kRight},
    Column{"IDLE", Align::kRight},
    Column{"TIME", Align::kRight},
    Column{"STARTS", Align::kRight},
    Column{"COMMAND"},
    Column{"REASON"},
};

class PsTable {
 public:
  explicit PsTable(WallTime now);

  void add(const wire::JobView& view);
  // Of the lines that are about to be added.
  void expect(std::string_view lines);
  // Of kPsColumns, only these.
  void choose(std::vector<std::size_t> columns) { table_.choose(std::move(columns)); }
  bool empty() const { return table_.empty(); }
  std::string text(std::optional<std::size_t> width);

 private:
  std::string reason(const wire::JobView& view);
  const std::string& starts(const wire::JobView& view);

  WallTime now_;
  Table table_;
  bool reasons_ = false;
  // Jobs of one array are told the same time.
  std::optional<WallTime> last_start_;
  std::string start_text_;
  // The text of each wait; one that is kept here cannot be followed by another at its address.
  std::map<const core::Wait*, std::pair<core::SharedWait, std::string>> waits_;
};

}  // namespace mete::cli
