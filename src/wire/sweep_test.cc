// SPDX-License-Identifier: Apache-2.0
// Documents of sweeps and their requests: full ones come back as they were, wrong ones are refused
// with the message of the part that knows better. Then the documents as views of a sweep.
#include "wire/sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

using core::JobId;
using core::sweep::guess;
using core::sweep::Method;
using core::sweep::Parameter;
using core::sweep::Plan;
using core::sweep::Range;
using core::sweep::Space;
using core::sweep::Sweep;
using core::sweep::SweepState;
using core::sweep::TrialState;
using core::sweep::Value;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr WallTime kAt{1'800'000'000'123};

// ---- documents ---------------------------------------------------------------------------------

SweepDocument full_document() {
  SweepDocument document;
  document.at = kAt;
  document.name = "lr-scan";
  document.user = "alice";
  document.state = SweepState::kStopped;
  document.why = kOddText;
  document.started = {1'800'000'000'000};
  document.ended = WallTime{1'800'000'009'000};
  document.seed = UINT64_MAX;
  document.sampler = "tpe";
  document.wanted = 1'000;
  document.metric = kOddText;
  document.maximize = true;
  document.target = "acc > 0.99";
  document.command = {"python", "train.py", "--lr", "{lr}", kOddText};
  document.as_flags = true;
  SweepDocument::Parameter range{"lr", {}, 1e-5, 0.1, {}, true, false, ""};
  SweepDocument::Parameter steps{"depth", {}, -3, 9, 3, false, true, "opt == 'adam'"};
  SweepDocument::Parameter list{
      "opt", {guess("adam"), guess("1e-3"), guess("007"), guess("true")}, {}, {}, {}, false, false,
      ""};
  document.space = {range, steps, list};
  SweepDocument::Trial full;
  full.n = UINT64_MAX;
  full.params = {{"lr", guess("0.001")},
                 {"depth", guess("-3")},
                 {"opt", core::sweep::of_text(kOddText)},
                 {"id", core::sweep::of_text("3")},
                 {"fast", core::sweep::of_bool(true)}};
  full.state = TrialState::kFailed;
  full.job = JobId{12};
  full.metrics = {{"val_loss", kNan}, {kOddText, -1e-300}};
  full.step = UINT64_MAX;
  full.peak = kMost;
  full.granted = Bytes::from_gib(8);
  full.why = kOddText;
  full.started = WallTime{1'800'000'001'000};
  full.ended = WallTime{1'800'000'002'000};
  full.cards = {3, 0};
  SweepDocument::Trial plain;
  plain.n = 2;
  document.trials = {full, plain};
  document.best = SweepDocument::Best{3, kOddText, 0.1 + 0.2};
  document.importance = {{"lr", 61.5, 4.25, -0.5}, {"opt", 12, 3, {}}};
  document.end_forecast = WallTime{1'800'000'010'000};
  document.results = "/var/lib/mete/sweeps/lr-scan/results.csv";
  document.curves = "/var/lib/mete/sweeps/lr-scan/curves";
  return document;
}

