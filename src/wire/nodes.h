// SPDX-License-Identifier: Apache-2.0
// A file of nodes, as `mete where --nodes` reads it, and the answer:
//   {"A": {"ec2InstanceId":"i-1","agentConnected":true,"agentVersion":"1.14.5",
//          "registeredAt":"2018-02-12T23:59:59Z","runningTasksCount":0,"taskGroups":[],
//          "attributes":{"stack":"prod","ssd":null,"gpu.type":["T4","H200"]}}, …}
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/where/query.h"

namespace mete::wire {

using NamedNode = std::pair<std::string, core::NodeFacts>;

// In the order of the file. corrupt: not JSON, or a value of the wrong kind; the error has node and
// name.
Result<std::vector<NamedNode>> decode_nodes(std::string_view text);

// mete.where/1
std::string encode_where(const std::vector<std::string>& match);

}  // namespace mete::wire
