// SPDX-License-Identifier: Apache-2.0
// The options of sbatch and srun (Slurm 22.05), turned into our own: words in, words out. Every
// option that they know is known here, and is one of three: it means something here; it has no
// meaning here and is named in a warning; or the job would be another one without it, and it is
// refused. Errors and warnings call an option as it was written: "#SBATCH --mem", "srun --mem".
#pragma once

#include <span>
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
  std::string where;                  // "train.sh:3"; "": the command line
  std::string_view mark = "#SBATCH";  // "srun": the command line of that program

  // "#SBATCH --gres".
  std::string written() const { return std::string(mark) + " --" + std::string(option->name); }
};

// One kind of command line: the programs of Slurm have different options of one name.
struct SlurmProgram {
  std::string_view mark;  // "sbatch": its name, for errors; "#SBATCH" for lines of scripts
  std::span<const SlurmOption> options;
};
extern const SlurmProgram kSbatchLines;
extern const SlurmProgram kSbatch;
extern const SlurmProgram kSrun;

class SlurmOptions {
 public:
  // The words of one line of a script.
  Result<void> add(const std::vector<std::string>& args, const std::string& where);
  // The words of a command line up to the first that is no option, or up to "--"; the rest of them.
  Result<std::vector<std::string>> take(const SlurmProgram& program,
                                        const std::vector<std::string>& args);
  void add(const SlurmGiven& given) { given_.push_back(given); }
  // All of them, over ours.
  void add(const SlurmOptions& over);

  // nullptr: it was not given.
  const SlurmGiven* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::string value_of(std::string_view name) const;  // "": it was not given
  void remove(std::string_view name);
  // What all of them come to; errors say where.
  Result<std::vector<Word>> words(std::vector<std::string>& warnings) const;

 private:
  Result<std::size_t> take_one(const SlurmProgram& program, const std::vector<std::string>& args,
                               std::size_t at, const std::string& where);
  std::vector<SlurmGiven> given_;
};

// How many tasks these options ask for, of a job with `cards` cards; 1 if they say nothing.
Result<std::uint64_t> slurm_tasks(const SlurmOptions& options, std::uint64_t cards);

}  // namespace mete::cli
