// SPDX-License-Identifier: Apache-2.0
// See simulate_input.h. read_place() turns --nodes, --instances or --pool into nodes (for --pool
// also into the cards of one machine), limit_nodes() applies --where, read_jobs() reads the trace
// for that place. Failure carries the exit code: 64 for options, 65 for files.
#include "cli/simulate_input.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/type_tables.h"
#include "core/where/query.h"
#include "simulate/facts.h"

namespace mete::cli {

namespace {

// The name of the user's own cards, each type counted once.
std::string pool_text(const core::Pool& pool) {
  std::vector<simulate::PoolPart> parts;
  for (const core::PoolCard& card : pool.cards) {
    const auto same = [&](const simulate::PoolPart& part) { return part.type == card.card.type; };
    const auto known = std::find_if(parts.begin(), parts.end(), same);
    if (known == parts.end())
      parts.push_back({1, card.card.type, 0});
    else
      ++known->count;
  }
  return simulate::to_string(parts);
}

Place machine_place(core::Pool pool) {
  Place place;
  place.text = pool_text(pool);
  std::vector<simulate::PoolPart> parts;
  for (const core::PoolCard& card : pool.cards)
    parts.push_back(
        {1, card.card.type, static_cast<std::int64_t>(card.card.capacity.count() >> 20)});
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return std::tie(a.type, a.mib) < std::tie(b.type, b.mib);
  });
  std::vector<simulate::PoolPart> joined;
  for (const simulate::PoolPart& part : parts) {
    if (!joined.empty() && joined.back().type == part.type && joined.back().mib == part.mib)
      ++joined.back().count;
    else
      joined.push_back(part);
  }
  place.nodes = simulate::nodes_of(joined);
  place.machine = std::move(pool);
  return place;
}

Input<Place> read_instances(const Parsed& parsed, const std::string& text) {
  const Result<TypeTables> tables = read_type_tables(parsed.find("--types"));
  if (!tables) return bad_file(tables.error());
  Result<std::vector<core::cluster::NodeSpec>> nodes =
      simulate::parse_instances(text, tables->instances);
  if (!nodes) return bad_words(std::move(nodes).error().within("--instances"));
  return Place{std::move(*nodes), std::nullopt, text};
}

Input<Place> read_nodes(const std::string& path) {
  const Result<std::string> text = read_trace_file(path);
  if (!text) return bad_file(text.error());
  Result<std::vector<core::cluster::NodeSpec>> nodes = simulate::parse_nodes(*text, path);
  if (!nodes) return bad_file(nodes.error());
  return Place{std::move(*nodes), std::nullopt, ""};
}

}  // namespace

Result<std::string> read_trace_file(const std::string& path) {
  return base::read_all(path, simulate::kMaxTraceFile);
}

Input<Place> read_pool(const Parsed& parsed, const core::Pool* today) {
  const std::string* text = parsed.find("--pool");
  if (text == nullptr) {
    if (today == nullptr) return bad_words(Error::invalid("--pool is missing"));
    return machine_place(*today);
  }
  core::Pool pool;
  std::string_view words = *text;
  if (words.starts_with('+')) {
    if (today == nullptr)
      return bad_words(Error::invalid("--pool " + base::quote(*text) +
                                      " adds to this machine's cards, which are not known here")
                           .with_hint("say all of them: --pool 3xH200"));
    words.remove_prefix(1);
    pool = *today;
  }
  const Result<TypeTables> tables = read_type_tables(parsed.find("--types"));
  if (!tables) return bad_file(tables.error());
  Result<std::vector<simulate::PoolPart>> parts = simulate::parse_pool(words, tables->cards);
  if (!parts) return bad_words(std::move(parts).error().within("--pool"));
  simulate::add_cards(pool, *parts);
  return machine_place(std::move(pool));
}

Input<Place> read_place(const Parsed& parsed) {
  const std::string* nodes = parsed.find("--nodes");
  const std::string* instances = parsed.find("--instances");
  const bool pool = parsed.has("--pool");
  if ((nodes != nullptr) + (instances != nullptr) + (pool ? 1 : 0) != 1)
    return bad_words(Error::invalid("one of --nodes, --instances and --pool says where jobs run")
                         .with_hint("mete simulate --help shows what is in them"));
  if (nodes != nullptr) return read_nodes(*nodes);
  if (instances != nullptr) return read_instances(parsed, *instances);
  return read_pool(parsed, nullptr);
}

Input<std::vector<simulate::TraceJob>> read_jobs(const Parsed& parsed, const Place& place,
                                                 simulate::Times times) {
  const std::string* path = parsed.find("--jobs");
  if (path == nullptr)
    return bad_words(Error::invalid("mete simulate needs --jobs")
                         .with_hint("mete simulate --help shows what is in them"));
  const Result<std::string> text = read_trace_file(*path);
  if (!text) return bad_file(text.error());
  Result<std::vector<simulate::TraceJob>> jobs =
      simulate::parse_jobs(*text, *path, place.nodes, times);
  if (!jobs) return bad_file(jobs.error());
  return std::move(*jobs);
}

Result<void> limit_nodes(const Parsed& parsed, Place& place) {
  const std::string* text = parsed.find("--where");
  if (text == nullptr) return {};
  if (place.machine || parsed.has("--ties"))
    return Error::invalid("--where is for --nodes and --instances, without --ties");
  const Result<core::Query> query = core::Query::parse(*text);
  if (!query) return query.error();
  const Result<core::cluster::Cluster> cluster = core::cluster::Cluster::make(place.nodes);
  if (!cluster) return cluster.error();
  std::vector<core::cluster::NodeSpec> nodes;
  for (std::uint32_t i = 0; i < place.nodes.size(); ++i) {
    if (!query->matches(simulate::facts_of(cluster->nodes()[i]))) continue;
    nodes.push_back(std::move(place.nodes[i]));
    place.rows.push_back(i);
  }
  place.nodes = std::move(nodes);
  if (place.nodes.empty()) return Error::infeasible("--where means none of the nodes");
  return {};
}

Result<simulate::MixFrom> parse_mix(const std::string* text) {
  if (text == nullptr || *text == "jobs") return simulate::MixFrom::kJobs;
  if (*text == "learned") return simulate::MixFrom::kLearned;
  return Error::invalid("--mix is jobs or learned, not " + base::quote(*text));
}

Result<std::uint64_t> parse_seed(const std::string* text) {
  if (text == nullptr) return std::uint64_t{0};
  const Result<std::uint64_t> number = base::parse_uint(*text);
  if (!number) return Error::invalid("--seed " + base::quote(*text) + " is no number");
  return *number;
}

Result<simulate::MoveLimit> parse_moves(const std::string* text,
                                        const std::vector<core::cluster::NodeSpec>& nodes) {
  if (text == nullptr) return simulate::MoveLimit{};
  std::int64_t cards = 0;
  for (const core::cluster::NodeSpec& node : nodes) cards += node.cards;
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
                        " is neither a number of jobs nor a part of the cards")
      .with_hint("write --max-moves 20 or --max-moves 1%");
}

}  // namespace mete::cli
