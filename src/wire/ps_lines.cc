// SPDX-License-Identifier: Apache-2.0
// See ps_lines.h, and docs/formats/ps-lines.md for the columns. A line is appended column by
// column, and read in place: a Row splits it into views, and its first error is kept. What jobs
// share is made once: an array's jobs have the last columns in common (append_spec, last_words),
// and equal waits have their JSON only in the first line that has them (WaitsOut, read_wait_data).
#include "wire/ps_lines.h"

#include <array>
#include <charconv>
#include <concepts>
#include <map>

#include "base/text.h"
#include "core/request/gpu.h"
#include "wire/values.h"
#include "wire/wait.h"
#include "wire/wait_text.h"

namespace mete::wire {

namespace {

using core::Job;
using core::JobSpec;

constexpr std::string_view kFirst = "mete.ps-lines/1";

// In this order. Columns that all jobs of an array share are at the end, side by side.
enum Column : std::size_t {
  kId,
  kState,
  kOutcome,
  kExitCode,
  kSignal,
  kReason,
  kAttempt,
  kPriority,
  kCards,  // "0:8589934592:1073741824,2w:…:": index ("w": whole), bytes, used
  kSubmitted,
  kStarted,
  kEnded,
  kIdleSince,
  kForecastAt,
  kForecastBy,
  kWait,
  kName,
  kUser,
  kUid,
  kRequest,
  kCommand,
  kPark,  // "preempted:14:7516192768:608174080": cause, for which job, kept for it, on the cards
  kRemark,
  kWaitData,    // "3 {…}": the third wait of the list, as JSON; "3": that wait again
  kRemarkData,  // JSON; "": the remark is complete
  kPlace,       // in the queue, from 1
  kColumns
};
constexpr std::size_t kFirstColumns = kCommand + 1;  // those of the first release

// ---- writing -----------------------------------------------------------------------------------

void append_escaped(std::string& out, std::string_view text) {
  std::size_t copied = 0;
  for (std::size_t at = 0;; ++at) {
    at += plain_prefix(text.substr(at));
    if (at == text.size()) break;
    const char* escaped = nullptr;
    switch (text[at]) {
      case '\\':
        escaped = "\\\\";
        break;
      case '\t':
        escaped = "\\t";
        break;
      case '\n':
        escaped = "\\n";
        break;
      case '\r':
        escaped = "\\r";
        break;
      default:
        continue;
    }
    out.append(text, copied, at - copied).append(escaped);
    copied = at + 1;
  }
  out.append(text, copied);
}

template <std::integral Number>
void append_number(std::string& out, Number number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

template <std::integral Number>
void append_if(std::string& out, const std::optional<Number>& number) {
  if (number) append_number(out, *number);
}

void append_if(std::string& out, const std::optional<WallTime>& time) {
  if (time) append_number(out, time->ms);
}

void append_cards(std::string& out, const JobView& view) {
  for (std::size_t i = 0; i < view.job.grant.size(); ++i) {
    const core::GrantedCard& card = view.job.grant[i];
    if (i != 0) out += ',';
    append_number(out, card.index);
    if (card.whole) out += 'w';
    append_number(out += ':', card.bytes.count());
    out += ':';
    if (i < view.used.size() && view.used[i]) append_number(out, view.used[i]->count());
  }
}

// The waits of the list so far. Equal jobs share a wait, whose text is made once.
class WaitsOut {
 public:
  void append_text(std::string& out, const core::SharedWait& wait) {
    if (!wait) return;
    Known& known = known_[wait.get()];
    if (known.number == 0) append_escaped(known.text, wait_text(*wait));
    out += known.text;
  }
  void append_data(std::string& out, const core::SharedWait& wait) {
    if (!wait) return;
    Known& known = known_[wait.get()];
    const bool first = known.number == 0;
    if (first) known.number = known_.size();
    append_number(out, known.number);
    if (first) append_escaped(out += ' ', wait_json(*wait));
  }

 private:
  struct Known {
    std::size_t number = 0;
    std::string text;
  };
  std::map<const core::Wait*, Known> known_;
};

void append_words(std::string& out, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 0) out += ' ';
    append_escaped(out, words[i]);
  }
}

void append_command(std::string& out, const JobSpec& spec) {
  if (is_listed_whole(spec.command))
    append_words(out, spec.command);
  else
    append_words(out, listed_command(spec.command));
}

// The columns from kName on.
void append_spec(std::string& out, const Job& job) {
  const JobSpec& spec = *job.spec;
  append_escaped(out, spec.name);
  append_escaped(out += '\t', spec.user);
  append_number(out += '\t', spec.uid);
  out += '\t';
  if (const auto& gpu = job.gpu ? job.gpu : spec.request.gpu) out += as_written(*gpu);
  append_command(out += '\t', spec);
}

void append_park(std::string& out, const core::Park& park) {
  out += to_string(park.cause);
  out += ':';
  if (park.for_job) append_id(out, *park.for_job);
  out += ':';
  if (park.held.empty()) {
    out += ':';
    return;
  }
  append_number(out, park.moved.count());
  Bytes held;
  for (const Bytes bytes : park.held) held = held.checked_add(bytes).value_or(held);
  append_number(out += ':', held.count());
  if (park.lost) out += ":lost";
  if (!park.on_disk.is_zero()) append_number(out += ":disk=", park.on_disk.count());
}

void append_job(std::string& out, const JobView& view, WaitsOut& waits) {
  const Job& job = view.job;
  append_id(out, job.id);
  (out += '\t') += to_string(job.state);
  out += '\t';
  if (job.outcome) out += to_string(*job.outcome);
  append_if(out += '\t', job.exit ? job.exit->code : std::nullopt);
  append_if(out += '\t', job.exit ? job.exit->signal : std::nullopt);
  out += '\t';
  if (view.wait) out += to_string(view.wait->reason);
  append_number(out += '\t', job.attempt);
  append_number(out += '\t', job.priority);
  append_cards(out += '\t', view);
  append_number(out += '\t', job.submitted.ms);
  append_if(out += '\t', job.started);
  append_if(out += '\t', job.ended);
  append_if(out += '\t', view.idle_since);
  append_if(out += '\t', view.forecast ? std::optional(view.forecast->at) : std::nullopt);
  append_if(out += '\t', view.forecast ? std::optional(view.forecast->by) : std::nullopt);
  waits.append_text(out += '\t', view.wait);
  append_spec(out += '\t', job);
  out += '\t';
  if (job.park) append_park(out, *job.park);
  append_escaped(out += '\t', remark_text(view.remark));
  waits.append_data(out += '\t', view.wait);
  out += '\t';
  if (view.remark.idle) append_escaped(out, remark_json(view.remark));
  append_if(out += '\t', view.place);
  out += '\n';
}

// ---- reading -----------------------------------------------------------------------------------

// One line; its first error is kept.
class Row {
 public:
  // False: too few columns. A newer daemon may write more.
  bool split(std::string_view line) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      std::string_view& column = columns_[i];
      if (line.data() == nullptr) return i >= kFirstColumns;
      const std::size_t end = line.find('\t');
      column = line.substr(0, end);
      line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
    }
    return true;
  }
  std::string_view operator[](Column column) const { return columns_[column]; }
  // From the column to the end of the one before `end`, tabs included.
  std::string_view range(Column first, Column last) const {
    const char* begin = columns_[first].data();
    return {begin, static_cast<std::size_t>(columns_[last].data() + columns_[last].size() - begin)};
  }

  template <std::integral Number>
  Number number(std::string_view text) {
    Number value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    ok_ = ok_ && code == std::errc() && end == text.data() + text.size();
    return ok_ ? value : Number{0};
  }
  template <std::integral Number>
  std::optional<Number> number_if(Column column) {
    const std::string_view text = columns_[column];
    return text.empty() ? std::nullopt : std::optional(number<Number>(text));
  }
  std::optional<WallTime> time_if(Column column) {
    const std::optional<std::int64_t> ms = number_if<std::int64_t>(column);
    return ms ? std::optional(WallTime{*ms}) : std::nullopt;
  }
  std::string text(Column column) {
    const std::string_view escaped = columns_[column];
    if (escaped.find('\\') == std::string_view::npos) return std::string(escaped);
    std::string text;
    for (std::size_t i = 0; i < escaped.size(); ++i) {
      if (escaped[i] != '\\') {
        text += escaped[i];
        continue;
      }
      const char letter = ++i < escaped.size() ? escaped[i] : '?';
      const bool known = letter == '\\' || letter == 't' || letter == 'n' || letter == 'r';
      ok_ = ok_ && known;
      text += letter == 't' ? '\t' : letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter;
    }
    return text;
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }

 private:
  std::array<std::string_view, kColumns> columns_;
  bool ok_ = true;
};

