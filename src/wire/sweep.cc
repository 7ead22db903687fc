// SPDX-License-Identifier: Apache-2.0
// See sweep.h.
#include "wire/sweep.h"

#include <cmath>

#include "wire/outline.h"
#include "wire/sweep_plan.h"

namespace mete::wire {

using core::sweep::Metric;
using core::sweep::Params;
using core::sweep::Value;

// ---- parameters and metrics as people read them ------------------------------------------------

namespace {

// {"lr":0.001,"opt":"adam"}: numbers as numbers.
void shown_params(Writer& list, const Params& params) {
  if (params.empty()) return list.inside("params", "the parameters", [](Writer&) {});
  list.out().key("params").raw(core::sweep::to_json(params));
}

Value value_from(const Json& json) {
  if (json.is_boolean()) return core::sweep::of_bool(json.get<bool>());
  if (const std::optional<std::int64_t> whole = number_in<std::int64_t>(json))
    return core::sweep::of_integer(*whole);
  if (json.is_number()) return core::sweep::of_real(json.get<double>());
  return core::sweep::of_text(json.is_string() ? json.get<std::string>() : std::string());
}

void shown_params(Reader& list, Params& params) {
  const Json& json = list.fields().child("params");
  list.check("params", json.is_object() || json.is_null(), "an object");
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) params.emplace_back(name, value_from(value));
}

// {"val_loss":0.41}; null: not a finite number.
void shown_metrics(Writer& list, const std::vector<Metric>& metrics) {
  JsonText& out = list.out();
  out.key("metrics").open();
  for (const Metric& metric : metrics) {
    std::string name;
    append_json_string(name, metric.name);
    name = name.substr(1, name.size() - 2);
    out.key(name).raw(std::isfinite(metric.value) ? write_json(Json(metric.value)) : "null");
  }
  out.close();
}

void shown_metrics(Reader& list, std::vector<Metric>& metrics) {
  const Json& json = list.fields().child("metrics");
  list.check("metrics", json.is_object() || json.is_null(), "an object");
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items())
    metrics.push_back({name, value.is_number() ? value.get<double>() : std::nan("")});
}

void shown_values(Writer& list, const std::vector<Value>& values) {
  if (values.empty()) return;
  JsonText& out = list.out();
  out.key("values").open_list();
  for (const Value& value : values) out.value(value.text);
  out.close_list();
}

void shown_values(Reader& list, std::vector<Value>& values) {
  for (const std::string& text : list.fields().texts("values"))
    values.push_back(core::sweep::guess(text));
}

}  // namespace

// ---- documents ---------------------------------------------------------------------------------

void fields_of(auto& list, Is<SweepDocument::Parameter> auto& parameter) {
  list.must("name", parameter.name);
  shown_values(list, parameter.values);
  list.opt("min", parameter.min);
  list.opt("max", parameter.max);
  list.opt("step", parameter.range_step);
  list.opt("log", parameter.log);
  list.opt("int", parameter.integer);
  list.opt("when", parameter.when);
  list.opt("dropped", parameter.dropped);
}

void fields_of(auto& list, Is<SweepDocument::Trial> auto& trial) {
  list.must("n", trial.n);
  shown_params(list, trial.params);
  list.must("state", trial.state);
  list.opt("job", trial.job);
  shown_metrics(list, trial.metrics);
  list.opt("step", trial.step);
  list.opt("peak_bytes", trial.peak);
  list.opt("granted_bytes", trial.granted);
  list.opt("why", trial.why);
  list.opt("started_at", trial.started);
  list.opt("ended_at", trial.ended);
  list.put("cards", trial.cards);
}

void fields_of(auto& list, Is<SweepDocument::Best> auto& best) {
  list.must("n", best.n);
  list.must("metric", best.metric);
  list.must("value", best.value);
}

void fields_of(auto& list, Is<SweepDocument::Importance> auto& importance) {
  list.must("param", importance.param);
  list.must("pct", importance.pct);
  list.must("plus_minus_pct", importance.plus_minus_pct);
  list.opt("correlation", importance.correlation);
}

