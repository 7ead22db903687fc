// SPDX-License-Identifier: Apache-2.0
// `meted --repair`, which `mete daemon repair` runs: saves the intact part of a damaged store
// (store/repair.h) and reports what is lost. Also what `meted --backup` and `--restore` share with
// it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace mete::daemon {

// "20261116T083000Z": usable in a file name.
std::string stamp(WallTime now);
// The highest job number in the names of files of the state folder: records of keepers, grants,
// logs.
std::uint64_t highest_job_in(const std::string& state_dir);
// Prints the error to stderr, as lines or as a document, and returns the exit code.
int tell_failure(const Error& error, bool json, int exit_code);

// Prints lines or one document to stdout, errors to stderr. Returns the exit code.
int run_repair(const std::string& state_dir, bool json);

}  // namespace mete::daemon
