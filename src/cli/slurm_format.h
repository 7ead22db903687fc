// SPDX-License-Identifier: Apache-2.0
// How squeue, sinfo and scontrol write: fields by letter with a width, times as Slurm has them,
// names of states. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/job/job.h"

namespace mete::cli {

// "%.18i %.9P": each field is '%', '.' to align it to the right, a width to which it is filled and
// cut, and a letter. `field` has its text; nullopt: there is no such letter. invalid: a letter that
// is not known.
Result<std::string> slurm_line(std::string_view format,
                               const std::function<std::optional<std::string>(char letter)>& field);

// "1:41", "2:03:00", "1-02:03:00".
std::string slurm_span(std::int64_t seconds);
// "UNLIMITED" without a limit.
std::string slurm_limit(std::optional<std::uint64_t> seconds);
// "2026-11-15T14:05:00", in local time; "N/A" if it is not known.
std::string slurm_time(std::optional<WallTime> time);

struct SlurmState {
  std::string_view shortly;  // "PD"
  std::string_view name;     // "PENDING"
};
SlurmState slurm_state(const core::Job& job);
// "Resources", "(Priority)" without its parentheses.
std::string slurm_reason(core::Reason reason);

// "12", "12_3", and the number that SLURM_JOB_ID has in an element of an array, 120000003.
Result<core::JobId> parse_slurm_id(std::string_view text);

// "node[1-3],x" as "node1 node2 node3 x", in lines: `scontrol show hostnames`.
Result<std::string> slurm_hosts(std::string_view list);

}  // namespace mete::cli
