// SPDX-License-Identifier: Apache-2.0
// See history.h.
#include "simulate/history.h"

#include <algorithm>

#include "core/request/gpu.h"
#include "wire/job.h"

namespace mete::simulate {

Result<History> parse_history(std::string_view json) {
  // For another document wire would report that it has no jobs.
  if (json.find("\"mete.ps/1\"") == std::string_view::npos)
    return Error::corrupt("this is not what mete ps -a -o json prints");
  const Result<std::vector<wire::JobView>> views = wire::decode_ps(json);
  if (!views) return views.error();
  // For a running job, the time that it has run so far is known.
  WallTime last;
  for (const wire::JobView& view : *views)
    for (const std::optional<WallTime>& time :
         {std::optional(view.job.submitted), view.job.started, view.job.ended})
      if (time) last = std::max(last, *time);
  History history;
  std::vector<std::int64_t> waits;
  for (const wire::JobView& view : *views) {
    const core::Job& job = view.job;
    if (!job.started || job.attempt != 1 || *job.started < job.submitted) {
      ++history.left_out;
      continue;
    }
    TimedJob timed;
    timed.name = job.spec->name;
    timed.user = job.spec->user;
    timed.request = core::request_of(job);
    // The document has no --devices. A job without --gpu had whole cards.
    if (!timed.request.gpu)
      timed.request.gpu = job.grant.empty()
                              ? core::no_gpu()
                              : core::whole_cards(static_cast<std::uint32_t>(job.grant.size()));
    timed.submitted = job.submitted;
    timed.run_ms = std::max<std::int64_t>(0, job.ended.value_or(last).ms - job.started->ms);
    timed.limit_s = job.spec->time_s;
    timed.priority = job.priority;
    waits.push_back(job.started->ms - job.submitted.ms);
    history.jobs.push_back(std::move(timed));
  }
  history.recorded = waits_of(std::move(waits));
  return history;
}

}  // namespace mete::simulate
