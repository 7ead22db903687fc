// SPDX-License-Identifier: Apache-2.0
// The cluster query language of ECS: selects nodes.
//
//   attribute:stack == prod and (attribute:gpu.memory >= 16G or runningTasksCount == 0)
//
// A missing attribute makes every comparison false, including `!=`, `!in` and `!~`; `not(…)` around
// one is then true. If there are several values (task:group; an attribute with a list), one that
// matches is enough. Amounts are compared by value: gpu.memory == 16G. Errors point at the
// character.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace mete::core {

inline constexpr std::size_t kMaxQuery = 2'000;  // characters

// What is known of a node. An absent field is unknown.
struct NodeFacts {
  std::optional<std::string> ec2_instance_id;
  std::optional<bool> agent_connected;
  std::optional<std::string> agent_version;
  std::optional<WallTime> registered_at;
  std::optional<std::uint64_t> running_tasks;
  std::vector<std::string> task_groups;
  std::map<std::string, std::vector<std::string>> attributes;  // no value: present, and empty
};

// An attribute whose value changes as jobs come and go, and its range.
struct Varying {
  std::string_view attribute;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

class Query {
 public:
  // invalid: `evidence` shows the text with a mark below the character.
  static Result<Query> parse(std::string_view text);
  const std::string& text() const { return text_; }
  bool matches(const NodeFacts& node) const;
  // Whether the query could be true of this node at some time: each attribute in `varying` then has
  // any value in its range, and any number of tasks runs. Comparisons are judged one by one, so "x
  // < 3 and x > 5" may match; false is final.
  bool may_match(const NodeFacts& node, std::span<const Varying> varying) const;
  bool mentions(std::string_view attribute) const;

  // By the text; the order has no meaning.
  bool operator==(const Query& other) const { return text_ == other.text_; }
  std::strong_ordering operator<=>(const Query& other) const { return text_ <=> other.text_; }

  struct Node;  // of the tree; query.cc

 private:
  Query(std::string text, std::shared_ptr<const Node> root)
      : text_(std::move(text)), root_(std::move(root)) {}
  std::string text_;
  std::shared_ptr<const Node> root_;
};

// 2018-06-18T22:28:28+00:00, …Z, without a zone (UTC), or a day alone.
std::optional<WallTime> parse_registered_at(std::string_view text);
// Compares part by part: 1.9 is before 1.14. Negative, 0, positive.
int compare_versions(std::string_view a, std::string_view b);

}  // namespace mete::core
