// SPDX-License-Identifier: Apache-2.0
// `mete advise`: the smallest instance type, or the smallest share of the user's own cards, that
// holds a request or a measured job. The request comes from the command line (no daemon is needed
// or started) or from the daemon's advice for a job; every candidate becomes an empty node of a
// Cluster, and the nodes that hold the request are listed by size.
#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "cli/advise_text.h"
#include "cli/job_ref.h"
#include "cli/job_words.h"
#include "cli/named_jobs.h"
#include "cli/simulate_input.h"
#include "cli/type_tables.h"
#include "cli/verbs.h"
#include "core/cluster/cluster.h"
#include "runner/daemon_client.h"
#include "simulate/asks.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

using core::cluster::Ask;
using core::cluster::Cluster;
using core::cluster::NodeSpec;

constexpr std::array kAdviseOptions{
    kGpuOption,
    kGpuTypeOption,
    kCpuOnlyOption,
    OptionSpec{"--cpus", "N", "number of CPUs"},
    OptionSpec{"--ram", "SIZE", "host memory"},
    OptionSpec{"--pool", "CARDS", "use these cards instead of instance types, such as 2xH200+1xT4"},
    OptionSpec{"--all", "",
               "list every type that holds the request, not only the smallest of each card type",
               "-a"},
    kTypesOption,
    kOutputOption,
};

// The nodes that could hold it when empty, the smallest first.
Result<std::vector<AdviseReport::Option>> options_for(const std::vector<NodeSpec>& nodes,
                                                      const Ask& ask) {
  Result<Cluster> cluster = Cluster::make(nodes);
  if (!cluster) return cluster.error();
  const Result<core::cluster::KindId> kind = cluster->kind_of(ask);
  if (!kind) return kind.error();
  std::vector<AdviseReport::Option> list;
  for (const core::cluster::Node& node : cluster->nodes()) {
    const std::int32_t share = cluster->kind(*kind).share(node.group);
    if (share != core::cluster::Kind::kNever)
      list.push_back({node.spec, ask.cards == 0 ? 0 : share});
  }
  const auto size = [](const AdviseReport::Option& option) {
    const NodeSpec& node = option.node;
    return std::tuple(node.cards * node.card_mib, node.cards, node.cpu_milli, node.ram_mib,
                      node.name);
  };
  std::sort(list.begin(), list.end(),
            [&](const auto& a, const auto& b) { return size(a) < size(b); });
  return list;
}

void keep_smallest_of_each_card(std::vector<AdviseReport::Option>& list) {
  std::vector<std::string> seen;
  std::erase_if(list, [&](const AdviseReport::Option& option) {
    const std::string& type = option.node.card_type;
    if (std::find(seen.begin(), seen.end(), type) != seen.end()) return true;
    seen.push_back(type);
    return false;
  });
}

Input<core::Request> request_of_words(const Parsed& parsed) {
  Result<core::Request> request = parse_request(parsed);
  if (!request) return bad_words(request.error());
  if (Result<void> r = check_share_is_said(*request); !r)
    return bad_words(
        Error(r.error()).with_hint("mete advise --gpu 2x30G --cpus 8, or mete advise 12"));
  core::JobSpec spec;
  spec.request = std::move(*request);
  if (Result<void> r = parse_limits(parsed, spec); !r) return bad_words(r.error());
  return spec.request;
}

// What a job should request next time: the daemon's advice, else its own request.
Input<core::Request> request_of_job(const Parsed& parsed, AdviseReport& report) {
  if (parsed.rest.size() > 1) return bad_words(Error::invalid("one job at a time"));
  for (const char* option : {"--gpu", "--gpu-type", "--cpu-only", "--cpus", "--ram"})
    if (parsed.has(option))
      return bad_words(Error::invalid(std::string(option) + " and a job contradict each other"));
  Result<runner::DaemonClient> client = open_for_words("advise", parsed.rest);
  if (!client) return Failure{client.error(), exit_code_of(client.error().code)};
  const Result<std::vector<core::JobId>> ids = resolve_jobs(parsed.rest, client->http().path());
  if (!ids) return Failure{ids.error(), exit_code_of(ids.error().code)};
  if (ids->size() != 1) return bad_words(Error::invalid("one job at a time"));
  const Result<std::string> body = client->call("GET", job_target(ids->front(), "/show"));
  if (!body) return Failure{body.error(), exit_code_of(body.error().code)};
  const Result<wire::ShowDocument> document = wire::decode_show(*body);
  if (!document) return Failure{document.error(), exit_code_of(document.error().code)};
  report.job = to_string(ids->front());
  core::Request request = core::request_of(document->view.job);
  // Named cards without a share are whole cards.
  if (!request.gpu && !request.devices.empty())
    request.gpu = core::whole_cards(static_cast<std::uint32_t>(request.devices.size()));
  request.devices.clear();
  request.procs = 1;
  if (document->advice) {
    const Result<core::GpuRequest> gpu = core::parse_gpu(document->advice->gpu);
    if (gpu) request.gpu = *gpu;
    report.gpu = document->advice->gpu;
    report.why = document->advice->why;
  } else if (document->view.job.state != core::JobState::kEnded) {
    report.why = "it has not ended, so what it needs is not known yet";
  } else {
    report.why = "it asked for about what it needed, or was not measured";
  }
  return request;
}

