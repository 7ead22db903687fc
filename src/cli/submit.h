// SPDX-License-Identifier: Apache-2.0
// `mete submit` for other verbs: a plan in, its exit code out.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cli/output.h"
#include "cli/submit_plan.h"
#include "wire/submit.h"

namespace mete::cli {

// What is printed of a job that is on disk.
using SubmittedText = std::function<std::string(const wire::SubmitReply&)>;

// A key that no other request has: 128 random bits as 32 hexadecimal digits.
std::string random_key();

// Jobs in one request; the daemon's limit, in bytes.
inline constexpr std::size_t kMaxRequest = 1 << 20;

// `quiet`: without the note that an answer may have.
int submit_plan(SubmitPlan plan, const Output& output, const SubmittedText& text,
                bool quiet = false);

}  // namespace mete::cli
