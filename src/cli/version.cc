// SPDX-License-Identifier: Apache-2.0
// `mete version`: the version of mete, and of the grant files that it makes.
#include <array>

#include "abi/grant.h"
#include "cli/json.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array<OptionSpec, 1> kVersionOptions{kOutputOption};

int run_version(const Parsed&, const Output& output) {
  const std::string grant_abi =
      std::to_string(abi::kGrantMajor) + "." + std::to_string(abi::kGrantMinor);
  if (output.json()) {
    output.data(JsonObject()
                    .text("schema", "mete.version/1")
                    .text("at", timestamp())
                    .text("version", METE_VERSION)
                    .text("grant_abi", grant_abi)
                    .str());
  } else {
    output.data("mete " METE_VERSION " (grant files " + grant_abi + ")");
  }
  return kExitOk;
}

}  // namespace

const Verb kVersionVerb{
    "version", "print the version", "mete version [-o json]", "mete version -o json",
    "",        kVersionOptions,     Rest::kNothing,           run_version,
};

}  // namespace mete::cli