TEST(SweepDocument, ReadsBack) {
  const SweepDocument document = full_document();
  const std::string text = encode(document);
  const Result<SweepDocument> again = decode_sweep(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(encode(*again), text);
  EXPECT_EQ(again->space, document.space);
  EXPECT_EQ(again->trials, document.trials);
  EXPECT_EQ(again->best, document.best);
  EXPECT_EQ(again->importance, document.importance);
  EXPECT_EQ(again->command, document.command);
  EXPECT_EQ(again->state, document.state);
  EXPECT_EQ(again->seed, document.seed);
  EXPECT_EQ(again->ended, document.ended);
  EXPECT_EQ(again->end_forecast, document.end_forecast);
  EXPECT_TRUE(again->maximize);
  EXPECT_TRUE(again->as_flags);
  EXPECT_EQ(encode(*decode_sweep(encode(SweepDocument{}))), encode(SweepDocument{}));
}

TEST(SweepDocument, NumbersAreNumbersAndUnknownMetricsAreNull) {
  const std::string text = encode(full_document());
  EXPECT_NE(text.find(R"("params":{"lr":0.001,"depth":-3,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("id":"3","fast":true})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("metrics":{"val_loss":null,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("params":{},"state":"pending","metrics":{},"cards":[]})"),
            std::string::npos)
      << "lists are always there: " << text;
}

TEST(SweepDocument, OfANewerVersionHasMoreFields) {
  const std::string text = encode(full_document());
  EXPECT_TRUE(decode_sweep(replaced(text, "\"name\":", "\"new\":[{}],\"name\":")).ok());
  EXPECT_TRUE(decode_sweep(replaced(text, "{\"n\":", "{\"new\":[{}],\"n\":")).ok());
}

TEST(SweepDocument, WhatCannotBeIsRefused) {
  const std::string good = encode(full_document());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"at\":\"", "\"at\":\"x"},
           {"\"name\":\"", "\"name\":7,\"x\":\""},
           {"\"state\":\"stopped\"", "\"state\":\"asleep\""},
           {"\"started_at\":", "\"x\":"},
           {"\"seed\":18446744073709551615", "\"seed\":18446744073709551616"},
           {"\"wanted\":1000", "\"wanted\":-1"},
           {"\"command\":[", "\"command\":[7,"},
           {"\"as_flags\":true", "\"as_flags\":1"},
           {"\"space\":[", "\"space\":[7,"},
           {"\"min\":1e-05", "\"min\":\"0\""},
           {"\"log\":true", "\"log\":\"yes\""},
           {"\"values\":[", "\"values\":[{},"},
           {"\"trials\":[", "\"trials\":{},\"x\":["},
           {"\"n\":18446744073709551615", "\"n\":1e3"},
           {"\"params\":{", "\"params\":[],\"x\":{"},
           {"\"state\":\"failed\"", "\"state\":\"lost\""},
           {"\"job\":\"12\"", "\"job\":12"},
           {"\"metrics\":{", "\"metrics\":[],\"x\":{"},
           {"\"peak_bytes\":", "\"peak_bytes\":-1,\"x\":"},
           {"\"cards\":[3", "\"cards\":[4294967296"},
           {"\"best\":{", "\"best\":[],\"x\":{"},
           {"\"pct\":61.5", "\"pct\":\"61.5\""}})
    EXPECT_FALSE(decode_sweep(replaced(good, what, with)).ok()) << with;
  for (const char* text : {"", "{}", "[]", "null", "{\"schema\":\"mete.sweep/1\"}"})
    EXPECT_FALSE(decode_sweep(text).ok()) << text;
}

// Values of other kinds show as something, and nothing dies.
TEST(SweepDocument, OddValuesOfParametersAreTexts) {
  const std::string good = encode(full_document());
  for (const char* odd : {"null", "[1,[2]]", "{\"a\":1}", "18446744073709551615", "1e308"}) {
    const Result<SweepDocument> document =
        decode_sweep(replaced(good, "\"lr\":0.001", "\"lr\":" + std::string(odd)));
    ASSERT_TRUE(document.ok()) << odd;
    EXPECT_EQ(document->trials[0].params[0].first, "lr") << odd;
    EXPECT_TRUE(decode_sweep(encode(*document)).ok()) << odd;
  }
}

// Seeds are often that large. The command line finds the listed value by the number.
TEST(SweepDocument, AWholeNumberThatDoesNotFitKeepsItsSize) {
  const std::string text =
      replaced(encode(full_document()), "\"lr\":0.001", "\"lr\":18446744073709551615");
  const Value value = decode_sweep(text)->trials[0].params[0].second;
  EXPECT_EQ(value.kind, Value::Kind::kReal);
  EXPECT_EQ(value.number, guess("18446744073709551615").number);
}

