// SPDX-License-Identifier: Apache-2.0
// See rows.h. First the jobs, also those of other users of which only the shares on the cards are
// known; then what runs outside mete; then the waiting jobs. Each part is sorted by the wanted
// figure, then by number; waiting jobs keep the order of the queue unless another is wanted.
// Processes are placed below their job as a tree, by their parents.
#include "top/rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "wire/job_text.h"

namespace mete::top {

namespace {

using core::JobState;
using Kind = Row::Kind;
using wire::CardView;
using wire::Snapshot;

Row row_of(const Snapshot::Job& job) {
  Row row;
  row.kind = Kind::kJob;
  row.key = "job " + to_string(job.view.job.id);
  row.job = &job;
  row.utilisation_pct = job.utilisation_pct;
  row.waits = job.view.job.state == JobState::kPending;
  Bytes granted;
  for (const core::GrantedCard& card : job.view.job.grant) {
    granted += card.bytes;
    row.cards.push_back(card.index);
  }
  if (row.waits) return row;
  if (!row.cards.empty()) row.granted = granted;
  Bytes used;
  bool known = !job.view.used.empty();
  for (const std::optional<Bytes>& on_card : job.view.used) {
    known = known && on_card;
    if (on_card) used += *on_card;
  }
  if (known) row.used = used;
  return row;
}

Row row_of(const Snapshot::Job& job, const Snapshot::Process& process, std::string branch) {
  Row row;
  row.kind = Kind::kProcess;
  row.key = "job " + to_string(job.view.job.id) + " process " + std::to_string(process.pid) +
            (process.card ? " card " + std::to_string(*process.card) : "");
  row.job = &job;
  row.process = &process;
  row.branch = std::move(branch);
  row.used = process.used;
  row.utilisation_pct = process.utilisation_pct;
  if (process.card) row.cards = {*process.card};
  return row;
}

// Jobs that appear on the cards and that this user may not look at.
std::vector<Row> others_of(const Snapshot& snapshot) {
  std::set<std::string> seen;
  for (const Snapshot::Job& job : snapshot.jobs) seen.insert(to_string(job.view.job.id));
  std::map<std::string, Row> others;
  for (const CardView& card : snapshot.cards) {
    for (const CardView::JobShare& share : card.jobs) {
      if (seen.contains(share.id)) continue;
      Row& row = others[share.id];
      if (row.share == nullptr) {
        row.kind = Kind::kOther;
        row.key = "job " + share.id;
        row.card = &card;
        row.share = &share;
        row.used = share.used;
        row.granted = share.bytes;
      } else {
        row.granted = *row.granted + share.bytes;
        row.used = row.used && share.used ? std::optional(*row.used + *share.used) : std::nullopt;
      }
      row.cards.push_back(card.index);
    }
  }
  std::vector<Row> rows;
  for (auto& [id, row] : others) rows.push_back(std::move(row));
  return rows;
}

std::vector<Row> foreign_of(const Snapshot& snapshot) {
  std::vector<Row> rows;
  for (const CardView& card : snapshot.cards) {
    for (const CardView::Foreign& other : card.foreign_list) {
      Row row;
      row.kind = Kind::kForeign;
      row.key = "outside " + std::to_string(card.index) + " " +
                (other.pid ? std::to_string(*other.pid) : other.user);
      row.card = &card;
      row.foreign = &other;
      row.used = other.used;
      row.utilisation_pct = other.utilisation_pct;
      row.cards = {card.index};
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

bool is_wanted(const Row& row, const std::string& filter) {
  if (filter.empty()) return true;
  const std::string text = base::to_lower(row.key + " " + user_of(row) + " " + name_of(row) + " " +
                                          state_of(row) + " " + command_of(row));
  for (const std::string_view word : base::split(filter, ' '))
    if (text.find(base::to_lower(word)) == std::string::npos) return false;
  return true;
}

// Job numbers as numbers; things outside mete by their pid.
std::tuple<std::uint64_t, std::uint32_t> number_of(const Row& row) {
  if (row.job != nullptr) {
    const core::JobId id = row.job->view.job.id;
    return {id.number, id.element.value_or(0)};
  }
  if (row.foreign != nullptr) return {static_cast<std::uint64_t>(row.foreign->pid.value_or(0)), 0};
  const Result<core::JobId> id = core::parse_job_id(row.share->id);
  return id ? std::tuple{id->number, id->element.value_or(0)} : std::tuple{UINT64_MAX, 0u};
}

// By the wanted figure, large ones first, unknown ones last; then by number.
template <class Figure>
void sort_down(std::vector<Row>& rows, const Figure& figure) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    const auto of_a = figure(a), of_b = figure(b);
    if (of_a.has_value() != of_b.has_value()) return of_a.has_value();
    return of_a && *of_a > *of_b;
  });
}

template <class Text>
void sort_up(std::vector<Row>& rows, const Text& text) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return text(a) < text(b); });
}

