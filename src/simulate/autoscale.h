// SPDX-License-Identifier: Apache-2.0
// The autoscaling of a service over a recorded load: what core/service/autoscale.h decides at each
// tick.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/service/autoscale.h"

namespace mete::simulate {

// Requests in flight in each second from 0 on: the columns t_s and in_flight. invalid: a second is
// missing or there twice.
Result<std::vector<double>> parse_in_flight(std::string_view text, const std::string& path);

std::vector<core::service::Autoscaler::Tick> simulate_autoscaling(
    const core::service::Autoscaling& rules, const std::vector<double>& in_flight);

}  // namespace mete::simulate
