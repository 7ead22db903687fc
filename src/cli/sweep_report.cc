// SPDX-License-Identifier: Apache-2.0
// `mete sweep show`, `report`, `best` and `logs`: what a sweep has found. All read the document
// with all trials. The curves of an HTML page come from files of the daemon's state, which are read
// here with the rights of the caller, by root as the sweep's user; a missing or unreadable file is
// a missing curve. Logs are those of the trials' jobs, printed by `mete logs`.
#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/subword.h"
#include "cli/sweep_client.h"
#include "cli/sweep_document.h"
#include "cli/sweep_text.h"
#include "cli/sweep_verbs.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "launch/identity.h"
#include "sweep/report.h"
#include "sweep/results_csv.h"

namespace mete::cli {

using core::sweep::SweepState;
using core::sweep::TrialState;
using wire::SweepDocument;

namespace {

constexpr std::size_t kMaxCurveFile = 16 << 20;  // bytes
constexpr std::size_t kMostCurves = 200;         // files

struct Shown {
  SweepRef ref;
  SweepDocument document;
};

// The sweep that the first word names, from the daemon.
Result<Shown> ask_for(std::string_view subverb, const Parsed& words) {
  if (words.rest.empty())
    return Error::invalid("which sweep is not said")
        .with_hint("mete sweep " + std::string(subverb) + " NAME; mete sweep ls lists them");
  Result<SweepRef> ref = sweep_ref(words, words.rest.front());
  if (!ref) return std::move(ref).error();
  Result<runner::DaemonClient> client = open_for_sweeps(ref->name);
  if (!client) return std::move(client).error();
  Result<SweepDocument> document = document_in(client->call("GET", sweep_target(*ref)));
  if (!document) return std::move(document).error();
  return Shown{*std::move(ref), *std::move(document)};
}

Result<Shown> ask_for_one(std::string_view subverb, const Parsed& words) {
  if (Result<void> r = no_more_than(1, words.rest); !r) return std::move(r).error();
  return ask_for(subverb, words);
}

// ---- report ------------------------------------------------------------------------------------

sweep::Curves read_curves(const SweepDocument& document) {
  sweep::Curves curves;
  if (document.curves.empty() || document.metric.empty()) return curves;
  const Result<launch::Identity> owner = sweeps_owner(document);
  if (!owner) return curves;
  const Result<launch::RightsOf> rights = launch::RightsOf::take(*owner);
  if (!rights) return curves;
  std::size_t files = 0;
  for (const std::uint64_t n : sweep::curves_shown(document)) {
    if (++files > kMostCurves) break;
    const Result<std::string> lines = base::read_regular(
        base::join_path(document.curves, std::to_string(n) + ".jsonl"), kMaxCurveFile);
    if (!lines) continue;
    std::vector<sweep::CurvePoint> curve = sweep::read_curve(*lines, document.metric);
    if (!curve.empty()) curves.emplace(n, std::move(curve));
  }
  return curves;
}

int write_page(const Shown& shown, const std::string& path, const Output& output) {
  const std::string page =
      sweep::to_html(shown.document, read_curves(shown.document), {METE_VERSION});
  if (const Result<void> r = base::write_atomic(path, page, 0644); !r)
    return output.fail(Error(r.error()).within("--html"), kExitFailed);
  output.say("the report of sweep " + shown.ref.name + " is in " + path);
  return kExitOk;
}

// ---- best --------------------------------------------------------------------------------------

Error no_best(const Shown& shown) {
  if (shown.document.metric.empty())
    return Error::invalid("sweep " + shown.ref.name + " has no metric to minimize or maximize")
        .with_hint("start a sweep with --minimize METRIC or --maximize METRIC");
  const std::string message =
      "no trial of sweep " + shown.ref.name + " has a result for " + shown.document.metric;
  const bool goes_on = shown.document.state == SweepState::kRunning;
  return (goes_on ? Error::busy(message + " yet") : Error::not_found(message))
      .with_hint("mete sweep show " + words_of(shown.ref));
}

std::string best_json(const Shown& shown, const SweepDocument::Trial& trial) {
  return JsonObject()
      .text("schema", "mete.sweep-best/1")
      .text("at", timestamp())
      .text("name", shown.ref.name)
      .number("n", trial.n)
      .text("metric", shown.document.best->metric)
      .raw("value", core::sweep::of_real(shown.document.best->value).text)
      .raw("params", core::sweep::to_json(trial.params))
      .text("command", sweep::command_line_of(shown.document, trial))
      .str();
}

// ---- logs --------------------------------------------------------------------------------------

Result<const SweepDocument::Trial*> trial_of(const Shown& shown, const std::string& word) {
  const Result<std::uint64_t> n = base::parse_uint(word);
  const SweepDocument::Trial* trial = n ? find_trial(shown.document, *n) : nullptr;
  if (trial == nullptr)
    return Error::not_found("sweep " + shown.ref.name + " has no trial " + base::quote(word))
        .with_evidence("it has " + std::to_string(shown.document.trials.size()) + " trials")
        .with_hint("mete sweep report " + words_of(shown.ref) + " lists them");
  if (!trial->job)
    return Error::busy("trial " + word + " has not begun yet")
        .with_hint("mete sweep show " + words_of(shown.ref));
  return trial;
}

// The running trial that began last; none: the one that ended last.
const SweepDocument::Trial* newest(const SweepDocument& document) {
  const SweepDocument::Trial* found = nullptr;
  for (const SweepDocument::Trial& trial : document.trials) {
    if (!trial.job || !trial.started) continue;
    const auto rank = [](const SweepDocument::Trial& each) {
      return std::pair(
          each.state == TrialState::kRunning,
          each.state == TrialState::kRunning ? *each.started : each.ended.value_or(*each.started));
    };
    if (found == nullptr || rank(*found) <= rank(trial)) found = &trial;
  }
  return found;
}

}  // namespace

int show_sweep(const Parsed& words, const Output& output) {
  Result<Shown> shown = ask_for_one("show", words);
  if (!shown) return output.fail(shown.error());
  add_importance(shown->document);
  output.data(output.json() ? wire::encode(shown->document)
                            : sweep_text(shown->document, stdout_width(), !has_utf8()));
  return kExitOk;
}

int report_sweep(const Parsed& words, bool csv, const Output& output) {
  Result<Shown> shown = ask_for_one("report", words);
  if (!shown) return output.fail(shown.error());
  if (csv) {
    output.bytes(sweep::to_csv(shown->document));
    return kExitOk;
  }
  add_importance(shown->document);
  if (const std::string* path = words.find("--html"); path != nullptr) {
    const int code = write_page(*shown, *path, output);
    if (code != kExitOk || !output.json()) return code;
  }
  if (output.json())
    output.data(wire::encode(shown->document));
  else if (const TrialList trials = all_ranked(shown->document); !trials.empty())
    output.data(trials_table(shown->document, trials, stdout_width()));
  else
    output.say("no trial of sweep " + shown->ref.name + " has begun yet");
  return kExitOk;
}

int best_of_sweep(const Parsed& words, const Output& output) {
  const Result<Shown> shown = ask_for_one("best", words);
  if (!shown) return output.fail(shown.error());
  const SweepDocument::Trial* trial =
      shown->document.best ? find_trial(shown->document, shown->document.best->n) : nullptr;
  if (trial == nullptr) return output.fail(no_best(*shown));
  if (output.json()) {
    output.data(best_json(*shown, *trial));
    return kExitOk;
  }
  output.say(best_text(*shown->document.best));
  output.data(sweep::command_line_of(shown->document, *trial));
  return kExitOk;
}

int logs_of_sweep(const Parsed& words, const Output& output) {
  const Result<Shown> shown = ask_for("logs", words);
  if (!shown) return output.fail(shown.error());
  std::vector<const SweepDocument::Trial*> trials;
  for (std::size_t i = 1; i < words.rest.size(); ++i) {
    const Result<const SweepDocument::Trial*> trial = trial_of(*shown, words.rest[i]);
    if (!trial) return output.fail(trial.error());
    trials.push_back(*trial);
  }
  if (words.rest.size() == 1) {
    const SweepDocument::Trial* trial = newest(shown->document);
    if (trial == nullptr)
      return output.fail(Error::busy("no trial of sweep " + shown->ref.name + " has begun yet")
                             .with_hint("mete sweep show " + words_of(shown->ref)));
    output.say("trial " + std::to_string(trial->n) + ", job " + to_string(*trial->job));
    trials.push_back(trial);
  }
  Parsed logs;
  for (const auto& [option, value] : words.options)
    if (option != "--user") logs.options.emplace_back(option, value);
  for (const SweepDocument::Trial* trial : trials) logs.rest.push_back(to_string(*trial->job));
  return kLogsVerb.run(logs, output);
}

}  // namespace mete::cli