void sort_rows(std::vector<Row>& rows, const Wanted& wanted, WallTime now) {
  sort_up(rows, number_of);
  switch (wanted.sort) {
    case Sort::kId:
      break;
    case Sort::kUser:
      sort_up(rows, user_of);
      break;
    case Sort::kName:
      sort_up(rows, name_of);
      break;
    case Sort::kState:
      sort_up(rows, state_of);
      break;
    case Sort::kCard:
      sort_up(rows, [](const Row& row) { return row.cards; });
      break;
    case Sort::kMemory:
      sort_down(rows, [](const Row& row) { return row.used; });
      break;
    case Sort::kUtil:
      sort_down(rows, [](const Row& row) { return row.utilisation_pct; });
      break;
    case Sort::kIdle:
      sort_down(rows, [now](const Row& row) -> std::optional<std::int64_t> {
        const std::optional<WallTime> since = idle_since(row);
        return since ? std::optional(now.ms - since->ms) : std::nullopt;
      });
      break;
    case Sort::kTime:
      sort_down(rows, [now](const Row& row) { return seconds_of(row, now); });
      break;
  }
  if (wanted.reverse) std::reverse(rows.begin(), rows.end());
}

// Waiting jobs keep the order of the queue, unless another order is wanted.
void sort_waiting(std::vector<Row>& rows, const Snapshot& snapshot, const Wanted& wanted) {
  if (wanted.sort != Sort::kId) return sort_rows(rows, wanted, snapshot.at);
  std::map<core::JobId, std::size_t> order;
  for (const Snapshot::Queue::Entry& entry : snapshot.queue.order)
    order.emplace(entry.id, order.size());
  const auto place = [&order](const Row& row) {
    const auto found = order.find(row.job->view.job.id);
    return std::pair(found == order.end() ? order.size() : found->second, number_of(row));
  };
  sort_up(rows, place);
  if (wanted.reverse) std::reverse(rows.begin(), rows.end());
}

std::string waiting_title(const Snapshot& snapshot, std::size_t shown) {
  std::uint64_t all = 0;
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : snapshot.queue.depth) {
    all += count;
    reasons.push_back(std::to_string(count) + " " + reason);
  }
  std::string title = "waiting " + std::to_string(std::max<std::uint64_t>(all, shown));
  if (!reasons.empty()) title += " (" + base::join(reasons, ", ") + ")";
  if (snapshot.queue.left_off > 0)
    title += ", " + std::to_string(snapshot.queue.left_off) + " not listed";
  return title;
}

