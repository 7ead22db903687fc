// SPDX-License-Identifier: Apache-2.0
// The options that `mete cap`, `mete run` and `mete submit` have in common, and their meaning.
// Words in, values out; nothing else is read.
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
    "GPU memory: 0.4 or 40% of one card, 8G or 8GB on one card, 2x8G, 4x40% or allx40% on several "
    "cards; 1, 2 or all for whole cards; 0 for no GPU. G is 2^30 bytes, GB is 10^9"};
inline constexpr OptionSpec kDevicesOption{
    "--devices", "LIST",
    "use these cards, in this order: numbers or UUIDs, such as 3,2. Without --gpu: whole cards; "
    "with --gpu: that share on each"};
inline constexpr OptionSpec kGpuTypeOption{"--gpu-type", "TYPE",
                                           "use only cards of this type, such as H200"};
inline constexpr OptionSpec kWhereOption{
    "--where", "EXPR",
    "use only cards that match this expression, such as 'attribute:gpu.memory >= 16G'. Attributes: "
    "gpu.type, gpu.memory, gpu.count, gpu.free. See mete where"};
inline constexpr OptionSpec kCpuOnlyOption{"--cpu-only", "", "request no GPU; short for --gpu 0"};
inline constexpr OptionSpec kVisibleOption{
    "--visible", "KIND",
    "write CUDA_VISIBLE_DEVICES as uuid (default) or as index, for programs that parse numbers"};
inline constexpr OptionSpec kEnvOption{
    "--env", "NAME=VALUE", "set an environment variable for the program; repeatable", "-e", true};
inline constexpr OptionSpec kChdirOption{"--chdir", "FOLDER", "start the program in this folder",
                                         "-D"};
inline constexpr OptionSpec kQuietOption{"--quiet", "", "do not print the granted bytes", "-q"};
inline constexpr OptionSpec kOrCpuOption{
    "--or-cpu", "", "run without a GPU if there is no room now, instead of waiting"};
inline constexpr OptionSpec kProcsOption{
    "--procs", "N",
    "start N processes that divide the grant evenly, each limited to its part, with RANK, "
    "LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set as torchrun sets them"};
inline constexpr OptionSpec kCpusOption{"--cpus", "N",
                                        "limit the job to N CPUs (a cgroup limit, where allowed)"};
inline constexpr OptionSpec kRamOption{
    "--ram", "SIZE", "limit the job to this much host memory (a cgroup limit, where allowed)"};
inline constexpr OptionSpec kTimeOption{
    "--time", "TIME",
    "end the job after this time, with exit code 124: 90, 90s, 10m, 2h, 1d, 1:30:00 or 2-12:00:00",
    "-t"};
inline constexpr OptionSpec kDryRunOption{
    "--dry-run", "",
    "print the cards the job would start on, or why and how long it would wait; run nothing"};
inline constexpr OptionSpec kNoWaitOption{
    "--no-wait", "", "fail with exit code 75 if there is no room now, instead of waiting"};
inline constexpr OptionSpec kNameOption{
    "--name", "NAME", "name of the job in lists (default: name of the program)", "-J"};
inline constexpr OptionSpec kPriorityOption{
    "--priority", "N",
    "jobs with a higher priority start first: -1000 to 1000 (default: 0). Only administrators may "
    "set it above 0"};

inline constexpr OptionSpec kPreemptibleOption{
    "--preemptible", "", "allow mete to park this job for jobs with a higher priority"};
inline constexpr OptionSpec kNotPreemptibleOption{"--not-preemptible", "",
                                                  "never park this job, whatever the default"};
inline constexpr OptionSpec kIdleOption{
    "--idle", "TIME",
    "park this job after TIME without work on its cards, and bring it back at its next GPU call; "
    "never turns this off, whatever the default"};
inline constexpr OptionSpec kNoPreemptOption{"--no-preempt", "",
                                             "wait for room; do not park other jobs for this job"};
inline constexpr OptionSpec kShedOption{
    "--shed", "", "for a share that grows: stop growing instead of being parked"};

inline constexpr OptionSpec kNotifyOption{"--notify", "WHERE",
                                          "send notifications by mail, mail:ADDRESS, webhook:URL "
                                          "or cmd:COMMAND; none turns them off; repeatable",
                                          "", true};
inline constexpr OptionSpec kNotifyOnOption{
    "--notify-on", "LIST",
    "events that send a notification: start, end, fail, oom, park, idle (default: end,fail,oom)"};

// --gpu auto: the share is measured. For sweeps only; elsewhere parse_request() refuses it.
inline constexpr std::string_view kGpuAuto = "auto";

// --gpu, --cpu-only, --devices, --gpu-type, --where.
Result<core::Request> parse_request(const Parsed& parsed);

// --procs, --cpus, --ram, --time, --priority, --or-cpu, --preemptible, --idle, --no-preempt,
// --shed, --notify, --notify-on. Checks each value by itself: an option of a file is parsed alone,
// so that its error names its line.
Result<void> parse_limits(const Parsed& parsed, core::JobSpec& spec);
// Options that need or contradict another option. For a whole job, never for one option alone.
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

// A request without a share is a mistake for verbs that grant cards.
Result<void> check_share_is_said(const core::Request& request);

std::string current_folder();

// The command, --visible, --env, --chdir. `verb` is for the hint; --dry-run needs no command.
Result<void> parse_program(const Parsed& parsed, std::string_view verb, runner::JobPlan& plan);

}  // namespace mete::cli
