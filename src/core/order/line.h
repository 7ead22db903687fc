// SPDX-License-Identifier: Apache-2.0
// The queue, one job after another: jobs that have waited too long, then by priority, by the user
// with the least usage, by number (pass.h has the full rules). Internal to core/order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "core/order/pass.h"

namespace mete::core {

class Line {
 public:
  // `input` and its jobs must not change meanwhile.
  explicit Line(const PassInput& input);

  struct Next {
    JobId id;
    KindId kind = 0;
    std::int32_t priority = 0;
    bool starving = false;
  };
  std::optional<Next> next();
  // The last job was granted cards at this cost per second: its user comes later.
  void took(std::uint64_t mib_per_second);
  // No more jobs of the last one's kind. The queue ends when no kind is left.
  void refused();

 private:
  using Queues = std::map<Pending::Queue, Pending::Jobs>;
  // The jobs of one user at the present priority.
  struct Queue {
    Pending::Jobs::const_iterator at, end;
    std::uint64_t* usage = nullptr;
    std::size_t kinds = 0;  // kinds that may still come
    std::int32_t priority = 0;
  };
  struct Turn {
    std::uint64_t usage = 0;
    JobId id;
    std::size_t queue = 0;
    bool operator>(const Turn& other) const {
      return usage != other.usage ? usage > other.usage : id > other.id;
    }
  };
  struct Starving {
    std::int64_t submitted_ms = 0;
    JobId id;
    KindId kind = 0;
    const std::string* user = nullptr;
    std::int32_t priority = 0;
  };

  void find_starving();
  bool begin_level();

  const PassInput& input_;
  std::map<std::string, std::uint64_t> usage_;
  std::vector<bool> refused_;  // by kind
  bool any_refused_ = false;
  std::vector<Starving> starving_;
  std::size_t starving_at_ = 0;
  std::set<JobId> first_;  // the jobs of starving_
  Queues::const_iterator level_;
  std::vector<Queue> queues_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  KindId last_kind_ = 0;
  std::uint64_t* last_usage_ = nullptr;
  Queue* last_queue_ = nullptr;  // nullptr: the last job came from starving_
};

}  // namespace mete::core
