// SPDX-License-Identifier: Apache-2.0
// The plan of a sweep, its parts and its steps as JSON, for the log, snapshots and requests.
// Internal to wire/.
#pragma once

#include "core/sweep/plan.h"
#include "core/sweep/sweep.h"
#include "wire/list.h"
#include "wire/values.h"

namespace mete::wire {

template <>
struct TextOf<core::sweep::SweepState> : Parsed<core::sweep::parse_sweep_state> {
  static constexpr std::string_view kWanted = "running, paused, stopped or done";
};
template <>
struct TextOf<core::sweep::TrialState> : Parsed<core::sweep::parse_trial_state> {
  static constexpr std::string_view kWanted = "pending, running, ok, failed or stopped";
};
template <>
struct TextOf<core::sweep::Ending> : Parsed<core::sweep::parse_ending> {
  static constexpr std::string_view kWanted = "stopped, finished or again";
};
template <>
struct TextOf<core::sweep::Method> : Parsed<core::sweep::parse_method> {
  static constexpr std::string_view kWanted = "grid, random, sobol, halton, lhs or tpe";
};

// Parameters and `keep`, under "params" and "keep". A Reader makes the space, and reports what
// Space::make() refuses.
void space_field(Writer& list, const core::sweep::Space& space);
void space_field(Reader& list, core::sweep::Space& space);
// A list of values; an empty object for a parameter that is not in use.
void point_field(Writer& list, std::string_view key, const core::sweep::Point& point);
void point_field(Reader& list, std::string_view key, core::sweep::Point& point);

void drawn_field(Writer& list, const std::optional<core::sweep::Point>& point);
void drawn_field(Reader& list, std::optional<core::sweep::Point>& point);

// Owner::kSaid: with the user of the job.
void fields_of(Writer& list, const core::sweep::Plan& plan);
void fields_of(Reader& list, core::sweep::Plan& plan);

// One line of a snapshot.
std::string encode(const core::sweep::Sweep::Parts& sweep);
Result<core::sweep::Sweep::Parts> decode_sweep_parts(const Json& json);

// The steps of events (wire/event.cc).
void fields_of(auto& list, Is<core::sweep::Begin> auto& begin) {
  list.must("n", begin.n);
  list.opt("next_draw", begin.next_draw);
  drawn_field(list, begin.drawn);
  list.opt("granted_bytes", begin.granted);
  list.must("job", begin.job);
}
void fields_of(auto& list, Is<core::sweep::Reported> auto& reported) {
  list.must("n", reported.n);
  list.put("points", each("the point", reported.points));
}
void fields_of(auto& list, Is<core::sweep::Judged> auto& judged) {
  list.must("n", judged.n);
  list.must("state", judged.state);
  list.opt("metrics", each("the metric", judged.metrics));
  list.opt("step", judged.step);
  list.opt("peak_bytes", judged.peak);
  list.opt("ran_out_bytes", judged.ran_out);
  list.opt("why", exact(judged.why));
}
void fields_of(auto& list, Is<core::sweep::Best> auto& best) {
  list.must("n", best.n);
  list.must("value", best.value);
}
void fields_of(auto& list, Is<core::sweep::NewBest> auto& best) { fields_of(list, best.best); }
void fields_of(auto& list, Is<core::sweep::Skipped> auto& skipped) {
  list.must("next_draw", skipped.next_draw);
}
void fields_of(auto& list, Is<core::sweep::Dropped> auto& dropped) {
  list.must("parameter", dropped.parameter);
  list.must("value", object("the value", dropped.value));
  list.must("correlation", dropped.correlation);
}
void fields_of(auto& list, Is<core::sweep::Reduced> auto& reduced) {
  list.must("results", reduced.results);
  list.opt("dropped", object("the dropped value", reduced.dropped));
}
void fields_of(auto& list, Is<core::sweep::EndTrial> auto& end) {
  list.must("n", end.n);
  list.must("ending", end.ending);
  list.opt("why", exact(end.why));
}
void fields_of(auto& list, Is<core::sweep::Finish> auto& finish) {
  list.must("why", exact(finish.why));
}

}  // namespace mete::wire
