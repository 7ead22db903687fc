// SPDX-License-Identifier: Apache-2.0
// `mete simulate`: jobs of a trace arrive on a cluster, one after another, and a policy places
// them; with --timed or --history they come and go, and wait in the queue (simulate_timed.h). No
// daemon is needed or started. Files are written only at the end, in one piece: a file is never
// incomplete.
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "cli/simulate_input.h"
#include "cli/simulate_services.h"
#include "cli/simulate_text.h"
#include "cli/simulate_timed.h"
#include "cli/simulate_watch.h"
#include "cli/type_tables.h"
#include "cli/verbs.h"
#include "simulate/replay.h"

namespace mete::cli {

namespace {

constexpr std::array kSimulateOptions{
    OptionSpec{"--nodes", "FILE",
               "the nodes: a CSV file with the columns sn, cpu_milli, memory_mib, gpu, model"},
    OptionSpec{"--instances", "LIST",
               "use cloud instances instead of nodes, such as 4xg4dn.12xlarge,2xp3.8xlarge"},
    OptionSpec{"--pool", "CARDS",
               "use the cards of one machine instead of nodes, such as 2xH200+1xT4, or 2xMINE:24G "
               "for an unknown card type; with --history, +1xH200 adds one card"},
    OptionSpec{"--jobs", "FILE",
               "the jobs: a CSV file with the columns name, cpu_milli, memory_mib, num_gpu, "
               "gpu_milli and optionally gpu_spec"},
    OptionSpec{
        "--timed", "",
        "let jobs arrive, wait, run and leave by the columns creation_time, and deletion_time "
        "(with scheduled_time) or duration; the queue uses user, priority and time_limit"},
    OptionSpec{"--history", "",
               "replay the jobs of the daemon, or of a FILE written by mete ps -a -o json, on "
               "--pool, --instances or --nodes"},
    OptionSpec{"--arrivals", "FILE",
               "a file with the order of arrival: one row number of --jobs on each line, from 0 "
               "(default: every job once, as listed)"},
    OptionSpec{"--policy", "NAME",
               "the policy: mete (default), fgd, best-fit, first-fit, spread, random, topology, or "
               "an ECS list "
               "such as spread:attribute:NAME,binpack:cpu"},
    OptionSpec{"--mix", "jobs|learned",
               "what the policy knows of future jobs: the list of all jobs without their order "
               "(default), or only what has arrived"},
    OptionSpec{"--seed", "NUMBER", "seed for policies that use random numbers (default: 0)"},
    OptionSpec{"--ties", "FILE",
               "a file with a rank for each node, one on each line; the lowest wins when a policy "
               "rates nodes equal (default: as listed)"},
    OptionSpec{"--where", "EXPR",
               "use only nodes that match this expression (see mete where); further columns of the "
               "nodes file are attributes"},
    OptionSpec{"--max-moves", "LIMIT",
               "move jobs to make room for jobs that would be refused: at most this many jobs in "
               "all, or this part of all cards (1%)"},
    OptionSpec{"--decisions", "FILE",
               "write the place of each arrival to a file: index, node row, cards (with times: "
               "start and end)"},
    OptionSpec{"--service", "FILE",
               "simulate the autoscaling of the service in this YAML file, with --in-flight"},
    OptionSpec{"--in-flight", "FILE",
               "a CSV file with the columns t_s and in_flight: requests in flight in each second"},
    OptionSpec{"--models", "FILE",
               "simulate services that share a card: a service file with room: and swap_rate:, "
               "with --requests"},
    OptionSpec{"--requests", "FILE",
               "a CSV file with the columns t_s, model and answer_s: when a request comes, for "
               "which model, and how long its answer takes"},
    OptionSpec{"--report", "FILE", "write an HTML page with charts of cards over time and waits"},
    kTypesOption,
    kOutputOption,
};

// The order in which jobs arrive, and the preferred nodes.
Result<simulate::Trace> read_trace(Place place, std::vector<simulate::TraceJob> jobs,
                                   const std::string* arrivals_path, const std::string* ties_path) {
  simulate::Trace trace;
  trace.nodes = std::move(place.nodes);
  trace.jobs = std::move(jobs);
  if (arrivals_path == nullptr) {
    for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) trace.arrivals.push_back(i);
  } else {
    const Result<std::string> text = read_trace_file(*arrivals_path);
    if (!text) return text.error();
    Result<std::vector<std::uint32_t>> arrivals =
        simulate::parse_arrivals(*text, *arrivals_path, trace.jobs.size());
    if (!arrivals) return arrivals.error();
    trace.arrivals = std::move(*arrivals);
  }
  if (ties_path != nullptr) {
    const Result<std::string> text = read_trace_file(*ties_path);
    if (!text) return text.error();
    Result<std::vector<std::uint32_t>> ranks =
        simulate::parse_ranks(*text, *ties_path, trace.nodes.size());
    if (!ranks) return ranks.error();
    trace.ranks = std::move(*ranks);
  }
  return trace;
}

Result<SimulateReport> simulate_trace(const simulate::Trace& trace,
                                      core::cluster::NodePolicy& policy, simulate::MixFrom mix,
                                      simulate::MoveLimit limit, simulate::Replay& decided) {
  SimulateWatch watch;
  Result<simulate::Replay> replayed = simulate::replay(trace, policy, mix, watch.hooks(), limit);
  watch.end_if_stopped();
  if (!replayed) return replayed.error();
  decided = std::move(*replayed);
  SimulateReport report;
  report.cpu_s = static_cast<double>(decided.cpu_ns) / 1e9;
  Result<simulate::Score> score = simulate::score(trace, decided);
  if (!score) return score.error();
  report.score = std::move(*score);
  report.nodes = trace.nodes.size();
  report.arrivals = trace.arrivals.size();
  report.times_ns = decided.times_ns;
  return report;
}

int run_simulate(const Parsed& parsed, const Output& output) {
  if (parsed.has("--service")) return simulate_service(parsed, output);
  if (parsed.has("--models")) return simulate_models(parsed, output);
  for (const auto& [file, of] :
       {std::pair("--in-flight", "--service"), std::pair("--requests", "--models")})
    if (parsed.has(file)) return output.fail(Error::invalid(std::string(file) + " needs " + of));
  if (parsed.has("--history")) return simulate_history(parsed, output);
  if (!parsed.rest.empty())
    return output.fail(Error::invalid("what is " + base::quote(parsed.rest.front()) + "?")
                           .with_hint("a file follows --history alone"));
  if (parsed.has("--timed")) return simulate_timed(parsed, output);
  const Result<std::uint64_t> seed = parse_seed(parsed.find("--seed"));
  if (!seed) return output.fail(seed.error());
  const Result<simulate::MixFrom> mix = parse_mix(parsed.find("--mix"));
  if (!mix) return output.fail(mix.error());
  const std::string* name = parsed.find("--policy");
  const Result<std::unique_ptr<core::cluster::NodePolicy>> policy =
      core::cluster::make_policy(name == nullptr ? "mete" : *name, *seed);
  if (!policy) return output.fail(policy.error());
  Input<Place> place = read_place(parsed);
  if (const auto* failure = std::get_if<Failure>(&place))
    return output.fail(failure->error, failure->exit_code);
  auto jobs = read_jobs(parsed, std::get<Place>(place), simulate::Times::kIgnored);
  if (const auto* failure = std::get_if<Failure>(&jobs))
    return output.fail(failure->error, failure->exit_code);
  if (const Result<void> r = limit_nodes(parsed, std::get<Place>(place)); !r)
    return output.fail(r.error());
  const std::vector<std::uint32_t> rows = std::get<Place>(place).rows;
  const Result<simulate::Trace> trace = read_trace(
      std::move(std::get<Place>(place)), std::move(std::get<std::vector<simulate::TraceJob>>(jobs)),
      parsed.find("--arrivals"), parsed.find("--ties"));
  if (!trace) return output.fail(trace.error(), kExitBadFile);
  const Result<simulate::MoveLimit> limit = parse_moves(parsed.find("--max-moves"), trace->nodes);
  if (!limit) return output.fail(limit.error());
  simulate::Replay decided;
  Result<SimulateReport> report = simulate_trace(*trace, **policy, *mix, *limit, decided);
  if (!report) return output.fail(report.error(), kExitBadFile);
  report->policy = name == nullptr ? "mete" : *name;
  report->mix = *mix == simulate::MixFrom::kJobs ? "jobs" : "learned";
  report->seed = *seed;
  if (const std::string* path = parsed.find("--decisions"); path != nullptr)
    if (Result<void> r = base::write_atomic(*path, simulate::decisions_csv(decided, rows), 0644);
        !r)
      return output.fail(r.error(), kExitFailed);
  const std::string at = timestamp();
  if (const std::string* path = parsed.find("--report"); path != nullptr)
    if (Result<void> r = base::write_atomic(*path, simulate_page(*report, at), 0644); !r)
      return output.fail(r.error(), kExitFailed);
  output.data(output.json() ? simulate_json(*report, at) : simulate_text(*report));
  return kExitOk;
}

}  // namespace

