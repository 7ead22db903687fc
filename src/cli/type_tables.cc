// SPDX-License-Identifier: Apache-2.0
// See type_tables.h.
#include "cli/type_tables.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace mete::cli {

namespace {

Result<std::string> read_shipped(const std::string& name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error::io("cannot find out where this program is");
  const std::string prefix = base::parent_path(
      base::parent_path(std::string_view(self, static_cast<std::size_t>(length))));
  std::string looked;
  for (const char* folder : {METE_INSTALL_DATADIR "/mete", "share/mete"}) {
    const std::string path = base::join_path(base::join_path(prefix, folder), name);
    Result<std::string> text = base::read_all(path);
    if (text || text.error().code != ErrorCode::kNotFound) return text;
    looked = path;
  }
  return Error::not_found(name + " is missing")
      .with_evidence("looked for " + looked)
      .with_hint("build or install all of mete: cmake --build --preset release");
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
