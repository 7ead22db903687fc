// SPDX-License-Identifier: Apache-2.0
// How long similar jobs have run: learned from their ends, by user and name. A name that is only
// the program's ("python", "sleep") says little: such jobs are also learned by their command up to
// its first word that is not an option ("python -u train.py", "sleep 900"). Bounded: the last 32
// durations of each of the 4,000 kinds of jobs that ended last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/job/job.h"

namespace mete::core {

class Estimates {
 public:
  static constexpr std::size_t kDurations = 32;
  static constexpr std::size_t kKinds = 4'000;

  void learn(const JobSpec& spec, std::uint64_t ran_ms);

  // For a job that has run for `elapsed_s`: the time in seconds, from its start, by which `pct`
  // percent of the jobs that ran longer than that had ended. nullopt: fewer than `least` such jobs
  // are known.
  std::optional<std::uint64_t> ends_by(const std::string& user, const std::string& name,
                                       std::uint64_t elapsed_s, unsigned pct,
                                       std::size_t least = 5) const;
  // ends_by() for jobs of this spec's name and command.
  std::optional<std::uint64_t> ends_by(const JobSpec& spec, std::uint64_t elapsed_s, unsigned pct,
                                       std::size_t least = 5) const;

  // The last durations of jobs of this spec's name and command, in seconds, oldest first; empty:
  // none is known.
  std::span<const std::uint32_t> durations(const JobSpec& spec) const;

  struct Entry {
    std::string key;
    std::vector<std::uint32_t> durations_s;  // oldest first
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries() const;  // latest last
  void set(std::vector<Entry> entries);
  bool operator==(const Estimates& other) const { return entries() == other.entries(); }

 private:
  void learn(const std::string& key, std::uint32_t seconds);
  std::optional<std::uint64_t> ends_of_kind(const std::string& key, std::uint64_t elapsed_s,
                                            unsigned pct, std::size_t least) const;

  struct Kind {
    std::uint64_t turn = 0;
    std::vector<std::uint32_t> durations_s;
  };
  std::map<std::string, Kind> kinds_;
  std::map<std::uint64_t, std::string> by_turn_;
  std::uint64_t turn_ = 0;
};

}  // namespace mete::core