TEST(SweepsDocument, ReadsBack) {
  SweepRow full{"lr-scan",   "alice", SweepState::kDone, kOddText, "sobol", {5},
                WallTime{6}, 1'000,   UINT64_MAX,        2,        3,       4,
                5,           {},      WallTime{7}};
  full.best = SweepDocument::Best{3, "acc", 0.5};
  const SweepsDocument document{kAt, {full, SweepRow{}}};
  const std::string text = encode(document);
  const Result<SweepsDocument> again = decode_sweeps(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->at, kAt);
  EXPECT_EQ(again->sweeps, document.sweeps);
  EXPECT_EQ(encode(SweepsDocument{kAt, {}}),
            R"({"schema":"mete.sweeps/1","at":"2027-01-15T08:00:00.123Z","sweeps":[]})");
  for (const auto& [what, with] :
       std::vector<std::pair<std::string, std::string>>{{"\"state\":\"done\"", "\"state\":7"},
                                                        {"\"sampler\":", "\"x\":"},
                                                        {"\"ok\":3", "\"ok\":-3"},
                                                        {"\"value\":0.5", "\"value\":null"}})
    EXPECT_FALSE(decode_sweeps(replaced(text, what, with)).ok()) << with;
}

// ---- requests ----------------------------------------------------------------------------------

SweepRequest full_request() {
  SweepRequest request;
  request.plan = full_sweep_plan();
  request.plan.job = {};
  request.submit = {full_detached_spec(), {"HOME=/home/alice"}, "#!/bin/sh\n", true};
  request.submit.spec.key = "5f0c1d2e3b4a59687786a5b4c3d2e1f0";
  return request;
}

TEST(SweepRequest, ReadsBack) {
  const SweepRequest request = full_request();
  const std::string text = encode(request);
  const Result<SweepRequest> again = decode_sweep_request(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->plan, request.plan);
  EXPECT_EQ(encode(again->submit), encode(request.submit));
  EXPECT_EQ(again->submit.spec.key, request.submit.spec.key);
  EXPECT_EQ(again->submit.spec.command, request.submit.spec.command);
  EXPECT_EQ(again->submit.environment, request.submit.environment);
  EXPECT_EQ(again->submit.script, request.submit.script);
}

TEST(SweepRequest, CannotSayWhoseItIsNorThatItIsATrial) {
  const std::string good = encode(full_request());
  for (const char* field : {R"("uid":0,)", R"("user":"root",)",
                            R"("trial":{"sweep":1,"name":"a","n":1,"params":[]},)"}) {
    const Result<SweepRequest> request = decode_sweep_request(
        replaced(good, "\"detached\":{", field + std::string("\"detached\":{")));
    ASSERT_FALSE(request.ok()) << field;
    EXPECT_NE(request.error().message.find("unknown field"), std::string::npos) << field;
  }
  EXPECT_FALSE(decode_sweep_request(replaced(good, "{\"plan\":{", "{\"plan\":{\"job\":{},")).ok());
}

TEST(SweepRequest, AFieldThatIsNotKnownIsRefusedByName) {
  const std::string good = encode(full_request());
  for (const std::string where :
       {"{\"plan\":", "\"plan\":{", "\"goal\":{", "\"metrics\":[{", "\"params\":[{", "\"range\":{",
        "\"values\":[{", "\"submit\":{"}) {
    const std::string with =
        where.ends_with(':') ? "{\"gpu_memory\":7,\"plan\":" : where + "\"gpu_memory\":7,";
    const Result<SweepRequest> request = decode_sweep_request(replaced(good, where, with));
    ASSERT_FALSE(request.ok()) << where;
    EXPECT_NE(request.error().message.find("unknown field 'gpu_memory'"), std::string::npos)
        << request.error().message;
  }
}

