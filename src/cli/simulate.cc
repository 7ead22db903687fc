// SPDX-License-Identifier: Apache-2.0
// `mete simulate`: jobs of a trace arrive on a cluster, one after another, and a policy places
// them. Neither needs nor starts a daemon. The decisions are written only when all of them are
// made, in one go: whoever finds the file finds all of it.
#include <array>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "cli/simulate_text.h"
#include "cli/status_line.h"
#include "cli/verbs.h"
#include "seam/clock.h"
#include "simulate/replay.h"

namespace mete::cli {

namespace {

constexpr std::array kOptions{
    OptionSpec{"--nodes", "FILE", "the nodes: CSV with sn, cpu_milli, memory_mib, gpu, model"},
    OptionSpec{"--jobs", "FILE",
               "the jobs: CSV with name, cpu_milli, memory_mib, num_gpu, gpu_milli and, if some\n"
               "name card types, gpu_spec"},
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
    OptionSpec{"--max-moves", "LIMIT",
               "move jobs to make room for those who would be refused: so many jobs in all, or\n"
               "so much of all cards (1%)"},
    OptionSpec{"--decisions", "FILE", "write where each arrival went: index,node row,cards"},
    kOutputOption,
};

Result<std::string> read_file(const std::string& path) {
  return base::read_all(path, simulate::kMaxTraceFile);
}

Result<simulate::Trace> read_trace(const std::string& nodes_path, const std::string& jobs_path,
                                   const std::string* arrivals_path, const std::string* ties_path) {
  simulate::Trace trace;
  const Result<std::string> nodes_text = read_file(nodes_path);
  if (!nodes_text) return nodes_text.error();
  Result<std::vector<core::cluster::NodeSpec>> nodes =
      simulate::parse_nodes(*nodes_text, nodes_path);
  if (!nodes) return nodes.error();
  trace.nodes = std::move(*nodes);
  const Result<std::string> jobs_text = read_file(jobs_path);
  if (!jobs_text) return jobs_text.error();
  Result<std::vector<simulate::TraceJob>> jobs =
      simulate::parse_jobs(*jobs_text, jobs_path, trace.nodes);
  if (!jobs) return jobs.error();
  trace.jobs = std::move(*jobs);
  if (arrivals_path == nullptr) {
    for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) trace.arrivals.push_back(i);
  } else {
    const Result<std::string> text = read_file(*arrivals_path);
    if (!text) return text.error();
    Result<std::vector<std::uint32_t>> arrivals =
        simulate::parse_arrivals(*text, *arrivals_path, trace.jobs.size());
    if (!arrivals) return arrivals.error();
    trace.arrivals = std::move(*arrivals);
  }
  if (ties_path != nullptr) {
    const Result<std::string> text = read_file(*ties_path);
    if (!text) return text.error();
    Result<std::vector<std::uint32_t>> ranks =
        simulate::parse_ranks(*text, *ties_path, trace.nodes.size());
    if (!ranks) return ranks.error();
    trace.ranks = std::move(*ranks);
  }
  return trace;
}

Result<simulate::MixFrom> parse_mix(const std::string* text) {
  if (text == nullptr || *text == "jobs") return simulate::MixFrom::kJobs;
  if (*text == "learned") return simulate::MixFrom::kLearned;
  return Error::invalid("--mix is jobs or learned, not " + base::quote(*text));
}

// "20": jobs; "1%", "0.5%": of all cards.
Result<simulate::MoveLimit> parse_moves(const std::string* text, const simulate::Trace& trace) {
  if (text == nullptr) return simulate::MoveLimit{};
  std::int64_t cards = 0;
  for (const core::cluster::NodeSpec& node : trace.nodes) cards += node.cards;
  if (text->ends_with('%')) {
    const Result<base::Milli> percent = base::parse_milli(text->substr(0, text->size() - 1));
    if (percent && percent->whole <= 100) {
      const auto thousandths =
          static_cast<std::int64_t>(percent->whole * 1000 + percent->thousandths);
      return simulate::MoveLimit{~std::uint64_t{0},
                                 cards * core::cluster::kWholeCard * thousandths / 100'000};
    }
  } else if (const Result<std::uint64_t> jobs = base::parse_uint(*text); jobs) {
    return simulate::MoveLimit{*jobs, cards * core::cluster::kWholeCard};
  }
  return Error::invalid("--max-moves " + base::quote(*text) +
                        " is neither a number of jobs nor a "
                        "part of the cards")
      .with_hint("write --max-moves 20 or --max-moves 1%");
}

// CPU time of this process: what others do on the machine does not count.
std::uint64_t cpu_ns() {
  return static_cast<std::uint64_t>(std::clock()) * (1'000'000'000 / CLOCKS_PER_SEC);
}

Result<SimulateReport> simulate_trace(const simulate::Trace& trace, core::cluster::Policy& policy,
                                      simulate::MixFrom mix, simulate::MoveLimit limit,
                                      simulate::Replay& decided) {
  StatusLine line;
  simulate::Hooks hooks;
  hooks.now_ns = [&clock = seam::system_clock()] {
    return static_cast<std::uint64_t>(clock.monotonic().count());
  };
  hooks.cpu_ns = cpu_ns;
  if (line.terminal())
    hooks.progress = [&](std::size_t done, std::size_t all) { line.draw(progress_bar(done, all)); };
  SimulateReport report;
  Result<simulate::Replay> replayed = simulate::replay(trace, policy, mix, hooks, limit);
  line.clear();
  if (!replayed) return replayed.error();
  decided = std::move(*replayed);
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
  const std::string* nodes = parsed.find("--nodes");
  const std::string* jobs = parsed.find("--jobs");
  if (nodes == nullptr || jobs == nullptr)
    return output.fail(Error::invalid("mete simulate needs --nodes and --jobs")
                           .with_hint("mete simulate --help shows what is in them"));
  std::uint64_t seed = 0;
  if (const std::string* text = parsed.find("--seed"); text != nullptr) {
    const Result<std::uint64_t> number = base::parse_uint(*text);
    if (!number)
      return output.fail(Error::invalid("--seed " + base::quote(*text) + " is no number"));
    seed = *number;
  }
  const Result<simulate::MixFrom> mix = parse_mix(parsed.find("--mix"));
  if (!mix) return output.fail(mix.error());
  const std::string* name = parsed.find("--policy");
  const Result<std::unique_ptr<core::cluster::Policy>> policy =
      core::cluster::make_policy(name == nullptr ? "mete" : *name, seed);
  if (!policy) return output.fail(policy.error());
  const Result<simulate::Trace> trace =
      read_trace(*nodes, *jobs, parsed.find("--arrivals"), parsed.find("--ties"));
  if (!trace) return output.fail(trace.error(), kExitBadFile);
  const Result<simulate::MoveLimit> limit = parse_moves(parsed.find("--max-moves"), *trace);
  if (!limit) return output.fail(limit.error());
  simulate::Replay decided;
  Result<SimulateReport> report = simulate_trace(*trace, **policy, *mix, *limit, decided);
  if (!report) return output.fail(report.error(), kExitBadFile);
  report->policy = name == nullptr ? "mete" : *name;
  report->mix = *mix == simulate::MixFrom::kJobs ? "jobs" : "learned";
  report->seed = seed;
  if (const std::string* path = parsed.find("--decisions"); path != nullptr)
    if (Result<void> r = base::write_atomic(*path, simulate::decisions_csv(decided), 0644); !r)
      return output.fail(r.error());
  output.data(output.json() ? simulate_json(*report, timestamp()) : simulate_text(*report));
  return kExitOk;
}

}  // namespace

const Verb kSimulateVerb{
    "simulate",
    "try a placement policy on a cluster and a trace",
    "mete simulate --nodes FILE --jobs FILE [--arrivals FILE] [options]",
    "mete simulate --nodes nodes.csv --jobs jobs.csv\n"
    "mete simulate --nodes nodes.csv --jobs jobs.csv --policy best-fit --decisions where.csv",
    "Jobs arrive one after another and stay. Whoever some node can hold is placed, whoever none "
    "can\n"
    "is dropped. Says how much of the cards was given out when what was asked for came to 100 % "
    "and\n"
    "to 130 % of them, how much of what is idle a job could not use, and who was refused. Needs "
    "no\n"
    "daemon and no GPU.",
    kOptions,
    Rest::kNothing,
    run_simulate,
};

}  // namespace mete::cli
