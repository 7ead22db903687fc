// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pool file, as the words of a pool and as a list of instances: no crash; an error
// of a file names its place, and what is accepted makes a cluster.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "cli/pool_file.h"
#include "core/cluster/cluster.h"

using namespace mete;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cli::TypeTables types;
  types.cards = {{"T4", 15'360}, {"H200", 143'771}};
  types.instances = {{"g4dn.12xlarge", 4, "T4", 16'384, 48'000, 196'608}};
  if (const auto parts = simulate::parse_pool(text, types.cards)) {
    core::Pool pool;
    simulate::add_cards(pool, *parts);
    METE_ASSERT(!pool.cards.empty() && pool.cards.size() <= simulate::kMaxPoolCards);
    METE_ASSERT(core::cluster::Cluster::make(simulate::nodes_of(*parts)).ok());
  }
  if (const auto nodes = simulate::parse_instances(text, types.instances))
    METE_ASSERT(core::cluster::Cluster::make(*nodes).ok());
  (void)simulate::parse_instance_types(text, "t.csv");
  const Result<cli::PoolFile> file = cli::parse_pool_file(text, "f", types);
  if (!file) {
    METE_ASSERT(file.error().message.starts_with("f:"));
    return 0;
  }
  Result<core::cluster::Cluster> cluster = core::cluster::Cluster::make(file->nodes);
  METE_ASSERT(cluster.ok());
  for (const cli::PoolJob& job : file->jobs) METE_ASSERT(cluster->kind_of(job.ask).ok());
  return 0;
}
