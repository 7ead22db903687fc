// SPDX-License-Identifier: Apache-2.0
// What the command line adds to the document of a sweep: values as they were written, the
// importance of the parameters, and the command of a trial. Pure.
#pragma once

#include <optional>
#include <vector>

#include "core/sweep/space.h"
#include "wire/sweep.h"

namespace mete::cli {

// JSON has numbers, not their texts: 1e-3 of a list arrives as 0.001. Puts the parameters of each
// trial into the order of the space, and gives listed values the text that reached the program.
void settle_values(wire::SweepDocument& sweep);

// The space that the document describes; nullopt: it describes none.
std::optional<core::sweep::Space> space_of(const wire::SweepDocument& sweep);

// Fills in `importance`, from the trials that ended with a finite metric.
void add_importance(wire::SweepDocument& sweep);

const wire::SweepDocument::Trial* find_trial(const wire::SweepDocument& sweep, std::uint64_t n);

}  // namespace mete::cli