void read_cards(Row& row, JobView& view) {
  if (row[kCards].empty()) return;
  for (const std::string_view text : base::split(row[kCards], ',')) {
    const std::vector<std::string_view> parts = base::split(text, ':');
    if (parts.size() != 3) return row.fail();
    core::GrantedCard card;
    card.whole = parts[0].ends_with('w');
    card.index = row.number<std::uint32_t>(parts[0].substr(0, parts[0].size() - card.whole));
    card.bytes = Bytes::from_bytes(row.number<std::uint64_t>(parts[1]));
    view.job.grant.push_back(std::move(card));
    view.used.push_back(
        parts[2].empty() ? std::nullopt
                         : std::optional(Bytes::from_bytes(row.number<std::uint64_t>(parts[2]))));
  }
}

JobSpec spec_of(Row& row) {
  JobSpec spec;
  spec.name = row.text(kName);
  spec.user = row.text(kUser);
  spec.uid = row.number<std::uint32_t>(row[kUid]);
  if (!row[kRequest].empty())
    if (const Result<core::GpuRequest> gpu = core::parse_gpu(row[kRequest]))
      spec.request.gpu = *gpu;
  spec.command = {row.text(kCommand)};
  return spec;
}

void read_end(Row& row, Job& job) {
  job.outcome = core::parse_outcome(row[kOutcome]);
  core::Exit exit;
  exit.code = row.number_if<int>(kExitCode);
  exit.signal = row.number_if<int>(kSignal);
  if (exit.code || exit.signal) job.exit = std::move(exit);
}