void fields_of(auto& list, Is<SweepDocument> auto& document) {
  list.schema("mete.sweep/1");
  list.must("at", document.at);
  list.must("name", document.name);
  list.must("user", document.user);
  list.must("state", document.state);
  list.opt("why", document.why);
  list.must("started_at", document.started);
  list.opt("ended_at", document.ended);
  list.opt("seed", document.seed);
  list.must("sampler", document.sampler);
  list.opt("wanted", document.wanted);
  list.opt("metric", document.metric);
  list.opt("maximize", document.maximize);
  list.opt("target", document.target);
  list.put("command", document.command);
  list.opt("as_flags", document.as_flags);
  list.put("space", each("the parameter", document.space));
  list.put("trials", each("the trial", document.trials));
  list.opt("best", object("the best", document.best));
  list.put("importance", each("the importance", document.importance));
  list.opt("end_forecast", document.end_forecast);
  list.opt("results", document.results);
  list.opt("curves", document.curves);
}

std::string encode(const SweepDocument& document) {
  return to_json(document, Owner::kUnsaid, document.trials.size() * 256);
}
Result<SweepDocument> decode_sweep(std::string_view json) {
  return decode<SweepDocument>(json, "the sweep");
}

void fields_of(auto& list, Is<SweepRow> auto& row) {
  list.must("name", row.name);
  list.must("user", row.user);
  list.must("state", row.state);
  list.opt("why", row.why);
  list.must("sampler", row.sampler);
  list.must("started_at", row.started);
  list.opt("ended_at", row.ended);
  list.opt("wanted", row.wanted);
  list.put("pending", row.pending);
  list.put("running", row.running);
  list.put("ok", row.ok);
  list.put("failed", row.failed);
  list.put("stopped", row.stopped);
  list.opt("best", object("the best", row.best));
  list.opt("end_forecast", row.end_forecast);
}

void fields_of(auto& list, Is<SweepsDocument> auto& document) {
  list.schema("mete.sweeps/1");
  list.must("at", document.at);
  list.put("sweeps", each("the sweep", document.sweeps));
}

std::string encode(const SweepsDocument& document) { return to_json(document); }
Result<SweepsDocument> decode_sweeps(std::string_view json) {
  return decode<SweepsDocument>(json, "the list of sweeps");
}

// ---- requests ----------------------------------------------------------------------------------

void fields_of(auto& list, Is<MetricsReport> auto& report) {
  list.put("points", each("the point", report.points));
}

std::string encode(const MetricsReport& report) { return to_json(report); }
Result<MetricsReport> decode_metrics_report(std::string_view json) {
  return decode<MetricsReport>(json, "the report");
}

std::string encode(const SweepRequest& request) {
  JsonText out;
  out.open();
  out.key("plan").raw(to_json(request.plan));
  out.key("submit").raw(encode(request.submit));
  out.close();
  return out.take();
}

Result<SweepRequest> decode_sweep_request(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the request", Unknown::kRefused);
  SweepRequest request;
  Result<core::sweep::Plan> plan =
      from_json<core::sweep::Plan>(fields.child("plan"), "the plan", Unknown::kRefused);
  if (!plan) return std::move(plan).error();
  Result<SubmitRequest> submit = submit_request_from(fields.child("submit"));
  if (!submit) return std::move(submit).error();
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  request.plan = *std::move(plan);
  request.submit = *std::move(submit);
  return request;
}

void fields_of(Writer& list, const ExtendRequest& request) {
  list.opt("trials", request.trials);
  if (request.space) space_field(list, *request.space);
}

void fields_of(Reader& list, ExtendRequest& request) {
  list.opt("trials", request.trials);
  if (list.fields().has("params") || list.fields().outlines())
    space_field(list, request.space.emplace());
}

std::string encode(const ExtendRequest& request) { return to_json(request); }
Result<ExtendRequest> decode_extend_request(std::string_view json) {
  return decode<ExtendRequest>(json, "the request", Unknown::kRefused);
}

// ---- views -------------------------------------------------------------------------------------