TEST(SweepRequest, EveryWrongKindIsRefused) {
  const std::string good = encode(full_request());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"plan\":{", "\"plan\":[],\"x\":{"},
           {"\"name\":\"lr-scan\"", "\"name\":7"},
           {"\"sampler\":\"tpe\"", "\"sampler\":\"dice\""},
           {"\"seed\":18446744073709551615", "\"seed\":-1"},
           {"\"trials\":1000", "\"trials\":\"1000\""},
           {"\"for_s\":7200", "\"for_s\":3153600001"},
           {"\"until\":\"", "\"until\":\"tomorrow "},
           {"\"metrics\":[", "\"metrics\":[7,"},
           {"\"goal\":{\"metric\":\"acc\"", "\"goal\":{\"metrics\":\"acc\""},
           {"\"maximize\":true", "\"maximize\":\"yes\""},
           {"\"max_parallel\":8", "\"max_parallel\":-8"},
           {"\"auto_gpu\":true", "\"auto_gpu\":1"},
           {"\"target\":\"acc >", "\"target\":\"acc > >"},
           {"\"asha\":\"metric=val_loss,min=1", "\"asha\":\"metric=val_loss,min=0"},
           {"\"reduce\":\"method=kendall", "\"reduce\":\"method=guess"},
           {"\"params\":[", "\"params\":[{},"},
           {"\"min\":", "\"min\":\"0\",\"x\":"},
           {"\"kind\":\"bool\"", "\"kind\":\"boolean\""},
           {"\"submit\":{", "\"submit\":[],\"x\":{"}}) {
    const Result<SweepRequest> request = decode_sweep_request(replaced(good, what, with));
    EXPECT_FALSE(request.ok()) << with;
  }
  const std::string submit = good.substr(good.find(",\"submit\":"));
  EXPECT_FALSE(decode_sweep_request(replaced(good, submit, "}")).ok()) << "the job is missing";
  EXPECT_FALSE(decode_sweep_request("{" + submit.substr(1)).ok()) << "the plan is missing";
  for (const char* text : {"", "{}", "[]", "null", "{\"plan\":{}}"})
    EXPECT_FALSE(decode_sweep_request(text).ok()) << text;
}

// A request whose only parameters are these.
std::string with_space(const std::string& params) {
  SweepRequest request = full_request();
  request.plan = {};
  request.plan.name = "scan";
  request.plan.space = *Space::make({{"lr", std::vector{guess("1")}}});
  const std::string text = encode(request);
  const std::size_t begin = text.find("\"params\":["), end = text.find("}]}]", begin) + 4;
  return text.substr(0, begin) + params + text.substr(end);
}

TEST(SweepRequest, ABadSpaceIsRefusedInTheWordsOfTheSpace) {
  ASSERT_TRUE(
      decode_sweep_request(with_space(R"("params":[{"name":"a","range":{"min":0,"max":1}}])"))
          .ok());
  const std::vector<std::string> names = {"a", "b"};
  const auto when = [&](const char* text) { return *core::sweep::Expression::parse(text, names); };
  const std::vector<Value> one = {guess("1")};
  const std::vector<std::pair<std::string, std::vector<Parameter>>> cases = {
      {R"("params":[])", {}},
      {R"("params":[{"name":"a","range":{"min":1,"max":1}}])", {{"a", Range{1, 1}}}},
      {R"("params":[{"name":"a","range":{"min":-1,"max":1,"log":true}}])",
       {{"a", Range{-1, 1, true}}}},
      {R"("params":[{"name":"a","range":{"min":0,"max":1,"step":-1}}])",
       {{"a", Range{0, 1, false, false, -1.0}}}},
      {R"("params":[{"name":"a"}])", {{"a", std::vector<Value>()}}},
      {R"("params":[{"name":"a b","values":[{"value":"1","kind":"integer","number":1}]}])",
       {{"a b", one}}},
      {R"("params":[{"name":"a","values":[{"value":"1","kind":"integer","number":1}]},)"
       R"({"name":"a","values":[{"value":"1","kind":"integer","number":1}]}])",
       {{"a", one}, {"a", one}}},
      {R"("params":[{"name":"a","values":[{"value":"1","kind":"integer","number":1}],"when":"b"},)"
       R"({"name":"b","values":[{"value":"1","kind":"integer","number":1}],"when":"a"}])",
       {{"a", one, when("b")}, {"b", one, when("a")}}}};
  for (const auto& [params, parameters] : cases) {
    const Result<SweepRequest> request = decode_sweep_request(with_space(params));
    ASSERT_FALSE(request.ok()) << params;
    const Result<Space> space = Space::make(parameters);
    ASSERT_FALSE(space.ok()) << params;
    EXPECT_EQ(request.error().message, space.error().message) << params;
    EXPECT_EQ(request.error().evidence, space.error().evidence) << params;
  }
}

