// SPDX-License-Identifier: Apache-2.0
// The options of sbatch (Slurm 22.05), turned into our own: words in, words out. Every option that
// sbatch knows is known here, and is one of three: it means something here; it has no meaning here
// and is named in a warning; or the job would be another one without it, and it is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/submit_job.h"

namespace mete::cli {

struct SlurmOption {
  enum class Takes { kNothing, kValue, kMaybe };
  enum class Here {
    kMeant,
    kNothing,    // named, and left out
    kMustBeOne,  // of what a job here has one of
    kRefused,
  };
  std::string_view name;  // "gres"
  char letter = 0;
  Takes takes = Takes::kValue;
  Here here = Here::kNothing;
  std::string_view instead = {};  // what to do about it when it is refused
};

// As it was given, the last time: in Slurm that holds.
struct SlurmGiven {
  const SlurmOption* option = nullptr;
  std::string value;
  std::string where;
};

class SlurmOptions {
 public:
  // The words of one line.
  Result<void> add(const std::vector<std::string>& args, const std::string& where);
  // What all of them come to; errors say where.
  Result<std::vector<Word>> words(std::vector<std::string>& warnings) const;

 private:
  std::vector<SlurmGiven> given_;
};

}  // namespace mete::cli