namespace {

SweepDocument::Parameter view_of(const core::sweep::Parameter& parameter) {
  SweepDocument::Parameter view;
  view.name = parameter.name;
  if (parameter.when) view.when = parameter.when->text();
  if (const auto* values = std::get_if<std::vector<Value>>(&parameter.domain)) {
    view.values = *values;
  } else {
    const auto& range = std::get<core::sweep::Range>(parameter.domain);
    view.min = range.min;
    view.max = range.max;
    view.range_step = range.step;
    view.log = range.log;
    view.integer = range.integer;
  }
  return view;
}

// When the last trial ends, if the others take as long as those that ended did, and as many run at
// a time.
std::optional<WallTime> end_of(const core::sweep::Sweep& sweep, WallTime at) {
  using core::sweep::TrialState;
  const std::optional<std::uint64_t> wanted = sweep.wanted();
  if (sweep.state() != core::sweep::SweepState::kRunning || !wanted) return std::nullopt;
  const std::uint64_t over = sweep.count(TrialState::kOk) + sweep.count(TrialState::kFailed) +
                             sweep.count(TrialState::kStopped);
  if (over == 0 || over >= *wanted || at <= sweep.started()) return std::nullopt;
  const double each = static_cast<double>(at.ms - sweep.started().ms) / static_cast<double>(over);
  return WallTime{at.ms + static_cast<std::int64_t>(each * static_cast<double>(*wanted - over))};
}

std::optional<SweepDocument::Best> best_of(const core::sweep::Sweep& sweep) {
  if (!sweep.best() || !sweep.plan().goal) return std::nullopt;
  return SweepDocument::Best{sweep.best()->n, sweep.plan().goal->metric, sweep.best()->value};
}

}  // namespace

SweepDocument::Trial view_of(const core::sweep::Plan& plan, const core::sweep::Trial& trial) {
  return {trial.n,       named(plan.space, trial.point),
          trial.state,   trial.job,
          trial.metrics, trial.step,
          trial.peak,    trial.granted,
          trial.why,     trial.started,
          trial.ended,   trial.cards};
}

SweepDocument document_of(const core::sweep::Sweep& sweep, WallTime at) {
  const core::sweep::Plan& plan = sweep.plan();
  SweepDocument document;
  document.at = at;
  document.name = plan.name;
  document.user = plan.job.user;
  document.state = sweep.state();
  document.why = sweep.why();
  document.started = sweep.started();
  document.ended = sweep.ended();
  document.seed = plan.sampling.seed;
  document.sampler = to_string(plan.sampling.method);
  document.wanted = sweep.wanted();
  if (plan.goal) document.metric = plan.goal->metric;
  document.maximize = plan.goal && plan.goal->maximize;
  if (plan.target) document.target = plan.target->text();
  document.command = plan.job.command;
  document.as_flags = plan.as_flags;
  for (const core::sweep::Parameter& parameter : plan.space.parameters())
    document.space.push_back(view_of(parameter));
  for (const core::sweep::Dropped& dropped : sweep.dropped())
    document.space[dropped.parameter].dropped.push_back(dropped.value.text);
  for (const core::sweep::Trial& trial : sweep.trials())
    document.trials.push_back(view_of(plan, trial));
  document.best = best_of(sweep);
  document.end_forecast = end_of(sweep, at);
  return document;
}

SweepRow row_of(const core::sweep::Sweep& sweep, WallTime at) {
  using core::sweep::TrialState;
  SweepRow row;
  row.name = sweep.plan().name;
  row.user = sweep.plan().job.user;
  row.state = sweep.state();
  row.why = sweep.why();
  row.sampler = to_string(sweep.plan().sampling.method);
  row.started = sweep.started();
  row.ended = sweep.ended();
  row.wanted = sweep.wanted();
  row.pending = sweep.count(TrialState::kPending);
  row.running = sweep.count(TrialState::kRunning);
  row.ok = sweep.count(TrialState::kOk);
  row.failed = sweep.count(TrialState::kFailed);
  row.stopped = sweep.count(TrialState::kStopped);
  row.best = best_of(sweep);
  row.end_forecast = end_of(sweep, at);
  return row;
}

void outline_sweep(Outlines& all) {
  outline<SweepDocument>(all["sweep"]);
  outline<SweepsDocument>(all["sweeps"]);
  outline<core::sweep::Plan>(all["SweepPlan"]);
  outline<ExtendRequest>(all["ExtendRequest"]);
  outline<MetricsReport>(all["MetricsReport"]);
}

}  // namespace mete::wire
