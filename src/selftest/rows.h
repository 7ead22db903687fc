// SPDX-License-Identifier: Apache-2.0
// The output of the self-test: one row per check, on stdout, for `mete selftest` to print. A row is
// one line of tab-separated fields: verdict, group, promise, entry point, evidence. A check that is
// begun always prints exactly one row, so nothing is left out silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "abi/cuda_api.h"
#include "abi/nvml_api.h"

namespace mete::selftest {

// The promises, as in the table.
inline constexpr std::string_view kClosed = "without a grant there is no CUDA";
inline constexpr std::string_view kRoads = "every way to the driver passes the meter";
inline constexpr std::string_view kCharged = "what is taken is charged";
inline constexpr std::string_view kBack = "what is given back is free again";
inline constexpr std::string_view kOver = "the byte past the cap is refused";
inline constexpr std::string_view kUnasked = "what the driver takes unasked is charged";
inline constexpr std::string_view kShared = "shared memory is charged once, as long as it is held";
inline constexpr std::string_view kDeath = "memory of a dead process is free at once";
inline constexpr std::string_view kHonest = "every tool sees a card of the size of the cap";

// The group of checks that this process runs, for its rows.
void set_group(std::string_view name);

class Check {
 public:
  Check(std::string_view promise, std::string_view entry) : promise_(promise), entry_(entry) {}
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;
  ~Check();  // prints the row

  // The entry point itself returned. True: go on. Not offered by this driver (500, 801) is skipped,
  // every other error is a failure.
  bool did(CUresult result) { return did(result, entry_); }
  // did() for a call that prepares the check.
  bool did(CUresult result, std::string_view call);
  bool did(nvmlReturn_t result);

  // Both numbers are in the evidence.
  bool equal(std::string_view what, std::uint64_t seen, std::uint64_t expected);
  bool between(std::string_view what, std::uint64_t seen, std::uint64_t low, std::uint64_t high);
  bool that(bool good, std::string_view evidence);
  void note(std::string_view evidence);
  void skip(std::string_view why);
  bool failed() const { return failed_; }

 private:
  std::string promise_;
  std::string entry_;
  std::string evidence_;
  bool failed_ = false;
  bool skipped_ = false;
};

}  // namespace mete::selftest
