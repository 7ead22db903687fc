// SPDX-License-Identifier: Apache-2.0
// What people are told of a job, in the same words by every verb. Pure: values in, text out.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "core/job/job.h"
#include "wire/job.h"
#include "wire/wait_text.h"

namespace mete::wire {

// "failed 3", "signal 9", "gpu-oom 1", "ok": the outcome with its code or signal.
std::string outcome_text(core::Outcome outcome, const std::optional<core::Exit>& exit);
// "ended failed 3", "running", "pending".
std::string state_text(const core::Job& job);

// "2x8G": what is asked for in this attempt, as it was written.
std::string request_text(const core::Job& job);
// "2x8G → 2x 8 GiB"; without a grant what is asked for, and what that comes to: "8GB = 7.45 GiB".
std::string gpu_text(const core::Job& job);
// "0,3"
std::string cards_text(const core::Job& job);
// On all its cards; "" when a figure is missing.
std::string used_text(const wire::JobView& view);

// Of a parked job, where its memory is: "7 GiB in host memory, 580 MiB still on card 0, for job
// 14";
// "": it is not away.
std::string park_text(const core::Job& job);
// "5 GiB in host memory, 2 GiB on disk"
std::string kept_text(Bytes moved, Bytes on_disk);
// "resources: 8 GiB on one card; …" of a pending job; of a parked one where its memory is, and what
// it waits for; else "".
std::string reason_text(const wire::JobView& view, WallTime now);
// What a job waits for, where that is read on its own: a held job says what lets it start.
std::string waits_for(const core::Wait& wait, WallTime now, Cards cards = Cards::kNamed);
// "14:05, 80% sure by 14:30"
std::string forecast_text(const core::Forecast& forecast, WallTime now);

// One sentence: "job 12 waits: resources: …", "job 12 runs since 14:05", "job 12 has ended: ok at
// 14:05".
std::string sentence(const wire::JobView& view, WallTime now);

// What `mete wait` ends with for an ended job: the program's own code; 128+N after signal N; 124
// after a time limit or a deadline; 143 (128+TERM) when it was cancelled and has no failing code of
// its own; 125 when it was lost, refused by a dependency, or could not be started and nobody knows
// why. Never 0 unless the outcome is ok.
int exit_code_of_job(const core::Job& job);

}  // namespace mete::wire