Job read_job(Row& row, const core::SharedSpec& spec) {
  const Result<core::JobId> id = core::parse_job_id(row[kId]);
  const std::optional<core::JobState> state = core::parse_job_state(row[kState]);
  if (!id || !state) row.fail();
  Job job;
  job.id = id ? *id : core::JobId{};
  job.spec = spec;
  job.state = state.value_or(job.state);
  read_end(row, job);
  job.attempt = row.number<std::uint32_t>(row[kAttempt]);
  job.priority = row.number<std::int32_t>(row[kPriority]);
  job.submitted = WallTime{row.number<std::int64_t>(row[kSubmitted])};
  job.started = row.time_if(kStarted);
  job.ended = row.time_if(kEnded);
  return job;
}

void read_park(Row& row, Job& job) {
  if (row[kPark].empty()) return;
  const std::vector<std::string_view> parts = base::split(row[kPark], ':');
  const std::optional<core::ParkCause> cause = core::parse_park_cause(parts.front());
  if (parts.size() < 4 || !cause) return row.fail();
  core::Park park;
  park.cause = *cause;
  if (const Result<core::JobId> id = core::parse_job_id(parts[1])) park.for_job = *id;
  if (!parts[2].empty()) {
    park.moved = Bytes::from_bytes(row.number<std::uint64_t>(parts[2]));
    park.held = {Bytes::from_bytes(row.number<std::uint64_t>(parts[3]))};
  }
  constexpr std::string_view kDisk = "disk=";
  for (std::size_t i = 4; i < parts.size(); ++i) {
    if (parts[i] == "lost") park.lost = true;
    if (parts[i].starts_with(kDisk))
      park.on_disk = Bytes::from_bytes(row.number<std::uint64_t>(parts[i].substr(kDisk.size())));
  }
  job.park = std::move(park);
}

