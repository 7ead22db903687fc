// SPDX-License-Identifier: Apache-2.0
// The words that `mete cap`, `mete run` and `mete submit` have in common: options, and what they
// mean. Words in, values out; nothing is looked at.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "core/job/job.h"
#include "core/request/resolve.h"
#include "runner/job_runner.h"

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
inline constexpr OptionSpec kWhereOption{
    "--where", "EXPR",
    "only cards of which this is true, as in 'attribute:gpu.memory >= 16G': gpu.type,\n"
    "gpu.memory, gpu.count, gpu.free (mete where)"};
inline constexpr OptionSpec kCpuOnlyOption{"--cpu-only", "", "the same as --gpu 0"};
inline constexpr OptionSpec kVisibleOption{
    "--visible", "KIND",
    "write CUDA_VISIBLE_DEVICES as uuid (default) or as index, for programs that\n"
    "parse numbers"};
inline constexpr OptionSpec kEnvOption{
    "--env", "NAME=VALUE", "set a variable for the program; may be given more than once", "-e",
    true};
inline constexpr OptionSpec kChdirOption{"--chdir", "FOLDER", "start the program in this folder",
                                         "-D"};
inline constexpr OptionSpec kQuietOption{"--quiet", "", "do not print the resolved bytes", "-q"};
inline constexpr OptionSpec kOrCpuOption{
    "--or-cpu", "", "if there is no room now, run without a GPU instead of waiting"};
inline constexpr OptionSpec kProcsOption{
    "--procs", "N",
    "start N processes that share the grant evenly, each capped to its part, with\n"
    "RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them"};
inline constexpr OptionSpec kCpusOption{"--cpus", "N",
                                        "at most so many CPUs (a cgroup limit, where allowed)"};
inline constexpr OptionSpec kRamOption{"--ram", "SIZE",
                                       "at most so much memory (a cgroup limit, where allowed)"};
inline constexpr OptionSpec kTimeOption{
    "--time", "TIME",
    "end the job after 90, 90s, 10m, 2h, 1d, 1:30:00 or 2-12:00:00 (exit code 124)", "-t"};
inline constexpr OptionSpec kNoWaitOption{"--no-wait", "",
                                          "do not wait: exit code 75 if there is no room now"};
inline constexpr OptionSpec kNameOption{"--name", "NAME",
                                        "the job's name in lists (default: the program's)", "-J"};
inline constexpr OptionSpec kPriorityOption{
    "--priority", "N", "higher goes first: -1000 to 1000 (default 0); above 0 for admins only"};

inline constexpr OptionSpec kPreemptibleOption{
    "--preemptible", "", "may be parked to make room for jobs of a higher priority"};
inline constexpr OptionSpec kNotPreemptibleOption{
    "--not-preemptible", "", "may not, also where the configuration says that jobs may"};
inline constexpr OptionSpec kNoPreemptOption{"--no-preempt", "",
                                             "wait for room; nobody is parked for this job"};
inline constexpr OptionSpec kShedOption{
    "--shed", "",
    "of a share that grows: it is never parked for others, and stops growing instead"};

inline constexpr OptionSpec kNotifyOption{
    "--notify", "WHERE",
    "tell of it by mail, mail:ADDRESS, webhook:URL or cmd:COMMAND; none: nobody. May be\n"
    "given more than once",
    "", true};
inline constexpr OptionSpec kNotifyOnOption{
    "--notify-on", "LIST", "of what: start,end,fail,oom,park,idle (default: end,fail,oom)"};

// --gpu, --cpu-only, --devices, --gpu-type, --where.
Result<core::Request> parse_request(const Parsed& parsed);

// --procs, --cpus, --ram, --time, --priority, --or-cpu, --preemptible, --no-preempt, --shed,
// --notify, --notify-on. Each value by itself: one option of a file is looked at alone, so that its
// error names its line.
Result<void> parse_limits(const Parsed& parsed, core::JobSpec& spec);
// Options that need another option, or contradict it. For a whole job, never for one option alone.
Result<void> check_limits(const core::JobSpec& spec);

// The value of an option that is a number.
Result<std::int64_t> parse_number(const Parsed& parsed, std::string_view option, std::int64_t least,
                                  std::int64_t most);

// --name, or the last part of a program's path.
Result<std::string> job_name(const Parsed& parsed, const std::string& program);

// --visible: whether by index.
Result<bool> parse_visible(const Parsed& parsed);
// --env.
Result<std::vector<std::pair<std::string, std::string>>> parse_variables(const Parsed& parsed);

// A request that says nothing about cards is a mistake where cards are given out.
Result<void> check_share_is_said(const core::Request& request);

std::string current_folder();

// The command, --visible, --env, --chdir. `verb` is for the hint; --dry-run needs no command.
Result<void> parse_program(const Parsed& parsed, std::string_view verb, runner::JobPlan& plan);

}  // namespace mete::cli
