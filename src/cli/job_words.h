// SPDX-License-Identifier: Apache-2.0
// The words that `mete cap` and `mete run` have in common: options, and what they mean. Words in,
// values out; nothing is looked at.
#pragma once

#include "base/result.h"
#include "cli/job_runner.h"
#include "cli/options.h"
#include "core/request/resolve.h"

namespace mete::cli {

inline constexpr OptionSpec kGpuOption{
    "--gpu", "SHARE",
    "memory on a card: 0.4 or 40% of it, 8G or 8GB; on several: 2x8G, 4x40%,\n"
    "allx40%; whole cards: 1, 2, all; no GPU: 0. G is 2^30 bytes, GB is 10^9"};
inline constexpr OptionSpec kDevicesOption{
    "--devices", "LIST",
    "these cards, in this order: numbers or UUIDs, as in 3,2. Alone: whole cards;\n"
    "with a share: that share on each"};
inline constexpr OptionSpec kGpuTypeOption{"--gpu-type", "TYPE",
                                           "only cards of this type, as in H200"};
inline constexpr OptionSpec kCpuOnlyOption{"--cpu-only", "", "the same as --gpu 0"};
inline constexpr OptionSpec kVisibleOption{
    "--visible", "KIND",
    "write CUDA_VISIBLE_DEVICES as uuid (default) or as index, for programs that\n"
    "parse numbers"};
inline constexpr OptionSpec kEnvOption{
    "--env", "NAME=VALUE", "set a variable for the program; may be given more than once", "", true};
inline constexpr OptionSpec kChdirOption{"--chdir", "FOLDER", "start the program in this folder"};
inline constexpr OptionSpec kQuietOption{"--quiet", "", "do not print the resolved bytes", "-q"};

// --gpu, --cpu-only, --devices, --gpu-type.
Result<core::Request> parse_request(const Parsed& parsed);

// The command, --visible, --env, --chdir. `verb` is for the hint; --dry-run needs no command.
Result<void> parse_program(const Parsed& parsed, std::string_view verb, JobPlan& plan);

}  // namespace mete::cli
