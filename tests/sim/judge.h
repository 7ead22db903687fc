// SPDX-License-Identifier: Apache-2.0
// Counts the steps and the checks, and ends the run at the first failure: with the seed, the step
// and the commit, so that it can be repeated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace mete::sim {

class Judge {
 public:
  // Prints everything that happens from step `trace` on.
  explicit Judge(std::uint64_t seed, std::uint64_t trace = UINT64_MAX)
      : seed_(seed), trace_(trace) {}

  void begin_step() { ++step_; }
  std::uint64_t seed() const { return seed_; }
  std::uint64_t step() const { return step_; }

  // One line about what happens, for debugging a failure.
  bool traces() const { return step_ >= trace_; }
  void trace(const std::string& what) const;

  // Does not return: main decides what becomes of a failure.
  [[noreturn]] void fail(const std::string& what) const;
  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  // Counts something that was checked: a simulator in which nothing happens fails.
  void saw(std::string_view what, std::uint64_t times = 1);
  const std::map<std::string, std::uint64_t, std::less<>>& seen() const { return seen_; }

 private:
  std::uint64_t seed_;
  std::uint64_t trace_;
  std::uint64_t step_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> seen_;
};

// Defined by main.cc: prints, and ends the program.
[[noreturn]] void end_with_failure(const std::string& what, std::uint64_t seed, std::uint64_t step);

}  // namespace mete::sim
