// SPDX-License-Identifier: Apache-2.0
// The options that stand in a script: "#METE" lines with the words of `mete submit`, and "#SBATCH"
// lines with those of Slurm, in its comments before the first command. Text in, words out, each
// with its line. What of Slurm has no meaning here is named in a warning; what would mean something
// else if it were left out is an error. Only the text is looked at, nothing is run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/slurm_options.h"
#include "cli/submit_job.h"

namespace mete::cli {

inline constexpr std::size_t kMaxScript = 256 << 10;

struct ScriptOptions {
  std::vector<Word> words;            // #METE wins over #SBATCH
  std::vector<std::string> warnings;  // a line each
  bool slurm = false;                 // there are #SBATCH lines
};

// `name` is for the places in errors: "train.sh:3: ...". `over` are options of sbatch's command
// line, which replace those of #SBATCH lines. invalid, unsupported: a line is wrong, or there are
// lines and no shebang.
Result<ScriptOptions> read_script_options(std::string_view text, const std::string& name,
                                          const SlurmOptions& over = {});

// A line as a shell splits it: blanks, quotes, backslashes, a comment at the end. No variables.
Result<std::vector<std::string>> split_words(std::string_view line);

}  // namespace mete::cli
