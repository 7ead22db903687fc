// SPDX-License-Identifier: Apache-2.0
// See simulate_timed.h. Jobs of a trace or of a history become Work (what the queue needs, and what
// each asks of a node); run() simulates the queue on a MachineSite (--pool, the daemon's own
// placement) or a ClusterSite; report_of() and finish() make the figures, the files and the output.
// A history of the daemon is also simulated on its own cards, for comparison.
#include "cli/simulate_timed.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "cli/simulate_input.h"
#include "cli/simulate_text.h"
#include "cli/simulate_watch.h"
#include "core/order/pass.h"
#include "runner/daemon_client.h"
#include "simulate/asks.h"
#include "simulate/cluster_site.h"
#include "simulate/history.h"
#include "simulate/machine_site.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

constexpr std::size_t kMaxHistory = std::size_t{256} << 20;

std::vector<std::string> types_of(const core::Pool& pool) {
  std::set<std::string> types;
  for (const core::PoolCard& card : pool.cards) types.insert(card.card.type);
  return {types.begin(), types.end()};
}

// Jobs for the queue, and the request of each to a node.
struct Work {
  std::vector<simulate::TimedJob> jobs;
  std::vector<core::cluster::Ask> asks;
  std::vector<std::uint32_t> copies;  // per job, starting together; empty: one each
};

Result<Work> work_of(const std::vector<simulate::TraceJob>& list, const Place& place) {
  Work work;
  for (const simulate::TraceJob& each : list) {
    simulate::TimedJob job;
    job.name = each.name;
    job.user = each.times->user;
    job.submitted = {each.times->submit_ms};
    job.run_ms = each.times->run_ms;
    job.limit_s = each.times->limit_s;
    job.priority = each.times->priority;
    const std::uint32_t copies = each.times->copies;
    if (copies > 1 && place.machine)
      return Error::unsupported("job " + base::quote(each.name) + " is " + std::to_string(copies) +
                                " that start together (inst_num), and --pool is one machine")
          .with_hint("describe nodes: --instances or --nodes");
    if (place.machine) {
      Result<core::Request> request = simulate::request_of(each.ask, types_of(*place.machine));
      if (!request) return std::move(request).error().within("job " + each.name);
      job.request = std::move(*request);
    } else {
      job.request = simulate::line_request(each.ask, copies);
    }
    work.jobs.push_back(std::move(job));
    work.asks.push_back(each.ask);
    work.copies.push_back(copies);
  }
  return work;
}

struct How {
  std::string policy;
  simulate::MixFrom mix = simulate::MixFrom::kJobs;
  std::uint64_t seed = 0;
};

Result<How> parse_how(const Parsed& parsed, bool machine) {
  How how;
  const std::string* name = parsed.find("--policy");
  how.policy = name != nullptr ? *name : machine ? "best-fit" : "mete";
  const Result<simulate::MixFrom> mix = parse_mix(parsed.find("--mix"));
  if (!mix) return mix.error();
  how.mix = *mix;
  const Result<std::uint64_t> seed = parse_seed(parsed.find("--seed"));
  if (!seed) return seed.error();
  how.seed = *seed;
  if (!machine) return how;
  if (const Result<core::Policy> known = core::parse_policy(how.policy); !known)
    return known.error();
  return how;
}

// One simulation. A machine uses the daemon's own placement, a cluster a policy for clusters.
Result<simulate::Timed> run(const Work& work, const Place& place, const How& how,
                            const simulate::Hooks& hooks) {
  if (place.machine) {
    simulate::MachineSite site(*place.machine, *core::parse_policy(how.policy), work.jobs);
    return simulate::run_timed(work.jobs, site, {}, hooks);
  }
  const Result<std::unique_ptr<core::cluster::NodePolicy>> policy =
      core::cluster::make_policy(how.policy, how.seed);
  if (!policy) return policy.error();
  const Result<std::unique_ptr<simulate::ClusterSite>> site =
      simulate::ClusterSite::make(place.nodes, work.asks, **policy, how.mix, work.copies);
  if (!site) return site.error();
  return simulate::run_timed(work.jobs, **site, {}, hooks);
}

