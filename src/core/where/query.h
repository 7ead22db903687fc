// SPDX-License-Identifier: Apache-2.0
// The cluster query language of ECS: which of the nodes are meant.
//
//   attribute:stack == prod and (attribute:gpu.memory >= 16G or runningTasksCount == 0)
//
// A missing attribute makes every comparison false, `!=`, `!in` and `!~` too; `not(…)` around one
// is then true. Of several values (task:group; an attribute with a list) one that fits is enough.
// Errors point at the character.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace mete::core {

inline constexpr std::size_t kMaxQuery = 2'000;  // characters

// What is known of a node. What is absent is not known.
struct NodeFacts {
  std::optional<std::string> ec2_instance_id;
  std::optional<bool> agent_connected;
  std::optional<std::string> agent_version;
  std::optional<WallTime> registered_at;
  std::optional<std::uint64_t> running_tasks;
  std::vector<std::string> task_groups;
  std::map<std::string, std::vector<std::string>> attributes;  // no value: it is there, and empty
};

class Query {
 public:
  // invalid: `evidence` shows the text with a mark below the character.
  static Result<Query> parse(std::string_view text);
  bool matches(const NodeFacts& node) const;

  struct Node;  // of the tree; query.cc

 private:
  explicit Query(std::shared_ptr<const Node> root) : root_(std::move(root)) {}
  std::shared_ptr<const Node> root_;
};

// 2018-06-18T22:28:28+00:00, …Z, without a zone (UTC), or a day alone.
std::optional<WallTime> parse_registered_at(std::string_view text);
// By parts: 1.9 is before 1.14. Negative, 0, positive.
int compare_versions(std::string_view a, std::string_view b);

}  // namespace mete::core
