// SPDX-License-Identifier: Apache-2.0
// `mete place --pool pool.yaml --job job.yaml`: one decision with its reasons, on a described pool.
// No daemon is needed or started. settle() puts the file's running jobs on the nodes, ledger_of()
// keeps the nodes that --where selects, and the policy chooses. Without room, make_room() tries
// moves, and otherwise the report says how many copies fit and which change would help.
#include <algorithm>
#include <array>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "cli/job_file.h"
#include "cli/job_words.h"
#include "cli/place_text.h"
#include "cli/pool_file.h"
#include "cli/simulate_input.h"
#include "cli/verbs.h"
#include "core/cluster/gang.h"
#include "core/where/query.h"
#include "simulate/asks.h"
#include "simulate/facts.h"
#include "simulate/moves.h"

namespace mete::cli {

namespace {

using core::cluster::Ask;
using core::cluster::Cluster;
using core::cluster::index_of;
using core::cluster::KindId;
using core::cluster::NodeId;
using core::cluster::NodeSpec;
using core::cluster::Spot;

constexpr std::int64_t kMostCopies = 1000;

constexpr std::array kPlaceOptions{
    OptionSpec{"--pool", "FILE", "the pool: a YAML file with nodes and running jobs"},
    OptionSpec{"--job", "FILE", "the job: a file for mete submit -f"},
    kGpuOption,
    kGpuTypeOption,
    kCpuOnlyOption,
    OptionSpec{"--cpus", "N", "number of CPUs"},
    OptionSpec{"--ram", "SIZE", "host memory"},
    OptionSpec{"--copies", "N", "place N copies of the job, on any nodes: all of them or none"},
    OptionSpec{"--where", "EXPR", "use only nodes that match this expression; see mete where"},
    OptionSpec{"--policy", "NAME", "placement policy, as in mete simulate (default: mete)"},
    OptionSpec{"--max-moves", "LIMIT",
               "if there is no room, show which jobs to move to make room: at most this many jobs, "
               "or this part of all cards (1%)"},
    OptionSpec{"--explain", "", "print the reason for each node"},
    kTypesOption,
    kOutputOption,
};

// The request, and the nodes that it accepts.
struct Asked {
  Ask ask;
  core::Request request;  // as written, including --where
};

// A running job and its place.
struct Taken {
  Ask ask;
  Spot spot;
  std::string name;
};

struct Pool {
  std::vector<NodeSpec> nodes;
  std::vector<Taken> taken;
};

// The cards that the file names for a job, or those that the policy would take on its node.
Result<Spot> spot_of(const Cluster& cluster, core::cluster::NodePolicy& policy, KindId kind,
                     const PoolJob& job) {
  if (job.node.empty()) {
    if (const std::optional<Spot> spot = policy.choose(cluster, kind)) return *spot;
    return Error::invalid(job.where + ": there is no room for it beside the others");
  }
  for (std::uint32_t n = 0; n < cluster.nodes().size(); ++n) {
    const core::cluster::Node& node = cluster.nodes()[n];
    if (node.spec.name != job.node) continue;
    const core::cluster::Kind& what = cluster.kind(kind);
    if (!what.fits(cluster.shape(node.cls)))
      return Error::invalid(job.where + ": there is no room for it on node " +
                            base::quote(job.node));
    if (job.cards.empty()) return cluster.spot_on(NodeId{n}, what, 0);
    std::vector<std::uint32_t> cards = job.cards;
    std::sort(cards.begin(), cards.end());
    Spot spot;
    spot.node = NodeId{n};
    for (std::size_t i = 0; i < cards.size(); ++i) {
      const bool good = cards[i] < node.spec.cards && (i == 0 || cards[i] != cards[i - 1]) &&
                        node.free[cards[i]] >= what.share(node.group);
      if (!good || cards.size() != what.ask.cards)
        return Error::invalid(job.where + ": these cards do not hold it");
      spot.cards[spot.count++] = static_cast<std::uint8_t>(cards[i]);
    }
    return spot;
  }
  return Error::invalid(job.where + ": there is no node " + base::quote(job.node));
}

// Places the file's running jobs.
Result<Pool> settle(const PoolFile& file, core::cluster::NodePolicy& policy) {
  Result<Cluster> cluster = Cluster::make(file.nodes);
  if (!cluster) return cluster.error();
  Pool pool{file.nodes, {}};
  policy.expect(*cluster, {});
  for (const PoolJob& job : file.jobs) {
    const Result<KindId> kind = cluster->kind_of(job.ask);
    if (!kind) return Error(kind.error()).within(job.where);
    const Result<Spot> spot = spot_of(*cluster, policy, *kind, job);
    if (!spot) return spot.error();
    cluster->take(*kind, *spot);
    pool.taken.push_back({job.ask, *spot, job.name.empty() ? job.where : job.name});
  }
  return pool;
}

// Nodes and the jobs on them; an arrival is an index in Pool::taken.
struct Ledger {
  Cluster cluster;
  simulate::Tenants tenants;

