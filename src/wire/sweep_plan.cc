// SPDX-License-Identifier: Apache-2.0
// See sweep_plan.h. Expressions and rules are their text; what they mean is checked by core when
// they are read. A space is made from its parameters, so that what Space::make() refuses cannot
// come from a log or a request either.
#include "wire/sweep_plan.h"

#include <limits>
#include <memory>

#include "wire/sweep.h"

namespace mete::wire {

using namespace core::sweep;  // NOLINT: this file has nothing else

// ---- spaces ------------------------------------------------------------------------------------

namespace {

struct ParameterText {
  std::string name;
  std::vector<Value> values;
  std::optional<Range> range;
  std::string when;
};

}  // namespace

void fields_of(auto& list, Is<Range> auto& range) {
  list.must("min", range.min);
  list.must("max", range.max);
  list.opt("log", range.log);
  list.opt("int", range.integer);
  list.opt("step", range.step);
}

void fields_of(auto& list, Is<ParameterText> auto& parameter) {
  list.must("name", parameter.name);
  list.opt("values", each("the value", parameter.values));
  list.opt("range", object("the range", parameter.range));
  list.opt("when", parameter.when);
}

void space_field(Writer& list, const Space& space) {
  std::vector<ParameterText> params;
  for (const Parameter& parameter : space.parameters()) {
    ParameterText& text = params.emplace_back();
    text.name = parameter.name;
    if (const auto* values = std::get_if<std::vector<Value>>(&parameter.domain))
      text.values = *values;
    else
      text.range = std::get<Range>(parameter.domain);
    if (parameter.when) text.when = parameter.when->text();
  }
  list.put("params", each("the parameter", params));
  list.opt("keep", space.keep() ? space.keep()->text() : "");
}

namespace {

std::optional<Expression> expression_from(Reader& list, const std::string& text,
                                          const std::vector<std::string>& names) {
  if (text.empty()) return std::nullopt;
  Result<Expression> parsed = Expression::parse(text, names);
  if (parsed) return *std::move(parsed);
  list.fields().fail(parsed.error());
  return std::nullopt;
}

}  // namespace

void space_field(Reader& list, Space& space) {
  std::vector<ParameterText> texts;
  std::string keep;
  list.put("params", each("the parameter", texts));
  list.opt("keep", keep);
  if (list.fields().outlines() || !list.fields().ok()) return;
  std::vector<std::string> names;
  for (const ParameterText& text : texts) names.push_back(text.name);
  std::vector<Parameter> parameters;
  for (ParameterText& text : texts) {
    Parameter& parameter = parameters.emplace_back();
    parameter.name = text.name;
    if (text.range)
      parameter.domain = *text.range;
    else
      parameter.domain = std::move(text.values);
    parameter.when = expression_from(list, text.when, names);
  }
  std::optional<Expression> kept = expression_from(list, keep, names);
  if (!list.fields().ok()) return;
  Result<Space> made = Space::make(std::move(parameters), std::move(kept));
  if (made)
    space = *std::move(made);
  else
    list.fields().fail(made.error());
}

void point_field(Writer& list, std::string_view key, const Point& point) {
  list.elements(key, point, [](Writer& of_one, const std::optional<Value>& value) {
    if (value) fields_of(of_one, *value);
  });
}

void point_field(Reader& list, std::string_view key, Point& point) {
  list.elements(key, "the value", [&](Reader& of_one) {
    std::optional<Value>& value = point.emplace_back();
    if (of_one.fields().has("value") || of_one.fields().outlines())
      fields_of(of_one, value.emplace());
  });
}

void drawn_field(Writer& list, const std::optional<Point>& point) {
  if (point) point_field(list, "drawn", *point);
}

void drawn_field(Reader& list, std::optional<Point>& point) {
  if (list.fields().has("drawn") || list.fields().outlines())
    point_field(list, "drawn", point.emplace());
}

// ---- plans -------------------------------------------------------------------------------------

void fields_of(auto& list, Is<Goal> auto& goal) {
  list.must("metric", exact(goal.metric));
  list.opt("maximize", goal.maximize);
}

void plain_fields(auto& list, Is<Plan> auto& plan) {
  list.must("name", plan.name);
  list.must("sampler", plan.sampling.method);
  list.opt("seed", plan.sampling.seed);
  list.opt("trials", plan.sampling.trials);
  list.opt("scattered", plan.sampling.scattered);
  list.opt("for_s", plan.for_s);
  list.check("for_s", plan.for_s.value_or(0) <= core::kMaxTimeS, "at most ten years");
  list.opt("until", plan.until);
  list.opt("metrics", each("the metric", plan.metrics));
  list.opt("goal", object("the goal", plan.goal));
  list.opt("max_parallel", plan.max_parallel);
  list.opt("max_failures", plan.max_failures);
  list.opt("auto_gpu", plan.auto_gpu);
  list.opt("as_flags", plan.as_flags);
}

void fields_of(Writer& list, const Plan& plan) {
  plain_fields(list, plan);
  list.opt("target", plan.target ? plan.target->text() : "");
  list.opt("asha", plan.halving ? to_string(*plan.halving) : "");
  list.opt("reduce", plan.reduce ? to_string(*plan.reduce) : "");
  space_field(list, plan.space);
}

void fields_of(Reader& list, Plan& plan) {
  plain_fields(list, plan);
  std::string target;
  std::string asha;
  std::string reduce;
  list.opt("target", target);
  list.opt("asha", asha);
  list.opt("reduce", reduce);
  space_field(list, plan.space);
  if (list.fields().outlines() || !list.fields().ok()) return;
  if (!asha.empty()) plan.halving = list.fields().take(parse_halving(asha));
  if (!reduce.empty()) plan.reduce = list.fields().take(parse_reduce(reduce));
  if (target.empty()) return;
  Result<Expression> parsed = parse_target(target, plan);
  if (!parsed) return list.fields().fail(parsed.error());
  plan.target = *std::move(parsed);
}

// ---- snapshots ---------------------------------------------------------------------------------

void fields_of(auto& list, Is<Trial> auto& trial) {
  list.must("n", trial.n);
  point_field(list, "point", trial.point);
  list.must("state", trial.state);
  list.opt("job", trial.job);
  list.opt("runs", trial.runs);
  list.opt("metrics", each("the metric", trial.metrics));
  list.opt("step", trial.step);
  list.opt("peak_bytes", trial.peak);
  list.opt("granted_bytes", trial.granted);
  list.opt("ran_out_bytes", trial.ran_out);
  list.opt("why", exact(trial.why));
  list.opt("started_at", trial.started);
  list.opt("ended_at", trial.ended);
  list.opt("cards", trial.cards);
  list.opt("order", trial.order);
}

void fields_of(auto& list, Is<TrialEnd> auto& end) {
  list.must("n", end.n);
  list.must("job", end.job);
  list.must("outcome", end.outcome);
  list.opt("exit", object("the end", end.exit));
  list.opt("note", exact(end.note));
}

void fields_of(auto& list, Is<Halving::Entry> auto& entry) {
  list.must("trial", entry.trial);
  real_field(list, "loss", entry.loss);
}

namespace {

using Parts = Sweep::Parts;
using ToEnds = std::map<std::uint64_t, Sweep::ToEnd>;
using Rungs = std::map<std::uint64_t, std::vector<Halving::Entry>>;

auto to_ends(auto& trials) {
  return entries("the trial to end", trials, [](auto& of_one, auto& n, auto& to_end) {
    of_one.must("n", n);
    of_one.must("ending", to_end.ending);
    of_one.opt("why", exact(to_end.why));
  });
}

void parts_fields(auto& list, auto& parts, auto& rungs) {
  list.must("number", parts.number);
  list.must("state", parts.state);
  list.must("started_at", parts.started);
  list.opt("ended_at", parts.ended);
  list.opt("why", exact(parts.why));
  list.put("next_draw", parts.next_draw);
  list.opt("barren", parts.barren);
  list.opt("rested_at", parts.rested);
  list.opt("best", object("the best", parts.best));
  list.opt("dropped", each("the dropped value", parts.dropped));
  list.opt("metric_names", parts.metric_names);
  list.opt("reduced_at", parts.reduced_at);
  list.put("rungs", entries("the rung", rungs, [](auto& of_one, auto& step, auto& results) {
             of_one.must("step", step);
             of_one.put("results", each("the result", results));
           }));
  list.put("ends", each("the end of a trial", parts.ends));
  list.put("to_end", to_ends(parts.to_end));
  list.put("verdicts", to_ends(parts.verdicts));
  list.opt("on_target", parts.on_target);
  list.put("trials", each("the trial", parts.trials));
}

// What next() and apply() rely on.
void check_parts(Fields& fields, const Parts& parts) {
  const std::size_t parameters = parts.plan->space.parameters().size();
  std::uint64_t n = 0;
  for (const Trial& trial : parts.trials)
    if (trial.n != ++n || trial.point.size() != parameters)
      return fields.fail("trials", "numbered from 1, with a value for each parameter");
  for (const TrialEnd& end : parts.ends)
    if (end.n == 0 || end.n > n) return fields.fail("ends", "of trials that are there");
  for (const Dropped& dropped : parts.dropped)
    if (dropped.parameter >= parameters) return fields.fail("dropped", "of the parameters");
}

}  // namespace

std::string encode(const Parts& parts) {
  JsonText out(parts.trials.size() * 256);
  Writer list(out, Owner::kSaid);
  out.open();
  list.must("plan", object("the plan", *parts.plan));
  list.must("job", object("the job", parts.plan->job));
  parts_fields(list, parts, parts.halving.recorded());
  out.close();
  return out.take();
}

Result<Parts> decode_sweep_parts(const Json& json) {
  Fields fields(json, "the sweep");
  Reader list(fields, Owner::kSaid);
  Plan plan;
  list.must("plan", object("the plan", plan));
  list.must("job", object("the job", plan.job));
  Parts parts;
  Rungs rungs;
  parts_fields(list, parts, rungs);
  if (plan.halving) parts.halving = Halving(*plan.halving);
  for (auto& [step, results] : rungs)
    for (Halving::Entry& entry : results)
      if (entry.loss != entry.loss) entry.loss = std::numeric_limits<double>::infinity();
  parts.plan = std::make_shared<const Plan>(std::move(plan));
  if (fields.ok()) check_parts(fields, parts);
  if (!fields.ok()) return fields.error();
  if (parts.plan->halving) parts.halving.restore(std::move(rungs));
  return parts;
}

}  // namespace mete::wire
