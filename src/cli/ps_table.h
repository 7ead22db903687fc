// SPDX-License-Identifier: Apache-2.0
// The table of `mete ps`. Pure: jobs in, text out. A row fits on 80 columns: what a job asked for,
// where it runs, what it uses and for how long; for a waiting job the forecast of its start and a
// short reason. The waiting jobs of an array are one row (45_[3-9]).
#pragma once

#include <array>
#include <cstdint>
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

// USER, and the columns after TIME, are left out where no job has anything in them.
inline constexpr std::array kPsColumns{
    Column{"ID", Align::kRight, 20},
    Column{"USER", Align::kLeft, 12, false, 6},
    Column{"NAME", Align::kLeft, 20, false, 10},
    Column{"STATE"},
    Column{"GPU", Align::kLeft, 12},
    Column{"CARD", Align::kLeft, 8},
    Column{"USED", Align::kRight},
    Column{"TIME", Align::kRight},
    Column{"TRY", Align::kRight, 0, false, 0, 3},
    Column{"PRIORITY", Align::kRight, 0, false, 0, 4},
    Column{"IDLE", Align::kRight, 0, false, 0, 2},
    Column{"NOTE", Align::kLeft, 28, false, 18},
    Column{"COMMAND", Align::kLeft, 60, false, 8, 1},
    Column{"STARTS", Align::kLeft, 0, true},
    Column{"REASON", Align::kLeft, 0, true},
};

struct PsWishes {
  std::uint32_t uid = 0;  // of the reader: USER is shown where there are jobs of other users
  bool wide = false;      // nothing is cut: sizes of grants, whole commands, whole reasons
  bool expand = false;    // a row for each job of an array
};

class PsTable {
 public:
  PsTable(WallTime now, PsWishes wishes);

  // Jobs of an array follow each other.
  void add(const wire::JobView& view);
  // Reserves memory for the jobs of these lines.
  void expect(std::string_view lines);
  // Only these of kPsColumns.
  void choose(std::vector<std::size_t> columns);
  bool empty() const { return table_.empty() && folds_.empty(); }
  // Afterwards no job may be added.
  std::string text(std::optional<std::size_t> width);

 private:
  // Jobs of one array that wait alike; the first of them stands for all.
  struct Fold {
    wire::JobView first;
    std::vector<std::uint32_t> elements;
  };
  bool fold(const wire::JobView& view);
  void unfold();
  void add_row(std::string_view id, const wire::JobView& view);
  std::string gpu(const wire::JobView& view) const;
  std::string note(const wire::JobView& view);
  std::string reason(const wire::JobView& view);
  const std::string& starts(const wire::JobView& view);

  WallTime now_;
  PsWishes wishes_;
  Table table_;
  bool others_ = false;   // there are jobs of other users
  bool reasons_ = false;  // REASON is shown
  std::vector<Fold> folds_;
  // The last forecast and its text: the jobs of an array have the same.
  std::optional<WallTime> last_start_;
  std::string start_text_;
  // The text of each wait. The wait is kept beside it, so that no other one gets its address.
  std::map<const core::Wait*, std::pair<core::SharedWait, std::string>> waits_;
};

}  // namespace mete::cli
