// SPDX-License-Identifier: Apache-2.0
// See sweep.h. The parts are the state; counts and sets beside them follow from it and are rebuilt
// by index(). next() asks, in this order: is the end of a job to be judged, is there a new best, is
// a job to be ended (a weak trial, a target that was reached, `stop`), is a reducer due, does a
// trial run again, is there room for a new one, is the sweep over. The events that change the parts
// are below it.
#include "core/sweep/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/assert.h"
#include "base/text.h"

namespace mete::core::sweep {

namespace {

constexpr std::int64_t kRestMs = 1;

template <class Enum, std::size_t N>
std::optional<Enum> parse_name(const std::array<std::string_view, N>& names,
                               std::string_view text) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

constexpr std::array<std::string_view, 4> kSweepStates = {"running", "paused", "stopped", "done"};
constexpr std::array<std::string_view, 5> kTrialStates = {"pending", "running", "ok", "failed",
                                                          "stopped"};
constexpr std::array<std::string_view, 3> kEndings = {"stopped", "finished", "again"};

void put_metrics(std::vector<Metric>& known, const std::vector<Metric>& news) {
  for (const Metric& metric : news) {
    const auto same = [&](const Metric& other) { return other.name == metric.name; };
    if (const auto found = std::find_if(known.begin(), known.end(), same); found != known.end())
      found->value = metric.value;
    else if (known.size() < kMaxMetrics)
      known.push_back(metric);
  }
}

std::string names_of(const Judged& judged) {
  std::vector<std::string> names;
  for (const Metric& metric : judged.metrics) names.push_back(metric.name);
  return base::join(names, ", ");
}

std::string how_it_failed(const TrialEnd& end) {
  std::string text = std::string(to_string(end.outcome));
  if (end.exit && end.exit->code && end.outcome == Outcome::kFailed)
    text = "exit code " + std::to_string(*end.exit->code);
  if (end.exit && end.exit->signal && end.outcome == Outcome::kSignal)
    text = "signal " + std::to_string(*end.exit->signal);
  if (end.outcome == Outcome::kGpuOom) text = "out of GPU memory";
  if (end.outcome == Outcome::kRamOom) text = "out of memory";
  if (end.outcome == Outcome::kTimeout) text = "time limit";
  if (end.exit && !end.exit->note.empty()) text += ": " + end.exit->note;
  return text;
}

}  // namespace

std::string_view to_string(SweepState state) {
  return kSweepStates[static_cast<std::size_t>(state)];
}
std::optional<SweepState> parse_sweep_state(std::string_view text) {
  return parse_name<SweepState>(kSweepStates, text);
}
std::string_view to_string(TrialState state) {
  return kTrialStates[static_cast<std::size_t>(state)];
}
std::optional<TrialState> parse_trial_state(std::string_view text) {
  return parse_name<TrialState>(kTrialStates, text);
}
std::string_view to_string(Ending ending) { return kEndings[static_cast<std::size_t>(ending)]; }
std::optional<Ending> parse_ending(std::string_view text) {
  return parse_name<Ending>(kEndings, text);
}

Sweep::Sweep(std::uint64_t number, std::shared_ptr<const Plan> plan, WallTime started) {
  parts_.number = number;
  parts_.plan = std::move(plan);
  parts_.started = started;
  if (parts_.plan->halving) parts_.halving = Halving(*parts_.plan->halving);
  index();
}

Sweep::Sweep(Parts parts) : parts_(std::move(parts)) { index(); }

bool Sweep::Parts::operator==(const Parts& other) const {
  const auto all = [](const Parts& parts) {
    return std::tie(parts.number, *parts.plan, parts.state, parts.started, parts.ended, parts.why,
                    parts.trials, parts.next_draw, parts.barren, parts.rested, parts.best,
                    parts.dropped, parts.metric_names, parts.reduced_at, parts.halving, parts.ends,
                    parts.to_end, parts.verdicts, parts.on_target);
  };
  return all(*this) == all(other);
}

const Trial* Sweep::find(std::uint64_t n) const {
  return n == 0 || n > parts_.trials.size() ? nullptr : &parts_.trials[n - 1];
}

// ---- what follows from the parts ---------------------------------------------------------------

void Sweep::index() {
  counts_ = {};
  active_.clear();
  queued_.clear();
  again_.clear();
  points_.clear();
  scored_.clear();
  leader_ = parts_.best;
  results_ = 0;
  in_space_ = 0;
  bytes_ = bytes_of(plan());
  std::set<std::uint64_t> unjudged;
  for (const TrialEnd& end : parts_.ends) unjudged.insert(end.n);
  std::vector<const Trial*> results;
  for (const Trial& trial : parts_.trials) {
    ++counts_[static_cast<std::size_t>(trial.state)];
    points_.emplace(hash(trial.point), trial.n);
    if (is_in_space(trial.point)) ++in_space_;
    count_bytes(trial);
    if (is_over(trial)) {
      results.push_back(&trial);
    } else if (!unjudged.contains(trial.n)) {
      (trial.job ? active_ : again_).insert(trial.n);
      if (trial.job && trial.state == TrialState::kPending) queued_.insert(trial.n);
    }
  }
  std::sort(results.begin(), results.end(),
            [](const Trial* a, const Trial* b) { return a->order < b->order; });
  for (const Trial* trial : results) learn(*trial);
}

void Sweep::count_bytes(const Trial& trial) {
  // With room for rungs, a reason and metrics.
  bytes_ += 512 + 64 * (parts_.metric_names.size() + plan().metrics.size());
  for (const std::optional<Value>& value : trial.point)
    bytes_ += 64 + (value ? value->text.size() : 0);
}

bool Sweep::knows_metric(const std::string& name) const {
  const auto named = [&](const MetricRule& rule) { return rule.name == name; };
  return std::any_of(plan().metrics.begin(), plan().metrics.end(), named) ||
         (plan().goal && plan().goal->metric == name) ||
         (plan().halving && plan().halving->metric == name) ||
         std::find(parts_.metric_names.begin(), parts_.metric_names.end(), name) !=
             parts_.metric_names.end();
}

// Metrics beyond kMaxMetrics of a sweep are left out.
void Sweep::take_metrics(Trial& trial, const std::vector<Metric>& news) {
  std::vector<Metric> taken;
  for (const Metric& metric : news) {
    if (!knows_metric(metric.name)) {
      if (plan().metrics.size() + parts_.metric_names.size() >= kMaxMetrics ||
          metric.name.size() > kMaxMetricName)
        continue;
      parts_.metric_names.push_back(metric.name);
    }
    taken.push_back(metric);
  }
  put_metrics(trial.metrics, taken);
}

bool Sweep::has_tried_all() const {
  const std::optional<std::uint64_t> points = plan().space.points();
  return points && in_space_ >= *points;
}

std::optional<std::uint64_t> Sweep::wanted() const {
  const std::uint64_t most = plan().sampling.trials;
  std::optional<std::uint64_t> points = plan().space.points();
  // Trials at points that the present space lacks count too.
  if (points) *points += parts_.trials.size() - in_space_;
  if (most != 0) return std::min(most, points.value_or(most));
  return points;
}

// A result: for samplers, reducers and the best.
void Sweep::learn(const Trial& trial) {
  ++results_;
  if (!plan().goal) return;
  const std::optional<double> value = value_of(trial.metrics, plan().goal->metric);
  const bool good = trial.state != TrialState::kFailed && value && std::isfinite(*value);
  scored_.push_back(
      {trial.point, good ? std::optional(plan().goal->loss_of(*value)) : std::nullopt});
  if (!good || trial.state != TrialState::kOk) return;
  if (!leader_ || plan().goal->loss_of(*value) < plan().goal->loss_of(leader_->value))
    leader_ = Best{trial.n, *value};
}

// False for some trials of a sweep whose space was replaced.
bool Sweep::is_in_space(const Point& point) const {
  if (plan().space.settled(point) != point || !plan().space.keeps(point)) return false;
  for (std::size_t i = 0; i < point.size(); ++i)
    if (point[i] &&
        plan().space.value_at(i, plan().space.unit_of(i, *point[i])).text != point[i]->text)
      return false;
  return true;
}

bool Sweep::has(const Point& point) const {
  const auto [first, last] = points_.equal_range(hash(point));
  return std::any_of(first, last, [&](const auto& known) {
    return parts_.trials[known.second - 1].point == point;
  });
}

// ---- what is next ------------------------------------------------------------------------------

std::optional<Step> Sweep::next(const Circumstances& circumstances) const {
  if (std::optional<Step> step = judge()) return step;
  if (leader_ && leader_ != parts_.best) return NewBest{*leader_};
  if (std::optional<Step> step = end_some()) return step;
  if (state() != SweepState::kRunning) return std::nullopt;
  if (plan().reduce && results_ >= parts_.reduced_at + plan().reduce->interval)
    return Reduced{results_, reduce(plan().space, *plan().reduce, scored_, parts_.dropped)};
  return begin_or_finish(circumstances);
}

std::optional<Step> Sweep::judge() const {
  if (parts_.ends.empty()) return std::nullopt;
  return judged(parts_.ends.front());
}

Judged Sweep::judged(const TrialEnd& end) const {
  const Trial& trial = parts_.trials[end.n - 1];
  Judged judged{end.n, TrialState::kFailed, trial.metrics, trial.step, trial.peak, {}, ""};
  if (end.exit) {
    put_metrics(judged.metrics, end.exit->metrics);
    if (end.exit->step) judged.step = end.exit->step;
    for (const Bytes peak : end.exit->peaks)
      judged.peak = std::max(judged.peak.value_or(Bytes()), peak);
  }
  const auto to_end = parts_.to_end.find(end.n);
  const bool told = end.outcome == Outcome::kCancelled && to_end != parts_.to_end.end();
  const bool lost = end.outcome == Outcome::kLost || end.outcome == Outcome::kUnknown;
  if (end.outcome == Outcome::kOk || (told && to_end->second.ending == Ending::kFinished)) {
    judged.state = TrialState::kOk;
    if (told) judged.why = to_end->second.why;
  } else if (told && to_end->second.ending == Ending::kAgain) {
    judged.state = TrialState::kPending;
    judged.why = to_end->second.why;
  } else if (end.outcome == Outcome::kCancelled) {
    judged.state = TrialState::kStopped;
    judged.why = told ? to_end->second.why : "its job was cancelled";
  } else if (lost && trial.runs < kMaxRuns) {
    judged.state = TrialState::kPending;
    judged.why = "its job was lost, so that it runs again";
  } else if (end.outcome == Outcome::kGpuOom && plan().auto_gpu && trial.granted &&
             !trial.ran_out) {
    judged.state = TrialState::kPending;
    judged.ran_out = trial.granted;
    judged.why = to_string(*trial.granted) + " were too little, so that it runs again with more";
  } else {
    judged.why = how_it_failed(end);
  }
  if (judged.state == TrialState::kOk && plan().goal) {
    const std::optional<double> value = value_of(judged.metrics, plan().goal->metric);
    if (!value || !std::isfinite(*value)) {
      judged.state = TrialState::kFailed;
      judged.why = "it ended well, but " + plan().goal->metric +
                   (value ? " is no finite number" : " never appeared");
      if (!value && !judged.metrics.empty()) judged.why += "; it reported " + names_of(judged);
      if (!value && end.exit && !end.exit->note.empty()) judged.why += "; " + end.exit->note;
    }
  }
  return judged;
}

// Why the sweep makes no more trials and ends those that it has; "": it goes on.
std::string Sweep::why_over() const {
  if (parts_.on_target)
    return "trial " + std::to_string(*parts_.on_target) + " reached the target " +
           plan().target->text();
  const std::uint64_t failed = count(TrialState::kFailed);
  if (plan().max_failures != 0 && failed >= plan().max_failures)
    return std::to_string(failed) + (failed == 1 ? " trial" : " trials") + " failed";
  return "";
}

std::optional<Step> Sweep::end_some() const {
  for (const auto& [n, verdict] : parts_.verdicts)
    if (active_.contains(n) && !parts_.to_end.contains(n))
      return EndTrial{n, verdict.ending, verdict.why};
  const std::string over = state() == SweepState::kRunning ? why_over() : "";
  if (state() != SweepState::kStopped && over.empty()) return std::nullopt;
  for (const std::uint64_t n : active_) {
    // The trial that reached the target may finish.
    if (parts_.to_end.contains(n) || (!over.empty() && n == parts_.on_target)) continue;
    if (over.empty()) return EndTrial{n, Ending::kAgain, "the sweep was stopped"};
    return EndTrial{n, Ending::kStopped, over};
  }
  return std::nullopt;
}

// Why no new trial is drawn any more; "": some may be.
std::string Sweep::why_no_more(WallTime now) const {
  const std::uint64_t made = parts_.trials.size();
  if (plan().for_s && now.ms >= started().ms + static_cast<std::int64_t>(*plan().for_s) * 1000)
    return "its time is over";
  if (plan().until && now >= *plan().until) return "its time is over";
  if (made >= kMaxTrials)
    return "it has " + std::to_string(made) + " trials, the most there can be";
  const std::uint64_t most = plan().sampling.trials;
  if ((most != 0 && made >= most) || has_tried_all())
    return made == 1 ? "its only trial is over"
                     : "all " + std::to_string(made) + " trials are over";
  const std::optional<std::uint64_t> last = draws(plan().space, plan().sampling);
  if (last && parts_.next_draw >= *last)
    return parts_.dropped.empty()
               ? "all points of the space were tried: " + std::to_string(made)
               : "all points that --reduce has left were tried: " + std::to_string(made);
  if (parts_.barren >= kMostBarren)
    return "no new point was found in " + std::to_string(kMostBarren) + " draws after " +
           std::to_string(made) + " trials";
  return "";
}

std::optional<Step> Sweep::begin_or_finish(const Circumstances& circumstances) const {
  const std::string over = why_over();
  if (!over.empty()) {
    if (active_.empty()) return Finish{over};
    return std::nullopt;
  }
  const std::string no_more = why_no_more(circumstances.now);
  if (again_.empty() && !no_more.empty()) {
    if (active_.empty()) return Finish{no_more};
    return std::nullopt;
  }
  const bool careful = plan().auto_gpu || plan().sampling.method == Method::kTpe || plan().reduce;
  if (queued_.size() >= (careful ? 1 : kQueued)) return std::nullopt;
  if (plan().max_parallel != 0 && active_.size() >= plan().max_parallel) return std::nullopt;
  if (plan().auto_gpu && !circumstances.smallest_card) return std::nullopt;
  if (circumstances.may_begin && !circumstances.may_begin()) return std::nullopt;
  if (!again_.empty()) {
    const Trial& trial = *find(*again_.begin());
    return Begin{trial.n, {}, 0, share_of(trial.point, &trial, circumstances), {}};
  }
  if (waits_for_peaks(circumstances)) return std::nullopt;
  return draw_one(circumstances);
}

std::optional<Step> Sweep::draw_one(const Circumstances& circumstances) const {
  if (parts_.rested && circumstances.now.ms <= parts_.rested->ms + kRestMs) return std::nullopt;
  std::vector<Point> running;
  for (const std::uint64_t n : active_) running.push_back(find(n)->point);
  const std::optional<std::uint64_t> last = draws(plan().space, plan().sampling);
  std::uint64_t at = parts_.next_draw;
  // A suggestion takes milliseconds.
  const std::uint64_t most = plan().sampling.method == Method::kTpe
                                 ? kSuggestionsAtOnce
                                 : 1 + kDrawsAtOnce * 100 / (100 + plan().space.condition_bytes());
  const std::uint64_t until = std::min(at + most, last.value_or(at + most));
  for (; at < until; ++at) {
    std::optional<Point> point = draw(plan().space, plan().sampling, at, scored_, running);
    if (!point || has_dropped(*point, parts_.dropped) || has(*point)) continue;
    const std::optional<Bytes> share = share_of(*point, nullptr, circumstances);
    return Begin{parts_.trials.size() + 1, std::move(point), at + 1, share, {}};
  }
  return Skipped{at};
}

bool Sweep::may_begin_more() const {
  if (state() != SweepState::kRunning || !why_over().empty() || !queued_.empty()) return false;
  if (plan().max_parallel != 0 && active_.size() >= plan().max_parallel) return false;
  return !again_.empty() || why_no_more(started()).empty();
}

std::optional<WallTime> Sweep::next_change(WallTime now) const {
  if (state() != SweepState::kRunning) return std::nullopt;
  std::optional<WallTime> next;
  const auto consider = [&](std::int64_t ms) {
    if (ms > now.ms && (!next || ms < next->ms)) next = WallTime{ms};
  };
  if (plan().until) consider(plan().until->ms);
  if (plan().for_s) consider(started().ms + static_cast<std::int64_t>(*plan().for_s) * 1000);
  if (parts_.rested) consider(parts_.rested->ms + kRestMs + 1);
  if (plan().auto_gpu && results_ < kFirstTrials) {
    for (const std::uint64_t n : active_)
      if (find(n)->started) consider(find(n)->started->ms + kSteadyMs);
  }
  return next;
}

// ---- events ------------------------------------------------------------------------------------

void Sweep::set_state(Trial& trial, TrialState state) {
  --counts_[static_cast<std::size_t>(trial.state)];
  trial.state = state;
  ++counts_[static_cast<std::size_t>(state)];
}

void Sweep::apply(const Begin& begin, WallTime) {
  if (begin.drawn) {
    METE_ASSERT(begin.n == parts_.trials.size() + 1);
    Trial trial;
    trial.n = begin.n;
    trial.point = *begin.drawn;
    points_.emplace(hash(trial.point), trial.n);
    ++in_space_;
    count_bytes(trial);
    parts_.trials.push_back(std::move(trial));
    ++counts_[static_cast<std::size_t>(TrialState::kPending)];
    parts_.next_draw = begin.next_draw;
    parts_.barren = 0;
    parts_.rested.reset();
  }
  METE_ASSERT(find(begin.n) != nullptr);
  Trial& trial = at(begin.n);
  METE_ASSERT(trial.state == TrialState::kPending && !active_.contains(trial.n));
  trial.job = begin.job;
  ++trial.runs;
  trial.granted = begin.granted;
  trial.started.reset();
  trial.cards.clear();
  again_.erase(trial.n);
  active_.insert(trial.n);
  queued_.insert(trial.n);
}

void Sweep::apply(const Judged& judged, WallTime) {
  METE_ASSERT(!parts_.ends.empty() && parts_.ends.front().n == judged.n);
  parts_.ends.erase(parts_.ends.begin());
  Trial& trial = at(judged.n);
  set_state(trial, judged.state);
  trial.metrics.clear();
  take_metrics(trial, judged.metrics);
  trial.step = judged.step;
  trial.peak = judged.peak;
  if (judged.ran_out) trial.ran_out = judged.ran_out;
  trial.why = judged.why;
  parts_.to_end.erase(judged.n);
  parts_.verdicts.erase(judged.n);
  if (!is_over(trial)) {
    // It starts anew: what it reported until now is of a run that does not count.
    trial.job.reset();
    trial.metrics.clear();
    trial.step.reset();
    trial.ended.reset();
    again_.insert(trial.n);
    return;
  }
  trial.order = results_ + 1;
  learn(trial);
  look_at_target(trial);
}

void Sweep::look_at_target(const Trial& trial) {
  if (!plan().target || parts_.on_target || trial.state == TrialState::kFailed) return;
  const bool reached = plan().target->holds([&](std::string_view name) -> std::optional<Value> {
    const std::optional<double> value = value_of(trial.metrics, std::string(name));
    return value && std::isfinite(*value) ? std::optional(of_real(*value)) : std::nullopt;
  });
  if (reached) parts_.on_target = trial.n;
}

// Of the metric by which weak trials are found.
double Sweep::loss_of(double value) const {
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  const std::optional<Goal>& goal = plan().goal;
  return goal && goal->metric == plan().halving->metric ? goal->loss_of(value) : value;
}

void Sweep::apply(const Reported& reported, WallTime) {
  if (find(reported.n) == nullptr || !active_.contains(reported.n)) return;
  Trial& trial = at(reported.n);
  for (const TrialPoint& point : reported.points) {
    take_metrics(trial, point.metrics);
    if (point.step) trial.step = std::max(trial.step.value_or(0), *point.step);
    look_at_target(trial);
    if (!plan().halving || !point.step || parts_.verdicts.contains(trial.n)) continue;
    const std::optional<double> value = value_of(point.metrics, plan().halving->metric);
    if (!value) continue;
    const Halving::Verdict verdict = parts_.halving.report(trial.n, *point.step, loss_of(*value));
    if (verdict.kind == Halving::Verdict::Kind::kStop)
      parts_.verdicts[trial.n] = {Ending::kStopped, Halving::words(verdict)};
    if (verdict.kind == Halving::Verdict::Kind::kFinished)
      parts_.verdicts[trial.n] = {Ending::kFinished, Halving::words(verdict)};
  }
}

void Sweep::apply(const NewBest& best, WallTime) { parts_.best = best.best; }

void Sweep::apply(const Skipped& skipped, WallTime when) {
  parts_.barren += skipped.next_draw - parts_.next_draw;
  parts_.next_draw = skipped.next_draw;
  parts_.rested = when;
}

void Sweep::apply(const Reduced& reduced, WallTime) {
  parts_.reduced_at = reduced.results;
  if (reduced.dropped) parts_.dropped.push_back(*reduced.dropped);
}

void Sweep::apply(const EndTrial& end, WallTime) {
  parts_.to_end[end.n] = {end.ending, end.why};
  parts_.verdicts.erase(end.n);
}

void Sweep::apply(const Finish& finish, WallTime when) {
  METE_ASSERT(active_.empty());
  parts_.state = SweepState::kDone;
  parts_.why = finish.why;
  parts_.ended = when;
}

void Sweep::job_runs(std::uint64_t n, JobId job, WallTime when, std::vector<std::uint32_t> cards) {
  if (find(n) == nullptr || !active_.contains(n) || at(n).job != job) return;
  Trial& trial = at(n);
  set_state(trial, TrialState::kRunning);
  trial.started = when;
  trial.cards = std::move(cards);
  trial.why.clear();
  queued_.erase(n);
}

void Sweep::job_waits(std::uint64_t n, JobId job) {
  if (find(n) == nullptr || !active_.contains(n) || at(n).job != job) return;
  // It starts anew: what it reported until now is of an attempt that does not count. Its results at
  // rungs stay, as those of every trial.
  Trial& trial = at(n);
  set_state(trial, TrialState::kPending);
  trial.metrics.clear();
  trial.step.reset();
  parts_.verdicts.erase(n);
  if (parts_.on_target == n) parts_.on_target.reset();
  queued_.insert(n);
}

void Sweep::job_ended(TrialEnd end, WallTime when) {
  if (find(end.n) == nullptr || !active_.contains(end.n) || at(end.n).job != end.job) return;
  at(end.n).ended = when;
  active_.erase(end.n);
  queued_.erase(end.n);
  parts_.ends.push_back(std::move(end));
}

void Sweep::set_state(SweepState state) {
  METE_ASSERT(state != SweepState::kDone && parts_.state != SweepState::kDone);
  parts_.state = state;
}

void Sweep::extend(std::shared_ptr<const Plan> plan) {
  const bool same_space = plan->space == parts_.plan->space;
  parts_.plan = std::move(plan);
  // Points that were tried are found again, and passed over.
  if (!same_space && parts_.plan->sampling.method == Method::kGrid) parts_.next_draw = 0;
  parts_.barren = 0;
  parts_.rested.reset();
  parts_.state = SweepState::kRunning;
  parts_.ended.reset();
  parts_.why.clear();
  parts_.on_target.reset();  // for the trials that come
  index();
}

}  // namespace mete::core::sweep
