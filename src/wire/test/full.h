// SPDX-License-Identifier: Apache-2.0
// For the tests of wire: values in which no field has its default, so that a field that is not
// written or not read shows.
#pragma once

#include <string>

#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"
#include "core/sweep/sweep.h"
#include "wire/job.h"

namespace mete::wire {

inline constexpr const char* kOddText = "a \"b\"\\\n\t\r\x01 \xc3\xa9 \xf0\x9f\x9a\x80";
// Not UTF-8, as file names may be.
inline constexpr const char* kOddBytes = "caf\xe9 \xff/\xf0\x9f";
inline constexpr Bytes kMost = Bytes::from_bytes(UINT64_MAX);

core::JobSpec full_spec();  // of a `mete run`, without `detached`
core::Detached full_detached();
core::JobSpec full_detached_spec();
// As the log has the job of a trial: with its key, which no request has in the job.
core::JobSpec full_trial_spec();
core::Exit full_exit();  // of a trial
// As exits were before sweeps.
core::Exit exit_without_metrics();
core::Job full_job();
core::Quota full_quota();
core::Reservation full_reservation();
// With every field and every kind of parameter.
core::sweep::Plan full_sweep_plan();
// With a trial in each state.
core::sweep::Sweep::Parts full_sweep(std::uint64_t number);
// With every field, though no wait of the daemon has all of them.
core::Wait full_wait();
JobView full_view();

core::Job plain_job();

// The text with the first `what` replaced; `what` must be in it.
std::string replaced(std::string text, const std::string& what, const std::string& with);

}  // namespace mete::wire
