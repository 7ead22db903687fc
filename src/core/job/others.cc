// SPDX-License-Identifier: Apache-2.0
// See others.h.
#include "core/job/others.h"

#include <utility>

namespace mete::core {

std::string_view to_string(Others others) {
  switch (others) {
    case Others::kTotals:
      return "totals";
    case Others::kRows:
      return "rows";
    case Others::kAll:
      return "all";
  }
  return "";
}

std::optional<Others> parse_others(std::string_view text) {
  for (const Others others : {Others::kTotals, Others::kRows, Others::kAll})
    if (to_string(others) == text) return others;
  return std::nullopt;
}

Job row_of(const Job& job, Others others, SharedSpec& last) {
  const JobSpec& spec = *job.spec;
  const bool words = others == Others::kAll;
  const std::optional<GpuRequest>& gpu = job.gpu ? job.gpu : spec.request.gpu;
  const bool same_share =
      last->request.gpu == gpu && (!gpu || last->request.gpu->written == gpu->written);
  const bool same = last->uid == spec.uid && last->user == spec.user && same_share &&
                    (!words || (last->name == spec.name && last->command == spec.command));
  if (!same) {
    JobSpec shown;
    shown.uid = spec.uid;
    shown.user = spec.user;
    shown.request.gpu = gpu;
    if (words) {
      shown.name = spec.name;
      shown.command = spec.command;
    }
    last = std::move(shown);
  }
  Job row;
  row.id = job.id;
  row.spec = last;
  row.state = job.state;
  row.priority = job.priority;
  row.submitted = job.submitted;
  row.started = job.started;
  row.ended = job.ended;
  for (const GrantedCard& card : job.grant)
    row.grant.push_back({card.index, card.uuid, card.bytes, card.whole});
  return row;
}

}  // namespace mete::core
