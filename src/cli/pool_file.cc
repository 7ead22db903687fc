// SPDX-License-Identifier: Apache-2.0
// See pool_file.h. Reader goes over the YAML tree: cards: become nodes, nodes: are read one by one
// (with their instance type as the base), jobs: are requests with an optional node and cards.
// Unknown keys are errors with the nearest known key. yaml-cpp throws; no exception leaves this
// file.
#include "cli/pool_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>

#include "base/bytes.h"
#include "base/text.h"
#include "core/request/gpu.h"
#include "simulate/asks.h"

namespace mete::cli {

namespace {

using core::cluster::NodeSpec;

// The key that was probably meant: the name in other programs, or the nearest.
std::string_view meant_in_pool(const std::string& key, const std::vector<std::string_view>& keys) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kTheirs{
      {{"gpus", "gpu"},
       {"gpus", "cards"},
       {"gpu", "cards"},
       {"mem", "ram"},
       {"memory", "ram"},
       {"type", "gpu-type"},
       {"type", "instance"},
       {"labels", "attributes"}}};
  for (const auto& [theirs, ours] : kTheirs)
    if (key == theirs && std::find(keys.begin(), keys.end(), ours) != keys.end()) return ours;
  return base::nearest(key, keys);
}

class Reader {
 public:
  Reader(std::string path, const TypeTables& types) : path_(std::move(path)), types_(types) {}

  Result<PoolFile> read(const YAML::Node& root) {
    if (!root.IsMap())
      return at(root, "a pool file is a map of keys and values")
          .with_hint("write nodes: and below it - {name: a, cards: 4xT4, cpus: 48, ram: 192G}");
    if (Result<void> r = only(root, {"policy", "cards", "nodes", "jobs"}); !r) return r.error();
    if (root["policy"]) pool_.policy = root["policy"].as<std::string>();
    if (root["cards"]) {
      Result<std::vector<simulate::PoolPart>> parts = cards(root["cards"]);
      if (!parts) return parts.error();
      for (NodeSpec& node : simulate::nodes_of(*parts)) pool_.nodes.push_back(std::move(node));
    }
    if (Result<void> r = each(root["nodes"], "nodes", &Reader::read_node); !r) return r.error();
    if (pool_.nodes.empty()) return at(root, "there are neither cards: nor nodes:");
    std::set<std::string_view> names;
    for (const NodeSpec& node : pool_.nodes)
      if (!names.insert(node.name).second)
        return at(root, "there are two nodes " + base::quote(node.name));
    if (Result<void> r = each(root["jobs"], "jobs", &Reader::read_job); !r) return r.error();
    return std::move(pool_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    return path_ + ":" + std::to_string(node.Mark().line + 1) + ":" +
           std::to_string(node.Mark().column + 1);
  }
  Error at(const YAML::Node& node, const std::string& message) const {
    return Error::invalid(place(node) + ": " + message);
  }

  Result<void> only(const YAML::Node& map, const std::vector<std::string_view>& keys) const {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const std::string key = entry.first.as<std::string>();
      if (!seen.insert(key).second) return at(entry.first, base::quote(key) + " is there twice");
      bool known = false;
      for (const std::string_view each_key : keys) known = known || key == each_key;
      if (known) continue;
      const std::string_view near = meant_in_pool(key, keys);
      Error error = at(entry.first, "there is no key " + base::quote(key));
      if (near.empty()) return error;
      return std::move(error).with_hint("did you mean " + std::string(near) + "?");
    }
    return {};
  }

  Result<void> each(const YAML::Node& list, const std::string& name,
                    Result<void> (Reader::*read_one)(const YAML::Node&)) {
    if (!list) return {};
    if (!list.IsSequence()) return at(list, name + ": is a list");
    for (const YAML::Node& entry : list) {
      if (!entry.IsMap()) return at(entry, "here belongs a map of keys and values");
      if (Result<void> r = (this->*read_one)(entry); !r) return r;
    }
    return {};
  }

  Result<std::uint64_t> number(const YAML::Node& node, std::uint64_t most) const {
    const Result<std::uint64_t> value = base::parse_uint(node.as<std::string>());
    if (!value || *value > most)
      return at(node, "not a whole number up to " + std::to_string(most) + ": " +
                          base::quote(node.as<std::string>()));
    return *value;
  }

  Result<std::vector<simulate::PoolPart>> cards(const YAML::Node& node) const {
    Result<std::vector<simulate::PoolPart>> parts =
        simulate::parse_pool(node.as<std::string>(), types_.cards);
    if (parts) return parts;
    return std::move(parts).error().within(place(node));
  }

  Result<std::int32_t> cpu(const YAML::Node& node) const {
    const Result<base::Milli> value = base::parse_milli(node.as<std::string>());
    if (!value || value->whole >= static_cast<std::uint64_t>(core::cluster::kMaxCpuMilli / 1000))
      return at(node, "not a number of CPUs: " + base::quote(node.as<std::string>()));
    return static_cast<std::int32_t>(value->whole * 1000 + value->thousandths);
  }

  Result<std::int32_t> ram(const YAML::Node& node) const {
    const Result<Bytes> value = base::parse_bytes(node.as<std::string>());
    if (!value || value->count() >> 20 > static_cast<std::uint64_t>(core::cluster::kMaxRamMib))
      return at(node, "not a size: " + base::quote(node.as<std::string>())).with_hint("write 64G");
    return static_cast<std::int32_t>(value->count() >> 20);
  }

  Result<std::uint64_t> count(const YAML::Node& map, std::uint64_t most) const {
    if (!map["count"]) return std::uint64_t{1};
    return number(map["count"], most);
  }