TEST(SweepRequest, ABadExpressionPointsAtTheCharacter) {
  const Result<SweepRequest> request = decode_sweep_request(
      with_space(R"("params":[{"name":"a","range":{"min":0,"max":1}}],"keep":"a <= lr")"));
  ASSERT_FALSE(request.ok());
  const std::vector<std::string> names = {"a"};
  const Error error = core::sweep::Expression::parse("a <= lr", names).error();
  EXPECT_EQ(request.error().message, error.message);
  EXPECT_EQ(request.error().evidence, error.evidence);
}

TEST(ExtendRequest, ReadsBack) {
  const ExtendRequest more{40, {}};
  Result<ExtendRequest> again = decode_extend_request(encode(more));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->trials, 40u);
  EXPECT_FALSE(again->space);
  const ExtendRequest wider{UINT64_MAX, full_sweep_plan().space};
  again = decode_extend_request(encode(wider));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->trials, UINT64_MAX);
  EXPECT_EQ(again->space, wider.space);
  EXPECT_TRUE(decode_extend_request("{}").ok()) << "the daemon says what is missing";
  for (const char* text : {"", "[]", R"({"trials":-1})", R"({"trials":"40"})", R"({"params":[]})",
                           R"({"params":{}})", R"({"keep":"lr < 1"})", R"({"trials":1,"seed":7})",
                           R"({"params":[{"name":"lr","range":{"min":1,"max":0}}]})"})
    EXPECT_FALSE(decode_extend_request(text).ok()) << text;
}

TEST(MetricsReport, ReadsBack) {
  const MetricsReport report{{{9, {{"val_loss", kNan}, {kOddBytes, -1e-300}}},
                              {UINT64_MAX, {{"val_loss", 0.1 + 0.2}}},
                              {{}, {{"acc", 1}}},
                              {0, {}}}};
  const Result<MetricsReport> again = decode_metrics_report(encode(report));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, report);
  const MetricsReport infinite{{{1, {{"a", HUGE_VAL}}}}};
  EXPECT_TRUE(std::isnan(decode_metrics_report(encode(infinite))->points[0].metrics[0].value));
}

TEST(MetricsReport, HasAtMostSixteenMetricsAtAStep) {
  MetricsReport report;
  report.points.resize(1);
  report.points[0].metrics.resize(core::sweep::kMaxMetrics, {"a", 1});
  EXPECT_TRUE(decode_metrics_report(encode(report)).ok());
  report.points[0].metrics.push_back({"b", 1});
  EXPECT_FALSE(decode_metrics_report(encode(report)).ok());
}

TEST(MetricsReport, WhatCannotBeIsRefused) {
  for (const char* text :
       {"", "[]", R"({"points":{}})", R"({"points":[7]})", R"({"points":[{"step":-1}]})",
        R"({"points":[{"step":1.5}]})", R"({"points":[{"metrics":{"a":1}}]})",
        R"({"points":[{"metrics":[{"value":1}]}]})",
        R"({"points":[{"metrics":[{"name":"a","value":"1"}]}]})"})
    EXPECT_FALSE(decode_metrics_report(text).ok()) << text;
}

// ---- views -------------------------------------------------------------------------------------