Input<std::vector<NodeSpec>> candidates(const Parsed& parsed) {
  if (parsed.has("--pool")) {
    Input<Place> place = read_pool(parsed, nullptr);
    if (auto* failure = std::get_if<Failure>(&place)) return std::move(*failure);
    return std::move(std::get<Place>(place).nodes);
  }
  const Result<TypeTables> types = read_type_tables(parsed.find("--types"));
  if (!types) return bad_file(types.error());
  std::vector<NodeSpec> nodes;
  for (const simulate::InstanceType& type : types->instances)
    nodes.push_back(simulate::node_of(type, type.name));
  return nodes;
}

// An unknown type is a typing error, not a request that nothing can hold.
Result<void> check_type(const Ask& ask, const std::vector<NodeSpec>& nodes,
                        const std::vector<simulate::CardType>& cards) {
  std::set<std::string> known;
  for (const NodeSpec& node : nodes) known.insert(base::to_lower(node.card_type));
  for (const simulate::CardType& card : cards) known.insert(base::to_lower(card.name));
  for (const std::string& type : ask.types) {
    if (known.contains(base::to_lower(type))) continue;
    std::vector<std::string_view> names;
    for (const simulate::CardType& card : cards) names.push_back(card.name);
    const std::string_view near = base::nearest(type, names);
    return Error::invalid("--gpu-type: there is no card type " + base::quote(type))
        .with_hint(near.empty() ? "--types FILE adds types of your own"
                                : "did you mean " + std::string(near) + "?");
  }
  return {};
}

int run_advise(const Parsed& parsed, const Output& output) {
  AdviseReport report;
  report.own_cards = parsed.has("--pool");
  const Input<core::Request> request =
      parsed.rest.empty() ? request_of_words(parsed) : request_of_job(parsed, report);
  if (const auto* failure = std::get_if<Failure>(&request))
    return output.fail(failure->error, failure->exit_code);
  const Result<Ask> ask = simulate::ask_of(std::get<core::Request>(request));
  if (!ask) return output.fail(ask.error());
  report.request = simulate::words_of(*ask, std::get<core::Request>(request));
  const Input<std::vector<NodeSpec>> nodes = candidates(parsed);
  if (const auto* failure = std::get_if<Failure>(&nodes))
    return output.fail(failure->error, failure->exit_code);
  const Result<TypeTables> types = read_type_tables(nullptr);
  if (!types) return output.fail(types.error(), kExitBadFile);
  if (const Result<void> r = check_type(*ask, std::get<std::vector<NodeSpec>>(nodes), types->cards);
      !r)
    return output.fail(r.error());
  Result<std::vector<AdviseReport::Option>> options =
      options_for(std::get<std::vector<NodeSpec>>(nodes), *ask);
  if (!options) return output.fail(options.error());
  if (options->empty())
    return output.fail(Error::infeasible(std::string(report.own_cards ? "none of these cards"
                                                                      : "no instance type") +
                                         " holds " + report.request)
                           .with_hint(report.own_cards ? "ask for less of each card, or for fewer"
                                                       : "--types FILE adds types of your own"));
  if (!parsed.has("--all")) keep_smallest_of_each_card(*options);
  report.options = std::move(*options);
  output.data(output.json() ? advise_json(report, timestamp()) : advise_text(report));
  return kExitOk;
}

}  // namespace

const Verb kAdviseVerb{
    "advise",
    "find the smallest instance type or share for a request or a job",
    "mete advise (--gpu SHARE|ID) [options]",
    "mete advise --gpu 2x30G --cpus 8\n"
    "mete advise --gpu 12G --pool 2xH200+1xT4\n"
    "mete advise 12              # what job 12 should ask for next time",
    "For a request, prints the smallest known instance type that holds it, and the smallest one "
    "for each other card type; with --pool, the share of your own cards that it takes. For an "
    "ended job, derives the request from its peak memory. Smaller means less GPU memory, then "
    "fewer cards, CPUs and memory. Needs no GPU; only a job id needs a daemon.",
    kAdviseOptions,
    Rest::kWords,
    run_advise,
};

}  // namespace mete::cli
