// SPDX-License-Identifier: Apache-2.0
// `mete sweep [options] -- COMMAND`: plans, sends the sweep to the daemon, and follows it. The
// request has a key, so that a repeated one makes no second sweep. A name that was made from the
// program gets a number if another sweep has it. With --dry-run nothing is sent but a question
// about the first trial.
#include <sys/random.h>

#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/text.h"
#include "cli/dry_run.h"
#include "cli/explain_text.h"
#include "cli/json.h"
#include "cli/submit.h"
#include "cli/sweep_client.h"
#include "cli/sweep_follow.h"
#include "cli/sweep_options.h"
#include "cli/sweep_plan.h"
#include "cli/sweep_text.h"
#include "cli/sweep_verbs.h"
#include "cli/table.h"
#include "cli/wait_signals.h"
#include "core/request/gpu.h"
#include "runner/lasting_client.h"
#include "sweep/markup.h"
#include "wire/explain.h"

namespace mete::cli {

using core::sweep::Params;
using core::sweep::Plan;

namespace {

constexpr std::size_t kFirst = 5;  // trials that a dry run shows

// Short enough to be typed again.
std::uint64_t random_seed() {
  std::uint32_t seed = 0;
  METE_ASSERT(getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed));
  return seed;
}

// "24 trials of 48 points (random, seed 7)".
std::string size_text(const SweepPlan& plan) {
  const Plan& wanted = plan.request.plan;
  const std::optional<std::uint64_t> points = wanted.space.size();
  const std::optional<std::uint64_t> trials = core::sweep::trials_of(wanted);
  std::string text = trials ? numbered(*trials, "trial") : "trials until its time is over";
  if (points && trials != points) text += " of " + numbered(*points, "point");
  if (!points) text += " of a continuous space";
  text += " (" + std::string(to_string(wanted.sampling.method));
  if (wanted.sampling.seed) text += ", seed " + std::to_string(*wanted.sampling.seed);
  return text + ")";
}

// ---- dry run -----------------------------------------------------------------------------------

struct FirstTrial {
  std::uint64_t n = 0;
  Params params;
  std::vector<std::string> command;
};

std::vector<FirstTrial> first_trials(const SweepPlan& plan) {
  const Plan& wanted = plan.request.plan;
  std::vector<FirstTrial> trials;
  for (const core::sweep::Point& point : first_points(wanted, kFirst)) {
    Params params = named(wanted.space, point);
    std::vector<std::string> command = core::sweep::fill_command(
        plan.request.submit.spec.command, wanted.space.names(), params, wanted.as_flags);
    trials.push_back({trials.size() + 1, std::move(params), std::move(command)});
  }
  return trials;
}

std::string dry_run_json(const SweepPlan& plan, const std::vector<FirstTrial>& trials,
                         const std::string& first) {
  const Plan& wanted = plan.request.plan;
  std::vector<std::string> shown;
  for (const FirstTrial& trial : trials) {
    std::vector<std::string> words;
    for (const std::string& word : trial.command) words.push_back(json_string(word));
    shown.push_back(JsonObject()
                        .number("n", trial.n)
                        .raw("params", core::sweep::to_json(trial.params))
                        .raw("command", json_array(words))
                        .str());
  }
  JsonObject json;
  json.text("schema", "mete.sweep-plan/1").text("at", timestamp()).text("name", wanted.name);
  json.text("sampler", to_string(wanted.sampling.method));
  if (wanted.sampling.seed) json.number("seed", *wanted.sampling.seed);
  if (const std::optional<std::uint64_t> points = wanted.space.size())
    json.number("points", *points);
  if (const std::optional<std::uint64_t> all = core::sweep::trials_of(wanted))
    json.number("trials", *all);
  json.text("gpu", wanted.auto_gpu ? "auto"
                   : plan.request.submit.spec.request.gpu
                       ? to_string(*plan.request.submit.spec.request.gpu)
                       : "");
  json.raw("first", json_array(shown));
  if (!first.empty()) json.raw("start", first);
  return json.str();
}

std::string dry_run_lines(const SweepPlan& plan, const std::vector<FirstTrial>& trials) {
  std::string text = "sweep " + plan.request.plan.name + ": " + size_text(plan);
  for (const FirstTrial& trial : trials)
    text +=
        "\n  " + std::to_string(trial.n) + "  " + base::printable(sweep::shell_line(trial.command));
  if (trials.empty()) text += "\n  no point was found that --keep allows";
  return text;
}

// What the daemon says of the first trial: the body of mete.dry-run/1.
Result<std::string> ask_about_first(const SweepPlan& plan, const FirstTrial& trial) {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return std::move(client).error();
  wire::SubmitRequest request = plan.request.submit;
  request.spec.command = trial.command;
  return client->call("POST", "/v1/try", wire::encode(request));
}

int dry_run(const SweepPlan& plan, const Output& output) {
  const std::vector<FirstTrial> trials = first_trials(plan);
  Result<std::string> start = std::string();
  if (!trials.empty() && !plan.request.plan.auto_gpu) start = ask_about_first(plan, trials.front());
  if (!start) return output.fail(start.error());
  if (output.json()) {
    output.data(dry_run_json(plan, trials, *start));
    return kExitOk;
  }
  output.data(dry_run_lines(plan, trials));
  if (plan.request.plan.auto_gpu) {
    output.data(wrapped("the first " + std::to_string(core::sweep::kFirstTrials) +
                            " trials run with room; mete measures their peaks, and later trials "
                            "get what they need",
                        stdout_width()));
  } else if (!start->empty()) {
    const Result<wire::DryRunDocument> document = wire::decode_dry_run(*start);
    if (!document) return output.fail(document.error());
    output.data(wrapped("trial 1: " + dry_run_text(*document), stdout_width()));
  }
  return kExitOk;
}

// ---- start -------------------------------------------------------------------------------------

Error too_large(std::size_t bytes) {
  return Error::invalid("this sweep is too large to send")
      .with_evidence(sweep::count_text(bytes) + " bytes; at most " + sweep::count_text(kMaxRequest))
      .with_hint("shorten the lists of values; env -i leaves the environment behind");
}

Result<std::vector<std::string>> names_taken(runner::LastingClient& client, int interrupt) {
  const Result<std::string> body =
      client.call("GET", "/v1/sweeps", {}, {runner::DaemonClient::kPatience.timeout, interrupt});
  const Result<wire::SweepsDocument> document = body ? wire::decode_sweeps(*body) : body.error();
  if (!document) return document.error();
  std::vector<std::string> names;
  for (const wire::SweepRow& row : document->sweeps) names.push_back(row.name);
  return names;
}

// The answer to the request; `signal`: that came before it.
Result<std::string> send(SweepPlan& plan, const Output& output, int& signal) {
  Result<runner::DaemonClient> opened =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!opened) return std::move(opened).error();
  WaitSignals signals;
  runner::LastingClient client(*std::move(opened), output.talk());
  if (!plan.named) {
    const Result<std::vector<std::string>> taken = names_taken(client, signals.descriptor());
    if (!taken) {
      signal = signals.take();
      return taken.error();
    }
    plan.request.plan.name = free_name(plan.request.plan.name, *taken);
  }
  plan.request.submit.spec.key = random_key();
  const std::string body = wire::encode(plan.request);
  if (body.size() > kMaxRequest) return too_large(body.size());
  Result<std::string> answer = client.call(
      "POST", "/v1/sweeps", body, {runner::DaemonClient::kPatience.timeout, signals.descriptor()});
  signal = signals.take();
  return answer;
}

}  // namespace

