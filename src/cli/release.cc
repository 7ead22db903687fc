// SPDX-License-Identifier: Apache-2.0
// `mete release ID...`: lets jobs start again that were held.
#include <array>

#include "cli/job_change.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kReleaseOptions{kOutputOption};

int run_release(const Parsed& parsed, const Output& output) {
  return change_jobs({"release", "POST", "/release", "", "released"}, parsed.rest, output);
}

}  // namespace

const Verb kReleaseVerb{
    "release",
    "let held jobs start",
    "mete release ID... [-o json]",
    "mete release 12",
    "Releases jobs that were held by mete hold or submitted with --hold.",
    kReleaseOptions,
    Rest::kWords,
    run_release,
};

}  // namespace mete::cli