TEST(SweepView, ShowsThePlanAndTheTrials) {
  const Sweep sweep(full_sweep(7));
  const SweepDocument document = document_of(sweep, kAt);
  EXPECT_EQ(document.at, kAt);
  EXPECT_EQ(document.name, "lr-scan");
  EXPECT_EQ(document.user, "alice");
  EXPECT_EQ(document.state, SweepState::kPaused);
  EXPECT_EQ(document.why, kOddText);
  EXPECT_EQ(document.ended, sweep.ended());
  EXPECT_EQ(document.seed, UINT64_MAX);
  EXPECT_EQ(document.sampler, "tpe");
  EXPECT_EQ(document.wanted, 1'000u);
  EXPECT_EQ(document.metric, "acc");
  EXPECT_TRUE(document.maximize);
  EXPECT_EQ(document.target, "acc > 0.99 and val_loss < 0.1");
  EXPECT_EQ(document.command, sweep.plan().job.command);
  EXPECT_TRUE(document.as_flags);
  EXPECT_EQ(document.best, (SweepDocument::Best{3, "acc", 0.5}));
  EXPECT_FALSE(document.end_forecast) << "it is paused";
  ASSERT_EQ(document.space.size(), 5u);
  EXPECT_EQ(document.space[0],
            (SweepDocument::Parameter{"lr", {}, 1e-5, 0.1, {}, true, false, ""}));
  EXPECT_EQ(document.space[1].values.size(), 5u);
  EXPECT_EQ(document.space[2].when, "opt == 'adam'");
  EXPECT_EQ(document.space[4].range_step, 3);
  ASSERT_EQ(document.trials.size(), 5u);
  EXPECT_EQ(document.trials[0].params.size(), 5u);
  EXPECT_EQ(document.trials[1].params.size(), 4u) << "momentum is not in use";
  const SweepDocument::Trial& trial = document.trials[2];
  EXPECT_EQ(trial.n, 3u);
  EXPECT_EQ(trial.state, TrialState::kOk);
  EXPECT_EQ(trial.job, JobId{9});
  EXPECT_EQ(trial.metrics, sweep.trials()[2].metrics);
  EXPECT_EQ(trial.peak, kMost);
  EXPECT_EQ(trial.granted, Bytes::from_gib(8));
  EXPECT_EQ(trial.cards, (std::vector<std::uint32_t>{3, 0}));
  EXPECT_TRUE(decode_sweep(encode(document)).ok());
}

TEST(SweepView, ARowHasTheNumberOfTrialsInEachState) {
  const SweepRow row = row_of(Sweep(full_sweep(7)), kAt);
  EXPECT_EQ(row.name, "lr-scan");
  EXPECT_EQ(row.wanted, 1'000u);
  EXPECT_EQ(row.best, (SweepDocument::Best{3, "acc", 0.5}));
  for (const std::uint64_t count : {row.pending, row.running, row.ok, row.failed, row.stopped})
    EXPECT_EQ(count, 1u);
}

// Three of twelve trials took nine seconds in all; the other nine take twenty-seven.
TEST(SweepView, TheEndIsForecastFromWhatIsOver) {
  Sweep::Parts parts = full_sweep(7);
  parts.state = SweepState::kRunning;
  Plan plan = full_sweep_plan();
  plan.sampling.trials = 12;
  parts.plan = std::make_shared<const Plan>(plan);
  const WallTime at{parts.started.ms + 9'000};
  EXPECT_EQ(row_of(Sweep(parts), at).end_forecast, (WallTime{at.ms + 27'000}));
  EXPECT_EQ(document_of(Sweep(parts), at).end_forecast, (WallTime{at.ms + 27'000}));
  plan.sampling.trials = 0;
  parts.plan = std::make_shared<const Plan>(plan);
  EXPECT_FALSE(row_of(Sweep(parts), at).end_forecast) << "it has no number of trials";
}

}  // namespace
}  // namespace mete::wire
