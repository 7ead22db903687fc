// SPDX-License-Identifier: Apache-2.0
// Why a job waits, for people: its place and when it will start, card by card what is missing and
// who holds it, and what would start it now; the same of one that nobody has submitted. Pure: a
// document in, lines out.
#pragma once

#include <string>

#include "wire/explain.h"

namespace mete::cli {

std::string explain_text(const wire::ExplainDocument& document);
std::string dry_run_text(const wire::DryRunDocument& document);

}  // namespace mete::cli
