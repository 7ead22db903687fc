// SPDX-License-Identifier: Apache-2.0
// What `mete sweep` is asked for, as a value: words and files in, the request to the daemon out.
// Reads the file of the space; changes nothing and asks no daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "cli/submit_job.h"
#include "cli/sweep_space.h"
#include "wire/sweep.h"

namespace mete::cli {

struct SweepPlan {
  wire::SweepRequest request;      // without a key; plan.name may get a number
  bool named = false;              // by --name: the name is not changed
  bool seed_drawn = false;         // no option or file has a seed
  std::vector<std::string> notes;  // for the user, a line each
};

class SweepPlanner {
 public:
  // `random`: a seed where none is given.
  SweepPlanner(const Parsed& parsed, Surroundings around, std::uint64_t random)
      : parsed_(parsed), around_(std::move(around)), random_(random), reader_(parsed) {}

  Result<SweepPlan> plan();
  // After an error: of a file (65) or of the command line.
  int exit_code(const Error& error) const;

 private:
  Result<void> check_words() const;
  Result<void> add_sampling(const sweep::SpaceFile& file);
  Result<void> add_trials(const std::optional<std::uint64_t>& of_file);
  Result<void> add_times();
  Result<void> add_metrics(const sweep::SpaceFile& file);
  Result<void> add_rules();
  Result<void> add_limits();
  Result<void> add_job();
  Result<std::optional<std::uint64_t>> number(std::string_view option, std::uint64_t least) const;
  void add_keep_note();
  void add_notes();

  const Parsed& parsed_;
  Surroundings around_;
  std::uint64_t random_;
  SpaceReader reader_;
  bool in_file_ = false;  // what is being looked at
  SweepPlan plan_;
};

// Names of sweeps: letters, digits, '.', '_' and '-', a letter or digit first. From the command:
// "train" for `./train.sh`, and for `python -u train.py`.
std::string name_for(const std::vector<std::string>& command);
// The name, or with the first number that no other sweep has: "train-2".
std::string free_name(const std::string& name, const std::vector<std::string>& taken);

// The first trials of the plan, as far as they do not depend on results.
std::vector<core::sweep::Point> first_points(const core::sweep::Plan& plan, std::size_t most);

}  // namespace mete::cli
