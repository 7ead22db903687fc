// SPDX-License-Identifier: Apache-2.0
// How many bytes of the daemon's state a set of jobs takes: each job's texts and its contents. What
// several jobs share (an environment, the spec of an array) is stored once and counted once.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/job/job.h"

namespace mete::core {

// Per job, in addition to its texts: its rows and indexes.
inline constexpr std::uint64_t kJobBytes = 512;

// The texts of a spec, without contents and groups.
std::uint64_t text_bytes(const JobSpec& spec);

class Account {
 public:
  void hold(const Job& job);
  // The job must be held.
  void drop(const Job& job);
  std::uint64_t bytes() const { return bytes_; }
  // The bytes that `jobs` more jobs of this spec would add. `number`: their array, if part of it is
  // held.
  std::uint64_t more_by(const JobSpec& spec, std::uint64_t jobs, std::uint64_t number = 0) const;

 private:
  struct Shared {
    std::uint64_t holders = 0;
    std::uint64_t bytes = 0;
  };
  template <typename Key>
  void hold(std::map<Key, Shared>& shared, const Key& key, std::uint64_t bytes);
  template <typename Key>
  void drop(std::map<Key, Shared>& shared, const Key& key);

  std::uint64_t bytes_ = 0;
  std::map<std::string, Shared> contents_;  // by hash
  std::map<std::uint64_t, Shared> arrays_;  // specs, by number
};

}  // namespace mete::core