// A wait of an older daemon: a reason and a sentence.
core::Wait told_wait(Row& row) {
  core::Wait wait;
  wait.reason = reason_of(row[kReason]).value_or(wait.reason);
  wait.words = row.text(kWait);
  return wait;
}

// `known` are the waits of earlier rows.
core::SharedWait read_wait_data(Row& row, std::vector<core::SharedWait>& known) {
  const std::size_t space = row[kWaitData].find(' ');
  const auto number = row.number<std::size_t>(row[kWaitData].substr(0, space));
  if (space != std::string_view::npos) {
    const std::string column = row.text(kWaitData);
    Result<core::Wait> wait = wait_from_json(std::string_view(column).substr(space + 1));
    if (wait) known.emplace_back(*std::move(wait));
    if (!wait || number != known.size()) row.fail();
  }
  if (number == 0 || number > known.size()) row.fail();
  return row.ok() ? known[number - 1] : core::SharedWait();
}

void read_wait(Row& row, std::vector<core::SharedWait>& known, JobView& view) {
  if (!row[kWaitData].empty())
    view.wait = read_wait_data(row, known);
  else if (!row[kReason].empty())
    view.wait = told_wait(row);
  if (const std::optional<WallTime> at = row.time_if(kForecastAt))
    view.forecast = core::Forecast{{}, *at, row.time_if(kForecastBy).value_or(*at)};
  view.place = row.number_if<std::uint64_t>(kPlace);
}

void read_remark(Row& row, JobView& view) {
  view.remark.said = row.text(kRemark);
  if (row[kRemarkData].empty()) return;
  Result<core::Remark> remark = remark_from_json(row.text(kRemarkData));
  if (!remark) return row.fail();
  view.remark = *std::move(remark);
}

}  // namespace

std::string encode_ps_lines(const std::vector<JobView>& jobs, WallTime at) {
  std::string out;
  out.reserve(jobs.size() * 320);
  out += kFirst;
  append_number(out += '\t', at.ms);
  out += '\n';
  WaitsOut waits;
  for (const JobView& view : jobs) append_job(out, view, waits);
  return out;
}

Result<void> decode_ps_lines(std::string_view text,
                             const std::function<void(const JobView& view)>& take) {
  const Error wrong = Error::corrupt("the list of jobs is not in lines that we understand");
  const std::size_t first = text.find('\n');
  if (first == std::string_view::npos || !text.starts_with(kFirst) || text[kFirst.size()] != '\t')
    return wrong;
  text.remove_prefix(first + 1);
  std::string_view last_words;
  core::SharedSpec last_spec;
  std::vector<core::SharedWait> waits;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Row row;
    if (end == std::string_view::npos || !row.split(text.substr(0, end))) return wrong;
    text.remove_prefix(end + 1);
    const std::string_view words = row.range(kName, kCommand);
    // Jobs of an array are neighbours, and share their spec.
    if (words != last_words || last_words.data() == nullptr) last_spec = spec_of(row);
    last_words = words;
    JobView view{read_job(row, last_spec)};
    read_cards(row, view);
    view.idle_since = row.time_if(kIdleSince);
    read_wait(row, waits, view);
    read_park(row, view.job);
    read_remark(row, view);
    if (!row.ok()) return wrong;
    take(view);
  }
  return {};
}

Result<std::vector<JobView>> decode_ps_lines(std::string_view text) {
  std::vector<JobView> views;
  const Result<void> read =
      decode_ps_lines(text, [&views](const JobView& view) { views.push_back(view); });
  if (!read) return read.error();
  return views;
}

}  // namespace mete::wire