const Verb kSimulateVerb{
    "simulate",
    "test a placement policy on a trace, or the queue on other cards",
    "mete simulate (--nodes FILE|--instances LIST|--pool CARDS) --jobs FILE\n"
    "              [options]\n"
    "mete simulate --history [FILE] [--pool CARDS] [options]\n"
    "mete simulate --service FILE --in-flight FILE\n"
    "mete simulate --models FILE --requests FILE",
    "mete simulate --nodes nodes.csv --jobs jobs.csv\n"
    "mete simulate --nodes nodes.csv --jobs jobs.csv --policy best-fit\n"
    "mete simulate --pool 2xH200+1xT4 --jobs jobs.csv --timed\n"
    "mete simulate --history --pool +1xH200   # would one more card help?\n"
    "mete simulate --models models.yaml --requests requests.csv",
    "Jobs arrive one after another and stay. A job that fits on a node is placed; a job that fits "
    "on none is dropped. The result is how much of the cards is allocated when the demand reaches "
    "100% and 130% of them, how much idle capacity a job cannot use, and which jobs were refused. "
    "With --timed and --history, jobs wait by the rules of the queue, and the result is their "
    "waiting time. --service and --models simulate services instead: how many replicas autoscaling "
    "wants, and how long requests wait for models that take turns on a card. Needs no GPU; only "
    "--history without a file needs a daemon.",
    kSimulateOptions,
    Rest::kWords,
    run_simulate,
};

}  // namespace mete::cli
