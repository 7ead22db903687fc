// SPDX-License-Identifier: Apache-2.0
// Texts about a job for users, equal in every verb. Pure: values in, text out.
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

// "2x8G": the request of this attempt, as it was written.
std::string request_text(const core::Job& job);
// "2x8G → 2x 8 GiB"; without a grant the request and its size: "8GB = 7.45 GiB".
std::string gpu_text(const core::Job& job);
// "0,3"
std::string cards_text(const core::Job& job);
// On all its cards; "" if a figure is missing.
std::string used_text(const wire::JobView& view);

// Where the memory of a parked job is: "7 GiB in host memory, 580 MiB still on card 0, for job 14";
// "": the job is not parked.
std::string park_text(const core::Job& job);
// "5 GiB in host memory, 2 GiB on disk"
std::string kept_text(Bytes moved, Bytes on_disk);
// "resources: 8 GiB on one card; …" for a pending job; for a parked one where its memory is, and
// what it waits for; otherwise "".
std::string reason_text(const wire::JobView& view, WallTime now);
// The reason in a few words, for a cell of a table: the forecast of the start, then what the job
// waits for ("~14:20, 2 ahead", "held", "after 12"); for a parked job "for job 14"; for a running
// job what is remarkable about it. "": nothing. `place` is that of the job in the queue.
std::string brief_reason(const wire::JobView& view, const std::optional<std::uint64_t>& place,
                         WallTime now);
// What a job waits for, as a text of its own: a held job says what lets it start.
std::string waits_for(const core::Wait& wait, WallTime now, Cards cards = Cards::kNamed);
// "2 jobs ahead, starts about 14:20": where a waiting job is in the queue; "": not known.
std::string queue_text(const wire::JobView& view, WallTime now);
// "14:05, 80% sure by 14:30"
std::string forecast_text(const core::Forecast& forecast, WallTime now);

// One sentence: "job 12 waits: resources: …", "job 12 runs since 14:05", "job 12 has ended: ok at
// 14:05".
std::string sentence(const wire::JobView& view, WallTime now);

// The exit code of `mete wait` for an ended job: the program's own code; 128+N after signal N; 124
// after a time limit or a deadline; 143 (128+TERM) if it was cancelled and has no failing code of
// its own; 125 if it was lost, refused by a dependency, or could not be started for an unknown
// reason. Never 0 unless the outcome is ok.
int exit_code_of_job(const core::Job& job);

}  // namespace mete::wire