SimulateReport report_of(const Work& work, const Place& place, const How& how,
                         const simulate::Timed& timed) {
  SimulateReport report;
  report.policy = how.policy;
  report.mix = how.mix == simulate::MixFrom::kJobs ? "jobs" : "learned";
  report.seed = how.seed;
  report.nodes = place.machine ? 1 : place.nodes.size();
  for (const core::cluster::NodeSpec& node : place.nodes) report.score.cards += node.cards;
  report.arrivals = work.jobs.size();
  report.cpu_s = static_cast<double>(timed.cpu_ns) / 1e9;
  report.times_ns = timed.times_ns;
  TimedReport& own = report.timed.emplace();
  own.place = place.text;
  own.waits = simulate::waits_of(work.jobs, timed);
  own.mean = simulate::over_time(timed.samples);
  std::map<std::string, std::pair<double, double>> counts;
  for (std::size_t i = 0; i < work.jobs.size(); ++i) {
    const simulate::Life& life = timed.lives[i];
    auto& [started, all] = counts[simulate::class_of(work.asks[i])];
    all += 1;
    started += life.started ? 1 : 0;
    if (!life.refused.empty()) {
      ++report.score.rejected;
      if (own.refused_why.empty()) own.refused_why = work.jobs[i].name + ": " + life.refused;
    } else if (!life.started) {
      ++own.left_waiting;
    }
  }
  for (const auto& [name, count] : counts)
    report.score.accepted_pct[name] = 100 * count.first / count.second;
  if (!timed.samples.empty()) report.score.final_alloc = timed.samples.back().alloc_pct;
  return report;
}

// Files first: a failure to write them is reported before anything is printed.
int finish(const Parsed& parsed, const Output& output, const SimulateReport& report,
           const Place& place, const Work& work, const simulate::Timed& timed) {
  const std::string at = timestamp();
  if (const std::string* path = parsed.find("--report"); path != nullptr) {
    std::vector<std::string> classes;
    for (const core::cluster::Ask& ask : work.asks) classes.push_back(simulate::class_of(ask));
    const std::string page = simulate_page(report, at, work.jobs, timed, classes);
    if (Result<void> r = base::write_atomic(*path, page, 0644); !r)
      return output.fail(r.error(), kExitFailed);
  }
  if (const std::string* path = parsed.find("--decisions"); path != nullptr)
    if (Result<void> r =
            base::write_atomic(*path, simulate::decisions_csv(timed, place.rows), 0644);
        !r)
      return output.fail(r.error(), kExitFailed);
  output.data(output.json() ? simulate_json(report, at) : simulate_text(report));
  return kExitOk;
}

Result<void> check_words(const Parsed& parsed) {
  for (const char* option : {"--arrivals", "--ties", "--max-moves"})
    if (parsed.has(option))
      return Error::invalid(std::string(option) +
                            " is for jobs that stay; with times they come and go by themselves");
  return {};
}

// ---- history ---------------------------------------------------------------------------------

// The running daemon; none is started for this.
Result<runner::DaemonClient> running_daemon() {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kNever);
  if (client || !runner::nobody_listens(client.error())) return client;
  return Error::io("no daemon runs whose history could be asked for")
      .with_hint("give a file of it: mete ps -a -o json > history.json");
}

Result<core::Pool> cards_of(runner::DaemonClient& client) {
  const Result<std::string> body = client.call("GET", "/v1/cards");
  if (!body) return body.error();
  const Result<wire::CardsDocument> document = wire::decode_cards(*body);
  if (!document) return document.error();
  core::Pool pool;
  for (const wire::CardView& card : document->cards) {
    core::PoolCard each;
    each.card = {card.index, card.uuid, card.type,
                 card.capacity ? *card.capacity : card.total.value_or(Bytes())};
    pool.cards.push_back(std::move(each));
  }
  return pool;
}

struct Seen {
  simulate::History history;
  std::optional<core::Pool> today;
};

Input<Seen> read_history(const Parsed& parsed) {
  Seen seen;
  std::string json;
  if (parsed.rest.empty()) {
    Result<runner::DaemonClient> client = running_daemon();
    if (!client) return Failure{client.error(), exit_code_of(client.error().code)};
    Result<std::string> body = client->call("GET", "/v1/jobs?all=1");
    if (!body) return Failure{body.error(), exit_code_of(body.error().code)};
    json = std::move(*body);
    Result<core::Pool> today = cards_of(*client);
    if (!today) return Failure{today.error(), exit_code_of(today.error().code)};
    if (!today->cards.empty()) seen.today = std::move(*today);
  } else {
    Result<std::string> text = base::read_all(parsed.rest.front(), kMaxHistory);
    if (!text) return bad_file(text.error());
    json = std::move(*text);
  }
  Result<simulate::History> history = simulate::parse_history(json);
  if (!history)
    return bad_file(parsed.rest.empty() ? history.error()
                                        : Error(history.error()).within(parsed.rest.front()));
  seen.history = std::move(*history);
  if (seen.history.jobs.empty())
    return bad_file(Error::not_found("no job in this history has run"));
  return seen;
}

