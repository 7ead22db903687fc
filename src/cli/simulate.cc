// SPDX-License-Identifier: Apache-2.0
// `mete simulate`: jobs of a trace arrive on a cluster, one after another, and a policy places
// them; with --timed or --history they come and go, and wait in the queue's line
// (simulate_timed.h). Neither needs nor starts a daemon. Files are written only when all is
// decided, in one go: whoever finds one finds all of it.
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "cli/simulate_input.h"
#include "cli/simulate_text.h"
#include "cli/simulate_timed.h"
#include "cli/simulate_watch.h"
#include "cli/type_tables.h"
#include "cli/verbs.h"
#include "simulate/replay.h"

namespace mete::cli {

namespace {

constexpr std::array kSimulateOptions{
    OptionSpec{"--nodes", "FILE", "the nodes: CSV with sn, cpu_milli, memory_mib, gpu, model"},
    OptionSpec{"--instances", "LIST",
               "instances of a cloud instead of nodes: 4xg4dn.12xlarge,2xp3.8xlarge"},
    OptionSpec{"--pool", "CARDS",
               "the cards of one machine instead: 2xH200+1xT4, with memory for cards that mete\n"
               "does not know: 2xMINE:24G. With --history +1xH200: one more than there are"},
    OptionSpec{"--jobs", "FILE",
               "the jobs: CSV with name, cpu_milli, memory_mib, num_gpu, gpu_milli and, if some\n"
               "name card types, gpu_spec"},
    OptionSpec{"--timed", "",
               "jobs come, wait in line, run and leave, as their times say: creation_time, and\n"
               "deletion_time (and scheduled_time) or duration; user, priority and time_limit are\n"
               "the queue's"},
    OptionSpec{"--history", "",
               "the jobs that the daemon has seen, or those of a FILE that mete ps -a -o json\n"
               "wrote; how long they would have waited on --pool, --instances or --nodes"},
    OptionSpec{"--arrivals", "FILE",
               "rows of the jobs in the order in which they arrive, counted from 0, one on each\n"
               "line (default: every job once, as listed)"},
    OptionSpec{"--policy", "NAME",
               "mete (default), fgd, best-fit, first-fit, spread, random, topology, or a list as\n"
               "ECS has it: spread:attribute:NAME,binpack:cpu"},
    OptionSpec{"--mix", "jobs|learned",
               "what the policy expects: all jobs, not their order (default), or only what has\n"
               "arrived so far"},
    OptionSpec{"--seed", "NUMBER", "for policies with chance in them (default: 0)"},
    OptionSpec{"--ties", "FILE",
               "a rank for each node, one on each line: the lowest is preferred where a policy\n"
               "does not tell nodes apart (default: as listed)"},
    OptionSpec{"--where", "EXPR",
               "only on nodes that this expression means (mete where); columns of the nodes that\n"
               "are not named above are their attributes"},
    OptionSpec{"--max-moves", "LIMIT",
               "move jobs to make room for those who would be refused: so many jobs in all, or\n"
               "so much of all cards (1%)"},
    OptionSpec{"--decisions", "FILE",
               "write where each arrival went: index,node row,cards (with times: and when)"},
    OptionSpec{"--report", "FILE",
               "write a page with charts (HTML, needs nothing else): cards over time, waits"},
    kTypesOption,
    kOutputOption,
};

// The order in which jobs come, and which nodes are preferred.
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

Result<SimulateReport> simulate_trace(const simulate::Trace& trace, core::cluster::Policy& policy,
                                      simulate::MixFrom mix, simulate::MoveLimit limit,
                                      simulate::Replay& decided) {
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
  const Result<std::unique_ptr<core::cluster::Policy>> policy =
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
      return output.fail(r.error());
  const std::string at = timestamp();
  if (const std::string* path = parsed.find("--report"); path != nullptr)
    if (Result<void> r = base::write_atomic(*path, simulate_page(*report, at), 0644); !r)
      return output.fail(r.error());
  output.data(output.json() ? simulate_json(*report, at) : simulate_text(*report));
  return kExitOk;
}

}  // namespace

const Verb kSimulateVerb{
    "simulate",
    "try a placement policy on a cluster and a trace",
    "mete simulate (--nodes FILE|--instances LIST|--pool CARDS) --jobs FILE [options]",
    "mete simulate --nodes nodes.csv --jobs jobs.csv\n"
    "mete simulate --nodes nodes.csv --jobs jobs.csv --policy best-fit --decisions where.csv\n"
    "mete simulate --pool 2xH200+1xT4 --jobs jobs.csv --timed     # in the queue of one machine\n"
    "mete simulate --history --pool +1xH200      # would one more card have cut our waits?",
    "Jobs arrive one after another and stay. Whoever some node can hold is placed, whoever none "
    "can\n"
    "is dropped. Says how much of the cards was given out when what was asked for came to 100 % "
    "and\n"
    "to 130 % of them, how much of what is idle a job could not use, and who was refused. With "
    "--timed\n"
    "and --history jobs wait instead, by the rules of the queue, and the answer is how long. "
    "Needs no\n"
    "GPU, and no daemon but for the history of one.",
    kSimulateOptions,
    Rest::kWords,
    run_simulate,
};

}  // namespace mete::cli
