// SPDX-License-Identifier: Apache-2.0
#include "core/order/pending.h"

#include <algorithm>

#include "base/assert.h"
#include "core/request/gpu.h"

namespace mete::core {

namespace {

std::int64_t not_before(const Job& job) {
  std::int64_t ms = job.spec->begin ? job.spec->begin->ms : 0;
  if (job.not_before) ms = std::max(ms, job.not_before->ms);
  return ms;
}

Pending::Queue queue_of(const Job& job) { return {job.priority, job.spec->user}; }

}  // namespace

Kind kind_of(const Job& job) {
  const JobSpec& spec = *job.spec;
  Kind kind{request_of(job),           spec.user,      spec.time_s, {}, 0, 0,
            spec.detached.has_value(), spec.no_preempt};
  if (!spec.time_s) kind.name = spec.name;
  if (spec.array && spec.array->at_once) {
    kind.array = job.id.number;
    kind.at_once = *spec.array->at_once;
  }
  return kind;
}

std::uint32_t cpus_of(const Request& request, bool detached) {
  if (!detached) return 0;
  if (request.cpus) return *request.cpus;
  return request.gpu == no_gpu() ? 1 : 0;
}

void Pending::insert(const Job& job) {
  Kind kind = kind_of(job);
  auto [known, added] = by_value_.try_emplace(std::move(kind), KindId{});
  if (added) {
    if (unused_.empty()) {
      known->second = static_cast<KindId>(kinds_.size());
      kinds_.emplace_back();
      least_.emplace_back();
    } else {
      known->second = unused_.back();
      unused_.pop_back();
    }
    kinds_[known->second] = {known->first, 0};
    least_[known->second] = least_of(known->first.request);
  }
  ++kinds_[known->second].jobs;
  const Entry entry{known->second, not_before(job), job.submitted.ms};
  const bool inserted = queues_[queue_of(job)].insert(job.id, entry);
  METE_ASSERT(inserted);
  ++kinds_in_[queue_of(job)][entry.kind];
  if (entry.not_before_ms != 0) ++begins_[entry.not_before_ms];
  ++size_;
}

void Pending::erase(const Job& job) {
  const auto queue = queues_.find(queue_of(job));
  METE_ASSERT(queue != queues_.end());
  const auto found = queue->second.find(job.id);
  METE_ASSERT(found != queue->second.end());
  const Entry entry = found->second;
  queue->second.erase(job.id);
  const auto kinds = kinds_in_.find(queue->first);
  if (--kinds->second.at(entry.kind) == 0) kinds->second.erase(entry.kind);
  if (queue->second.empty()) {
    kinds_in_.erase(kinds);
    queues_.erase(queue);
  }
  if (entry.not_before_ms != 0 && --begins_[entry.not_before_ms] == 0)
    begins_.erase(entry.not_before_ms);
  Counted& counted = kinds_[entry.kind];
  if (--counted.jobs == 0) {
    by_value_.erase(counted.kind);
    unused_.push_back(entry.kind);
  }
  --size_;
}

std::optional<KindId> Pending::find(const Kind& kind) const {
  const auto found = by_value_.find(kind);
  if (found == by_value_.end()) return std::nullopt;
  return found->second;
}

std::optional<WallTime> Pending::next_begin(WallTime now) const {
  const auto next = begins_.upper_bound(now.ms);
  if (next == begins_.end()) return std::nullopt;
  return WallTime{next->first};
}

}  // namespace mete::core