// The jobs of a history that this place can run: those that it cannot express are left out.
Work work_of(const simulate::History& history, const Place& place, std::size_t& left_out) {
  Work work;
  for (simulate::TimedJob job : history.jobs) {
    job.request.devices.clear();  // cards of another pool
    Result<core::cluster::Ask> ask = simulate::ask_of(job.request);
    if (!ask && !place.machine) {
      ++left_out;
      continue;
    }
    work.asks.push_back(ask ? *ask : core::cluster::Ask{});
    if (!place.machine) job.request = simulate::line_request(*ask);
    work.jobs.push_back(std::move(job));
  }
  return work;
}

}  // namespace

int simulate_timed(const Parsed& parsed, const Output& output) {
  if (const Result<void> words = check_words(parsed); !words) return output.fail(words.error());
  Input<Place> place = read_place(parsed);
  if (const auto* failure = std::get_if<Failure>(&place))
    return output.fail(failure->error, failure->exit_code);
  Place& where = std::get<Place>(place);
  const Result<How> how = parse_how(parsed, where.machine.has_value());
  if (!how) return output.fail(how.error());
  const auto jobs = read_jobs(parsed, where, simulate::Times::kNeeded);
  if (const auto* failure = std::get_if<Failure>(&jobs))
    return output.fail(failure->error, failure->exit_code);
  if (const Result<void> r = limit_nodes(parsed, where); !r) return output.fail(r.error());
  const Result<Work> work = work_of(std::get<std::vector<simulate::TraceJob>>(jobs), where);
  if (!work) return output.fail(work.error(), kExitBadFile);
  SimulateWatch watch;
  const Result<simulate::Timed> timed = run(*work, where, *how, watch.hooks());
  watch.end_if_stopped();
  if (!timed) return output.fail(timed.error());
  return finish(parsed, output, report_of(*work, where, *how, *timed), where, *work, *timed);
}

int simulate_history(const Parsed& parsed, const Output& output) {
  if (const Result<void> words = check_words(parsed); !words) return output.fail(words.error());
  if (parsed.rest.size() > 1 || parsed.has("--jobs"))
    return output.fail(Error::invalid("--history takes one file, or none, and no --jobs"));
  const Input<Seen> input = read_history(parsed);
  if (const auto* failure = std::get_if<Failure>(&input))
    return output.fail(failure->error, failure->exit_code);
  const Seen& seen = std::get<Seen>(input);
  const bool cluster = parsed.has("--nodes") || parsed.has("--instances");
  Input<Place> place =
      cluster ? read_place(parsed) : read_pool(parsed, seen.today ? &*seen.today : nullptr);
  if (const auto* failure = std::get_if<Failure>(&place))
    return output.fail(failure->error, failure->exit_code);
  Place& where = std::get<Place>(place);
  if (const Result<void> r = limit_nodes(parsed, where); !r) return output.fail(r.error());
  const Result<How> how = parse_how(parsed, where.machine.has_value());
  if (!how) return output.fail(how.error());
  std::size_t left_out = seen.history.left_out;
  const Work work = work_of(seen.history, where, left_out);
  SimulateWatch watch;
  const simulate::Hooks hooks = watch.hooks();
  std::optional<simulate::Waits> today;
  if (seen.today && (cluster || parsed.has("--pool"))) {
    Place here;
    here.machine = seen.today;
    std::size_t ignored = 0;
    const Work same = work_of(seen.history, here, ignored);
    const Result<simulate::Timed> timed =
        run(same, here, {"best-fit", simulate::MixFrom::kJobs, 0}, hooks);
    if (timed) today = simulate::waits_of(same.jobs, *timed);
  }
  const Result<simulate::Timed> timed = run(work, where, *how, hooks);
  watch.end_if_stopped();
  if (!timed) return output.fail(timed.error());
  SimulateReport report = report_of(work, where, *how, *timed);
  report.timed->recorded = seen.history.recorded;
  report.timed->today = today;
  report.timed->left_out = left_out;
  return finish(parsed, output, report, where, work, *timed);
}

}  // namespace mete::cli
