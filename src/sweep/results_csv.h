// SPDX-License-Identifier: Apache-2.0
// The results of a sweep as comma-separated values (RFC 4180, but lines end with \n alone): one
// line for each trial that is over, in the order of their numbers.
//
//   n,state,lr,bs,val_loss,step,peak_bytes,started_at,ended_at,seconds,job,why
//
// The columns between `state` and `step` are the parameters of the space, then the metrics. Values
// are as the program got them, also those that a spreadsheet would take for a formula. A parameter
// that is not in use and a metric that was not reported are empty, an empty text is "", a metric
// that is no number is NaN. Times are RFC 3339.
#pragma once

#include <string>
#include <vector>

#include "wire/sweep.h"

namespace mete::sweep {

// `metrics`: the columns; names of parameters and of other columns get a suffix ("lr_metric"), and
// so do parameters with the name of another column ("step_param"). Ends with \n, as a row does.
std::string csv_header(const std::vector<std::string>& parameters,
                       const std::vector<std::string>& metrics);
std::string csv_row(const wire::SweepDocument::Trial& trial,
                    const std::vector<std::string>& parameters,
                    const std::vector<std::string>& metrics);
// All metrics that any trial has, in the order of their first appearance.
std::vector<std::string> metrics_of(const wire::SweepDocument& sweep);
// Header and all rows.
std::string to_csv(const wire::SweepDocument& sweep);

}  // namespace mete::sweep
