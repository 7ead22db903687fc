// SPDX-License-Identifier: Apache-2.0
// Any bytes as a script with lines for mete or for Slurm: no crash, an error says what helps, and
// the words that come out are options that there are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "cli/script_options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<cli::ScriptOptions> options = cli::read_script_options(text, "f");
  if (!options) {
    METE_ASSERT(!options.error().hint.empty());
    return 0;
  }
  METE_ASSERT(text.starts_with("#!") || (options->words.empty() && !options->slurm));
  const cli::Surroundings around{"/somewhere", {}, 022, WallTime{1'763'208'000'000}};
  for (const cli::Word& word : options->words) {
    const auto specs = cli::submit_options();
    METE_ASSERT(std::any_of(specs.begin(), specs.end(), [&](const cli::OptionSpec& spec) {
      return spec.name == word.option && spec.offered();
    }));
    METE_ASSERT(word.where.starts_with("f:"));
    if (const Result<void> r = cli::check_word(word, nullptr, around); !r)
      METE_ASSERT(!r.error().hint.empty());
  }
  const cli::JobWords words{
      options->words, {"f"}, cli::Script{"f", std::string(text)}, "", nullptr};
  if (const Result<cli::PlannedJob> job = cli::make_job(words, around); !job)
    METE_ASSERT(!job.error().hint.empty());
  return 0;
}
