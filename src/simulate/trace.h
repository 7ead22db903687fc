// SPDX-License-Identifier: Apache-2.0
// Traces in the format of the openb family: a list of nodes, a list of jobs, and the order in which
// jobs arrive. Text in, values out; an error names file and line. Columns are found by their names,
// in any order. Other columns of nodes are their attributes; other columns of jobs are ignored.
//
//   nodes     sn,cpu_milli,memory_mib,gpu,model[,gpu_memory_mib]
//   jobs      name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]   gpu_spec: models joined by |
//             with times, in seconds: creation_time, and deletion_time or duration
//             [,scheduled_time,user,priority,time_limit,inst_num]
//             inst_num: how many copies start together, on one node or several, or not at all
//   arrivals  one row of the jobs, counted from 0, on each line
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/cluster/model.h"

namespace mete::simulate {

inline constexpr std::size_t kMaxTraceFile = std::size_t{256} << 20;
inline constexpr std::size_t kMaxNodes = 1'000'000;
inline constexpr std::uint32_t kMaxCopies = 10'000;

// When a job arrived, how long it ran, and what the queue knows of it.
struct JobTimes {
  std::int64_t submit_ms = 0;
  std::int64_t run_ms = 0;
  std::optional<std::uint64_t> limit_s = {};  // its time limit, if it has one
  std::int32_t priority = 0;
  std::string user = "trace";
  std::uint32_t copies = 1;  // that start together
};

struct TraceJob {
  std::string name;
  core::cluster::Ask ask;
  std::optional<JobTimes> times = {};  // if they were asked for
};

// `path` is for errors: "nodes.csv:12: ...".
Result<std::vector<core::cluster::NodeSpec>> parse_nodes(std::string_view text,
                                                         const std::string& path);
// A job that names types, none of which some node has, is an error. kNeeded: every job has its
// times.
enum class Times { kIgnored, kNeeded };
Result<std::vector<TraceJob>> parse_jobs(std::string_view text, const std::string& path,
                                         const std::vector<core::cluster::NodeSpec>& nodes,
                                         Times times = Times::kIgnored);
Result<std::vector<std::uint32_t>> parse_arrivals(std::string_view text, const std::string& path,
                                                  std::size_t jobs);
// One rank for each node: the numbers from 0, each once.
Result<std::vector<std::uint32_t>> parse_ranks(std::string_view text, const std::string& path,
                                               std::size_t nodes);

}  // namespace mete::simulate