void append(std::vector<Row>& rows, std::string title, std::vector<Row> more) {
  if (more.empty()) return;
  Row section;
  section.key = title;
  section.title = std::move(title);
  rows.push_back(std::move(section));
  rows.insert(rows.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// Each below its parent, if that belongs to the job too. A process on two cards is listed twice,
// with its children below the second.
void add_family(std::vector<Row>& rows, const Snapshot::Job& job) {
  std::map<std::int32_t, std::size_t> last_of;
  for (std::size_t i = 0; i < job.processes.size(); ++i) last_of[job.processes[i].pid] = i;
  std::map<std::int32_t, std::vector<std::size_t>> below;  // 0: the job
  for (std::size_t i = 0; i < job.processes.size(); ++i) {
    const Snapshot::Process& process = job.processes[i];
    below[last_of.contains(process.parent) ? process.parent : 0].push_back(i);
  }
  struct Next {
    std::size_t process;
    std::string branch;
  };
  std::vector<Next> waiting;
  const auto push = [&](std::int32_t parent, const std::string& stem) {
    const auto found = below.find(parent);
    if (found == below.end()) return;
    for (std::size_t i = found->second.size(); i-- > 0;)
      waiting.push_back({found->second[i], stem + (i + 1 == found->second.size() ? '`' : '+')});
  };
  push(0, "");
  std::vector<bool> shown(job.processes.size());
  // A list that was read while it changed may have cycles: processes in a cycle are placed below
  // the job.
  for (std::size_t rest = 0; rest < shown.size() || !waiting.empty();) {
    if (waiting.empty()) waiting.push_back({rest++, "`"});
    const Next next = std::move(waiting.back());
    waiting.pop_back();
    if (shown[next.process]) continue;
    shown[next.process] = true;
    const Snapshot::Process& process = job.processes[next.process];
    rows.push_back(row_of(job, process, next.branch));
    if (last_of[process.pid] != next.process) continue;
    std::string stem = next.branch;
    stem.back() = stem.back() == '+' ? '|' : ' ';
    push(process.pid, stem);
  }
}

void add_processes(std::vector<Row>& rows) {
  std::vector<Row> all;
  for (Row& row : rows) {
    const Snapshot::Job* job = row.job;
    all.push_back(std::move(row));
    if (job != nullptr) add_family(all, *job);
  }
  rows = std::move(all);
}

}  // namespace

std::string_view title_of(Sort sort) {
  constexpr std::array<std::string_view, kSorts> kTitles{"ID",     "USER", "NAME", "STATE", "CARD",
                                                         "MEMORY", "UTIL", "IDLE", "TIME"};
  return kTitles[static_cast<std::size_t>(sort)];
}

std::vector<Row> rows_of(const Snapshot& snapshot, const Wanted& wanted) {
  std::vector<Row> jobs;
  std::vector<Row> waiting;
  const auto keep = [&wanted](std::vector<Row>& rows, Row row) {
    if (is_wanted(row, wanted.filter)) rows.push_back(std::move(row));
  };
  for (const Snapshot::Job& job : snapshot.jobs) {
    Row row = row_of(job);
    keep(row.waits ? waiting : jobs, std::move(row));
  }
  for (Row& row : others_of(snapshot)) keep(jobs, std::move(row));
  for (const Snapshot::Queue::Entry& entry : snapshot.queue.order)
    for (Row& row : waiting)
      if (row.job->view.job.id == entry.id) row.place = entry.place;
  std::vector<Row> outside;
  for (Row& row : foreign_of(snapshot)) keep(outside, std::move(row));
  sort_rows(jobs, wanted, snapshot.at);
  sort_rows(outside, wanted, snapshot.at);
  sort_waiting(waiting, snapshot, wanted);
  if (wanted.tree) add_processes(jobs);
  const std::size_t shown = waiting.size();
  std::vector<Row> rows = std::move(jobs);
  append(rows, "outside mete", std::move(outside));
  append(rows, waiting_title(snapshot, shown), std::move(waiting));
  return rows;
}

std::string user_of(const Row& row) {
  if (row.job != nullptr) return row.job->view.job.spec->user;
  if (row.foreign != nullptr) return row.foreign->user;
  return row.share != nullptr ? row.share->user : "";
}

std::string name_of(const Row& row) {
  if (row.process != nullptr) return row.process->name;
  if (row.job != nullptr) return row.job->view.job.spec->name;
  if (row.foreign != nullptr) return row.foreign->pid ? row.foreign->name : "its mete";
  return row.share != nullptr ? row.share->name : "";
}

std::string state_of(const Row& row) {
  if (row.kind == Kind::kForeign) return "outside";
  if (row.kind == Kind::kOther) return "granted";
  if (row.kind != Kind::kJob) return "";
  return std::string(to_string(row.job->view.job.state));
}

std::string command_of(const Row& row) {
  if (row.kind != Kind::kJob) return "";
  return base::join(row.job->view.job.spec->command, " ");
}

std::optional<std::int64_t> seconds_of(const Row& row, WallTime now) {
  if (row.kind != Kind::kJob) return std::nullopt;
  const core::Job& job = row.job->view.job;
  const WallTime from = row.waits ? job.submitted : job.started.value_or(job.submitted);
  return std::max<std::int64_t>(0, (now.ms - from.ms) / 1000);
}

std::optional<WallTime> idle_since(const Row& row) {
  if (row.kind == Kind::kJob) return row.job->view.idle_since;
  return row.kind == Kind::kOther ? row.share->idle_since : std::nullopt;
}

}  // namespace mete::top