int start_sweep(const Parsed& parsed, const Output& output) {
  SweepPlanner planner(parsed, Surroundings::ours(), random_seed());
  Result<SweepPlan> plan = planner.plan();
  if (!plan) return output.fail(plan.error(), planner.exit_code(plan.error()));
  if (const std::string* path = parsed.find("--csv"); path != nullptr)
    if (const Result<void> r = check_csv(*path); !r) return output.fail(r.error());
  for (const std::string& note : plan->notes) output.say(note);
  if (parsed.has("--dry-run")) return dry_run(*plan, output);
  int signal = 0;
  const Result<std::string> answer = send(*plan, output, signal);
  const std::string& name = plan->request.plan.name;
  if (!answer && signal != 0) {
    output.say("interrupted; mete sweep ls shows whether the sweep " + name + " was started");
    return 128 + signal;
  }
  const Result<wire::SweepRow> row = row_in(answer);
  if (!row) return output.fail(row.error());
  if (parsed.has("--detach")) {
    output.data(output.json() ? *answer : name);
    return kExitOk;
  }
  output.say("sweep " + name + ": " + size_text(*plan) +
             "; Ctrl-C leaves it running, mete sweep stop " + name + " ends it");
  if (signal != 0) {
    output.say("interrupted; mete sweep follow " + name + " comes back to it");
    return 128 + signal;
  }
  Result<runner::DaemonClient> client = open_for_sweeps(name);
  if (!client) return output.fail(client.error());
  const std::string* csv = parsed.find("--csv");
  return follow_sweep(*std::move(client), {name}, csv == nullptr ? "" : *csv, output);
}

}  // namespace mete::cli
