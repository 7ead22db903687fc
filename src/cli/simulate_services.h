// SPDX-License-Identifier: Apache-2.0
// `mete simulate --service` (how many replicas autoscaling wants under a recorded load) and
// `mete simulate --models` (who waits for models of which not all fit on a card).
#pragma once

#include "cli/options.h"
#include "cli/output.h"

namespace mete::cli {

int simulate_service(const Parsed& parsed, const Output& output);
int simulate_models(const Parsed& parsed, const Output& output);

}  // namespace mete::cli
