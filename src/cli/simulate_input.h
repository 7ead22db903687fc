// SPDX-License-Identifier: Apache-2.0
// The input of `mete simulate`: words and files in, values out. Errors in words are `invalid` and
// exit with 64; errors in files carry their own exit code, 65.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "simulate/pool.h"
#include "simulate/replay.h"
#include "simulate/trace.h"

namespace mete::cli {

// An error and its exit code.
struct Failure {
  Error error;
  int exit_code = kExitUsage;
};
template <typename T>
using Input = std::variant<T, Failure>;

inline Failure bad_words(Error error) { return {std::move(error), kExitUsage}; }
inline Failure bad_file(Error error) { return {std::move(error), kExitBadFile}; }

// Where jobs run: the nodes of a cluster, or the cards of one machine.
struct Place {
  std::vector<core::cluster::NodeSpec> nodes;  // for a machine too, for its types
  std::optional<core::Pool> machine;           // --pool
  std::string text;                            // "2xH200+1xT4", "4xg4dn.12xlarge"; "": of a file
  std::vector<std::uint32_t> rows = {};  // with --where: the row of each node; otherwise empty
};

// From --nodes, --instances or --pool: exactly one of them.
Input<Place> read_place(const Parsed& parsed);
// From --pool; `today`: what "+1xH200" is added to, or nullptr.
Input<Place> read_pool(const Parsed& parsed, const core::Pool* today);

Input<std::vector<simulate::TraceJob>> read_jobs(const Parsed& parsed, const Place& place,
                                                 simulate::Times times);
// --where: only nodes that match the expression. infeasible: none does.
Result<void> limit_nodes(const Parsed& parsed, Place& place);
// A whole file of a trace.
Result<std::string> read_trace_file(const std::string& path);

Result<simulate::MixFrom> parse_mix(const std::string* text);
Result<std::uint64_t> parse_seed(const std::string* text);
// "20": jobs; "1%", "0.5%": of all cards.
Result<simulate::MoveLimit> parse_moves(const std::string* text,
                                        const std::vector<core::cluster::NodeSpec>& nodes);

}  // namespace mete::cli
