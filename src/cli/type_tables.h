// SPDX-License-Identifier: Apache-2.0
// The tables of card and instance types that come with mete, found relative to the program
// (share/mete), and the pools that verbs describe with them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "simulate/pool.h"

namespace mete::cli {

struct TypeTables {
  std::vector<simulate::CardType> cards;
  std::vector<simulate::InstanceType> instances;
};

// --types FILE: the user's own instance types, which take precedence over ours.
inline constexpr OptionSpec kTypesOption{
    "--types", "FILE",
    "read more instance types from a CSV file with the columns name, gpus, gpu_type, "
    "gpu_memory_gib_total, vcpus, memory_gib"};

// `own`: the file of --types, or nullptr. corrupt or invalid: a file is unusable.
Result<TypeTables> read_type_tables(const std::string* own);

}  // namespace mete::cli
