// SPDX-License-Identifier: Apache-2.0
// See pool.h. Both notations are lists of COUNTxNAME; a name is looked up in its table, and an
// unknown one is answered with the nearest name. Cards become positions in a core::Pool or nodes of
// at most sixteen cards, instances become one node each.
#include "simulate/pool.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "simulate/csv.h"

namespace mete::simulate {

using core::cluster::NodeSpec;

namespace {

constexpr std::int64_t kMibOfGib = 1024;
constexpr std::uint64_t kMostGib = 1'000'000;

// "61", "30.5": in MiB.
Result<std::int64_t> gib(const Csv& csv, std::size_t column) {
  const Result<base::Milli> value = base::parse_milli(base::trim(csv.field(column)));
  if (!value || value->whole > kMostGib)
    return csv.error("not a number of GiB: " + base::quote(csv.field(column)));
  return static_cast<std::int64_t>(value->whole) * kMibOfGib +
         static_cast<std::int64_t>(value->thousandths) * kMibOfGib / 1000;
}

// "4xNAME" or "NAME"; the number comes first.
struct Counted {
  std::uint64_t count = 1;
  std::string_view name;
};
Result<Counted> parse_counted(std::string_view word, std::uint64_t most) {
  word = base::trim(word);
  const std::size_t x = word.find('x');
  const std::string_view digits = word.substr(0, x);
  Counted counted{1, word};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (x != std::string_view::npos && !digits.empty() &&
      std::all_of(digits.begin(), digits.end(), is_digit)) {
    const Result<std::uint64_t> count = base::parse_uint(digits);
    if (!count || *count == 0 || *count > most)
      return Error::invalid("in " + base::quote(word) + ": there can be 1 to " +
                            std::to_string(most));
    counted = {*count, word.substr(x + 1)};
  }
  if (counted.name.empty()) return Error::invalid("a type is missing in " + base::quote(word));
  return counted;
}

template <typename Type>
const Type* find(std::string_view name, const std::vector<Type>& types) {
  for (const Type& type : types)
    if (type.name == name) return &type;
  return nullptr;
}

template <typename Type>
Error no_such(std::string_view what, std::string_view name, const std::vector<Type>& types) {
  std::vector<std::string_view> names;
  for (const Type& type : types) names.push_back(type.name);
  const std::string_view near = base::nearest(name, names);
  Error error = Error::invalid("there is no " + std::string(what) + " " + base::quote(name));
  if (near.empty()) return error;
  return std::move(error).with_hint("did you mean " + std::string(near) + "?");
}

}  // namespace

Result<std::vector<CardType>> parse_card_types(std::string_view text, const std::string& path) {
  Result<Csv> csv = Csv::open(text, path);
  if (!csv) return csv.error();
  const Result<std::size_t> name = csv->column("name");
  if (!name) return name.error();
  const Result<std::size_t> memory = csv->column("memory_mib");
  if (!memory) return memory.error();
  std::vector<CardType> types;
  for (;;) {
    const Result<bool> more = csv->next();
    if (!more) return more.error();
    if (!*more) return types;
    const Result<std::int64_t> mib = csv->number(*memory, core::cluster::kMaxCardMib);
    if (!mib) return mib.error();
    types.push_back({csv->field(*name), *mib});
  }
}

Result<std::vector<InstanceType>> parse_instance_types(std::string_view text,
                                                       const std::string& path) {
  Result<Csv> csv = Csv::open(text, path);
  if (!csv) return csv.error();
  std::size_t at[6];
  constexpr std::string_view kNames[] = {"name",  "gpus",      "gpu_type", "gpu_memory_gib_total",
                                         "vcpus", "memory_gib"};
  for (std::size_t i = 0; i < 6; ++i) {
    const Result<std::size_t> column = csv->column(kNames[i]);
    if (!column) return column.error();
    at[i] = *column;
  }
  std::vector<InstanceType> types;
  for (;;) {
    const Result<bool> more = csv->next();
    if (!more) return more.error();
    if (!*more) return types;
    InstanceType type;
    type.name = csv->field(at[0]);
    const Result<std::int64_t> cards = csv->number(at[1], core::cluster::kMaxCards);
    if (!cards) return cards.error();
    type.cards = static_cast<std::uint32_t>(*cards);
    type.card_type = std::string(base::trim(csv->field(at[2])));
    const Result<std::int64_t> memory = gib(*csv, at[3]);
    if (!memory) return memory.error();
    if (*cards > 0) type.card_mib = *memory / *cards;
    const Result<std::int64_t> cpus = csv->number(at[4], core::cluster::kMaxCpuMilli / 1000);
    if (!cpus) return cpus.error();
    type.cpu_milli = static_cast<std::int32_t>(*cpus * 1000);
    const Result<std::int64_t> ram = gib(*csv, at[5]);
    if (!ram) return ram.error();
    if (*ram > core::cluster::kMaxRamMib) return csv->error("memory_gib is out of range");
    type.ram_mib = static_cast<std::int32_t>(*ram);
    if (find(type.name, types) != nullptr)
      return csv->error("there are two types " + base::quote(type.name));
    types.push_back(std::move(type));
  }
}

Result<std::vector<PoolPart>> parse_pool(std::string_view text,
                                         const std::vector<CardType>& types) {
  std::vector<PoolPart> parts;
  std::uint64_t cards = 0;
  for (const std::string_view word : base::split(text, '+')) {
    const Result<Counted> counted = parse_counted(word, kMaxPoolCards);
    if (!counted) return counted.error();
    const std::size_t colon = counted->name.find(':');
    PoolPart part{static_cast<std::uint32_t>(counted->count),
                  std::string(counted->name.substr(0, colon)), 0};
    if (colon != std::string_view::npos) {
      const Result<Bytes> size = base::parse_bytes(counted->name.substr(colon + 1));
      if (!size || size->count() >> 20 == 0 ||
          size->count() >> 20 > static_cast<std::uint64_t>(core::cluster::kMaxCardMib))
        return Error::invalid("the memory of a card in " + base::quote(word) + " is no size")
            .with_hint("write 2x" + part.type + ":24G");
      part.mib = static_cast<std::int64_t>(size->count() >> 20);
    } else if (const CardType* type = find(part.type, types); type != nullptr) {
      part.mib = type->mib;
    } else {
      Error error = no_such("card type", part.type, types);
      if (error.hint.empty()) error.hint = "say how much memory it has: " + part.type + ":24G";
      return error;
    }
    cards += part.count;
    if (part.type.empty() || cards > kMaxPoolCards)
      return Error::invalid("a pool has 1 to " + std::to_string(kMaxPoolCards) + " cards");
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string to_string(const std::vector<PoolPart>& parts) {
  std::string text;
  for (const PoolPart& part : parts)
    text += (text.empty() ? "" : "+") + std::to_string(part.count) + "x" + part.type;
  return text;
}

void add_cards(core::Pool& pool, const std::vector<PoolPart>& parts) {
  std::uint32_t index = 0;
  for (const core::PoolCard& card : pool.cards) index = std::max(index, card.card.index + 1);
  for (const PoolPart& part : parts)
    for (std::uint32_t i = 0; i < part.count; ++i, ++index) {
      core::PoolCard card;
      card.card = {index, "GPU-simulated-" + std::to_string(index), part.type,
                   Bytes::from_mib(static_cast<std::uint64_t>(part.mib))};
      pool.cards.push_back(std::move(card));
    }
}

std::vector<NodeSpec> nodes_of(const std::vector<PoolPart>& parts) {
  std::vector<NodeSpec> nodes;
  for (const PoolPart& part : parts)
    for (std::uint32_t left = part.count; left > 0;) {
      NodeSpec node;
      node.cards = std::min<std::uint32_t>(left, core::cluster::kMaxCards);
      node.name = part.type + "-" + std::to_string(nodes.size());
      node.cpu_milli = core::cluster::kMaxCpuMilli;
      node.ram_mib = core::cluster::kMaxRamMib;
      node.card_type = part.type;
      node.card_mib = part.mib;
      left -= node.cards;
      nodes.push_back(std::move(node));
    }
  return nodes;
}

NodeSpec node_of(const InstanceType& type, std::string name) {
  NodeSpec node;
  node.name = std::move(name);
  node.cpu_milli = type.cpu_milli;
  node.ram_mib = type.ram_mib;
  node.cards = type.cards;
  node.card_type = type.card_type;
  node.card_mib = type.card_mib;
  node.attributes["ecs.instance-type"] = type.name;
  return node;
}

Result<std::vector<NodeSpec>> parse_instances(std::string_view text,
                                              const std::vector<InstanceType>& types) {
  std::string joined(text);
  std::replace(joined.begin(), joined.end(), '+', ',');
  std::vector<NodeSpec> nodes;
  for (const std::string_view word : base::split(joined, ',')) {
    const Result<Counted> counted = parse_counted(word, kMaxInstances);
    if (!counted) return counted.error();
    const InstanceType* type = find(counted->name, types);
    if (type == nullptr) return no_such("instance type", counted->name, types);
    if (nodes.size() + counted->count > kMaxInstances)
      return Error::invalid("more than " + std::to_string(kMaxInstances) + " instances");
    for (std::uint64_t i = 0; i < counted->count; ++i)
      nodes.push_back(node_of(*type, type->name + "-" + std::to_string(nodes.size())));
  }
  return nodes;
}

}  // namespace mete::simulate
