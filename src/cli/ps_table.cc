// SPDX-License-Identifier: Apache-2.0
// See ps_table.h.
#include "cli/ps_table.h"

#include <algorithm>

#include "base/brief.h"
#include "base/moment.h"
#include "base/text.h"
#include "wire/job_text.h"

namespace mete::cli {

namespace {

using core::Job;
using core::JobState;

constexpr std::size_t kUser = 1;
constexpr std::size_t kName = 2, kTime = 7;  // these and all between them are always shown
constexpr std::size_t kNote = 11;
constexpr std::size_t kReason = 14;
static_assert(kPsColumns[kUser].title == "USER" && kPsColumns[kName].title == "NAME" &&
              kPsColumns[kTime].title == "TIME" && kPsColumns[kNote].title == "NOTE" &&
              kPsColumns[kReason].title == "REASON");

std::vector<Column> columns_of(const PsWishes& wishes) {
  std::vector<Column> columns(kPsColumns.begin(), kPsColumns.end());
  if (!wishes.wide) return columns;
  for (Column& column : columns) {
    column.most = 0;
    column.extra = column.title == "NOTE";
  }
  return columns;
}

// The time that the job has waited, runs or ran: "1:41", "3:12:05", "4d 3:12".
std::string time_of(const Job& job, WallTime now) {
  if (job.state == JobState::kEnded && !job.started) return "";
  const bool waits = job.state == JobState::kPending;
  const WallTime from = waits ? job.submitted : job.started.value_or(job.submitted);
  return base::clock_duration(
      std::max<std::int64_t>(0, (job.ended.value_or(now).ms - from.ms) / 1000));
}

// "running", "pending"; for an ended job its outcome: "ok", "failed 3", "signal 9".
std::string state_of(const Job& job) {
  if (job.state == JobState::kEnded && job.outcome)
    return wire::outcome_text(*job.outcome, job.exit);
  return std::string(to_string(job.state));
}

std::string cards_of(const Job& job) {
  std::vector<std::uint32_t> cards;
  for (const core::GrantedCard& card : job.grant) cards.push_back(card.index);
  std::sort(cards.begin(), cards.end());
  return base::number_ranges(cards);
}

std::string used_of(const wire::JobView& view, bool wide) {
  if (wide) return wire::used_text(view);
  if (view.job.state == JobState::kEnded || view.used.empty()) return "";
  Bytes sum;
  for (const std::optional<Bytes>& used : view.used) {
    const std::optional<Bytes> more = used ? sum.checked_add(*used) : std::nullopt;
    if (!more) return "";
    sum = *more;
  }
  return base::brief(sum);
}

// "45_[3-9]", "45_3". A long list of numbers is cut at a comma: "45_[1,3,5,…]".
std::string folded_id(std::uint64_t number, const std::vector<std::uint32_t>& elements) {
  const std::string id = std::to_string(number) + "_";
  if (elements.size() == 1) return id + std::to_string(elements.front());
  constexpr std::size_t kMost = 12;
  std::string ranges = base::number_ranges(elements);
  if (ranges.size() > kMost)
    if (const std::size_t comma = ranges.rfind(',', kMost); comma != std::string::npos)
      ranges = ranges.substr(0, comma) + ",…";
  return id + "[" + ranges + "]";
}

bool is_held(const wire::JobView& view) {
  return view.wait && view.wait->reason == core::Reason::kHeld;
}

// Whether two waiting jobs of an array may be one row.
bool wait_alike(const wire::JobView& a, const wire::JobView& b) {
  return a.job.attempt == b.job.attempt && a.job.priority == b.job.priority &&
         is_held(a) == is_held(b);
}

}  // namespace

PsTable::PsTable(WallTime now, PsWishes wishes)
    : now_(now), wishes_(wishes), table_(columns_of(wishes)), reasons_(wishes.wide) {
  for (std::size_t column = kName; column <= kTime; ++column) table_.always(column);
}

void PsTable::choose(std::vector<std::size_t> columns) {
  reasons_ = std::find(columns.begin(), columns.end(), kReason) != columns.end();
  table_.choose(std::move(columns));
}

void PsTable::add(const wire::JobView& view) {
  others_ = others_ || view.job.spec->uid != wishes_.uid;
  if (!folds_.empty() && folds_.front().first.job.id.number != view.job.id.number) unfold();
  if (!fold(view)) add_row(to_string(view.job.id), view);
}

bool PsTable::fold(const wire::JobView& view) {
  const Job& job = view.job;
  if (wishes_.expand || !job.id.element || job.state != JobState::kPending) return false;
  auto same = std::find_if(folds_.begin(), folds_.end(),
                           [&](const Fold& fold) { return wait_alike(fold.first, view); });
  if (same == folds_.end()) same = folds_.insert(folds_.end(), Fold{view, {}});
  same->elements.push_back(*job.id.element);
  return true;
}

void PsTable::unfold() {
  for (const Fold& fold : folds_)
    add_row(folded_id(fold.first.job.id.number, fold.elements), fold.first);
  folds_.clear();
}

void PsTable::add_row(std::string_view id, const wire::JobView& view) {
  const Job& job = view.job;
  table_.add({id, job.spec->user, job.spec->name, state_of(job), gpu(view), cards_of(job),
              used_of(view, wishes_.wide), time_of(job, now_),
              job.attempt > 1 ? std::to_string(job.attempt) : "",
              job.priority != 0 ? std::to_string(job.priority) : "",
              view.idle_since ? base::brief_duration(*view.idle_since, now_) : "", note(view),
              base::join(job.spec->command, " "), starts(view), reason(view)});
}

void PsTable::expect(std::string_view lines) {
  table_.expect(static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')),
                lines.size());
}

// A job of another user may come without its request: then the share that it holds is shown.
std::string PsTable::gpu(const wire::JobView& view) const {
  if (wishes_.wide) return wire::gpu_text(view.job);
  if (std::string asked = wire::request_text(view.job); !asked.empty()) return asked;
  Bytes bytes;
  for (const core::GrantedCard& card : view.job.grant)
    bytes = bytes.checked_add(card.bytes).value_or(bytes);
  return bytes.is_zero() ? "" : base::brief(bytes);
}

std::string PsTable::note(const wire::JobView& view) {
  return wishes_.wide ? std::string() : wire::brief_reason(view, view.place, now_);
}

// Equal jobs share their wait: thousands of them have one text.
std::string PsTable::reason(const wire::JobView& view) {
  if (!reasons_) return "";
  if (view.job.state != JobState::kPending || !view.wait) return wire::reason_text(view, now_);
  auto known = waits_.find(view.wait.get());
  if (known == waits_.end())
    known =
        waits_.emplace(view.wait.get(), std::pair(view.wait, wire::reason_text(view, now_))).first;
  return known->second.second;
}

const std::string& PsTable::starts(const wire::JobView& view) {
  static const std::string kNothing;
  if (view.job.state != JobState::kPending || !view.forecast) return kNothing;
  if (last_start_ != view.forecast->at) {
    last_start_ = view.forecast->at;
    start_text_ = "~" + moment(view.forecast->at, now_);
  }
  return start_text_;
}

std::string PsTable::text(std::optional<std::size_t> width) {
  unfold();
  if (!others_ && !wishes_.wide) table_.hide(kUser);
  return table_.text(wishes_.wide ? std::nullopt : width);
}

}  // namespace mete::cli
