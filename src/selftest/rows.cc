// SPDX-License-Identifier: Apache-2.0
// See rows.h.
#include "selftest/rows.h"

#include <cstdio>

#include "selftest/driver.h"

namespace mete::selftest {

namespace {

std::string group = "?";

// Fields are separated by tabs and rows by newlines: a field must contain neither.
std::string field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n') c = ' ';
  return text;
}

}  // namespace

void set_group(std::string_view name) { group = name; }

Check::~Check() {
  const char* verdict = failed_ ? "failed" : skipped_ ? "skipped" : "ok";
  // One write per row: the rows of several processes go to one pipe.
  const std::string line = std::string(verdict) + "\t" + field(group) + "\t" + field(promise_) +
                           "\t" + field(entry_) + "\t" + field(evidence_) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void Check::note(std::string_view evidence) {
  if (!evidence_.empty()) evidence_ += "; ";
  evidence_ += evidence;
}

bool Check::that(bool good, std::string_view evidence) {
  note(evidence);
  if (!good) failed_ = true;
  return good;
}

void Check::skip(std::string_view why) {
  skipped_ = true;
  note(why);
}

bool Check::did(CUresult result, std::string_view call) {
  if (result == CUDA_SUCCESS) return true;
  const std::string answer = std::string(call) + " answered " + describe(result);
  if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_FOUND) {
    skip("this driver does not offer it: " + answer);
    return false;
  }
  return that(false, answer);
}

bool Check::did(nvmlReturn_t result) {
  if (result == NVML_SUCCESS) return true;
  const std::string answer = "NVML answered " + std::to_string(static_cast<int>(result));
  if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND) {
    skip("this driver does not offer it: " + answer);
    return false;
  }
  return that(false, answer);
}

bool Check::equal(std::string_view what, std::uint64_t seen, std::uint64_t expected) {
  const std::string text = std::string(what) + " " + std::to_string(seen);
  return that(seen == expected,
              seen == expected ? text : text + ", expected " + std::to_string(expected));
}

bool Check::between(std::string_view what, std::uint64_t seen, std::uint64_t low,
                    std::uint64_t high) {
  const std::string text = std::string(what) + " " + std::to_string(seen);
  const bool good = seen >= low && seen <= high;
  return that(
      good,
      good ? text : text + ", expected " + std::to_string(low) + " to " + std::to_string(high));
}

}  // namespace mete::selftest
