// SPDX-License-Identifier: Apache-2.0
// See type_tables.h.
#include "cli/type_tables.h"

#include <algorithm>

#include "base/file.h"
#include "cli/shipped.h"

namespace mete::cli {

namespace {

Result<std::string> read_shipped(const std::string& name) {
  const Result<std::string> path = shipped_path(name);
  if (!path) return path.error();
  return base::read_all(*path);
}

}  // namespace

Result<TypeTables> read_type_tables(const std::string* own) {
  TypeTables tables;
  if (own != nullptr) {
    const Result<std::string> text = base::read_all(*own);
    if (!text) return text.error();
    Result<std::vector<simulate::InstanceType>> types = simulate::parse_instance_types(*text, *own);
    if (!types) return types.error();
    tables.instances = std::move(*types);
  }
  const Result<std::string> instances = read_shipped("instance-types.csv");
  if (!instances) return instances.error();
  Result<std::vector<simulate::InstanceType>> ours =
      simulate::parse_instance_types(*instances, "instance-types.csv");
  if (!ours) return ours.error();
  for (simulate::InstanceType& type : *ours)
    if (std::none_of(tables.instances.begin(), tables.instances.end(),
                     [&](const simulate::InstanceType& known) { return known.name == type.name; }))
      tables.instances.push_back(std::move(type));
  const Result<std::string> cards = read_shipped("card-types.csv");
  if (!cards) return cards.error();
  Result<std::vector<simulate::CardType>> types =
      simulate::parse_card_types(*cards, "card-types.csv");
  if (!types) return types.error();
  tables.cards = std::move(*types);
  return tables;
}

}  // namespace mete::cli
