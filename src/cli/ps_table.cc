// SPDX-License-Identifier: Apache-2.0
// See ps_table.h.
#include "cli/ps_table.h"

#include <algorithm>

#include "base/text.h"
#include "cli/table.h"
#include "core/request/gpu.h"

namespace mete::cli {

namespace {

using core::Job;
using core::JobState;

// "ended failed 3", "running".
std::string state_of(const Job& job) {
  std::string text(to_string(job.state));
  if (job.state != JobState::kEnded) return text;
  if (job.outcome) text.append(" ").append(to_string(*job.outcome));
  if (job.exit && job.exit->signal) return text + " " + std::to_string(*job.exit->signal);
  if (job.exit && job.exit->code.value_or(0) != 0)
    return text + " " + std::to_string(*job.exit->code);
  return text;
}

// "0.4 → 55.92 GiB", "2x8G → 2x 8 GiB"; without a grant what was asked for.
std::string gpu_of(const Job& job) {
  std::string text = job.spec.request.gpu ? to_string(*job.spec.request.gpu) : "";
  if (job.grant.empty()) return text;
  std::vector<std::string> each;
  for (const core::GrantedCard& card : job.grant) each.push_back(to_string(card.bytes));
  const bool same = std::all_of(each.begin(), each.end(),
                                [&](const std::string& bytes) { return bytes == each.front(); });
  std::string bytes = base::join(each, " + ");
  if (same && each.size() > 1) bytes = std::to_string(each.size()) + "x " + each.front();
  return text.empty() ? bytes : text + " → " + bytes;
}

std::string cards_of(const Job& job) {
  std::vector<std::string> cards;
  for (const core::GrantedCard& card : job.grant) cards.push_back(std::to_string(card.index));
  return base::join(cards, ",");
}

// On all its cards; nothing when a figure is missing.
std::string used_of(const wire::JobView& view) {
  if (view.job.state == JobState::kEnded || view.used.empty()) return "";
  Bytes sum;
  for (const std::optional<Bytes>& used : view.used) {
    const std::optional<Bytes> more = used ? sum.checked_add(*used) : std::nullopt;
    if (!more) return "";
    sum = *more;
  }
  return to_string(sum);
}

// How long it waits, runs or ran.
std::string time_of(const Job& job, WallTime now) {
  const WallTime from = job.started.value_or(job.submitted);
  const WallTime to = job.ended.value_or(now);
  if (job.state == JobState::kEnded && !job.started) return "";
  return base::duration_in_words(std::max<std::int64_t>(0, (to.ms - from.ms) / 1000));
}

std::string reason_of(const wire::JobView& view) {
  if (view.job.state != JobState::kPending || !view.wait) return "";
  return std::string(to_string(view.wait->reason)) +
         (view.wait->text.empty() ? "" : ": " + view.wait->text);
}

}  // namespace

std::string ps_table(const std::vector<wire::JobView>& jobs, WallTime now,
                     std::optional<std::size_t> width) {
  const bool reasons = std::any_of(
      jobs.begin(), jobs.end(), [](const wire::JobView& view) { return !reason_of(view).empty(); });
  Table table({{"ID", Align::kRight},
               {"NAME", Align::kLeft, 20},
               {"USER", Align::kLeft, 16},
               {"STATE"},
               {"GPU"},
               {"CARDS"},
               {"USED", Align::kRight},
               {"TIME", Align::kRight},
               {"COMMAND", Align::kLeft, reasons ? 30U : 0U},
               {"REASON"}});
  for (const wire::JobView& view : jobs) {
    const Job& job = view.job;
    table.add({to_string(job.id), job.spec.name, job.spec.user, state_of(job), gpu_of(job),
               cards_of(job), used_of(view), time_of(job, now), base::join(job.spec.command, " "),
               reason_of(view)});
  }
  return table.text(width);
}

}  // namespace mete::cli
