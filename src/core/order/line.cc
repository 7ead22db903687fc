// SPDX-License-Identifier: Apache-2.0
// See line.h.
#include "core/order/line.h"

#include <algorithm>
#include <tuple>

namespace mete::core {

namespace {

// A grant counts as if it were held this long, so that users take turns within a pass.
constexpr std::uint64_t kTurnSeconds = 3'600;

}  // namespace

Line::Line(const PassInput& input)
    : input_(input),
      usage_(input.usage),
      refused_(input.pending->kind_ids()),
      level_(input.pending->queues().begin()) {
  find_starving();
}

void Line::find_starving() {
  std::map<std::string, Starving> oldest;
  const std::int64_t before =
      input_.now.ms - static_cast<std::int64_t>(input_.rules->starve_after_s * 1000);
  for (const auto& [queue, jobs] : input_.pending->queues()) {
    for (const auto& [id, entry] : jobs) {
      if (entry.not_before_ms > input_.now.ms) continue;
      if (entry.submitted_ms > before) break;
      const Starving found{entry.submitted_ms, id, entry.kind, &queue.user, queue.priority};
      const auto [known, added] = oldest.try_emplace(queue.user, found);
      if (!added && id < known->second.id) known->second = found;
      break;
    }
  }
  for (const auto& [user, found] : oldest) {
    starving_.push_back(found);
    first_.insert(found.id);
  }
  std::sort(starving_.begin(), starving_.end(), [](const Starving& a, const Starving& b) {
    return std::tie(a.submitted_ms, a.id) < std::tie(b.submitted_ms, b.id);
  });
}

bool Line::begin_level() {
  const Queues& all = input_.pending->queues();
  queues_.clear();
  for (; level_ != all.end() && queues_.empty();) {
    for (const std::int32_t priority = level_->first.priority;
         level_ != all.end() && level_->first.priority == priority; ++level_) {
      const std::map<KindId, std::size_t>& all_kinds = input_.pending->kinds_in(level_->first);
      std::size_t kinds = all_kinds.size();
      if (any_refused_)
        for (const auto& [kind, jobs] : all_kinds)
          if (refused_[kind]) --kinds;
      if (kinds > 0)
        queues_.push_back({level_->second.begin(), level_->second.end(),
                           &usage_[level_->first.user], kinds, priority});
    }
  }
  for (std::size_t i = 0; i < queues_.size(); ++i)
    turns_.push({*queues_[i].usage, queues_[i].at->first, i});
  return !queues_.empty();
}

std::optional<Line::Next> Line::next() {
  while (starving_at_ < starving_.size()) {
    const Starving& first = starving_[starving_at_++];
    if (refused_[first.kind]) continue;
    last_kind_ = first.kind;
    last_usage_ = &usage_[*first.user];
    last_queue_ = nullptr;
    return Next{first.id, first.kind, first.priority, true};
  }
  for (;;) {
    if (turns_.empty() && !begin_level()) return std::nullopt;
    Turn turn = turns_.top();
    turns_.pop();
    Queue& queue = queues_[turn.queue];
    if (queue.kinds == 0) continue;
    // The user was granted something since: the turn comes later.
    if (turn.usage != *queue.usage) {
      turns_.push({*queue.usage, turn.id, turn.queue});
      continue;
    }
    const auto& [id, entry] = *queue.at++;
    if (queue.at != queue.end) turns_.push({turn.usage, queue.at->first, turn.queue});
    if (refused_[entry.kind] || entry.not_before_ms > input_.now.ms || first_.contains(id))
      continue;
    last_kind_ = entry.kind;
    last_usage_ = queue.usage;
    last_queue_ = &queue;
    return Next{id, entry.kind, queue.priority, false};
  }
}

void Line::took(std::uint64_t mib_per_second) { *last_usage_ += mib_per_second * kTurnSeconds; }

void Line::refused() {
  refused_[last_kind_] = any_refused_ = true;
  if (last_queue_ != nullptr) --last_queue_->kinds;
}

}  // namespace mete::core
