// SPDX-License-Identifier: Apache-2.0
// See trial_watch.h. Bytes go through MetricReader, which makes points of them; take_points() adds
// each point to the curve and to TrialReports, which keeps what the daemon has to know. step() is
// the keeper's tick: it reads METE_METRICS, writes the curve and sends the report that is due. A
// report that fails stays; the pauses between attempts grow from one to ten seconds, since each
// attempt may hold up the output of the program for as long as the daemon does not answer.
#include "runner/trial_watch.h"

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "base/text.h"
#include "core/sweep/fill.h"

namespace mete::runner {

namespace {

using core::sweep::Metric;
using core::sweep::TrialOf;
using core::sweep::TrialPoint;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kReadEvery{250};
constexpr seconds kReportEvery{1};
constexpr seconds kLongestPause{10};
constexpr std::size_t kMaxRungs = 64;  // ASHA has fewer: they grow by a factor
// Rungs times metrics; the latest values need room in a report too.
constexpr std::size_t kMaxWaiting = kMaxRungs * core::sweep::kMaxMetrics;
constexpr std::size_t kMaxAtRungs = TrialReports::kMaxPoints - core::sweep::kMaxMetrics;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// [A-Za-z0-9][A-Za-z0-9._-]*: never a path, and never `..`.
bool is_sweep_name(std::string_view name) {
  return !name.empty() && is_letter_or_digit(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

// ---- reports -----------------------------------------------------------------------------------

TrialReports::TrialReports(std::vector<std::uint64_t> rungs) : rungs_(std::move(rungs)) {
  if (rungs_.size() > kMaxRungs) rungs_.resize(kMaxRungs);
}

// Rungs count for each metric: the one that the sweep judges may be reported after others.
void TrialReports::add(const TrialPoint& point) {
  bool is_at_rung = false;
  for (const Metric& metric : point.metrics) {
    Latest& latest = latest_[metric.name];
    latest.step = point.step;
    latest.value = metric.value;
    latest.changed = true;
    for (; latest.reached < rungs_.size() && point.step && *point.step >= rungs_[latest.reached];
         ++latest.reached)
      is_at_rung = true;
  }
  if (!is_at_rung || at_rungs_.size() == kMaxWaiting) return;
  at_rungs_.push_back(point);
  for (const Metric& metric : point.metrics) latest_[metric.name].changed = false;
}

bool TrialReports::is_due(seam::Nanoseconds now) const {
  if (over_) return false;
  if (is_urgent()) return failures_ == 0 || now >= next_;
  return now >= next_ && std::any_of(latest_.begin(), latest_.end(),
                                     [](const auto& entry) { return entry.second.changed; });
}

wire::MetricsReport TrialReports::make() const {
  wire::MetricsReport report;
  const std::size_t count = std::min(at_rungs_.size(), kMaxAtRungs);
  report.points.assign(at_rungs_.begin(), at_rungs_.begin() + static_cast<std::ptrdiff_t>(count));
  std::map<std::optional<std::uint64_t>, TrialPoint> by_step;
  for (const auto& [name, latest] : latest_) {
    if (!latest.changed) continue;
    TrialPoint& point = by_step[latest.step];
    point.step = latest.step;
    point.metrics.push_back({name, latest.value});
  }
  for (auto& [step, point] : by_step) report.points.push_back(std::move(point));
  return report;
}

void TrialReports::sent(seam::Nanoseconds now) {
  const std::size_t count = std::min(at_rungs_.size(), kMaxAtRungs);
  at_rungs_.erase(at_rungs_.begin(), at_rungs_.begin() + static_cast<std::ptrdiff_t>(count));
  for (auto& [name, latest] : latest_) latest.changed = false;
  failures_ = 0;
  next_ = now + kReportEvery;
}

void TrialReports::failed(seam::Nanoseconds now, const Error& error) {
  using enum ErrorCode;
  over_ = error.code == kNotFound || error.code == kUnsupported || error.code == kDenied ||
          error.code == kInvalid;
  next_ = now + std::min(kReportEvery * (1u << std::min(failures_, 4u)), kLongestPause);
  ++failures_;
}

std::vector<Metric> TrialReports::latest(const std::vector<std::string>& names) const {
  std::vector<Metric> all;
  for (const std::string& name : names)
    if (const auto found = latest_.find(name); found != latest_.end())
      all.push_back({name, found->second.value});
  return all;
}

std::optional<std::uint64_t> TrialReports::step() const {
  std::optional<std::uint64_t> highest;
  for (const auto& [name, latest] : latest_) highest = std::max(highest, latest.step);
  return highest;
}

// ---- the watch ---------------------------------------------------------------------------------

Result<TrialWatch> TrialWatch::begin(TrialOf trial, const std::string& state, Tell tell,
                                     seam::Clock& clock) {
  if (!is_sweep_name(trial.name))
    return Error::invalid("a sweep cannot be called " + base::quote(trial.name));
  Result<MetricReader> reader = MetricReader::make(trial.metrics);
  if (!reader) return std::move(reader).error();
  const std::string folder = base::join_path(base::join_path(state, "sweeps"), trial.name);
  for (const char* part : {"trials", "curves"})
    if (Result<void> r = base::make_directories(base::join_path(folder, part)); !r)
      return std::move(r).error();
  TrialWatch watch(std::move(trial), folder, std::move(tell), clock, *std::move(reader));
  if (Result<void> r =
          make_file(watch.params_path_, core::sweep::to_json(watch.trial_.params) + "\n");
      !r)
    return std::move(r).error();
  if (Result<void> r = make_file(watch.metrics_path_, ""); !r) return std::move(r).error();
  return watch;
}

TrialWatch::TrialWatch(TrialOf trial, const std::string& folder, Tell tell, seam::Clock& clock,
                       MetricReader reader)
    : trial_(std::move(trial)),
      params_path_(folder + "/trials/" + std::to_string(trial_.n) + ".json"),
      metrics_path_(folder + "/trials/" + std::to_string(trial_.n) + ".metrics.jsonl"),
      tell_(std::move(tell)),
      clock_(&clock),
      reader_(std::move(reader)),
      metrics_(metrics_path_),
      curve_(folder + "/curves/" + std::to_string(trial_.n) + ".jsonl"),
      reports_(trial_.rungs) {}

std::vector<std::pair<std::string, std::string>> TrialWatch::environment() const {
  std::vector<std::pair<std::string, std::string>> all = {{"METE_SWEEP", trial_.name},
                                                          {"METE_TRIAL", std::to_string(trial_.n)},
                                                          {"METE_PARAMS", params_path_},
                                                          {"METE_METRICS", metrics_path_}};
  for (const auto& [name, value] : trial_.params) {
    const std::string upper = core::sweep::environment_name(name);
    all.emplace_back("METE_PARAM_" + upper, value.text);
    all.emplace_back("SM_HP_" + upper, value.text);
  }
  return all;
}

void TrialWatch::take_points() {
  for (const TrialPoint& point : reader_.take()) {
    curve_.add(point);
    reports_.add(point);
  }
}

void TrialWatch::seen(std::string_view bytes, bool is_error) {
  reader_.output(bytes, is_error);
  take_points();
}

// Returns how much of the file is left.
std::uint64_t TrialWatch::read_metrics() {
  const AppendedFile::Piece piece = metrics_.read();
  if (piece.again) reader_.lines_again();
  if (piece.bytes.empty()) return 0;
  reader_.lines(piece.bytes, piece.left == 0);
  take_points();
  return piece.left;
}

bool TrialWatch::report() {
  const Result<void> told = tell_(wire::encode(reports_.make()));
  // The time after it: the daemon may have taken its time.
  const seam::Nanoseconds now = clock_->monotonic();
  if (told)
    reports_.sent(now);
  else
    reports_.failed(now, told.error());
  return told.ok();
}

void TrialWatch::step() {
  const seam::Nanoseconds now = clock_->monotonic();
  if (now >= next_read_) {
    next_read_ = now + kReadEvery;
    (void)read_metrics();
    curve_.flush();
  }
  if (tell_ && reports_.is_due(now)) (void)report();
}

int TrialWatch::tick_ms() const {
  if (tell_ && reports_.is_due(clock_->monotonic())) return 0;
  return static_cast<int>(kReadEvery.count());
}

TrialWatch::End TrialWatch::finish() {
  std::uint64_t left = 1;
  for (std::size_t read = 0; left > 0 && read < kMostAtEnd; read += AppendedFile::kMaxPiece)
    left = read_metrics();
  reader_.finish();
  take_points();
  curve_.flush();
  // The values of the end are in the exit of the job, but the daemon judges by those at the rungs.
  while (tell_ && reports_.is_urgent() && reports_.is_due(clock_->monotonic()))
    if (!report()) break;
  return {reports_.latest(reader_.names()), reports_.step(), note(left)};
}

std::string TrialWatch::note(std::uint64_t unread) const {
  std::vector<std::string> all;
  if (std::string remarks = reader_.remarks(); !remarks.empty()) all.push_back(std::move(remarks));
  if (unread > 0)
    all.push_back("the last " + std::to_string(unread) + " bytes of METE_METRICS were not read");
  if (const std::uint64_t lost = curve_.lost(); lost > 0)
    all.push_back((lost == 1 ? "1 point is" : std::to_string(lost) + " points are") +
                  std::string(" missing in the curve: ") + curve_.why());
  return base::join(all, "; ");
}

}  // namespace mete::runner
