// SPDX-License-Identifier: Apache-2.0
// Why a job waits, as text: its place, when it will start, what is missing on each card, who holds
// it, and what would start the job now. A dry run uses it for a job that was not submitted. Pure: a
// document in, lines out.
#pragma once

#include <string>

#include "wire/explain.h"

namespace mete::cli {

std::string explain_text(const wire::ExplainDocument& document);
std::string dry_run_text(const wire::DryRunDocument& document);

}  // namespace mete::cli