  void take(std::uint32_t arrival, const Ask& ask, const Spot& spot) {
    const KindId kind = *cluster.kind_of(ask);
    cluster.take(kind, spot);
    tenants.add({arrival, kind, spot});
  }
};

// The ledger of these nodes; with `only`, of the nodes that match it.
Result<Ledger> ledger_of(const Pool& pool, const core::Query* only) {
  Result<Cluster> all = Cluster::make(pool.nodes);
  if (!all) return all.error();
  Ledger every{std::move(*all), simulate::Tenants(pool.nodes.size())};
  for (std::uint32_t i = 0; i < pool.taken.size(); ++i)
    every.take(i, pool.taken[i].ask, pool.taken[i].spot);
  if (only == nullptr) return every;
  std::vector<NodeSpec> nodes;
  std::vector<std::optional<std::uint32_t>> moved(pool.nodes.size());
  for (std::size_t i = 0; i < pool.nodes.size(); ++i) {
    if (!only->matches(simulate::facts_of(every.cluster.nodes()[i]))) continue;
    moved[i] = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(pool.nodes[i]);
  }
  Result<Cluster> some = Cluster::make(std::move(nodes));
  if (!some) return some.error();
  const std::size_t left = some->nodes().size();
  Ledger meant{std::move(*some), simulate::Tenants(left)};
  for (std::uint32_t i = 0; i < pool.taken.size(); ++i) {
    Spot spot = pool.taken[i].spot;
    const std::optional<std::uint32_t> to = moved[index_of(spot.node)];
    if (!to) continue;
    spot.node = NodeId{*to};
    meant.take(i, pool.taken[i].ask, spot);
  }
  return meant;
}

Input<PoolFile> read_pool_file(const Parsed& parsed) {
  const std::string* path = parsed.find("--pool");
  if (path == nullptr)
    return bad_words(Error::invalid("mete place needs --pool")
                         .with_hint("a file with nodes: - {name: a, cards: 4xT4, cpus: 48}"));
  const Result<TypeTables> types = read_type_tables(parsed.find("--types"));
  if (!types) return bad_file(types.error());
  const Result<std::string> text = base::read_all(*path, kMaxPoolFile);
  if (!text) return bad_file(text.error());
  Result<PoolFile> file = parse_pool_file(*text, *path, *types);
  if (!file) return bad_file(file.error());
  return std::move(*file);
}

Result<Asked> ask_of_words(const Parsed& parsed) {
  Result<core::Request> request = parse_request(parsed);
  if (!request) return request.error();
  if (Result<void> r = check_share_is_said(*request); !r) return r.error();
  core::JobSpec spec;
  spec.request = std::move(*request);
  if (Result<void> r = parse_limits(parsed, spec); !r) return r.error();
  const Result<Ask> ask = simulate::ask_of(spec.request);
  if (!ask) return ask.error();
  return Asked{*ask, std::move(spec.request)};
}

Input<Asked> read_ask(const Parsed& parsed) {
  const std::string* path = parsed.find("--job");
  if (path == nullptr) {
    Result<Asked> ask = ask_of_words(parsed);
    if (!ask) return Failure{ask.error(), exit_code_of(ask.error().code)};
    return std::move(*ask);
  }
  for (const char* option : {"--gpu", "--gpu-type", "--cpu-only", "--cpus", "--ram"})
    if (parsed.has(option))
      return bad_words(Error::invalid(std::string(option) + " and --job contradict each other"));
  const Result<std::string> text = base::read_all(*path, kMaxJobFile);
  if (!text) return bad_file(text.error());
  const Result<std::vector<FileJob>> jobs = parse_job_file(*text, *path);
  if (!jobs) return bad_file(jobs.error());
  if (jobs->size() != 1)
    return bad_file(Error::invalid(*path + ": has " + std::to_string(jobs->size()) + " jobs")
                        .with_hint("mete place decides about one"));
  Parsed words;
  for (const Word& word : jobs->front().words)
    if (word.value != kNo) words.options.emplace_back(word.option, word.value);
  Result<Asked> ask = ask_of_words(words);
  if (!ask)
    return Failure{Error(ask.error()).within(*path),
                   ask.error().code == ErrorCode::kInfeasible ? kExitInfeasible : kExitBadFile};
  if (const std::string* words_where = parsed.find("--where"); words_where != nullptr) {
    Result<core::Query> where = core::Query::parse(*words_where);
    if (!where) return bad_words(std::move(where).error().within("--where"));
    ask->request.where = *std::move(where);
  }
  return std::move(*ask);
}

PlaceReport::Placed placed_on(const Cluster& cluster, KindId kind, const Spot& spot) {
  const core::cluster::Node& node = cluster.node(spot.node);
  PlaceReport::Placed placed;
  placed.node = node.spec.name;
  placed.cards.assign(spot.cards.begin(), spot.cards.begin() + spot.count);
  placed.card_type = node.spec.card_type;
  placed.share = spot.count == 0 ? 0 : cluster.kind(kind).share(node.group);
  placed.share_bytes = (node.spec.card_mib * placed.share / core::cluster::kWholeCard) << 20;
  return placed;
}

// CPUs are requested in whole numbers: rounding down still fits.
std::vector<core::cluster::Change> whole_cpus(std::vector<core::cluster::Change> list) {
  for (core::cluster::Change& change : list) change.ask.cpu_milli -= change.ask.cpu_milli % 1000;
  std::erase_if(list, [](const core::cluster::Change& change) {
    return change.ask.cpu_milli == 0 &&
           std::find(change.aspects.begin(), change.aspects.end(), core::cluster::Aspect::kCpu) !=
               change.aspects.end();
  });
  return list;
}

// Applies the moves: `ledger` is then as after them.
void make_room(Ledger& ledger, core::cluster::NodePolicy& policy, KindId kind,
               const simulate::MoveLimit& limit, const Pool& pool, PlaceReport& report) {
  if (limit.jobs == 0) return;
  std::map<std::uint32_t, std::pair<KindId, Spot>> before;
  for (std::uint32_t n = 0; n < ledger.cluster.nodes().size(); ++n)
    for (const simulate::Placed& placed : ledger.tenants.on(NodeId{n}))
      before[placed.arrival] = {placed.kind, placed.spot};
  const auto arrival = static_cast<std::uint32_t>(pool.taken.size());
  const std::optional<simulate::Plan> plan =
      ledger.tenants.make_room(ledger.cluster, policy, kind, arrival, {limit.share, limit.jobs});
  if (!plan) return;
  for (const simulate::Move& move : plan->moves) {
    const auto& [what, from] = before.at(move.arrival);
    report.moves.push_back({pool.taken[move.arrival].name, placed_on(ledger.cluster, what, from),
                            placed_on(ledger.cluster, what, move.to)});
  }
  report.placed.push_back(placed_on(ledger.cluster, kind, plan->spot));
  report.decision = PlaceReport::Decision::kPlaced;
}

// How many copies fit, at most `most`.
std::size_t copies_in(Cluster cluster, core::cluster::NodePolicy& policy, const Ask& ask,
                      std::size_t most) {
  const KindId kind = *cluster.kind_of(ask);
  policy.expect(cluster, {{kind, 1}});
  std::size_t copies = 0;
  while (copies < most && core::cluster::take_gang(cluster, policy, std::vector{kind})) ++copies;
  return copies;
}

// How many copies fit in the empty pool, at most `most`.
std::size_t copies_ever(const Cluster& cluster, core::cluster::NodePolicy& policy, const Ask& ask,
                        std::size_t most) {
  std::vector<NodeSpec> nodes;
  for (const core::cluster::Node& node : cluster.nodes()) nodes.push_back(node.spec);
  return copies_in(*Cluster::make(std::move(nodes)), policy, ask, most);
}

int run_place(const Parsed& parsed, const Output& output) {
  std::int64_t copies = 1;
  if (parsed.has("--copies")) {
    const Result<std::int64_t> number = parse_number(parsed, "--copies", 1, kMostCopies);
    if (!number) return output.fail(number.error());
    copies = *number;
  }
  if (copies > 1 && parsed.has("--max-moves"))
    return output.fail(Error::invalid("--copies and --max-moves: room is made for one job")
                           .with_hint("leave one of the two out"));
  const Input<Asked> asked = read_ask(parsed);
  if (const auto* failure = std::get_if<Failure>(&asked))
    return output.fail(failure->error, failure->exit_code);
  const auto& [ask, request] = std::get<Asked>(asked);
  const Input<PoolFile> file = read_pool_file(parsed);
  if (const auto* failure = std::get_if<Failure>(&file))
    return output.fail(failure->error, failure->exit_code);
  const PoolFile& pool_file = std::get<PoolFile>(file);
  const std::string* own = parsed.find("--policy");
  PlaceReport report;
  report.policy = own != nullptr ? *own : pool_file.policy.empty() ? "mete" : pool_file.policy;
  const Result<std::unique_ptr<core::cluster::NodePolicy>> policy =
      core::cluster::make_policy(report.policy);
  if (!policy) return output.fail(policy.error(), own != nullptr ? kExitUsage : kExitBadFile);
  const Result<Pool> pool = settle(pool_file, **policy);
  if (!pool) return output.fail(pool.error(), kExitBadFile);
  const Result<simulate::MoveLimit> limit = parse_moves(parsed.find("--max-moves"), pool->nodes);
  if (!limit) return output.fail(limit.error());
  Result<Ledger> ledger = ledger_of(*pool, request.where ? &*request.where : nullptr);
  if (!ledger) return output.fail(ledger.error(), kExitBadFile);
  Cluster* const cluster = &ledger->cluster;
  const Result<KindId> kind = cluster->kind_of(ask);
  if (!kind) return output.fail(kind.error());
  report.request = simulate::words_of(cluster->kind(*kind).ask, request);
  report.copies = static_cast<std::size_t>(copies);
  report.nodes = reject(*cluster, *kind);
  if (parsed.has("--explain"))
    for (const core::cluster::Node& node : cluster->nodes())
      report.on.push_back(
          {node.spec.name, cause_on(cluster->groups()[index_of(node.group)],
                                    cluster->shape(node.cls), cluster->kind(*kind))});
  // The running jobs and this one are the expected mix.
  std::map<KindId, std::uint64_t> counts{{*kind, 1}};
  for (const Taken& taken : pool->taken) ++counts[*cluster->kind_of(taken.ask)];
  core::cluster::Mix mix;
  for (const auto& [each, count] : counts) mix.push_back({each, count});
  (*policy)->expect(*cluster, mix);
  const std::vector<KindId> gang(static_cast<std::size_t>(copies), *kind);
  if (const auto spots = core::cluster::take_gang(*cluster, **policy, gang)) {
    for (const Spot& spot : *spots) report.placed.push_back(placed_on(*cluster, *kind, spot));
    report.decision = PlaceReport::Decision::kPlaced;
  } else if (make_room(*ledger, **policy, *kind, *limit, *pool, report); report.placed.empty()) {
    report.changes = whole_cpus(changes(*cluster, *kind));
    const Ask& each = cluster->kind(*kind).ask;
    report.fit_now = copies_in(*cluster, **policy, each, gang.size());
    report.fit_empty = copies_ever(*cluster, **policy, each, gang.size());
    if (report.fit_empty >= gang.size()) report.decision = PlaceReport::Decision::kWait;
  }
  output.data(output.json() ? place_json(report, timestamp()) : place_text(report));
  return report.decision == PlaceReport::Decision::kPlaced ? kExitOk
         : report.decision == PlaceReport::Decision::kWait ? kExitNoRoom
                                                           : kExitInfeasible;
}

}  // namespace

const Verb kPlaceVerb{
    "place",
    "show where a job would be placed in a pool, and why",
    "mete place --pool FILE (--job FILE|--gpu SHARE) [options]",
    "mete place --pool pool.yaml --job job.yaml\n"
    "mete place --pool pool.yaml --gpu 2x30G --cpus 8 --explain\n"
    "mete place --pool pool.yaml --gpu 8 --where 'attribute:rack == r1'\n"
    "mete place --pool pool.yaml --gpu 1 --max-moves 3   # which jobs must move",
    "Makes one placement decision. Exit code 0: prints the place. 75: there is no room now. 69: "
    "the job can never fit; prints what each node lacks and the smallest changes that would fit. "
    "Needs no daemon and no GPU.",
    kPlaceOptions,
    Rest::kNothing,
    run_place,
};

}  // namespace mete::cli