  Result<NodeSpec> node_spec(const YAML::Node& map) const {
    NodeSpec node;
    node.cpu_milli = core::cluster::kMaxCpuMilli;
    node.ram_mib = core::cluster::kMaxRamMib;
    if (map["instance"]) {
      Result<std::vector<NodeSpec>> one =
          simulate::parse_instances(map["instance"].as<std::string>(), types_.instances);
      if (!one) return std::move(one).error().within(place(map["instance"]));
      if (one->size() != 1) return at(map["instance"], "one instance; count: says how many");
      node = std::move(one->front());
    }
    if (map["cards"]) {
      const Result<std::vector<simulate::PoolPart>> parts = cards(map["cards"]);
      if (!parts) return parts.error();
      if (parts->size() > 1)
        return at(map["cards"], "a node has cards of one type; write a node for each");
      if (parts->front().count > core::cluster::kMaxCards)
        return at(map["cards"],
                  "a node has at most " + std::to_string(core::cluster::kMaxCards) + " cards");
      node.cards = parts->front().count;
      node.card_type = parts->front().type;
      node.card_mib = parts->front().mib;
    }
    if (map["cpus"]) {
      const Result<std::int32_t> milli = cpu(map["cpus"]);
      if (!milli) return milli.error();
      node.cpu_milli = *milli;
    }
    if (map["ram"]) {
      const Result<std::int32_t> mib = ram(map["ram"]);
      if (!mib) return mib.error();
      node.ram_mib = *mib;
    }
    if (map["attributes"]) {
      if (!map["attributes"].IsMap()) return at(map["attributes"], "attributes: is a map");
      for (const auto& entry : map["attributes"])
        node.attributes[entry.first.as<std::string>()] =
            entry.second.IsNull() ? "" : entry.second.as<std::string>();
    }
    return node;
  }

  Result<void> read_node(const YAML::Node& map) {
    if (Result<void> r =
            only(map, {"name", "instance", "cards", "cpus", "ram", "count", "attributes"});
        !r)
      return r;
    Result<NodeSpec> node = node_spec(map);
    if (!node) return node.error();
    const Result<std::uint64_t> copies = count(map, kMaxPoolNodes);
    if (!copies) return copies.error();
    if (pool_.nodes.size() + *copies > kMaxPoolNodes)
      return at(map, "more than " + std::to_string(kMaxPoolNodes) + " nodes");
    const bool named = map["name"].IsDefined();
    const std::string name = named ? map["name"].as<std::string>() : "node";
    for (std::uint64_t i = 0; i < *copies; ++i) {
      node->name = named && !map["count"]
                       ? name
                       : name + "-" + std::to_string(named ? i : pool_.nodes.size());
      pool_.nodes.push_back(*node);
    }
    return {};
  }

  Result<core::cluster::Ask> ask(const YAML::Node& map) const {
    core::Request request;
    if (map["gpu"]) {
      Result<core::GpuRequest> gpu = core::parse_gpu(map["gpu"].as<std::string>());
      if (!gpu) return std::move(gpu).error().within(place(map["gpu"]));
      request.gpu = *gpu;
    }
    if (map["gpu-type"]) request.gpu_type = map["gpu-type"].as<std::string>();
    Result<core::cluster::Ask> asked = simulate::ask_of(request);
    if (!asked) return std::move(asked).error().within(place(map));
    if (map["cpus"]) {
      const Result<std::int32_t> milli = cpu(map["cpus"]);
      if (!milli) return milli.error();
      asked->cpu_milli = *milli;
    }
    if (map["ram"]) {
      const Result<std::int32_t> mib = ram(map["ram"]);
      if (!mib) return mib.error();
      asked->ram_mib = *mib;
    }
    return asked;
  }

  Result<void> read_job(const YAML::Node& map) {
    if (Result<void> r =
            only(map, {"gpu", "gpu-type", "cpus", "ram", "node", "cards", "count", "name"});
        !r)
      return r;
    PoolJob job;
    job.where = place(map);
    Result<core::cluster::Ask> asked = ask(map);
    if (!asked) return asked.error();
    job.ask = std::move(*asked);
    if (map["node"]) job.node = map["node"].as<std::string>();
    if (map["name"]) job.name = map["name"].as<std::string>();
    if (map["cards"]) {
      if (job.node.empty() || !map["cards"].IsSequence())
        return at(map["cards"], "cards: is a list of numbers, beside node:");
      for (const YAML::Node& each_card : map["cards"]) {
        const Result<std::uint64_t> card = number(each_card, core::cluster::kMaxCards - 1);
        if (!card) return card.error();
        job.cards.push_back(static_cast<std::uint32_t>(*card));
      }
    }
    const Result<std::uint64_t> copies = count(map, kMaxPoolJobs);
    if (!copies) return copies.error();
    if (pool_.jobs.size() + *copies > kMaxPoolJobs)
      return at(map, "more than " + std::to_string(kMaxPoolJobs) + " jobs");
    pool_.jobs.insert(pool_.jobs.end(), *copies, job);
    return {};
  }

  std::string path_;
  const TypeTables& types_;
  PoolFile pool_;
};

}  // namespace

Result<PoolFile> parse_pool_file(std::string_view text, const std::string& path,
                                 const TypeTables& types) {
  try {
    return Reader(path, types).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    return Error::invalid(path + ":" + std::to_string(error.mark.line + 1) + ":" +
                          std::to_string(error.mark.column + 1) + ": " + error.msg);
  } catch (const std::exception& error) {
    return Error::invalid(path + ": " + error.what());
  }
}

}  // namespace mete::cli
